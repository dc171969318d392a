"""The conductor: one run from input to result, superstep by superstep.

open (load, decide, record the input) -> supersteps (plan, perform, fold, record) -> close (everything durable).
Nothing is handed out before the checkpoint that covers it is durable.
"""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
from anyio import from_thread

from persistence.outlasting import outlast
from persistence.portal import here, is_elsewhere
from runtime.actors.outcomes import Failed
from runtime.actors.supervisor import Supervisor
from runtime.channels import MISSING
from runtime.context.scope import enclosing_depth
from runtime.engine.applying import Siblings, apply
from runtime.engine.cells import Cells
from runtime.engine.resuming import waiting
from runtime.engine.scheduling import due, foreseen
from runtime.engine.tasks import Moment
from runtime.errors import ErrorCode, GraphRecursionError, ParentCommand, create_error_message
from runtime.run import recording
from runtime.run.caching import Reuse
from runtime.run.calls import Calls
from runtime.run.claiming import claimed
from runtime.run.leasing import leases
from runtime.run.lineage import Branch
from runtime.run.nesting import Family, drained, journal_of, run_nested
from runtime.run.opening import Opening
from runtime.run.pacing import BREATH
from runtime.run.reporting import tell_of_pauses, too_slow, write_custom
from runtime.run.views import (
    Recorded,
    RunStatistics,
    checkpoint_view,
    failure_of,
    output_of,
    run_statistics,
    tell_of_lost_pause,
    tell_of_waiting_joins,
)
from runtime.streaming.lifecycle import watchers_in
from runtime.streaming.tee import joined
from runtime.types.constants import PREVIOUS, START
from runtime.types.ids import IDS
from runtime.types.telling import add_note

if TYPE_CHECKING:
    from runtime.actors.outcomes import Outcome
    from runtime.context.scope import Answerer, Scope
    from runtime.engine.plan import NodePlan
    from runtime.engine.tasks import Task
    from runtime.run.futures import TaskFuture
    from runtime.run.pacing import Pacer
    from runtime.run.program import Call, Program
    from runtime.run.reopening import Carried
    from runtime.streaming.hub import Hub
    from runtime.streaming.lifecycle import GraphLifecycleStatus
    from runtime.streaming.tee import Tee


