"""Calls of ``@task`` functions: work that a node starts inside its own superstep, with a result that is kept.

A call is a task of its own. Its id comes from its caller's path and from its number among the caller's calls, so that
after a pause, a failure or a crash the same call finds its stored result, in whatever order calls finished.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any, Final

import anyio
from typing_extensions import override

from persistence.errors import SerializationError
from persistence.outlasting import outlast
from runtime.actors.cancelling import cancelled_class
from runtime.actors.node import NodeActor
from runtime.actors.outcomes import CANCELLED, COMPLETED, Completed, Failed, Paused
from runtime.engine.resuming import own_answers, put_again, stored_answers, take, waiting
from runtime.engine.tasks import Task
from runtime.errors import GraphInterrupt, NodeCancelledError
from runtime.run.caching import asked
from runtime.run.futures import TaskFuture
from runtime.run.nesting import save_subgraphs
from runtime.run.views import note_kept_answer
from runtime.schema.coerce import view
from runtime.types.constants import CALLED_BY, ERROR, INTERRUPT, NS_END, NS_SEP, PUSH, RESUME, RETURN
from runtime.types.ids import task_id
from runtime.types.telling import add_note, described

if TYPE_CHECKING:
    from collections.abc import Sequence

    from persistence.contracts.cache import FullKey
    from runtime.actors.outcomes import Outcome
    from runtime.context.scope import Scope
    from runtime.engine.plan import NodePlan
    from runtime.engine.tasks import Moment
    from runtime.run.conductor import Conductor

LOG: Final = logging.getLogger("actorgraph")


class CallTask(Task):
    """One call of a task function."""

    __slots__ = ("_around", "began", "caller", "ended", "index", "through", "waited")

    def __init__(self, node: NodePlan, around: Scope, index: int, arguments: Any) -> None:
        self.caller = around.task
        super().__init__(node, self.caller.moment)
        self._around = around
        self.triggers = (PUSH,)
        self.index = index
        self.given = arguments
        self.below = dict(self.caller.below)
        self.through: set[str] = set()
        """Questions that were put by it or by what it runs, as far as stored."""
        self.waited: tuple[Any, ...] = ()
        """Those of them that had no answer when it was made again."""
        self.began = 0
        """When it was made, counted in calls that began or ended."""
        self.ended: int | None = None
        """When it ended or was given up."""

    @property
    @override
    def around(self) -> Scope:
        """Scope of the node or call that made it."""
        return self._around

    @property
    @override
    def depth(self) -> int:
        """How many calls deep it is."""
        return self.caller.depth + 1

    @property
    @override
    def path(self) -> tuple[Any, ...]:
        """Place below the caller."""
        return (PUSH, self.caller.path, self.index, True)

    @property
    @override
    def path_text(self) -> str:
        """Text form of the path, as stored."""
        return f"~{PUSH}, {self.caller.path_text}, {self.index:010d}, {True:010d}"

    @property
    @override
    def id(self) -> str:
        """Deterministic: made from the caller's path and the number of the call."""
        if self._id is None:
            self._id = self._id_at(self.moment, self.caller.ns)
        return self._id

    def _id_at(self, at: Moment, caller_ns: str) -> str:
        ns, caller = f"{caller_ns}{NS_SEP}{self.name}", self.caller.path_text
        return task_id(at.checkpoint_id, ns, at.step, self.name, PUSH, caller, str(self.index))

    @property
    @override
    def ns(self) -> str:
        """Namespace of the call: below its caller's."""
        return f"{self.caller.ns}{NS_SEP}{self.name}{NS_END}{self.id}"

    def ns_at(self, moment: Moment, caller_ns: str) -> str:
        """Return the namespace of the same call at another superstep."""
        return f"{caller_ns}{NS_SEP}{self.name}{NS_END}{self._id_at(moment, caller_ns)}"

    def overlaps(self, earlier: Task) -> bool:
        """Tell whether another call of the same caller was under way when this one was made."""
        return isinstance(earlier, CallTask) and (earlier.ended is None or earlier.ended > self.began)

    def recall(self, stored: Sequence[tuple[str, Any]]) -> None:
        """Take what was stored of it, beside the answers that its caller was given."""
        given, self.below = self.below, {}
        take(self, list(stored))
        self.waited = waiting(self)
        self.through = {question.id for question in self.interrupts} | self.below.keys()
        self.below = {**given, **self.below}

    def pauses(self, outcome: Paused) -> None:
        """Note what it asks; earlier questions stay known, so that they can be answered anew."""
        asked = {one.id: one for one in (*outcome.interrupts, *outcome.settled)}
        left = {one.id for one in waiting(self)}
        self.interrupts = (*asked.values(), *(one for one in self.interrupts if one.id not in asked.keys() | left))

    @property
    def passes_on(self) -> bool:
        """Whether it was given an answer to a question that was put by it or by what it runs."""
        return bool(self.answers or own_answers(self) or self.through & self.below.keys())

    @property
    def record(self) -> Any:
        """Its answers as they are stored; of those by id, only the ones that concern it."""
        below, own = self.below, own_answers(self)
        self.below = {key: value for key, value in below.items() if key in own or key in self.through}
        try:
            return stored_answers(self)
        finally:
            self.below = below

    @property
    def returned(self) -> Any:
        """What the function returned."""
        return _result(self.writes)


