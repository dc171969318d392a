"""Calls of ``@task`` functions: work that a node starts inside its own superstep, with a result that is kept.

A call is a task of its own. Its id comes from its caller's path and from its number among the caller's calls, so that
after a pause or a crash the same call finds its stored result, in whatever order calls finished.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any, NoReturn

import anyio
from anyio import from_thread
from typing_extensions import override

from persistence.portal import is_elsewhere
from runtime.actors.node import NodeActor
from runtime.actors.outcomes import COMPLETED, Cancelled, Completed, Failed, Paused
from runtime.channels import MISSING
from runtime.engine.resuming import stored_answers, take, waiting
from runtime.engine.tasks import Task
from runtime.errors import GraphInterrupt, NodeCancelledError
from runtime.run.caching import asked
from runtime.types.constants import ERROR, INTERRUPT, NS_SEP, PUSH, RESUME, RETURN
from runtime.types.ids import task_id

if TYPE_CHECKING:
    from runtime.actors.outcomes import Outcome
    from runtime.context.scope import Scope
    from runtime.engine.plan import NodePlan
    from runtime.run.conductor import Conductor


class CallTask(Task):
    """One call of a task function."""

    __slots__ = ("caller", "index")

    def __init__(self, node: NodePlan, caller: Task, index: int, arguments: Any) -> None:
        super().__init__(node, caller.moment)
        self.triggers = ()
        self.caller = caller
        self.index = index
        self.given = arguments
        self.below = dict(caller.below)

    @property
    @override
    def path(self) -> tuple[Any, ...]:
        """Place below the caller."""
        return (PUSH, self.caller.path, self.index)

    @property
    @override
    def path_text(self) -> str:
        """Text form of the path, as stored."""
        return f"~{PUSH}, {self.caller.path_text}, {self.index:010d}"

    @property
    @override
    def id(self) -> str:
        """Deterministic: made from the caller's path and the number of the call."""
        if self._id is None:
            at = self.moment
            ns = self.name if not at.ns else f"{at.ns}{NS_SEP}{self.name}"
            self._id = task_id(at.checkpoint_id, ns, at.step, self.name, PUSH, self.caller.path_text, str(self.index))
        return self._id


class TaskFuture:
    """The result of a call, to be awaited; in a sync node ``result()`` waits for it."""

    __slots__ = ("_done", "_error", "_run", "_value", "scope", "task")

    def __init__(self, task: CallTask, run: Conductor) -> None:
        self.task = task
        self._run = run
        self._done = anyio.Event()
        self._value: Any = MISSING
        self._error: BaseException | None = None
        self.scope = anyio.CancelScope()

    def settle(self, value: Any) -> None:
        """Give it its result."""
        self._value = value
        self._done.set()

    def fail(self, error: BaseException) -> None:
        """Give it its failure."""
        self._error = error
        self._done.set()

    def done(self) -> bool:
        """Tell whether the call has ended."""
        return self._done.is_set()

    async def ended(self) -> None:
        """Return once the call has ended, however it did."""
        await self._done.wait()

    @property
    def questions(self) -> tuple[Any, ...]:
        """What the call waits for."""
        return self._error.interrupts if isinstance(self._error, GraphInterrupt) else ()

    def __await__(self) -> Generator[Any, Any, Any]:
        yield from self._done.wait().__await__()
        return self._outcome()

    def result(self, timeout: float | None = None) -> Any:
        """Return the result, waiting for it in a sync node's thread. Raises TimeoutError after ``timeout`` seconds."""
        if is_elsewhere(self._run.home_thread):
            from_thread.run(self._wait, timeout, token=self._run.home_token)
        elif not self.done():
            msg = f"The call of task {self.task.name!r} has not ended; in async code await it instead of result()."
            raise RuntimeError(msg)
        return self._outcome()

    async def _wait(self, timeout: float | None) -> None:  # noqa: ASYNC109 - the caller's thread cannot cancel
        with anyio.fail_after(timeout):
            await self._done.wait()

    def _outcome(self) -> Any:
        if self._error is not None:
            self._raise(self._error)
        return self._value

    @staticmethod
    def _raise(error: BaseException) -> NoReturn:
        raise error

    def __repr__(self) -> str:
        return f"<TaskFuture {self.task.name} {'done' if self.done() else 'running'}>"


