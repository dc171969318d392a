"""Which threads the runs of a saver hold, and when the database must hear that their owner lives."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, TypeGuard

import anyio

from persistence.contracts.backend import Beat, Rows
from persistence.contracts.lease import Lease
from persistence.errors import PersistenceClosedError
from persistence.writer.owners import new_owner

if TYPE_CHECKING:
    from collections.abc import Sequence

    from persistence.contracts.backend import Backend, LeasingBackend, Request
    from persistence.writer.actor import PersistenceActor

BEATS: Final = 3
"""Beats in the time after which an owner counts as dead: two may be lost."""


class Holdings:
    """The leases of one open saver.

    A beat travels with the commits that are made anyhow; only when there are none, because all nodes take their time,
    is one made for it.
    """

    def __init__(self, seconds: float) -> None:
        """Hold nothing yet; ``seconds`` of silence make an owner dead."""
        self.owner = new_owner()
        self.seconds = seconds
        self.stuck: dict[str, Rows] = {}
        """By thread, the units that were to let go of it and could not be stored."""
        self._held: dict[str, Lease] = {}
        """By thread, what it is held under."""
        self._some = anyio.Event()
        self._beaten: float | None = None
        self._shown = False
        """Whether a unit was accepted that the database hears of this owner with."""

    def accepted(self, rows: Rows) -> None:
        """Note what a unit that was accepted does to its thread's lease."""
        lease = rows.lease
        if lease is None or lease.owner != self.owner:
            return
        self._shown = True
        if lease.ends:
            self._let_go(rows.thread_id, lease.epoch)
        elif (held := self._held.get(rows.thread_id)) is None or held.epoch < lease.epoch:
            self._held[rows.thread_id] = lease
            self._some.set()

    def failed(self, rows: Rows, *, lost: bool) -> None:
        """Note that a unit could not be stored; ``lost``: because another holds the thread."""
        lease = rows.lease
        if lease is None or lease.owner != self.owner:
            return
        if lost:
            self._let_go(rows.thread_id, lease.epoch)
        elif lease.ends:
            self.stuck[rows.thread_id] = _showing(rows.thread_id, lease)
            self._some.set()

    def with_beat(self, requests: Sequence[Request], now: float) -> tuple[Sequence[Request], bool]:
        """Return the requests, with a beat before them if it is time for one; and whether they hold one."""
        if any(isinstance(request, Beat) and request.seconds for request in requests):
            return requests, True
        if (self._beaten is None or now - self._beaten >= self.seconds / BEATS) and any(map(self._shows, requests)):
            return [Beat(self.owner, self.seconds), *requests], True
        return requests, False

    def closing(self) -> list[Request]:
        """Return what is to be sent last, so that nobody waits for runs that can store nothing more.

        A run that is ending could not let go of its thread itself: one whose stream was dropped just before, say. What
        it sent first may still be on its way; if that fails, the thread is not held, and what lets go of it is refused.
        """
        ends = [
            _showing(thread_id, Lease(lease.epoch, lease.owner, lease.graph, ends=True))
            for thread_id, lease in self._held.items()
        ]
        return [*self.stuck.values(), *ends, Beat(self.owner, 0)] if self._shown else []

    def beaten(self, now: float) -> None:
        """Note that the database heard that this owner lived at this moment."""
        self._beaten = now

    def late(self, now: float) -> bool:
        """Tell whether a beat of its own must be made."""
        return self._beaten is not None and bool(self._held) and now - self._beaten >= self.seconds / BEATS

    async def some(self) -> None:
        """Return once there is something to keep."""
        if not self._held and not self.stuck:
            self._some = anyio.Event()
            await self._some.wait()

    def _let_go(self, thread_id: str, epoch: int) -> None:
        """Hold a thread no more, unless a later run of this saver has it by now."""
        held = self._held.get(thread_id)
        if held is not None and held.epoch == epoch:
            del self._held[thread_id]

    def _shows(self, request: Request) -> bool:
        return isinstance(request, Rows) and request.lease is not None and request.lease.owner == self.owner


def _showing(thread_id: str, lease: Lease) -> Rows:
    """Return a unit that stores nothing but what becomes of a lease."""
    return Rows(thread_id, "", None, (), (), (), 100, None, lease)


async def keep(actor: PersistenceActor, holdings: Holdings) -> None:
    """Let the database hear of the owner while its runs do not write; try again to let go of what is stuck."""
    while True:
        await holdings.some()
        await anyio.sleep(holdings.seconds / BEATS)
        requests: list[Request] = [*holdings.stuck.values()]
        holdings.stuck.clear()
        if holdings.late(time.perf_counter()):
            requests.append(Beat(holdings.owner, holdings.seconds))
        try:
            for request in requests:
                await actor.send(request)
        except PersistenceClosedError:
            return


def keeps_leases(backend: Backend) -> TypeGuard[LeasingBackend]:
    """Tell whether a backend keeps leases."""
    return getattr(backend, "leasing", False) is True