class Conductor:
    """Runs a program once. The nodes' scopes read it (context.scope.RunView)."""

    def __init__(self, program: Program, call: Call, pace: Pacer) -> None:
        self.program = program
        self.plan = program.plan
        self.call = call
        self.config = call.config
        self.context = call.context
        self.store = program.store
        self.control = call.control
        self.hub: Hub | Tee | None = call.hub
        """Where the run reports to; a subgraph also to those who follow the runs around it."""
        self.watchers = watchers_in(call.config)
        """Who is told when the run pauses and goes on."""
        self.debug = program.debug
        self.depth = enclosing_depth() + 1
        self.pacer = pace
        """Whose turn it is to compute, among the runs of this event loop."""
        self.home_token, self.home_thread = here()
        self.ns = call.config.checkpoint_ns
        self.nested = call.nested
        """Where this run stands in the run of a parent graph, if it does."""
        if call.nested is not None:
            self.hub = joined(call.hub, call.nested.around.hub)
        self.cells = Cells(program.plan, os.urandom(6).hex())
        caching = program.caching
        self.reuse = Reuse(caching, self.cells) if caching is not None and caching.active else None
        self.journal = journal_of(program, call)
        if call.hub is not None and self.journal is not None:
            call.hub.progress.follow(self.journal)
        self.answerer: Answerer | None = None if self.journal is not None else self.nested
        self.calls: Calls | None = None
        self.kept: dict[str, list[tuple[str, Any]]] = {}
        """What was stored against the checkpoint that the run began at, by task id; @task calls find theirs here."""
        self.family: Family = Family() if self.nested is None else self.nested.around.family
        self.loose_answers = self.family.loose_answers
        self.unsaved: dict[str, Conductor] = {}
        """Subgraphs, by namespace, that ended well in ``exit``: saved only if the task that ran them does not."""
        self.checkpoint_id = "" if self.journal is not None else IDS.mint(-1)
        """The checkpoint that the current superstep starts from; where none is kept, an id of the run's own."""
        self.finished: list[Task] = []
        """Tasks of the current superstep that finished and that are not folded yet."""
        self.failures: list[tuple[Task, Failed]] = []
        self.paused_tasks: list[Task] = []

    at_work = False
    """Whether a node was at work."""
    step = -1
    """The superstep about to run; the checkpoint it starts from has step - 1."""
    stop = 0
    width = 0
    """How many tasks the superstep has."""
    first_tasks: list[Task] | None = None
    """Tasks of the first superstep of a resumed run, matched with what was stored of them."""
    _next: list[Task] | None = None
    """Tasks of the next superstep, where they are known."""
    reviving = False
    """Whether the superstep's tasks have been at work before, in an earlier run."""
    answering = False
    """Whether this run was given answers; then only answered nodes run again."""
    answered: frozenset[Any] = frozenset()
    """Paths of the tasks that were given one."""
    targeted = False
    """Whether a journey leads to this subgraph, or into it."""
    carried: Carried | None = None
    """What calls get of what they had, where the run branches off to answer a question of the past."""
    breakpoint_count = -1
    """Version count at the last resume: a breakpoint fires only if something changed since."""
    interrupts: tuple[Any, ...] = ()
    recorded: Recorded | None = None
    """What the newest checkpoint is, for those who follow the run."""
    pause: tuple[Any, ...] | None = None
    """The questions, or () for a breakpoint, that the run stops at; told once they are durable."""
    status: GraphLifecycleStatus = "pending"
    """How the run stands, as its watchers are told."""
    command: tuple[Any, Any] | None = None
    """What the first task of the current superstep, in path order, told the graph around this one; with that order."""
    siblings: Siblings | None = None
    """Where a superstep has several tasks: whether what they wrote goes together."""
    supervisor: Supervisor | None = None

    @property
    def paused(self) -> bool:
        """Whether the run stopped for answers or at a breakpoint."""
        return self.pause is not None

    @property
    def parents(self) -> dict[str, str]:
        """Namespaces of the graphs that this run is nested in, each with the checkpoint it stands at."""
        return {} if self.nested is None else self.nested.parents

    @property
    def waits(self) -> bool:
        """Whether it has not come by its thread yet, which another process may hold; nothing of it is stored then."""
        return self.journal is not None and leases(self.journal.saver) and self.journal.lease is None

    # ---- the run -----------------------------------------------------------------------------------------------

    async def run(self) -> Any:
        """Run to the end, a pause or an error; everything is durable when this returns or raises."""
        self.program.active.add(self)
        try:
            return await run_nested(self, self._claim_and_run)
        finally:
            self.program.active.discard(self)

    async def _claim_and_run(self) -> Any:
        if self.journal is None:
            await self._run()
        else:
            reject = self.call.multitask_strategy == "reject"
            async with claimed(self.program.saver, self.journal.thread_id, reject=reject) as claim:
                self.journal.claimed(claim, self.plan.name, reject=reject)
                with claim.hurrying(self.call.hub):
                    await self._run()
        return output_of(self)

    async def _run(self) -> None:
        error: BaseException | None = None
        try:
            await self.pacer.turn()
            await Opening(self).open()
            async with anyio.create_task_group() as nursery:
                supervisor = self.supervisor = Supervisor(self, nursery, self.config.max_concurrency)
                try:
                    await self._supersteps(supervisor)
                except anyio.get_cancelled_exc_class():
                    raise
                except BaseException as raised:  # noqa: BLE001 - re-raised below, outside of the nursery's group
                    error = raised
                finally:
                    supervisor.close()
            error = error or supervisor.stray_cancel()
        except BaseException as raised:
            await self._close_beside(raised)
            raise
        finally:  # what refers to itself keeps the state until the next garbage collection
            self.supervisor, self.failures = None, []
        if error is not None:
            try:
                await self._close_beside(error)
                await tell_of_pauses(self)
                raise error
            finally:
                del error  # its traceback refers to this frame
        await self.close(well=self.pause is None)
        await tell_of_pauses(self)
        if self.pause is not None and self.journal is None and self.nested is None:
            tell_of_lost_pause(self)
        if not self.interrupts:
            tell_of_waiting_joins(self)

    async def close(self, *, well: bool = False) -> None:
        """Make everything durable; a cancel during it is delivered afterwards."""
        if self.journal is None:
            return
        await outlast(partial(self.journal.close, self.cells, well=well))
        if well and self.nested is not None and not self.journal.keeps_exit and self.call.durability == "exit":
            self.nested.around.unsaved[self.ns] = self

    async def _close_beside(self, error: BaseException) -> None:
        try:
            await self.close()
        except Exception as failure:  # noqa: BLE001 - the run's own error, or cancel, is what the caller must see first
            add_note(error, f"Saving the run failed as well: {failure!r}")

    async def _supersteps(self, supervisor: Supervisor) -> None:
        while True:
            tasks = self._plan_step()
            if not tasks:
                return
            if self.step >= self.stop and tasks[0].name != START:
                kept = "" if self.journal is None else "The state is saved; resume with None, or "
                raise GraphRecursionError(
                    create_error_message(
                        message=f"Recursion limit of {self.config.recursion_limit} reached without hitting a stop "
                        f"condition in graph {self.plan.name!r} (next: {', '.join(task.name for task in tasks)}). "
                        f"{kept or 'To go further, '}raise config['recursion_limit'].",
                        error_code=ErrorCode.GRAPH_RECURSION_LIMIT,
                    )
                )
            if self._breaks(self.call.interrupt_before, tasks):
                self.pause, self.status = (), "interrupt_before"
                return
            if self.call.hub is not None:
                await self.call.hub.asked()
            if drained(self):
                self.pause = ()
                return
            if self.hub is not None:
                await self.hub.tasks_started(self, tasks)
                if self.call.hub is not None:
                    await self.call.hub.asked()
            if not await self._superstep(supervisor, tasks):
                _ = self.interrupts or drained(self)
                return
            if self.hub is not None or (self.step % BREATH == 0 and not self.pacer.crowded):
                await anyio.lowlevel.checkpoint()
            if self._breaks(self.call.interrupt_after, tasks):
                self.pause, self.status = (), "interrupt_after"
                return

    def _plan_step(self) -> list[Task]:
        self.reviving = self.first_tasks is not None
        if self.first_tasks is not None:
            tasks, self.first_tasks = self.first_tasks, None
            return tasks
        if self._next is not None:
            tasks, self._next = self._next, None
            return tasks
        return due(self.cells, Moment(self.checkpoint_id, self.ns, self.step, self.stop))

    def _breaks(self, names: frozenset[str] | None, tasks: list[Task]) -> bool:
        if names is not None and not names:
            return False
        hit = [task for task in tasks if task.name != START and (names is None or task.name in names)]
        return bool(hit) and self.cells.count > self.breakpoint_count

    # ---- one superstep -----------------------------------------------------------------------------------------

    async def _superstep(self, supervisor: Supervisor, tasks: list[Task]) -> bool:
        """Perform, fold, record. Return whether the run goes on."""
        self.finished, self.failures, self.command = [], [], None
        self.siblings = Siblings(self.cells) if self.journal is not None and len(tasks) > 1 else None
        work = []
        for task in tasks:
            if task.finished:
                self.finished.append(task.effective)
                if self.siblings is not None:
                    self.siblings.admit(task.effective)
                if self.hub is not None:
                    await self.hub.task_finished(self, task.effective, cached=True)
            elif task.interrupts and task.error is None and self._held_back(task):
                continue
            else:
                work.append(task)
        self.width = len(tasks)
        if self.reuse is not None and work:
            work = await self._recall(self.reuse, work)
        if work and not self.failures:
            await self._perform(supervisor, work)
        if self.reuse is not None:
            await self.reuse.keep()
        if self.failures:
            raise failure_of(self)
        if self.command is not None:
            raise ParentCommand(self.command[1])
        if len(self.finished) < len(tasks):
            self.interrupts = self.pause = tuple(question for task in tasks for question in waiting(task))
            return False
        await self._advance(tasks)
        return True

    def _held_back(self, task: Task) -> bool:
        """Tell whether a waiting task stays as it is: the caller answered others."""
        return self.answering and task.path not in self.answered and bool(waiting(task))

    async def _recall(self, reuse: Reuse, work: list[Task]) -> list[Task]:
        """Finish the tasks whose result the cache has; return the others."""
        known, failed = await reuse.recall(work)
        if failed is not None:
            await recording.failed(self, failed[0], Failed(failed[1]))
        for task in known:
            await recording.completed(self, task, 0, cached=True)
        work = [task for task in work if not task.finished]
        if known and work and self.journal is not None:
            await self.journal.flush()
        return work

    async def _perform(self, supervisor: Supervisor, work: list[Task]) -> None:
        self.at_work = self.at_work or work[0].name != START
        if self.pacer.crowded:
            await self.pacer.turn()
        timeout, report = self.program.step_timeout, partial(recording.report, self)
        if timeout is None:
            await supervisor.perform(work, report)
        else:
            with anyio.move_on_after(timeout) as scope:
                await supervisor.perform(work, report)
            if scope.cancelled_caught:
                raise too_slow(self, work, timeout)
        if self.pacer.crowded:
            await self.pacer.turn()

    async def caught(self, task: Task, failure: Failed) -> None:
        """Make a failure durable before its handler starts: after a crash the handler runs, not the node."""
        await recording.caught(self, task, failure)

    def pauses(self, task: Task) -> None:
        """Note that a task, or a call of one, waits for an answer; told with the run's pause."""
        self.paused_tasks.append(task)

    async def _advance(self, tasks: list[Task]) -> None:
        """Fold what the tasks wrote, and record the checkpoint that results."""
        before = self.checkpoint_id
        try:
            apply(self.cells, tasks)
        except Exception as error:
            await recording.not_applied(self, tasks, error)
            raise
        self.finished, self.kept, self.carried = [], {}, None
        if self.unsaved:
            self.unsaved.clear()
        await self.record("loop", before)
        if self.hub is not None:
            await self.hub.advanced(self)

    async def record(self, source: str, parent: str | None, *, left: str | None = None) -> None:
        """Give the cells their checkpoint, at the current step, and move on to the next step.

        ``left``: the checkpoint of the past that a branch begins at with this one.
        """
        step = self.step
        self.step = step + 1
        if self.journal is None:
            return
        self.checkpoint_id = IDS.mint(step, self.journal.newest(parent))
        if left is not None:
            self.journal.branch = Branch(self.checkpoint_id, left)
        if self.hub is not None:
            self.recorded = Recorded(source, step, self.journal.stored_parent(parent))
        if source != "loop":
            await self.journal.checkpoint(self.cells, self.checkpoint_id, parent, source, step)
            return
        self._next = foreseen(self.cells, Moment(self.checkpoint_id, self.ns, self.step, self.stop))
        await self.journal.checkpoint(self.cells, self.checkpoint_id, parent, source, step, last=self._next == [])
        await self.journal.settle()

    # ---- what others see ---------------------------------------------------------------------------------------

    def write_custom(self, item: Any, mode: str = "custom", *, once: bool = False, ns: str | None = None) -> None:
        """Put an item on the stream of a mode; ``once``: unless its message was told before."""
        write_custom(self, item, mode, once=once, ns=ns)

    @property
    def previous(self) -> Any:
        """What the thread's last call of a workflow function left."""
        value = self.cells.peek(PREVIOUS)
        return None if value is MISSING else value

    def start_call(self, node: NodePlan, scope: Scope, arguments: Any) -> TaskFuture[Any]:
        """Start a call of a @task function."""
        if is_elsewhere(self.home_thread):
            return from_thread.run_sync(self.start_call, node, scope, arguments, token=self.home_token)
        if self.calls is None:
            self.calls = Calls(self)
        return self.calls.start(node, scope, arguments)

    def cancel_calls(self, task: Task) -> None:
        """Cancel the @task calls that a task has made and that are at work."""
        if self.calls is not None:
            self.calls.cancel(task)

    async def end_calls(self, task: Task) -> None:
        """Cancel the @task calls that a task has made and return once they have ended."""
        if self.calls is not None:
            await self.calls.end(task)

    async def settle_calls(self, task: Task, outcome: Outcome) -> Outcome:
        """Return a task's outcome once the @task calls that it made have ended."""
        return outcome if self.calls is None else await self.calls.settled(task, outcome)

    def checkpoint_view(self) -> dict[str, Any]:
        """Return the newest checkpoint as the ``checkpoints`` stream shows it."""
        return checkpoint_view(self)

    def statistics(self) -> RunStatistics:
        """Return where the run stands and how full its buffers are."""
        return run_statistics(self)