class Calls:
    """The calls of one run."""

    def __init__(self, run: Conductor) -> None:
        self._run = run
        self._open: dict[Task, list[TaskFuture]] = {}
        """By caller, the calls of its current attempt."""
        limit = run.config.max_concurrency
        self._slots = None if limit is None else anyio.Semaphore(limit)
        """Gates the calls that a node makes itself; what they call in turn is let through: waiting would never end."""

    def start(self, node: NodePlan, scope: Scope, arguments: Any) -> TaskFuture:
        """Start a call, or return the stored result of the same one."""
        index = scope.task_calls
        scope.task_calls += 1
        task = CallTask(node, scope.task, index, arguments)
        future = TaskFuture(task, self._run)
        kept = self._run.kept.get(task.id)
        if kept is not None:
            for channel, value in kept:
                if channel == RETURN:
                    future.settle(value)
                    return future
            answered = task.below
            take(task, kept)
            task.below = {**answered, **task.below}
        assert self._run.supervisor is not None  # noqa: S101 - a node is running
        self._open.setdefault(scope.task, []).append(future)
        if self._run.answering and (asked := waiting(task)):
            future.fail(GraphInterrupt(asked))  # its question is not among those answered: it is left alone
            return future
        self._run.supervisor.nursery.start_soon(self._work, future, name=f"actorgraph call of {task.name}")
        return future

    async def _work(self, future: TaskFuture) -> None:
        task = future.task
        outcome: Outcome = Cancelled()
        try:
            with future.scope:
                if self._slots is None or isinstance(task.caller, CallTask):
                    outcome = await self._perform(task)
                else:
                    async with self._slots:
                        outcome = await self._perform(task)
        except Exception as error:  # noqa: BLE001 - the caller is told
            outcome = Failed(error)
        finally:
            self._end(future, outcome)

    async def _perform(self, task: CallTask) -> Outcome:
        run = self._run
        caching, policy = run.program.caching, task.node.cache
        key = None if caching is None or policy is None or asked(task) else caching.call_key(task, policy)
        outcome: Outcome = COMPLETED
        if key is not None and caching is not None:
            task.writes = caching.writes((await caching.find([key])).get(key))
        cached = task.finished
        if not cached:
            outcome = await NodeActor(task.node, run).handle(task)
            if key is not None and caching is not None and task.finished and not asked(task):
                await caching.keep({key: task})
        writes: list[tuple[str, Any]] = []
        if isinstance(outcome, Completed):
            writes = [(RETURN, _returned(task))]
        elif isinstance(outcome, Failed):
            writes = [(ERROR, repr(outcome.error))]
        elif isinstance(outcome, Paused):
            writes = [(INTERRUPT, list(outcome.interrupts)), (RESUME, stored_answers(task))]
        if run.journal is not None and writes:
            run.journal.hold(task.moment.checkpoint_id, task.id, task.path_text, writes)
            await run.journal.flush()
        if run.hub is not None and isinstance(outcome, Completed):
            await run.hub.call_finished(run, task, _returned(task), cached=cached)
        return outcome

    @staticmethod
    def _end(future: TaskFuture, outcome: Outcome) -> None:
        if isinstance(outcome, Completed):
            future.settle(_returned(future.task))
        elif isinstance(outcome, Failed):
            future.fail(outcome.error)
        elif isinstance(outcome, Paused):
            future.fail(GraphInterrupt(outcome.interrupts))
        else:
            future.fail(NodeCancelledError(f"The call of task {future.task.name!r} was cancelled."))

    def cancel(self, caller: Task) -> None:
        """Cancel what a caller has started."""
        for future in self._open.get(caller, ()):
            future.scope.cancel()

    async def settled(self, caller: Task, outcome: Outcome) -> Outcome:
        """Return a caller's outcome once its calls have ended: paused if one of them waits for an answer."""
        futures = self._open.pop(caller, [])
        if isinstance(outcome, Failed):
            for future in futures:
                future.scope.cancel()
        for future in futures:
            await future.ended()
        if isinstance(outcome, Failed):
            return outcome
        questions = {question.id: question for future in futures for question in future.questions}
        if isinstance(outcome, Paused):
            questions |= {question.id: question for question in outcome.interrupts}
        return Paused(tuple(questions.values())) if questions else outcome


def _returned(task: CallTask) -> Any:
    for channel, value in task.writes or ():
        if channel == RETURN:
            return value
    return None
