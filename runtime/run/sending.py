"""A run's way to its saver: what it sends, in order, what became of it, and whose the thread is meanwhile.

Units of one run are sent in order and committed in order, so durable state is always a prefix of the run.

Every checkpoint says which one must be the newest for it to be stored. So if another process moves the thread on
meanwhile, the run hears of it (ThreadConflictError) instead of forking the thread in silence.
"""

from __future__ import annotations

from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

import anyio

from persistence.contracts.checkpoint import Unit
from persistence.contracts.saver import takes_units
from persistence.errors import CheckpointConflictError, LeaseLostError
from persistence.outlasting import outlast
from runtime.run.adapting import ContractDoor
from runtime.run.heads import Heads
from runtime.run.leasing import give_back
from runtime.run.refusing import conflict

if TYPE_CHECKING:
    from persistence.contracts.lease import Lease
    from persistence.contracts.saver import Ack, UnitSaver
    from runtime.run.claiming import Claim
    from runtime.run.leasing import RunLease
    from runtime.types.policy import Durability


class Sender:
    """Sends the units of one run, and of the runs inside it that share its thread."""

    __slots__ = (
        "_acks",
        "_claim",
        "_door",
        "_reject",
        "durability",
        "graph",
        "heads",
        "marks",
        "ns",
        "owns",
        "saver",
        "thread_id",
    )

    def __init__(self, saver: Any, thread_id: str, ns: str, durability: Durability) -> None:
        self.saver = saver
        self.thread_id = thread_id
        self.ns = ns
        self.durability = durability
        self.heads = Heads()
        """What is known to be stored; shared by runs nested on one thread."""
        self.graph = ""
        """Name of the graph, for the thread's lease."""
        self._claim: Claim | None = None
        self._reject = False
        self.owns = False
        """Whether the thread's lease is this run's own, not that of a run around it."""
        self.marks: Any = None
        """Told of each checkpoint that is sent, with its receipt, where somebody asks how far the run is on disk."""
        self._door: UnitSaver = saver if takes_units(saver) else ContractDoor(saver)
        self._acks: deque[Ack] = deque()
        """Receipts not yet seen to be done, oldest first."""

    def claimed(self, claim: Claim, graph: str, *, reject: bool) -> None:
        """Take what the run holds of its thread; ``reject``: it does not wait for runs of other processes."""
        self._claim, self.graph, self._reject = claim, graph, reject
        self.heads = claim.heads

    @property
    def lease(self) -> RunLease | None:
        """The thread's lease; None where there is none, or nothing was loaded yet."""
        return None if self._claim is None else self._claim.lease

    @property
    def contended(self) -> bool:
        """Whether a commit is waited for before nodes are at work: it settles who has the thread."""
        return self.lease is not None and (self._reject or self.lease.contended)

    async def take(self) -> None:
        """Return once the thread is this run's, unless it saves when it ends. Raises FencedError if another was first.

        A run whose input is saved takes the thread with that; one that goes on has nothing to save before its nodes
        are at work, nor has one in ``exit`` that would rather be refused.
        """
        lease = self.lease
        if lease is None or not self.owns or (self.durability == "exit" and not self._reject):
            return
        if not lease.taken:
            unit = Unit(self.thread_id, self.ns, lease=lease.shown())
            await self._pass_on(unit, self._door.encode(unit))
        try:
            await lease.stored()
        except CheckpointConflictError as error:
            self._refused(error)

    async def _let_go(self) -> None:
        """Let other processes have the thread, if none of the run's units did."""
        if self.lease is not None and self.owns:
            await give_back(self._door, self.thread_id, self.lease)

    @property
    def _based(self) -> bool:
        """Whether writes alone must find their checkpoint: a lease tells of a deleted thread by itself."""
        return self.lease is None

    def _shown(self, *, ends: bool = False) -> Lease | None:
        lease = self.lease
        return None if lease is None else lease.shown(ends=ends)

    async def durable(self) -> None:
        """In ``sync``, return once everything sent so far is durable. What failed is raised by ``settle`` as well."""
        if self.durability == "sync" and self._acks:
            await self.settled(self._acks[-1])

    async def settle(self, *, wait: bool = False) -> None:
        """Wait until everything sent is durable, in ``sync`` or if told to; raise what kept an earlier unit from it."""
        self._see_done()
        if self._acks and (wait or self.durability == "sync"):
            await self.settled(self._acks[-1])
            self._see_done()  # not what tasks at work have sent meanwhile

    def _see_done(self) -> None:
        while self._acks and self._acks[0].done:
            ack = self._acks.popleft()
            if ack.error is not None:
                self._refused(ack.error)

    async def settled(self, ack: Ack) -> None:
        """Return once what was sent is durable. Raises what kept it from being so, as the run's caller is told."""
        try:
            await ack.wait()
        except Exception as error:  # noqa: BLE001 - raised as it is, or as what it means for a run
            self._refused(error)

    def _refused(self, error: BaseException) -> NoReturn:
        """Raise why a unit was not stored."""
        if not isinstance(error, CheckpointConflictError):
            self.heads.failed(self.ns)
            raise error
        if isinstance(error, LeaseLostError) and self.lease is not None:
            self.lease.lost = True
        raise conflict(error, self.thread_id, self.ns) from error

    async def leave(self) -> None:
        """For who records no run: once what was sent has arrived, others may have the thread. Raises as ``arrived``."""
        try:
            await self.arrived()
        finally:
            await self._let_go()

    async def arrived(self) -> None:
        """Return once nothing that was sent is under way. Raises what kept the first of it from being stored."""
        failure: Exception | None = None
        while self._acks:
            ack = self._acks[0]
            try:
                await self.settled(ack)
            except Exception as error:  # noqa: BLE001 - raised below; the units after it fail too, and are waited for
                failure = failure or error
            if self._acks and self._acks[0] is ack:
                self._acks.popleft()
        if failure is not None:
            raise failure

    async def _pass_on(self, unit: Unit, request: Any) -> None:
        try:
            self._sent(unit, self._door.send_nowait(request))
        except anyio.WouldBlock:
            # A cancel waits its turn: what the unit carries is nowhere else, and a run that ends waits for its units
            # anyhow. A saver of a third party is not cut off in the middle of a call.
            await outlast(partial(self._wait_to_send, unit, request))

    async def _wait_to_send(self, unit: Unit, request: Any) -> None:
        self._sent(unit, await self._door.send(request))

    def _sent(self, unit: Unit, ack: Ack) -> None:
        if not ack.done or ack.error is not None:
            self._acks.append(ack)
        if unit.lease is not None and self.lease is not None:
            self.lease.sent(unit.lease, ack)
        if unit.checkpoint is not None:
            if self.marks is not None and unit.checkpoint_ns == self.ns:
                self.marks.sent(unit.checkpoint["id"], ack)
            self.heads.sent(unit.checkpoint_ns, unit.checkpoint["id"])
