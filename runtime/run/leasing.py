"""A run's lease of its thread: how it comes by it, shows it with everything it stores, and lets go of it.

The first unit of a run takes the thread, the last one lets go of it, so neither costs a commit. A run that is resumed
takes the thread before its nodes run: two processes that continue one thread do not both do its work.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from math import ceil
from typing import TYPE_CHECKING, Any, Final

import anyio

from persistence.contracts.checkpoint import Unit
from persistence.contracts.lease import Lease, LeaseRow
from persistence.errors import LeaseLostError, PersistenceError
from persistence.outlasting import outlast
from runtime.errors import ThreadBusyError
from runtime.run.claiming import claimed, held, hurry

if TYPE_CHECKING:
    from collections.abc import Mapping

    from persistence.contracts.checkpoint import CheckpointTuple
    from persistence.contracts.saver import Ack, UnitSaver
    from runtime.run.claiming import Claim

FIRST_LOOK: Final = 0.005
LONGEST_LOOK: Final = 0.25
"""Seconds between looks at a thread that another process is at work on: about a superstep, and what nobody notices."""


class RunLease:
    """What one run, and those inside it, show with each unit."""

    __slots__ = ("_first", "_last", "_plain", "epoch", "graph", "lost", "owner", "seen")

    def __init__(self, owner: str, graph: str, found: LeaseRow | None) -> None:
        self.owner = owner
        self.graph = graph
        self.seen = (0, "") if found is None else (found.epoch, found.owner)
        self.epoch = self.seen[0] + 1
        self.lost = False
        """Whether another run has the thread now."""
        self._first: Ack | None = None
        self._last: Ack | None = None
        self._plain = Lease(self.epoch, owner, graph)

    @property
    def contended(self) -> bool:
        """Whether another process had the thread last."""
        return self.seen[1] not in ("", self.owner)

    @property
    def taken(self) -> bool:
        """Whether a unit was sent that takes the thread."""
        return self._first is not None

    @property
    def held(self) -> bool:
        """Whether a unit was sent that takes the thread, and none, but in vain, that lets go of it."""
        ended = self._last is not None and not (self._last.done and self._last.error is not None)
        return self.taken and not ended and not self.lost

    def shown(self, *, ends: bool = False) -> Lease:
        """Return what the next unit shows; ``ends``: it is the run's last."""
        if not ends and self._first is not None and self._first.done and self._first.error is None:
            return self._plain
        fresh = self._first is None or not self._first.done or self._first.error is not None
        return Lease(self.epoch, self.owner, self.graph, *self.seen, fresh, ends)

    def sent(self, lease: Lease, ack: Ack) -> None:
        """Note that a unit that shows the lease was sent."""
        if self._first is None or (self._first.done and self._first.error is not None):
            self._first = ack
        self._last = ack if lease.ends else None

    async def stored(self) -> None:
        """Return once the thread is this run's. Raises what kept it from being so."""
        if self._first is not None:
            await self._first.wait()


def leases(saver: Any) -> bool:
    """Tell whether a saver's threads have leases."""
    return getattr(saver, "lease_owner", None) is not None


async def opened(
    saver: Any, config: Mapping[str, Any], claim: Claim, *, graph: str, reject: bool
) -> CheckpointTuple | None:
    """Load the addressed checkpoint once no other process is at work on its thread; give the claim its lease.

    The runs around this one are not waited for, through whichever saver they hold the thread.

    Raises ThreadBusyError if the thread is held elsewhere and ``reject`` is set.
    """
    within = {(other.lease.epoch, other.lease.owner): other.lease for other in held() if other.lease is not None}
    watch = _Watch()
    while True:
        found, row = await saver.aopen_thread(config)
        ours = row is not None and (row.epoch, row.owner) in within
        if row is None or not row.held or ours or row.owner == saver.lease_owner or watch.dead(saver, row):
            if ours and row is not None:
                claim.lease = within[row.epoch, row.owner]
            else:
                claim.lease, claim.owns = RunLease(saver.lease_owner, graph, row), True
            loaded: CheckpointTuple | None = found
            return loaded
        if reject:
            raise ThreadBusyError(_busy(saver, row))
        hurry(row.owner, row.thread_id)
        await anyio.sleep(watch.pause())


