"""How a run begins: fresh, with new input, resumed, answered, replayed or forked.

Decides from what is stored and what was given, checks everything that can be checked, and only then records anything.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from runtime.engine.applying import fold, fold_loose
from runtime.engine.resuming import (
    answer,
    by_id,
    carry_over,
    is_id_map,
    match,
    null_writes,
    own_answers,
    stored_answers,
    waiting,
)
from runtime.engine.scheduling import due
from runtime.engine.tasks import Moment, Task
from runtime.engine.writing import command_writes, input_writes
from runtime.errors import CheckpointNotFoundError, EmptyInputError, InvalidUpdateError, UnknownInterruptError
from runtime.run.lineage import branch_of, seen_from
from runtime.run.reopening import Carried, answer_anew, answer_on_journey
from runtime.run.retaining import retain_below, retain_tasks
from runtime.run.telling_apart import may_have_run
from runtime.run.travelling import Travel, id_in
from runtime.run.views import recorded_of
from runtime.types.command import Command
from runtime.types.constants import ERROR, INPUT, INTERRUPT, NULL_TASK_ID, RESUME, START

if TYPE_CHECKING:
    from persistence.contracts.checkpoint import CheckpointTuple
    from runtime.run.conductor import Conductor
    from runtime.run.journal import Journal

LIST_THEM: Final = "List the known ones with aget_state_history."
"""What to do about a checkpoint that is not there."""


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
        self.targeted = False
        """Whether that point was asked for, or something inside it."""

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
        run, nested = self.run, self.run.nested
        if nested is None or self.saved is None or isinstance(self.given, Command):
            return
        if self.given is None or self.sent_back or nested.continues(self.saved, run.call.travel):
            answers = nested.answers
            self.given = None if answers is None else Command(resume=dict(answers))

    # ---- loading -----------------------------------------------------------------------------------------------

    async def _load(self) -> None:
        run = self.run
        if run.journal is None:
            run.step = -1
            return
        nested = run.nested
        if nested is not None:
            if not nested.per_thread and not may_have_run(nested.scope, reviving=nested.around.reviving):
                run.journal.heads[run.ns] = ""
                return
            await self._save_previous(nested.around)
        self.saved = await self._start(run.journal)
        run.journal.heads.found(run.ns, self.head)
        if self.saved is None:
            if (wanted := run.config.checkpoint_id) is not None:
                raise missing_checkpoint(wanted, run.journal.thread_id, run.ns)
            return
        checkpoint = self.saved.checkpoint
        run.checkpoint_id = checkpoint["id"]
        run.step = int(self.saved.metadata.get("step", -2)) + 1
        here = self.saved.config["configurable"].get("checkpoint_ns", "") == run.ns
        run.cells.restore(checkpoint, self.saved.lineage if here else None)
        if here:
            run.journal.start(checkpoint["id"])
            run.journal.branch = branch_of(self.saved.metadata)
            run.journal.remember(run.cells)
        else:
            # What is stored under another namespace is stored again under this one.
            run.cells.changed.update(run.cells.stored)
        for owner, channel, value in self.saved.pending_writes or ():
            run.kept.setdefault(owner, []).append((channel, value))
        loose = null_writes(self.saved.pending_writes)
        if loose:
            fold_loose(run.cells, loose)

    async def _start(self, journal: Journal) -> CheckpointTuple | None:
        """Return the checkpoint that the run begins at, and see which is the newest."""
        run, nested, wanted = self.run, self.run.nested, self.run.config.checkpoint_id
        kept = nested is not None and nested.per_thread
        if self._first_on_journey():
            past = await self._past()
            if past is not None or not kept:
                self.head = await journal.head()
                return past
        found = await journal.load(wanted)
        self.head = await journal.head() if wanted is not None else "" if found is None else found.checkpoint["id"]
        return await seen_from(run, found) if kept else found

    async def _save_previous(self, around: Conductor) -> None:
        """Save what an earlier attempt of the node ran here, so that it is found."""
        before = around.unsaved.pop(self.run.ns, None)
        if before is not None:
            await before.close()

    def _first_on_journey(self) -> bool:
        """Tell whether this subgraph is visited for the first time by a run that went back in time."""
        run = self.run
        travel, nested = run.call.travel, run.nested
        if travel is None or nested is None or not travel.first_visit(run.ns):
            return False
        return nested.per_thread or travel.stored(run.ns) != run.ns or run.ns in travel.targets

    async def _past(self) -> CheckpointTuple | None:
        """Return where a subgraph starts from, on a journey: None if it had not begun for the same caller."""
        run = self.run
        travel, nested, journal = run.call.travel, run.nested, run.journal
        assert travel is not None and nested is not None and journal is not None  # noqa: S101, PT018 - see the caller
        ns = travel.stored(run.ns)
        target = travel.targets.get(ns)
        if target is None:
            carried = nested.around.carried
            if carried is None:
                found = await journal.load_before(ns, travel.bound)
            else:
                caller = id_in(travel.stored(nested.scope.task.ns))
                found = await carried.past_of(nested, journal, ns, caller)
            self.sent_back = found is not None and nested.continues(found, travel)
            return found if self.sent_back else None
        found = await journal.load_at(ns, target)
        if found is None:
            raise missing_checkpoint(target, journal.thread_id, ns)
        self.sent_back = self.targeted = run.targeted = True
        return found

    def _repeated_request(self) -> bool:
        """Tell whether this is the request that made the checkpoint, sent again: it continues then."""
        if self.run.nested is not None:
            return False
        mine = self.run.config.stored.get("run_id")
        assert self.saved is not None  # noqa: S101 - asked only of a thread that has one
        return mine is not None and self.saved.metadata.get("run_id") == mine

    @property
    def _saved(self) -> CheckpointTuple:
        """The stored checkpoint that the run continues."""
        assert self.saved is not None  # noqa: S101 - asked only of a thread that has one
        return self.saved

    def _superseded(self) -> bool:
        """Tell whether the thread has moved on from the addressed checkpoint."""
        run = self.run
        return run.config.checkpoint_id is not None and self.head not in ("", run.checkpoint_id)

    def _second_command(self) -> bool:
        """Tell whether a Command brings an update or goto to a checkpoint that has one: there is room for one."""
        given = self.given
        applies = isinstance(given, Command) and (given.update is not None or bool(given.goto))
        return applies and bool(null_writes(self._saved.pending_writes))

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
                msg = (
                    f"Received a Command with neither update nor goto, and thread {run.config.thread_id!r} has nothing "
                    "to resume: nothing is saved for it. Start it with input, or check the thread_id."
                )
                raise EmptyInputError(msg)
            if given.goto:
                fold_loose(run.cells, command_writes(run.plan, INPUT, given))
                await self._record_input(None)
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
        input_writes(run.plan, given, run.cells.versions)
        if isinstance(given, Mapping) and type(given) is not dict and run.plan.input_schema.kind != "bare":
            given = dict(given)  # what kind of mapping brings the keys is nothing to store
        ran = {task.name: task.triggers for task in discarded if task.triggers}
        fold(run.cells, [[(START, given)]], ran, bump=bool(discarded))
        await self._record_input(parent, left=parent if self._superseded() else None)
        start = run.plan.nodes.get(START)
        if start is None or start.branches:
            await self._durable_before_user_code()
        run.stop = run.step + 1 + run.config.recursion_limit

    async def _record_input(self, parent: str | None, *, left: str | None = None) -> None:
        run = self.run
        await run.record("input", parent, left=left)
        if run.journal is not None and run.journal.contended:
            await run.journal.take()
        if run.hub is not None and run.hub.tells_checkpoints:
            if run.journal is not None:
                await run.journal.settle()  # unheard, the input travels with what follows it
            await run.hub.checkpoint(run)

    async def _durable_before_user_code(self) -> None:
        """In ``sync``, no node or router runs before what it starts from is durable."""
        if self.run.journal is not None:
            await self.run.journal.settle()

    async def _continue(self) -> None:
        run, given = self.run, self.given
        assert self.saved is not None  # noqa: S101 - a thread without checkpoints is opened fresh
        command = given if isinstance(given, Command) else None
        addressed = run.config.checkpoint_id is not None
        superseded = addressed and self._superseded()
        tasks = self._tasks()
        answered: list[Task] = []
        on_the_way = self._on_the_way(tasks)
        replaying = self._replays(addressed=addressed, superseded=superseded, on_the_way=bool(on_the_way))
        if not replaying:
            match(tasks, self.saved.pending_writes)
            try:
                answered = await self._answered(tasks, on_the_way, superseded=superseded)
            except UnknownInterruptError as error:
                raise error.on(run.config.thread_id or "", run.ns) from None
        forking = self.sent_back or superseded or (addressed and command is None and not self._is_fresh_fork())
        if command is not None and (command.update is not None or command.goto):
            forking = forking or self._second_command()
            tasks = await self._apply_command(command, tasks, record=not forking)
        if forking:
            tasks = await self._branch_off(tasks, command)
        starting = any(task.name == START for task in tasks)  # its superstep is not counted
        run.stop = run.step + run.config.recursion_limit + starting
        run.answered = frozenset(task.path for task in answered)
        if run.journal is not None:
            for task in tasks:
                if task.path in run.answered:
                    self._record_answers(task, forked=forking)
            await run.journal.flush()
            await run.journal.settle()
            if tasks:
                await run.journal.take()
        for task in tasks:
            task.moment.stop = run.stop
        run.first_tasks = tasks
        run.breakpoint_count = run.cells.count
        if run.watchers is not None:
            await run.watchers.resumed(run.checkpoint_id, run.ns)
        if run.hub is not None:
            run.recorded = run.recorded or recorded_of(self.saved)
            await run.hub.resumed(run)

    def _record_answers(self, task: Task, *, forked: bool) -> None:
        run = self.run
        assert run.journal is not None  # noqa: S101 - see _continue
        writes: list[tuple[str, Any]] = [(RESUME, stored_answers(task))]
        if forked and task.interrupts:
            writes.append((INTERRUPT, list(task.interrupts)))
        run.journal.hold(run.checkpoint_id, task.id, task.path_text, writes)

    def _tasks(self) -> list[Task]:
        """Return what was due at the stored checkpoint, under the ids that it is stored with."""
        run = self.run
        assert self.saved is not None  # noqa: S101 - see _continue
        ns = self.saved.config["configurable"].get("checkpoint_ns", "")
        return due(run.cells, Moment(run.checkpoint_id, ns, run.step, 0))

    def _on_the_way(self, tasks: list[Task]) -> list[Task]:
        """Return the tasks that the way to a point inside a subgraph leads through."""
        run = self.run
        travel = run.call.travel
        if travel is None or not (self.targeted or run.nested is None):
            return []
        return [task for task in tasks if travel.leads_into(task.ns)]

    def _replays(self, *, addressed: bool, superseded: bool, on_the_way: bool) -> bool:
        """Tell whether the tasks run anew, whatever is stored of them.

        An answer leaves what it does not reach; what a Command writes at a point that is past reaches all of them.
        """
        travel, given = self.run.call.travel, self.given
        if self.sent_back:
            return not on_the_way and not (travel is not None and travel.answering)
        if isinstance(given, Command):
            return superseded and not on_the_way and given.resume is None
        return addressed and not on_the_way

    # ---- answers -----------------------------------------------------------------------------------------------

    async def _answered(self, tasks: list[Task], on_the_way: list[Task], *, superseded: bool) -> list[Task]:
        """Give the tasks the answers that came; return those that got some.

        Raises UnknownInterruptError before anything is stored.
        """
        run = self.run
        resume = self.given.resume if isinstance(self.given, Command) else None
        travel = run.call.travel
        for task in on_the_way:
            task.writes = task.error = None
            if travel is None or not travel.answering:
                task.interrupts, task.answers, task.below = (), [], {}
        if self.sent_back and not self.targeted and travel is not None and travel.answering:
            run.carried = Carried(run, tasks, {})
        if resume is None:
            return []
        if travel is not None and travel.answering and (self.targeted or run.nested is None):
            return await answer_on_journey(run, self._saved, travel, tasks, on_the_way, resume)
        if run.nested is not None and is_id_map(resume):
            return self._answer_from_above(tasks, resume)
        if superseded:
            return await answer_anew(run, self._saved, tasks, resume)
        if self._second_command():
            put = [question.id for task in tasks for question in waiting(task)]
            return await answer_anew(run, self._saved, tasks, by_id(put, put, resume) if put else resume)
        answered = answer(tasks, resume)
        run.answering = bool(answered)
        if answered and not is_id_map(resume) and not own_answers(answered[0]) and answered[0].below:
            run.family.spare_answers.append(resume)
        if not answered and not is_id_map(resume):
            run.loose_answers.append(resume)
        return answered

    def _answer_from_above(self, tasks: list[Task], resume: Mapping[str, Any]) -> list[Task]:
        """Take, of the answers that the parent's task was given, those to questions from here."""
        run = self.run
        assert run.nested is not None  # noqa: S101 - see the caller
        waiting_ids = {question.id for task in tasks for question in waiting(task)}
        ours = {key: value for key, value in resume.items() if key in waiting_ids}
        if resume and tasks and not waiting_ids and run.family.spare_answers:
            run.loose_answers.append(run.family.spare_answers.pop())
        run.answering = True
        caller = run.nested.scope.task
        caller.interrupts = tuple(question for question in caller.interrupts if question.id not in ours)
        caller.below = {key: value for key, value in caller.below.items() if key not in ours}
        return answer(tasks, ours)

    def _is_fresh_fork(self) -> bool:
        """Tell whether the addressed checkpoint was made to be run from (update or fork), and nothing rests on it yet.

        Results and answers that are stored against it would win over those of tasks that run again.
        """
        assert self.saved is not None  # noqa: S101 - see _continue
        if self.saved.metadata.get("source") not in ("update", "fork"):
            return False
        writes = self.saved.pending_writes or ()
        return all(task_id == NULL_TASK_ID or channel in (ERROR, INTERRUPT) for task_id, channel, _ in writes)

    def _branches_when_done(self, command: Command[Any] | None) -> bool:
        """Tell whether going back to a point where nothing is due makes that the head; answers change nothing there.

        What a subgraph had done is of the branch then, also for who uses it next.
        """
        nested = self.run.nested
        if nested is not None:
            return self.sent_back
        return command is None or command.update is not None or bool(command.goto)

    async def _branch_off(self, tasks: list[Task], command: Command[Any] | None) -> list[Task]:
        """Leave the addressed checkpoint as it was; return the tasks of the branch."""
        run, start = self.run, self.run.checkpoint_id
        if tasks or self._branches_when_done(command):
            tasks = await self._fork(tasks)
        if self.sent_back and run.nested is not None:
            past_ns = self._saved.config["configurable"].get("checkpoint_ns", "")
            await retain_below(run, run.nested, past_ns, start)
        return tasks

    async def _fork(self, tasks: list[Task]) -> list[Task]:
        """Go on from a checkpoint with the same values and a new id."""
        run = self.run
        assert self.saved is not None  # noqa: S101 - see _continue
        if run.call.travel is None:
            run.call.travel = Travel(run.checkpoint_id, answering=run.carried is not None)
        here = self.saved.config["configurable"].get("checkpoint_ns", "") == run.ns
        await run.record("fork", run.checkpoint_id if here else None, left=run.checkpoint_id if here else None)
        forked = due(run.cells, Moment(run.checkpoint_id, run.ns, run.step, 0))
        run.call.travel.follow(tasks, forked)
        by_path = {task.path: task for task in tasks}
        if run.journal is not None:
            kept_on = ((by_path[task.path], task) for task in forked if task.path in by_path)
            await retain_tasks(run, [(old, task) for old, task in kept_on if old.finished])
        for task in forked:
            if task.path in by_path:
                carry_over(by_path[task.path], task)
            if run.journal is not None and task.finished:
                run.journal.hold(run.checkpoint_id, task.id, task.path_text, task.stored_writes())
        return forked

    async def _apply_command(self, command: Command[Any], tasks: list[Task], *, record: bool) -> list[Task]:
        """Apply a Command's update and goto; they belong to no task. Return what is due now.

        A branch has them in its own first checkpoint, so that the checkpoint it leaves stays as it was.
        """
        run = self.run
        writes = command_writes(run.plan, INPUT, command)
        fold_loose(run.cells, writes)
        if run.journal is not None and record:
            run.journal.hold(run.checkpoint_id, NULL_TASK_ID, "", writes)
            await run.journal.flush()
        known = {task.path: task for task in tasks}
        return [known.get(task.path, task) for task in self._tasks()]

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
            msg = (
                "Received empty Command input: give it update, goto or resume. resume=None is no answer; to answer a "
                "question with None, name it: Command(resume={id: None}), with the id of the Interrupt."
            )
            raise EmptyInputError(msg)


def missing_checkpoint(checkpoint_id: str, thread_id: str, ns: str) -> CheckpointNotFoundError:
    """Return the error for an id that the thread does not have."""
    where = f"thread {thread_id!r}" + (f", namespace {ns!r}" if ns else "")
    msg = f"There is no checkpoint {checkpoint_id!r} on {where}. {LIST_THEM}"
    return CheckpointNotFoundError(msg)
