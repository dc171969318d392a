"""Lanes to a database: what many tasks ask for at once is done together.

A group is whatever waits when the database is free: an idle lane does one piece of work at once, a busy one does many
in one transaction and one hop to the driver's thread. A lane holds no more than its callers, as each waits for its
answer.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, Generic, TypeVar

import anyio

from persistence.errors import PersistenceClosedError, PersistenceError
from persistence.outlasting import outlast

T = TypeVar("T")

GROUP: Final = 128
"""Pieces of work in one transaction: so many that a commit's cost no longer shows, so few that none waits long."""


class Failed(Generic[T]):
    """The outcome of a piece of work that raised."""

    __slots__ = ("error",)

    def __init__(self, error: Exception) -> None:
        self.error = error


class Ticket(Generic[T]):
    """A piece of work and what becomes of it."""

    __slots__ = ("_settled", "error", "result", "unwanted", "work")

    def __init__(self, work: T) -> None:
        self.work = work
        self.result: Any = None
        self.error: Exception | None = None
        self.unwanted = False
        """True once nobody waits for it any more: it need not be done."""
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

    def __init__(self, work: Callable[[Sequence[T]], Awaitable[Sequence[Any]]]) -> None:
        """Make a lane to a function that returns an outcome for each piece of work."""
        self._work = work
        self._queue: deque[Ticket[T]] = deque()
        self._wake: anyio.Event | None = None
        self._closed = False
        self.stopped = anyio.Event()
        self.groups = 0
        """How often work was done."""

    async def ask(self, work: T) -> Any:
        """Have work done that only reads; a cancel gives it up.

        Raises:
            PersistenceClosedError: The lane is closed.
        """
        ticket = self._send(work)
        try:
            await ticket.wait()
        except BaseException:
            ticket.unwanted = True
            raise
        return ticket.answer()

    async def order(self, work: T) -> Any:
        """Have work done that writes; a cancel arrives when it is done: nobody is left to wonder whether it was.

        Raises:
            PersistenceClosedError: The lane is closed.
        """
        ticket = self._send(work)
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
            self._queue.clear()
            self.stopped.set()

    def _send(self, work: T) -> Ticket[T]:
        if self._closed:
            message = "The store is closing: nothing more is accepted. Open it again with 'async with store'."
            raise PersistenceClosedError(message)
        ticket = Ticket(work)
        self._queue.append(ticket)
        self._notify()
        return ticket

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
            ticket = self._queue.popleft()
            if not ticket.unwanted:
                taken.append(ticket)
        return taken

    async def _settle(self, group: Sequence[Ticket[T]]) -> None:
        if not group:
            return
        self.groups += 1
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
