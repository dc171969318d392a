"""The journal: what a run records, and where the durability modes are told apart.

``sync``   a superstep's writes and checkpoint are durable before the next superstep starts.
``async``  they are sent in order and become durable behind the run; the channel's bound is the backpressure.
``exit``   one unit when the run ends, however it ends.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from persistence.contracts.checkpoint import CheckpointTuple, TaskWrites, Unit
from persistence.errors import (
    SerializationError,
    StoredDataError,
)
from runtime.engine.checkpointing import checkpoint_of, keep, take_changes, tracked_writes
from runtime.engine.vetting import vet
from runtime.run.leasing import leases, opened
from runtime.run.lineage import branch_of, noted
from runtime.run.metadata import CALL_MARK, CALLER, KEPT_AT
from runtime.run.refusing import surely_storable, told
from runtime.run.sending import Sender
from runtime.types.config import checkpoint_config
from runtime.types.constants import ERROR, INTERRUPT, NO_WRITES, NULL_TASK_ID
from runtime.types.ids import utc_now

if TYPE_CHECKING:
    from runtime.engine.cells import Cells
    from runtime.engine.tasks import Task
    from runtime.run.lineage import Branch
    from runtime.types.policy import Durability

Pairs = Sequence[tuple[str, Any]]


class Journal(Sender):
    """Records one run of one (thread, namespace)."""

    __slots__ = (
        "_buffered",
        "_extra",
        "_finished",
        "_frozen",
        "_held",
        "_kept",
        "_last",
        "_parents",
        "_settled_last",
        "_unsaved",
        "_untracked",
        "branch",
        "keeps_exit",
    )

    def __init__(
        self,
        saver: Any,
        thread_id: str,
        ns: str,
        durability: Durability,
        extra: dict[str, Any],
        parents: dict[str, str],
        *,
        untracked: frozenset[str] = frozenset(),
    ) -> None:
        super().__init__(saver, thread_id, ns, durability)
        self._extra = extra
        self._parents = parents
        self.branch: Branch | None = None  # where the thread never went back
        self._kept: dict[str, Any] = {}
        """By channel, what is known of the growing value that storage has (see ``engine.checkpointing.keep``)."""
        self.keeps_exit = True
        """Whether ``exit`` saves a run that ends well; a subgraph that starts afresh each time is not worth it."""
        self._finished: list[Task] = []
        """Finished tasks whose writes are held."""
        self._settled_last: list[Task] = []
        """Tasks whose writes were turned into rows last: to tell whose cannot be."""
        self._held: list[TaskWrites] = []
        """Writes that travel with the next checkpoint of their superstep."""
        self._buffered: list[TaskWrites] = []
        """In exit mode: writes against the checkpoint that the run would save now."""
        self._frozen: list[tuple[Unit, Any]] = []
        """In exit mode: likewise, of values that may be changed by who has them; so they are encoded already."""
        self._unsaved: tuple[str, str | None, dict[str, Any]] | None = None
        """In exit mode: (id, parent, metadata) of the newest checkpoint, not yet saved."""
        self._untracked = untracked
        """Keys whose values are never stored."""
        self._last: str | None = None
        """In exit mode: newest checkpoint id that storage has."""

    async def load(self, checkpoint_id: str | None) -> CheckpointTuple | None:
        """Return the addressed checkpoint, or the head; the first time, once no other process is at work here."""
        configurable: dict[str, Any] = {"thread_id": self.thread_id, "checkpoint_ns": self.ns}
        if checkpoint_id is not None:
            configurable["checkpoint_id"] = checkpoint_id
        claim = self._claim
        if claim is not None and claim.lease is None and leases(self.saver):
            where = {"configurable": configurable}
            first = await opened(self.saver, where, claim, graph=self.graph, reject=self._reject)
            self.owns = claim.owns
            return None if first is None else vet(first)
        found: CheckpointTuple | None = await self.saver.aget_tuple({"configurable": configurable})
        return None if found is None else vet(found)

    async def load_at(self, ns: str, checkpoint_id: str | None) -> CheckpointTuple | None:
        """Return a checkpoint of any namespace of the thread: the newest, if none is named."""
        place = {"thread_id": self.thread_id, "checkpoint_ns": ns}
        if checkpoint_id is not None:
            place["checkpoint_id"] = checkpoint_id
        found: CheckpointTuple | None = await self.saver.aget_tuple({"configurable": place})
        return None if found is None else vet(found)

    async def load_before(self, ns: str, checkpoint_id: str) -> CheckpointTuple | None:
        """Return the newest checkpoint of a namespace of the thread that is older than the given one."""
        place = {"thread_id": self.thread_id, "checkpoint_ns": ns}
        before = {"configurable": {**place, "checkpoint_id": checkpoint_id}}
        newest: CheckpointTuple | None = None
        async for found in self.saver.alist({"configurable": place}, before=before, limit=1):
            newest = vet(found)
        return newest

    async def head(self) -> str:
        """Return the id of the newest checkpoint here, or ``""``; it may be one that cannot be read any more."""
        try:
            found = await self.load(None)
        except StoredDataError as error:
            if error.checkpoint_id is None:
                raise
            return error.checkpoint_id
        return "" if found is None else str(found.checkpoint["id"])

    def newest(self, parent: str | None) -> str | None:
        """Return what the next checkpoint's id must come after.

        A fork too becomes the head, though that may be another process's, whose clock is ahead.
        """
        return max(parent or "", self.heads.get(self.ns, "")) or None

    def stored_parent(self, parent: str | None) -> str | None:
        """Return what storage will have as the parent of a checkpoint: in ``exit`` those between are not stored."""
        return self._last if self.durability == "exit" else parent

    def start(self, stored_id: str | None) -> None:
        """Note what storage had when the run began."""
        self._last = stored_id

    def inherit(self, metadata: Mapping[str, Any]) -> None:
        """Take what the metadata of the checkpoint that is edited says of the graphs around it."""
        self._parents = dict(metadata.get("parents") or {})
        self.branch = branch_of(metadata)
        self._extra |= {key: metadata[key] for key in (CALLER, CALL_MARK, KEPT_AT) if key in metadata}

    def remember(self, cells: Cells) -> None:
        """Note what storage has of values that grow, so that what follows is stored as additions."""
        self._kept.update(keep(cells))

    def hold(self, checkpoint_id: str, task_id: str, path: str, writes: Pairs) -> None:
        """Record writes; they become durable with the superstep's checkpoint, or when flushed.

        Raises SerializationError in ``exit``, where they are encoded only when the run ends.
        """
        self._settle_finished()
        kept = tracked_writes(writes, self._untracked)
        if writes and not kept and task_id == NULL_TASK_ID:
            return
        held = TaskWrites(checkpoint_id, task_id, path, kept or [(NO_WRITES, None)])
        if self.durability == "exit":
            self._check(held)
        self._held.append(held)

    def finished(self, task: Task) -> None:
        """Record what a finished task wrote, likewise."""
        if self.durability == "exit" and self.keeps_exit:
            self._check(TaskWrites("", "", "", tracked_writes(task.stored_writes(), self._untracked)), task)
        self._finished.append(task)

    def _check(self, writes: TaskWrites, task: Task | None = None) -> None:
        """Raise SerializationError if the writes cannot be stored."""
        if all(map(surely_storable, writes.writes)):
            return
        try:
            self._door.encode(Unit(self.thread_id, self.ns, writes=[writes]))
        except SerializationError as error:
            raise SerializationError(f"{told(writes, task)}: {error}") from error

    def withdraw(self) -> list[Task]:
        """Take back, and return, the finished tasks whose writes were not sent."""
        tasks, self._finished = self._finished, []
        return tasks

    def _settle_finished(self) -> None:
        """Turn finished tasks into writes; not before they are sent, because ``exit`` drops most of them unsent."""
        if self._finished:
            self._held += [
                TaskWrites(
                    task.moment.checkpoint_id,
                    task.id,
                    task.path_text,
                    tracked_writes(task.stored_writes(), self._untracked) or [(NO_WRITES, None)],
                )
                for task in self._finished
            ]
            self._settled_last, self._finished = self._finished, []

    async def flush(self, *, frozen: bool = False, ends: bool = False) -> None:
        """Send held writes now: a crash then costs only the tasks that have not finished.

        ``frozen``: whoever has the values may change them from now on, so they are encoded now, whatever the mode.
        ``ends``: nothing follows.
        """
        self._settle_finished()
        if not self._held:
            return
        held, self._held = self._held, []
        unit = Unit(self.thread_id, self.ns, writes=held, lease=self._shown(ends=ends), based=self._based)
        if self.durability != "exit":
            await self._send(unit)
        elif frozen:
            self._frozen.append((unit, self._door.encode(unit)))
        else:
            self._buffered.extend(held)

    async def checkpoint(
        self, cells: Cells, checkpoint_id: str, parent_id: str | None, source: str, step: int, *, last: bool = False
    ) -> None:
        """Record a checkpoint with the writes held for its superstep.

        ``last``: nothing follows it, so that the thread is free once it is stored.
        """
        facts = {"source": source, "step": step, "parents": self._parents}
        metadata = {**facts, **self._extra, **facts, **noted(self.branch)}  # facts come first, and are not overridden
        if self.durability == "exit":
            self._finished.clear()
            self._held.clear()
            self._buffered.clear()
            self._frozen.clear()
            self._unsaved = (checkpoint_id, parent_id, metadata)
            return
        await self._send(self._unit(cells, checkpoint_id, parent_id, metadata, ends=last and self.owns))

    async def pass_on(self, unit: Unit) -> None:
        """Send a unit of any namespace of the thread, as one of the run's."""
        unit.lease, unit.anchor = self._shown(), self.heads.anchor(unit.checkpoint_ns) if self._based else None
        await self._send(unit)

    async def close(self, cells: Cells, *, well: bool = False) -> None:
        """Make everything durable. Raises what kept it from being so, once nothing of the run is under way any more.

        ``well``: the run came to its end. A close that was cut short can be made again.
        """
        try:
            if self.durability == "exit" and well and not self.keeps_exit:
                return
            if self.durability == "exit":
                self._settle_finished()
                self._buffered.extend(self._held)
                self._held = []
                await self._save_exit(cells)
            else:
                await self.flush(ends=self.owns)
            await self.arrived()
        finally:
            await self._let_go()

    async def _save_exit(self, cells: Cells) -> None:
        if self._unsaved is not None:
            checkpoint_id, _, metadata = self._unsaved
            self._held = [writes for writes in self._buffered if writes.checkpoint_id == checkpoint_id]
            unit = self._unit(cells, checkpoint_id, self._last, metadata, ends=self.owns and not self._frozen)
            self._unsaved = None
            self._buffered = []
            await self._send(unit)
        elif self._buffered:
            ends = self.owns and not self._frozen
            shown = self._shown(ends=ends)
            unit = Unit(self.thread_id, self.ns, writes=self._buffered, lease=shown, based=self._based)
            self._buffered = []
            await self._send(unit)
        while self._frozen:
            await self._pass_on(*self._frozen.pop(0))

    def _unit(
        self, cells: Cells, checkpoint_id: str, parent_id: str | None, metadata: dict[str, Any], *, ends: bool
    ) -> Unit:
        self._settle_finished()
        held, self._held = self._held, []
        changed, lease = take_changes(cells, self._kept), self._shown(ends=ends)
        return Unit(
            self.thread_id,
            self.ns,
            writes=held,
            checkpoint=checkpoint_of(cells, checkpoint_id, utc_now()),
            parent_id=parent_id,
            metadata=metadata,
            changed=changed,
            lineage=cells.lineage,
            expected_head=self.heads.get(self.ns),
            lease=lease,
            anchor=self.heads.anchor(self.ns) if lease is None else None,
        )

    async def _send(self, unit: Unit) -> None:
        try:
            request = self._door.encode(unit)
        except SerializationError as error:
            raise await self._not_stored(unit, error) from error
        await self._pass_on(unit, request)

    async def _not_stored(self, unit: Unit, error: SerializationError) -> SerializationError:
        """Store, in place of what a task wrote or asked that cannot be, that it failed; return an error that names it.

        What its siblings wrote is stored as well. Nothing is, where no single task is at fault, or it is the caller.
        """
        writes = list(unit.writes)
        refused: SerializationError | None = None
        while error.task_id is not None:
            at = next(at for at, each in enumerate(writes) if each.task_id == error.task_id)
            task = next((task for task in self._settled_last if task.id == error.task_id), None)
            named = SerializationError(f"{told(writes[at], task)}: {error}")
            refused = refused or named
            if task is None and writes[at].writes[0][0] != INTERRUPT:
                break
            writes[at] = writes[at]._replace(writes=[(ERROR, repr(named))])
            kept = Unit(self.thread_id, self.ns, writes=writes, lease=self._shown(), based=self._based)
            try:
                await self._pass_on(kept, self._door.encode(kept))
            except SerializationError as another:
                error = another
            else:
                break
        return refused or error

    def config(self, checkpoint_id: str) -> Any:
        """Return the config that addresses one of this thread's checkpoints."""
        return checkpoint_config(self.thread_id, self.ns, checkpoint_id)