class Calls:
    """The calls of one run."""

    def __init__(self, run: Conductor) -> None:
        self._run = run
        self._open: dict[Task, dict[TaskFuture[Any], None]] = {}
        """By caller, the calls of its current attempt that have not ended well."""
        self._asking: set[Task] = set()
        """Callers of calls that wait for an answer."""
        self._broken: Exception | None = None
        """What kept a result from being recorded: no caller can make that good."""
        self._clock = count(1)
        limit = run.config.max_concurrency
        self._slots = None if limit is None else anyio.Semaphore(limit)
        """Gates the calls that a node makes itself; what they call in turn is let through: waiting would never end."""

    # ---- starting ----------------------------------------------------------------------------------------------

    def start(self, node: NodePlan, scope: Scope, arguments: Any) -> TaskFuture[Any]:
        """Start a call, or return the stored result of the same one."""
        if scope.ended:
            msg = (
                f"Task {node.name!r} was called by something that {scope.task.name!r} had started and left behind: "
                "that has ended, so the result would never be found again. Await what you start."
            )
            raise RuntimeError(msg)
        index = scope.task_calls
        scope.task_calls += 1
        task = CallTask(node, scope, index, arguments)
        future: TaskFuture[Any] = TaskFuture(task, self._run, self._abandoned)
        travel = self._run.call.travel
        if travel is not None:
            travel.follow_call(task)
        led_into = travel is not None and travel.leads_into(travel.stored(task.ns))
        kept = () if led_into else self._run.kept.get(task.id, ())
        carried = self._run.carried
        if carried is not None and travel is not None and not kept:
            carried.hand_on(task, travel.stored(task.ns), again=led_into)
        if any(channel == RETURN for channel, _ in kept):
            future.settle(view(_result(kept)))
            return future
        given = task.below
        if kept:
            task.recall(kept)
        self._open.setdefault(scope.task, {})[future] = None
        task.began = next(self._clock)
        left = waiting(task) if self._run.answering else ()
        if left and not any(question.id in given for question in task.waited):
            self._asking.add(scope.task)
            future.fail(GraphInterrupt(left))  # others were answered: it is left alone
            return future
        supervisor = self._run.supervisor
        assert supervisor is not None  # noqa: S101 - a node is running
        supervisor.nursery.start_soon(self._work, future, name=f"actorgraph call of {task.name}")
        scope.alive(observable=True)
        return future

    def _abandoned(self, future: TaskFuture[Any]) -> None:
        """Cancel a call that nobody waits for any more.

        Unless its caller is going to pause: then its siblings go on, so that all questions are asked at once.
        """
        if not (future.task.around.pausing or future.task.caller in self._asking):
            future.task.ended = next(self._clock)
            future.work.cancel()

    # ---- at work -----------------------------------------------------------------------------------------------

    async def _work(self, future: TaskFuture[Any]) -> None:
        task = future.task
        outcome: Outcome = CANCELLED
        try:
            with future.work:
                if self._slots is None or task.depth > 1:
                    outcome = await self._perform(task)
                else:
                    async with self._slots:
                        outcome = await self._perform(task)
        except cancelled_class():
            raise
        except BaseException as error:  # noqa: BLE001 - the caller is told
            outcome = Failed(error)
        finally:
            self._end(future, outcome)

    async def _perform(self, task: CallTask) -> Outcome:
        await anyio.lowlevel.checkpoint_if_cancelled()
        run, carried = self._run, task.finished
        if run.hub is not None and not carried:
            await run.hub.call_started(run, task)
        if carried and run.carried is not None:
            await run.carried.retain(task)
        answered = task.passes_on
        if answered:
            await self._record(task, [(RESUME, task.record)])
        key, cached = (None, True) if carried else await self._recalled(task)
        outcome = COMPLETED if cached else await NodeActor(task.node, run).handle(task)
        if run.unsaved and not isinstance(outcome, Completed):
            await save_subgraphs(run, task)
        if isinstance(outcome, Paused):
            task.pauses(outcome)
        try:
            await self._record(task, _writes(task, outcome, answered=answered))
        except SerializationError as error:
            msg = f"What task {task.name!r} gave cannot be stored, so its call has failed: {error}"
            outcome = Failed(SerializationError(msg))
            await self._record(task, [(ERROR, described(outcome.error))])
        caching = run.program.caching
        if caching is not None and key is not None and isinstance(outcome, Completed) and not (cached or asked(task)):
            await caching.keep({key: task})
        await self._report(task, outcome, cached=cached)
        return outcome

    async def _recalled(self, task: CallTask) -> tuple[FullKey | None, bool]:
        """Return the key that the cache has for a call, if any, and whether it had the result."""
        caching, policy = self._run.program.caching, task.node.cache
        if caching is None or policy is None or asked(task):
            return None, False
        key = caching.call_key(task, policy)
        if key is not None:
            task.writes = caching.writes((await caching.find([key])).get(key))
        return key, task.finished

    async def _record(self, task: CallTask, writes: list[tuple[str, Any]]) -> None:
        """Send what a call wrote; in ``sync``, return once it is durable."""
        journal = self._run.journal
        if journal is not None and writes:
            journal.hold(task.moment.checkpoint_id, task.id, task.path_text, writes)
            try:
                await journal.flush(frozen=True)
                await journal.durable()
            except SerializationError:
                raise
            except Exception as error:
                self._broken = error
                raise

    async def _report(self, task: CallTask, outcome: Outcome, *, cached: bool) -> None:
        run = self._run
        if isinstance(outcome, Completed) and _may_be_made_again(task):
            run.kept[task.id] = [(RETURN, task.returned)]
        if run.hub is None:
            return
        if isinstance(outcome, Completed):
            await run.hub.call_finished(run, task, task.returned, cached=cached)
        elif isinstance(outcome, Failed):
            await run.hub.task_failed(run, task, outcome.error)
        elif isinstance(outcome, Paused):
            run.pauses(task)

    def _end(self, future: TaskFuture[Any], outcome: Outcome) -> None:
        task = future.task
        task.ended = task.ended or next(self._clock)
        if isinstance(outcome, Completed):
            self._open[task.caller].pop(future)
            if self._run.carried is not None:
                self._run.carried.ended(task)
            future.settle(view(task.returned))
        elif isinstance(outcome, Failed):
            add_note(outcome.error, f"During task with name {task.name!r} and id {task.id!r}")
            note_kept_answer(outcome.error, task, self._run.plan)
            future.fail(outcome.error)
        elif isinstance(outcome, Paused):
            self._asking.add(task.caller)
            future.fail(GraphInterrupt(outcome.interrupts))
        else:
            future.fail(NodeCancelledError(task.name, f"The call of task {task.name!r} was cancelled."))
        task.around.alive(observable=True)

    # ---- ending, with the caller -------------------------------------------------------------------------------

    def cancel(self, caller: Task) -> None:
        """Cancel what a caller has started and is at work."""
        for future in self._open.get(caller, ()):
            future.work.cancel()

    async def end(self, caller: Task) -> None:
        """Cancel what a caller has started and return once all of it has ended."""
        self.cancel(caller)
        try:
            await outlast(partial(self._ended, caller))
        finally:
            self._forget(caller)

    async def _ended(self, caller: Task) -> None:
        # What the caller left behind may make more calls meanwhile.
        while at_work := [future for future in self._open.get(caller, ()) if not future.done()]:
            for future in at_work:
                await future.ended()

    def _forget(self, caller: Task) -> list[TaskFuture[Any]]:
        self._asking.discard(caller)
        return list(self._open.pop(caller, ()))

    async def settled(self, caller: Task, outcome: Outcome) -> Outcome:
        """Return a caller's outcome once its calls have ended: paused if one of them waits for an answer."""
        if isinstance(outcome, Failed):
            futures = list(self._open.get(caller, ()))
            await self.end(caller)
            pending = _pending(caller, futures)
            return replace(outcome, pending=pending) if pending or caller.interrupts else outcome
        await self._ended(caller)
        futures = self._forget(caller)
        if self._broken is not None:
            caller.writes = None
            return Failed(self._broken)
        questions = {question.id: question for future in futures for question in future.questions}
        if isinstance(outcome, Paused):
            questions |= {question.id: question for question in outcome.interrupts}
            caller.writes = None
            return replace(outcome, interrupts=tuple(questions.values()))
        if questions:
            caller.writes = None
            return Paused(tuple(questions.values()))
        return _unheard(caller, futures) or outcome