def _busy(saver: Any, row: LeaseRow) -> str:
    """Say who holds a thread, and what can be done."""
    return (
        f"Thread {row.thread_id!r} is held by a run of {saver.owner_in_words(row)}, which is alive "
        f"(graph {row.graph!r}, epoch {row.epoch}). Wait for it, or use multitask_strategy='enqueue', which waits. If "
        "it hangs, end its process: then the thread is free, seen from the same machine at once, from others within "
        f"{max(1, ceil(row.seconds_left))} s."
    )


class _Watch:
    """Looks at another process's lease: dead by the database's clock, or silent for its time by ours."""

    def __init__(self) -> None:
        self._seen: tuple[int, str] | None = None
        self._left = self._since = 0.0
        self._pause = FIRST_LOOK / 2

    def dead(self, saver: Any, row: LeaseRow) -> bool:
        """Tell whether the owner counts as dead.

        Between two beats what is left only falls. If it has not risen for as long as it was when it was first seen,
        the owner is silent, wherever the database's clock was set to meanwhile.
        """
        if saver.is_dead(row):
            return True
        now = anyio.current_time()
        if (row.epoch, row.owner) != self._seen or row.seconds_left > self._left:
            self._seen, self._since, self._limit = (row.epoch, row.owner), now, row.seconds_left
        self._left = row.seconds_left
        return now - self._since > self._limit

    def pause(self) -> float:
        """Return the seconds until the next look: doubling."""
        self._pause = min(self._pause * 2, LONGEST_LOOK)
        return self._pause

    _limit = 0.0


async def show(door: UnitSaver, thread_id: str, lease: RunLease, *, ends: bool = False) -> None:
    """Return once a unit is stored that takes the thread, or lets go of it. Raises LeaseLostError if another has it."""
    shown = lease.shown(ends=ends)
    ack = await door.send(door.encode(Unit(thread_id, "", lease=shown)))
    lease.sent(shown, ack)
    await ack.wait()


async def give_back(door: UnitSaver, thread_id: str, lease: RunLease) -> None:
    """Let go of the thread if it is still held, whoever cancels.

    What keeps that from being stored is not the run's concern: everything else of it is, and the saver tries again.
    """
    if lease.held:
        with suppress(PersistenceError):
            await outlast(partial(show, door, thread_id, lease, ends=True))


class Legacy:
    """The thread of a run that died, held by who goes on with it; runs inside show its lease."""

    def __init__(self, saver: Any, thread_id: str, lease: RunLease) -> None:
        self._saver = saver
        self._thread_id = thread_id
        self._lease = lease

    async def take(self) -> None:
        """Return once the thread is taken. Raises LeaseLostError if another was faster."""
        await show(self._saver, self._thread_id, self._lease)

    async def let_go(self) -> None:
        """Let others have the thread; it need not have been taken. Likewise."""
        await show(self._saver, self._thread_id, self._lease, ends=True)

    async def leave(self) -> None:
        """Let go of the thread if it is still held; if that cannot be stored, the saver tries again."""
        await give_back(self._saver, self._thread_id, self._lease)


@asynccontextmanager
async def inherited(saver: Any, row: LeaseRow) -> AsyncIterator[Legacy]:
    """Hold the thread of a run that died, as its lease was found; let go of it in the end.

    Raises ThreadBusyError or LeaseLostError if another has it, or had it meanwhile.
    """
    async with claimed(saver, row.thread_id, reject=True) as claim:
        found: LeaseRow | None = await saver.alease(row.thread_id)
        if found is None or (found.epoch, found.owner, found.held) != (row.epoch, row.owner, row.held):
            msg = f"Thread {row.thread_id!r} was taken by another meanwhile, or deleted."
            raise LeaseLostError(msg)
        claim.lease = RunLease(saver.lease_owner, row.graph, row)
        legacy = Legacy(saver, row.thread_id, claim.lease)
        try:
            yield legacy
        finally:
            await legacy.leave()
