"""How a run begins: fresh, with new input, resumed, answered, replayed or forked.

Decides from what is stored and what was given, checks everything that can be checked, and only then records anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from runtime.engine.applying import fold
from runtime.engine.resuming import answer, is_id_map, match, null_writes, stored_answers, waiting
from runtime.engine.scheduling import due
from runtime.engine.tasks import Moment, Task
from runtime.engine.writing import command_writes, input_writes
from runtime.errors import CheckpointNotFoundError, EmptyInputError, InvalidUpdateError
from runtime.run.nesting import Travel
from runtime.types.command import Command
from runtime.types.constants import INPUT, NULL_TASK_ID, RESUME, START

if TYPE_CHECKING:
    from persistence.contracts.checkpoint import CheckpointTuple
    from runtime.run.conductor import Conductor


class Opening:
    """Opens one run."""

    def __init__(self, run: Conductor) -> None:
        self.run = run
        self.given = run.call.input
        self.saved: CheckpointTuple | None = None
        self.head = ""
        """The newest checkpoint of the thread when the run began."""
        self.sent_back = False
        """Whether a subgraph was sent back to an earlier point, maybe of an earlier execution."""

    async def open(self) -> None:
        """Load, decide, and record what the decision asks for."""
        await self._load()
        self._take_place()
        given = self.given
        if isinstance(given, Command):
            self._check_command(given)
        if self.saved is None:
            await self._open_fresh()
        elif given is None or isinstance(given, Command) or self._repeated_request():
            await self._continue()
        else:
            await self._new_input(given)

    def _take_place(self) -> None:
        """A subgraph that was here before, in this very execution, goes on instead of taking its input again."""
        nested = self.run.nested
        if nested is None or self.saved is None or isinstance(self.given, Command):
            return
        if self.given is None or self.sent_back or nested.continues(self.saved):
            answers = nested.answers
            self.given = None if answers is None else Command(resume=dict(answers))

    # ---- loading -----------------------------------------------------------------------------------------------

    async def _load(self) -> None:
        run = self.run
        if run.journal is None:
            run.step = -1
            return
        wanted = run.config.checkpoint_id
        elsewhere = await self._sent_back_to()
        self.saved = elsewhere or await run.journal.load(wanted)
        if elsewhere is None and wanted is None:
            self.head = "" if self.saved is None else self.saved.checkpoint["id"]
        else:
            self.head = await run.journal.head()
        run.journal.heads[run.ns] = self.head
        if self.saved is None:
            if wanted is not None:
                raise missing_checkpoint(wanted, run.journal.thread_id, run.ns)
            return
        checkpoint = self.saved.checkpoint
        run.checkpoint_id = checkpoint["id"]
        run.step = int(self.saved.metadata.get("step", -2)) + 1
        here = self.saved.config["configurable"].get("checkpoint_ns", "") == run.ns
        run.cells.restore(checkpoint, self.saved.lineage if here else None)
        if here:
            run.journal.start(checkpoint["id"])
            run.journal.remember(run.cells)
        else:
            # What is stored under another namespace is stored again under this one.
            run.cells.changed.update(run.cells.stored)
        for owner, channel, value in self.saved.pending_writes or ():
            run.kept.setdefault(owner, []).append((channel, value))
        loose = null_writes(self.saved.pending_writes)
        if loose:
            fold(run.cells, [loose], {}, bump=False)

    async def _sent_back_to(self) -> CheckpointTuple | None:
        """Return where a subgraph starts when its parent went back in time, at its first visit; None: as always."""
        run = self.run
        travel, nested = run.call.travel, run.nested
        if travel is None or nested is None or run.journal is None or not travel.first_visit(run.ns):
            return None
        target = travel.target(run.ns)
        if target is not None:
            found = await run.journal.load_at(*target)
            if found is None:
                raise missing_checkpoint(target[1], run.journal.thread_id, target[0])
            self.sent_back = True
            return found
        return await run.journal.load_before(travel.bound) if nested.per_thread else None

    def _repeated_request(self) -> bool:
        """Tell whether this is the request that made the checkpoint, sent again: it continues then."""
        mine = self.run.config.stored.get("run_id")
        assert self.saved is not None  # noqa: S101 - asked only of a thread that has one
        return mine is not None and self.saved.metadata.get("run_id") == mine

    def _superseded(self) -> bool:
        """Tell whether the thread has moved on from the addressed checkpoint."""
        run = self.run
        return run.config.checkpoint_id is not None and self.head not in ("", run.checkpoint_id)

    # ---- the ways to begin -------------------------------------------------------------------------------------

    async def _open_fresh(self) -> None:
        run, given = self.run, self.given
        run.step = -1
        if given is None:
            where = f"thread {run.config.thread_id!r}" if run.journal is not None else "a graph without checkpointer"
            msg = f"Received no input for __start__: nothing is saved for {where}, so there is nothing to continue."
            raise EmptyInputError(msg)
        if isinstance(given, Command):
            if given.update is None and not given.goto:
                msg = "Received a Command with neither update nor goto on a thread that has nothing to resume."
                raise EmptyInputError(msg)
            if given.goto:
                fold(run.cells, [command_writes(run.plan, INPUT, given)], {}, bump=False)
                await run.record("input", None)
                await self._durable_before_user_code()
                run.stop = run.step + run.config.recursion_limit
                return
            given = given.update
        await self._start_with(given, None)

    async def _new_input(self, given: Any) -> None:
        """Start over on a thread that has state: unfinished tasks are discarded, the state stays."""
        run = self.run
        discarded = due(run.cells, Moment(run.checkpoint_id, run.ns, run.step, 0))
        await self._start_with(given, run.checkpoint_id, discarded)

    async def _start_with(self, given: Any, parent: str | None, discarded: Sequence[Task] = ()) -> None:
        run = self.run
        input_writes(run.plan, given)
        ran = {task.name: task.triggers for task in discarded if task.triggers}
        fold(run.cells, [[(START, given)]], ran, bump=bool(discarded))
        await run.record("input", parent)
        start = run.plan.nodes.get(START)
        if start is None or start.branches:
            await self._durable_before_user_code()
        run.stop = run.step + 1 + run.config.recursion_limit

    async def _durable_before_user_code(self) -> None:
        """In ``sync``, no node or router runs before what it starts from is durable."""
        if self.run.journal is not None:
            await self.run.journal.settle()

    async def _continue(self) -> None:
        run, given = self.run, self.given
        assert self.saved is not None  # noqa: S101 - a thread without checkpoints is opened fresh
        addressed = run.config.checkpoint_id is not None
        pending = list(self.saved.pending_writes or ())
        if isinstance(given, Command) and (given.update is not None or given.goto):
            await self._apply_command(given, pending)
        replaying = self.sent_back or (addressed and not isinstance(given, Command))
        tasks = self._tasks()
        answered: list[Task] = []
        if not replaying:
            match(tasks, pending)
            if isinstance(given, Command) and run.nested is not None and is_id_map(given.resume):
                pending_ids = {question.id for task in tasks for question in waiting(task)}
                ours = {key: value for key, value in given.resume.items() if key in pending_ids}
                answered = answer(tasks, ours)
                run.answering = True
            elif isinstance(given, Command) and given.resume is not None:
                answered = answer(tasks, given.resume)
                run.answering = bool(answered)
                if not answered and not is_id_map(given.resume):
                    run.loose_answers.append(given.resume)
        superseded = addressed and self._superseded()
        if tasks and (self.sent_back or (addressed and (superseded or (replaying and not self._is_fresh_fork())))):
            if run.call.travel is None:
                run.call.travel = Travel(run.checkpoint_id)
            tasks = await self._fork(tasks)
        starting = any(task.name == START for task in tasks)  # its superstep is not counted
        run.stop = run.step + run.config.recursion_limit + starting
        if run.journal is not None:
            for task in answered:
                mine = next(new for new in tasks if new.path == task.path)
                run.journal.hold(run.checkpoint_id, mine.id, mine.path_text, [(RESUME, stored_answers(mine))])
            await run.journal.flush()
            await run.journal.settle()
        run.answered = frozenset(task.path for task in answered)
        for task in tasks:
            task.moment.stop = run.stop
        run.first_tasks = tasks
        run.breakpoint_count = run.cells.count
        if run.hub is not None:
            await run.hub.resumed(run)

    def _tasks(self) -> list[Task]:
        run = self.run
        return due(run.cells, Moment(run.checkpoint_id, run.ns, run.step, 0))

    def _is_fresh_fork(self) -> bool:
        """Tell whether the addressed checkpoint was made to be run from (update or fork)."""
        assert self.saved is not None  # noqa: S101 - see _continue
        return self.saved.metadata.get("source") in ("update", "fork")

    async def _fork(self, tasks: list[Task]) -> list[Task]:
        """Branch off the addressed checkpoint: same values, a new id, so that its old branch stays as it was."""
        run = self.run
        assert self.saved is not None  # noqa: S101 - see _continue
        here = self.saved.config["configurable"].get("checkpoint_ns", "") == run.ns
        await run.record("fork", run.checkpoint_id if here else None)
        forked = self._tasks()
        by_path = {task.path: task for task in tasks}
        for task in forked:
            old = by_path.get(task.path)
            if old is None:
                continue
            task.writes, task.answers, task.below = old.writes, old.answers, old.below
            if run.journal is not None and task.finished:
                run.journal.hold(run.checkpoint_id, task.id, task.path_text, task.stored_writes())
        return forked

    async def _apply_command(self, command: Command[Any], pending: list[tuple[str, str, Any]]) -> None:
        """Apply a Command's update and goto to the head; they belong to no task."""
        run = self.run
        writes = command_writes(run.plan, INPUT, command)
        fold(run.cells, [writes], {}, bump=False)
        if run.journal is not None:
            run.journal.hold(run.checkpoint_id, NULL_TASK_ID, "", writes)
            await run.journal.flush()
        pending.extend((NULL_TASK_ID, channel, value) for channel, value in writes)

    # ---- checks ------------------------------------------------------------------------------------------------

    def _check_command(self, command: Command[Any]) -> None:
        run = self.run
        if command.graph is not None:
            msg = "There is no parent graph: a Command given as input cannot address one."
            raise InvalidUpdateError(msg)
        if command.resume is not None and run.journal is None:
            msg = "Cannot use Command(resume=...) without checkpointer: nothing was saved that could be resumed."
            raise RuntimeError(msg)
        updates = command.update is not None and self.saved is not None  # on a new thread it is the input
        if run.plan.single is not None and (updates or command.goto):
            msg = (
                f"Workflow {run.plan.name!r} is one function: there is no node to go to and no key to update. Call it "
                "with its input, or edit what its thread remembers with update_state."
            )
            raise InvalidUpdateError(msg)
        if command.resume is None and command.update is None and not command.goto:
            msg = "Received empty Command input: give it update, goto or resume."
            raise EmptyInputError(msg)


def missing_checkpoint(checkpoint_id: str, thread_id: str, ns: str) -> CheckpointNotFoundError:
    """Return the error for an id that the thread does not have."""
    where = f"thread {thread_id!r}" + (f", namespace {ns!r}" if ns else "")
    msg = f"There is no checkpoint {checkpoint_id!r} on {where}. List the known ones with aget_state_history."
    return CheckpointNotFoundError(msg)
