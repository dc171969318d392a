"""Editing a thread from outside: writing to its state as if a node had returned something."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextvars import copy_context
from typing import TYPE_CHECKING, Any

from persistence.errors import StoredDataError
from persistence.outlasting import outlast
from runtime.actors.node import NodeActor
from runtime.context.scope import Answerer, Scope
from runtime.engine.applying import apply, fold, fold_loose
from runtime.engine.cells import Cells
from runtime.engine.resuming import match, null_writes
from runtime.engine.scheduling import due
from runtime.engine.tasks import Moment, Task
from runtime.engine.writing import input_writes
from runtime.errors import InvalidUpdateError, UnknownNodeError
from runtime.run.claiming import claimed
from runtime.run.journal import Journal
from runtime.run.lineage import Branch, seen_at
from runtime.run.opening import missing_checkpoint
from runtime.run.retracting import Retraction
from runtime.types.config import checkpoint_config
from runtime.types.constants import COPY, END, INPUT, START, TASKS
from runtime.types.ids import IDS
from runtime.types.naming import known_nodes
from runtime.types.snapshot import StateUpdate

if TYPE_CHECKING:
    from persistence.contracts.checkpoint import CheckpointTuple
    from runtime.context.runtime import RunControl
    from runtime.run.program import Program
    from runtime.types.config import CallConfig, RunnableConfig


class Editor:
    """Applies updates to one thread. Routers that run meanwhile see it as their run (context.scope.RunView)."""

    control: RunControl | None = None
    answerer: Answerer | None = None
    width = 1
    hub = None
    debug = False
    depth = 0
    previous: Any = None
    context: Any = None

    def __init__(self, program: Program, config: CallConfig, salt: str, around: Any = None) -> None:
        """``around``: the saver of the graphs around the subgraph that is edited."""
        self.program = program
        self.around = program.saver if around is None else around
        self.plan = program.plan
        self.config = config
        self.store = program.store
        self.ns = config.checkpoint_ns
        self.thread_id = config.thread_id or ""
        self.cells = Cells(program.plan, salt)
        self.loose_answers: list[Any] = []
        untracked = program.plan.untracked
        self.journal = Journal(program.saver, self.thread_id, self.ns, "sync", config.stored, {}, untracked=untracked)
        self.parent: str | None = None
        """The checkpoint that the next update builds on."""
        self.step = -1
        """Step of the checkpoint that the next update makes."""
        self.pending: list[tuple[str, str, Any]] = []
        self.superseded = False
        """Whether the addressed checkpoint has successors; then its stored writes are another branch's."""

    def start_call(self, node: Any, scope: Scope, arguments: Any) -> Any:  # noqa: ARG002 - what every run is told
        """Refuse: an update runs routers only."""
        msg = f"Task {node.name!r} was called while a thread was updated; only nodes and workflows can call tasks."
        raise RuntimeError(msg)

    async def caught(self, task: Task, failure: Any) -> None:
        """There are none: no node runs."""

    def cancel_calls(self, task: Task) -> None:
        """There are none."""

    async def end_calls(self, task: Task) -> None:
        """There are none."""

    async def settle_calls(self, task: Task, outcome: Any) -> Any:  # noqa: ARG002 - what every run is told
        """Return the outcome: there are no calls."""
        return outcome

    def write_custom(self, item: Any, mode: str = "custom", *, once: bool = False, ns: str | None = None) -> None:
        """Drop the item: nobody listens to an update."""

    async def apply(self, supersteps: Sequence[Sequence[StateUpdate]]) -> RunnableConfig:
        """Apply all supersteps; return the config of the last checkpoint made."""
        self._check(supersteps)
        async with (
            claimed(self.around, self.thread_id, reject=False),
            claimed(self.program.saver, self.thread_id, reject=False) as claim,
        ):
            self.journal.claimed(claim, self.plan.name, reject=False)
            try:
                await self._load()
                for updates in supersteps:
                    await self._superstep([StateUpdate(*update) for update in updates])
                await self.journal.flush()
            finally:
                # A cancel does not let go of the thread before what was sent has arrived.
                await outlast(self.journal.leave)
        return checkpoint_config(self.thread_id, self.ns, self.parent or "", self.parents)

    @staticmethod
    def _check(supersteps: Sequence[Sequence[StateUpdate]]) -> None:
        if not supersteps:
            msg = "No supersteps provided: give at least one list of updates."
            raise ValueError(msg)
        for updates in supersteps:
            if not updates:
                msg = "No updates provided in a superstep: give each at least one."
                raise ValueError(msg)
            if len(updates) > 1 and any(update[1] is None for update in updates):
                msg = "Several updates in one superstep need as_node each."
                raise InvalidUpdateError(msg)

    async def _load(self) -> None:
        wanted = self.config.checkpoint_id
        found: CheckpointTuple | None = await self.journal.load(wanted)
        if found is None and wanted is not None:
            raise missing_checkpoint(wanted, self.thread_id, self.ns)
        newest = "" if found is None else found.checkpoint["id"]
        head = newest if wanted is None else await self.journal.head()
        self.journal.heads.found(self.ns, head)
        if self.ns and wanted is None:
            found = await seen_at(self.journal, found, {})
            newest = "" if found is None else found.checkpoint["id"]
        if found is None:
            return
        asking = found if head == newest else await self._readable_head()
        if self.ns and asking is not None:
            self.retraction = Retraction(self.around, self.thread_id, asking)
        self.superseded = head not in ("", newest)
        self.left = newest if self.superseded else None
        self.journal.inherit(found.metadata)
        self.parents = found.metadata.get("parents")
        self.cells.restore(found.checkpoint, found.lineage)
        self.journal.remember(self.cells)
        self.parent = found.checkpoint["id"]
        self.grandparent = found.parent_config["configurable"]["checkpoint_id"] if found.parent_config else None
        self.step = int(found.metadata.get("step", -2)) + 1
        self.pending = list(found.pending_writes or ())
        loose = null_writes(self.pending)
        if loose:
            fold_loose(self.cells, loose)

    async def _readable_head(self) -> CheckpointTuple | None:
        try:
            return await self.journal.load(None)
        except StoredDataError:
            return None

    left: str | None = None
    """The checkpoint of the past that the first edit branches off from."""
    grandparent: str | None = None
    parents: Mapping[str, str] | None = None
    """In a subgraph: the checkpoints of the graphs around it."""
    retraction: Retraction | None = None
    """Of the questions that the edited subgraph has asked."""

    # ---- one superstep of updates ------------------------------------------------------------------------------

    async def _superstep(self, updates: list[StateUpdate]) -> None:
        first = updates[0]
        if self.parent is None and first.as_node != INPUT:
            self.step = 0  # as after the input that the thread never had
        if len(updates) == 1 and first.as_node == END:
            await self._finish(first.values)
        elif len(updates) == 1 and first.as_node == INPUT:
            await self._input(first.values)
        elif len(updates) == 1 and first.as_node == COPY:
            await self._copy(first.values)
        else:
            await self._as_nodes(updates)
        self.pending, self.superseded = [], False

    async def _finish(self, values: Any) -> None:
        """Take what finished tasks wrote, drop the rest: the thread is done."""
        if values is not None:
            msg = f"Cannot apply values as END; only None ends a thread, got {values!r}."
            raise InvalidUpdateError(msg)
        tasks = self._due()
        match(tasks, self.pending)
        finished = [task for task in tasks if task.finished]
        if finished:
            apply(self.cells, finished)
        fold(self.cells, (), self._triggers(self._due(), tasks), bump=True)
        self.cells.updated = set()
        await self._record("update")

    async def _input(self, values: Any) -> None:
        """Give the thread fresh input, as a run would; nothing runs yet."""
        input_writes(self.plan, values, self.cells.versions)
        fold(self.cells, [[(START, values)]], {}, bump=False)
        await self._record("input")

    async def _copy(self, values: Any) -> None:
        """Make a sibling of the addressed checkpoint, with updates on top if given."""
        if self.parent is None:
            msg = f"Thread {self.thread_id!r} is empty: there is nothing to copy."
            raise InvalidUpdateError(msg)
        if values is not None and not isinstance(values, (list, tuple)):
            msg = f"A copy takes None, or a list of (values, as_node) to apply on top, not {values!r}."
            raise InvalidUpdateError(msg)
        updates = None if values is None else [StateUpdate(*update) for update in values]
        self.parent = self.grandparent
        await self._record("fork")
        if updates:
            self.pending, self.superseded = [], False
            await self._as_nodes(updates)

    async def _as_nodes(self, updates: list[StateUpdate]) -> None:
        tasks = self._due()
        by_name: dict[str, Task] = {}
        for task in tasks:
            by_name.setdefault(task.name, task)
        written: list[Task] = []
        for update in updates:
            name = self._as_node(update.as_node)
            task = by_name.pop(name) if name in by_name else Task(self.plan.nodes[name], self._moment())
            if update.task_id is not None:
                task.rename(update.task_id)
            task.writes = await self._written(task, update.values)
            written.append(task)
        if self.parent is not None:
            for task in written:
                kept = [write for write in task.writes or () if not (self.superseded or write[0] == TASKS)]
                if kept or not self.superseded:
                    self.journal.hold(self.parent, task.id, task.path_text, kept or task.stored_writes())
        ran = {**{task.name: task.triggers for task in written}, **self._triggers(tasks, [])}
        fold(self.cells, [task.writes or () for task in written], ran, bump=True, tasks=written)
        self.cells.seen = {task.name: self.cells.seen.get(task.name, {}) for task in written}
        await self._record("update")

    async def _written(self, task: Task, values: Any) -> list[tuple[str, Any]]:
        """Return the writes of a node that returned these values: state, edges, routers."""
        actor = NodeActor(task.node, self)
        scope = Scope(self, task)
        context = copy_context()
        context.run(scope.enter)
        return await actor.write_out(context, scope, task, values)

    def _as_node(self, name: str | None) -> str:
        nodes = self.plan.nodes
        if name is not None:
            if not isinstance(name, str) or name not in nodes:
                msg = f"Node {name!r} does not exist. {known_nodes(name, nodes, besides=START)}"
                raise UnknownNodeError(msg)
            return name
        if len(nodes) == 1:  # a workflow function; a graph with one node has START beside it
            return next(iter(nodes))
        ran = [node for node in self.cells.seen if node in nodes]
        if len(ran) > 1:  # what ran by a Send alone has seen no trigger, and gives way
            ran = [node for node in ran if self.cells.seen[node]] or ran
        if len(ran) == 1:
            return ran[0]
        if not ran:
            return START
        msg = f"Ambiguous update, specify as_node: the last superstep ran {', '.join(sorted(ran))}."
        raise InvalidUpdateError(msg)

    # ---- pieces ------------------------------------------------------------------------------------------------

    def _moment(self) -> Moment:
        return Moment(self.parent or "", self.ns, self.step, 0)

    def _due(self) -> list[Task]:
        return due(self.cells, self._moment())

    @staticmethod
    def _triggers(tasks: list[Task], more: list[Task]) -> dict[str, tuple[str, ...]]:
        return {task.name: task.triggers for task in (*tasks, *more) if task.triggers}

    async def _record(self, source: str) -> None:
        checkpoint_id = IDS.mint(self.step, self.journal.newest(self.parent))
        if self.left is not None:
            self.journal.branch, self.left = Branch(checkpoint_id, self.left), None
        retraction, self.retraction = self.retraction, None
        if retraction is not None:
            await retraction.make()
        try:
            await self.journal.checkpoint(self.cells, checkpoint_id, self.parent, source, self.step)
            await self.journal.settle()
        except Exception:
            if retraction is not None:
                await retraction.undo()
            raise
        self.grandparent, self.parent = self.parent, checkpoint_id
        self.step += 1
