"""Lanes to a database: what many tasks ask for at once is done together.

A group is whatever waits when the database is free: an idle lane does one piece of work at once, a busy one does many
in one transaction and one hop to the driver's thread. Whoever finds a lane full waits for room before waiting for the
answer, and can still be cancelled then: nothing was accepted.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

import anyio

from persistence.errors import PersistenceClosedError, PersistenceError
from persistence.outlasting import outlast

T = TypeVar("T")

GROUP: Final = 128
"""Pieces of work in one transaction: so many that a commit's cost no longer shows, so few that none waits long."""

ROOM: Final = 1024
"""Pieces of work that wait at most: eight full groups keep any database busy, more would only wait longer."""


@dataclass(frozen=True, slots=True)
class LaneStatistics:
    """How full a lane is and what it has done since its store was opened."""

    name: str
    limit: int
    """How many pieces of work may wait."""
    depth: int
    """How many wait now; those being done have left."""
    peak: int
    waiting_callers: int
    """Callers that wait for room."""
    groups: int
    """How often work was done."""
    works: int
    """Pieces of work that were done, or failed."""
    largest_group: int


class Failed(Generic[T]):
    """The outcome of a piece of work that raised."""

    __slots__ = ("error",)

    def __init__(self, error: Exception) -> None:
        self.error = error


class Ticket(Generic[T]):
    """A piece of work and what becomes of it."""

    __slots__ = ("_settled", "error", "result", "work")

    def __init__(self, work: T) -> None:
        self.work = work
        self.result: Any = None
        self.error: Exception | None = None
        self._settled = anyio.Event()

    @property
    def settled(self) -> bool:
        """Whether it was done or has failed."""
        return self._settled.is_set()

    def settle(self, outcome: Any) -> None:
        """Tell whoever waits."""
        if isinstance(outcome, Failed):
            self.error = outcome.error
        else:
            self.result = outcome
        self._settled.set()

    async def wait(self) -> None:
        """Return once it is settled."""
        await self._settled.wait()

    def answer(self) -> Any:
        """Return the result of settled work. Raises what kept it from being done."""
        if self.error is not None:
            raise self.error
        return self.result


class Lane(Generic[T]):
    """Pieces of work on their way to one connection. Start ``run`` in a nursery; close to drain."""

    def __init__(self, work: Callable[[Sequence[T]], Awaitable[Sequence[Any]]], name: str = "writes") -> None:
        """Make a lane to a function that returns an outcome for each piece of work."""
        self.name = name
        self._work = work
        self._room = anyio.Semaphore(ROOM, max_value=ROOM, fast_acquire=True)
        self._queue: deque[Ticket[T]] = deque()
        self._wake: anyio.Event | None = None
        self._closed = False
        self.stopped = anyio.Event()
        self.groups = 0
        """How often work was done."""
        self._works = 0
        self._peak = 0
        self._largest = 0

    def statistics(self) -> LaneStatistics:
        """Return how full the lane is and what was done."""
        return LaneStatistics(
            name=self.name,
            limit=ROOM,
            depth=len(self._queue),
            peak=self._peak,
            waiting_callers=self._room.statistics().tasks_waiting,
            groups=self.groups,
            works=self._works,
            largest_group=self._largest,
        )

    async def ask(self, work: T) -> Any:
        """Have work done that only reads; a cancel gives it up.

        Raises:
            PersistenceClosedError: The lane is closed.
        """
        ticket = await self._send(work)
        try:
            await ticket.wait()
        except BaseException:
            if ticket in self._queue:
                self._queue.remove(ticket)
                self._room.release()
            raise
        return ticket.answer()

    async def order(self, work: T) -> Any:
        """Have work done that writes; a cancel arrives when it is done: nobody is left to wonder whether it was.

        While there is no room for it, a cancel arrives at once, and it is not done.

        Raises:
            PersistenceClosedError: The lane is closed.
        """
        ticket = await self._send(work)
        await outlast(ticket.wait)
        return ticket.answer()

    def close(self) -> None:
        """Accept nothing more; ``run`` does what was accepted and returns."""
        self._closed = True
        self._notify()

    async def run(self) -> None:
        """Work until closed and drained, whoever is cancelled meanwhile."""
        group: Sequence[Ticket[T]] = ()
        try:
            with anyio.CancelScope(shield=True):
                while await self._waits():
                    group = self._take()
                    await self._settle(group)
        finally:
            # Some are left only when the task is torn down from outside, as when an event loop is shut down.
            self._closed = True
            for ticket in (*group, *self._queue):
                if not ticket.settled:
                    error = PersistenceClosedError("The store was stopped; this is not known to be done.")
                    ticket.settle(Failed(error))
            while self._queue:
                self._queue.popleft()
                self._room.release()  # whoever waits for it hears that the lane is closed
            self.stopped.set()

    async def _send(self, work: T) -> Ticket[T]:
        self._require_open()
        await self._room.acquire()
        try:
            self._require_open()  # it may have been closed meanwhile
        except PersistenceClosedError:
            self._room.release()
            raise
        ticket = Ticket(work)
        self._queue.append(ticket)
        self._peak = max(self._peak, len(self._queue))
        self._notify()
        return ticket

    def _require_open(self) -> None:
        if self._closed:
            message = "The store is closing: nothing more is accepted. Open it again with 'async with store'."
            raise PersistenceClosedError(message)

    async def _waits(self) -> bool:
        while not self._queue:
            if self._closed:
                return False
            self._wake = anyio.Event()
            await self._wake.wait()
        return True

    def _take(self) -> list[Ticket[T]]:
        taken: list[Ticket[T]] = []
        while self._queue and len(taken) < GROUP:
            taken.append(self._queue.popleft())
            self._room.release()
        return taken

    async def _settle(self, group: Sequence[Ticket[T]]) -> None:
        self.groups += 1
        self._works += len(group)
        self._largest = max(self._largest, len(group))
        outcomes: Sequence[Any]
        try:
            outcomes = await self._work([ticket.work for ticket in group])
        except Exception as error:  # noqa: BLE001 - whoever asked is told
            outcomes = [Failed(_own(error) if place else error) for place in range(len(group))]
        for ticket, outcome in zip(group, outcomes, strict=True):
            ticket.settle(outcome)

    def _notify(self) -> None:
        if self._wake is not None:
            self._wake.set()
            self._wake = None


def _own(error: Exception) -> Exception:
    """Return the error once more, for one of several that wait: each adds its own traceback to what it raises."""
    if not isinstance(error, PersistenceError):
        return error
    own = type(error)(*error.args)
    own.__cause__ = error
    return own