def _pending(caller: Task, futures: list[TaskFuture[Any]]) -> tuple[Any, ...]:
    """Return what a caller that failed had asked, itself or by its calls, and was not answered."""
    pending = {question.id: question for question in waiting(caller)}
    for future in futures:
        pending |= {question.id: question for question in future.questions or waiting(future.task)}
    return tuple(pending.values())


def _unheard(caller: Task, futures: list[TaskFuture[Any]]) -> Failed | None:
    """See to failures that the caller never asked about: log them; one that is to end the program ends the caller."""
    for future in futures:
        failure = future.failure
        if failure is None or future.heard:
            continue
        if not isinstance(failure, Exception):
            caller.writes = None
            return Failed(failure)
        LOG.warning(
            "A call of task %r failed, and %r, which had made it, never awaited it: %r",
            future.task.name,
            caller.name,
            failure,
        )
    return None


def _writes(task: CallTask, outcome: Outcome, *, answered: bool) -> list[tuple[str, Any]]:
    """Return what is recorded of a call that has ended; ``answered``: whether answers of it are recorded already."""
    if isinstance(outcome, Completed):
        return [(RETURN, task.returned)]
    if isinstance(outcome, Failed) and outcome.pending is not None:
        put_again(task, outcome.pending)
    answers = [(RESUME, task.record)] if answered or task.passes_on else []
    if isinstance(outcome, Failed):
        pending = [] if outcome.pending is None else [(INTERRUPT, list(outcome.pending)), (CALLED_BY, task.caller.id)]
        return [(ERROR, described(outcome.error)), *pending, *answers]
    if isinstance(outcome, Paused):
        return [(INTERRUPT, list(task.interrupts)), (CALLED_BY, task.caller.id), *answers]
    return []


def _may_be_made_again(task: CallTask) -> bool:
    """Tell whether this run may make the same call again: another attempt of its caller, or of that one's caller."""
    scope: Scope | None = task.around
    while scope is not None:
        if scope.task.node.retry:
            return True
        scope = scope.task.around
    return False


def _result(writes: Any) -> Any:
    return next((value for channel, value in writes or () if channel == RETURN), None)
