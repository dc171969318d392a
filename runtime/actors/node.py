"""A node as an actor: a mailbox and a rule. It holds no state between messages; all state is in channels."""

from __future__ import annotations

from contextvars import copy_context
from random import random
from time import time
from typing import TYPE_CHECKING, Any, Protocol

import anyio
import anyio.lowlevel

from runtime.actors.cancelling import cancelled_class, is_self_inflicted
from runtime.actors.handling import blame_handler
from runtime.actors.mailbox import Mailbox
from runtime.actors.outcomes import COMPLETED, Completed, Escalated, Failed, Outcome, Paused
from runtime.actors.timing import timed
from runtime.channels import MISSING
from runtime.context.scope import RunView, Scope
from runtime.engine.projecting import node_input
from runtime.engine.tasks import HandlerTask
from runtime.engine.writing import branch_writes, fresh_values, input_writes, result_writes
from runtime.errors import (
    ChildCommand,
    GraphInterrupt,
    InvalidUpdateError,
    NodeCancelledError,
    ParentCommand,
    StoredNodeError,
)
from runtime.schema.coerce import fingerprint, view
from runtime.types.constants import ROOT, START
from runtime.types.policy import TimeoutPolicy
from runtime.types.telling import add_note

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextvars import Context

    from runtime.engine.cells import Cells
    from runtime.engine.plan import BranchPlan, NodePlan
    from runtime.engine.tasks import Task
    from runtime.types.interrupts import Interrupt
    from runtime.types.policy import RetryPolicy


class Stage(RunView, Protocol):
    """What an actor needs of the run that it plays in."""

    cells: Cells
    debug: bool
    """Find nodes that change their input in place."""

    async def caught(self, task: Task, failure: Failed) -> None:
        """Make a failure durable before its handler starts: after a crash the handler runs, not the node."""
        ...

    async def end_calls(self, task: Task) -> None:
        """Cancel the @task calls that a task has made and return once they have ended."""
        ...

    async def settle_calls(self, task: Task, outcome: Outcome) -> Outcome:
        """Return a task's outcome once the @task calls that it made have ended."""
        ...


class NodeActor:
    """Runs one node's tasks, one attempt after another, and says how each ended."""

    __slots__ = ("_mailbox", "node", "stage")

    def __init__(self, node: NodePlan, stage: Stage) -> None:
        self.node = node
        self.stage = stage
        self._mailbox: Mailbox[Task] | None = None

    @property
    def mailbox(self) -> Mailbox[Task]:
        """Tasks to run; made at the first message."""
        if self._mailbox is None:
            self._mailbox = Mailbox()
        return self._mailbox

    def close(self) -> list[Task]:
        """Refuse further messages and return those unread."""
        return [] if self._mailbox is None else self._mailbox.close()

    async def handle(self, task: Task, on_wait: Callable[[], None] | None = None) -> Outcome:
        """Run a task to its outcome. Raises only the event loop's cancellation and non-Exceptions of the node.

        ``on_wait`` is called whenever the node starts to wait for something.
        """
        scope = Scope(self.stage, task)
        scope.on_wait = on_wait
        handler = self.node.handler
        try:
            if task.caught and handler is not None:
                outcome: Outcome = await self._handled(task, handler, StoredNodeError(str(task.error)))
            else:
                outcome = await self._outcome(task, scope)
                if scope.task_calls:
                    outcome = await self.stage.settle_calls(task, outcome)
                if handler is not None and isinstance(outcome, Failed) and isinstance(outcome.error, Exception):
                    await self.stage.caught(task, outcome)
                    outcome = await self._handled(task, handler, outcome.error)
        except BaseException:
            if scope.task_calls:
                await self.stage.end_calls(task)
            raise
        finally:
            scope.ended = True
            if scope.subruns is not None:
                await scope.subruns.end()
        try:
            return outcome
        finally:
            del outcome  # a failure's traceback refers to this frame as the caller of one that it passed

    async def _handled(self, task: Task, handler: NodePlan, reason: Exception) -> Outcome:
        """Run the node's error handler in its place."""
        stand_in = HandlerTask(task, handler, reason)
        outcome = await NodeActor(handler, self.stage).handle(stand_in)
        if isinstance(outcome, Completed):
            task.stand_in = stand_in
        elif isinstance(outcome, Failed):
            blame_handler(outcome.error, stand_in)
        return outcome

    async def _outcome(self, task: Task, scope: Scope) -> Outcome:
        if self.node.retry:
            scope.first_attempt = time()
        while True:
            context = copy_context()
            context.run(scope.enter)
            try:
                task.writes = await self._attempt(context, scope, task)
            except GraphInterrupt as pause:
                return _paused(scope, pause.interrupts)
            except ParentCommand as command:
                return Escalated(command.command)
            except (Exception, BaseExceptionGroup) as error:
                paused, failure = _parted(error)
                if failure is None:
                    return _paused(scope, _asked_in(paused))
                if not isinstance(failure, Exception):
                    raise
                pause_for = await self._retry_pause(scope, failure)
                if pause_for is None:
                    try:
                        return Failed(failure, scope.attempt)
                    finally:
                        del paused, failure  # their tracebacks refer to this frame, and it to the whole run
                scope.waits()
                await self._end_attempt(task, scope)
                await anyio.sleep(pause_for)
                scope.attempt += 1
                scope.restart()
            except cancelled_class() as error:
                if not is_self_inflicted(error):
                    raise
                msg = f"Node {task.name!r} raised {type(error).__name__} although nobody had cancelled it."
                ended = NodeCancelledError(task.name, msg)
                ended.__cause__ = error
                return Failed(ended, scope.attempt)
            else:
                return COMPLETED

    async def _end_attempt(self, task: Task, scope: Scope) -> None:
        """End what the failed attempt has left behind."""
        if scope.subruns is not None:
            await scope.subruns.end()
        if scope.task_calls:
            await self.stage.end_calls(task)

    async def _attempt(self, context: Context, scope: Scope, task: Task) -> list[tuple[str, Any]]:
        node, stage = self.node, self.stage
        plan = stage.cells.plan
        if node.name == START:
            given = stage.cells.peek(START)
            writes = [*input_writes(plan, given, stage.cells.versions), *node.edge_writes]
        else:
            try:
                value = node_input(stage.cells, task)
            except Exception as error:
                add_note(error, f"While building the input of node {task.name!r}")
                raise
            before = fingerprint(value) if stage.debug else None
            if stage.hub is not None:
                stage.hub.given(value)
            timeout = node.timeout
            if task.send is not None and task.send.timeout is not None:
                timeout = TimeoutPolicy.coerce(task.send.timeout)
            try:
                if timeout is not None:
                    result = await timed(timeout, node, scope, node.call(context, scope, value))
                else:
                    result = await node.call(context, scope, value)
            except (ChildCommand, BaseExceptionGroup) as signal:
                result = _command_of(signal)
                if result is None:
                    raise
            scope.pause_all_the_same()
            if before is not None and fingerprint(value) != before and result is not value:
                msg = (
                    f"Node {task.name!r} changed its input in place. Such a change is not recorded: return it as an "
                    "update instead."
                )
                raise InvalidUpdateError(msg)
            writes = await self.write_out(context, scope, task, result, value)
            if stage.hub is not None:
                await stage.hub.returned(stage, lambda: scope.config.get("metadata"), result)
            return writes
        return await self._route(context, scope, task, writes, given if isinstance(given, dict) else None)

    async def write_out(
        self, context: Context, scope: Scope, task: Task, result: Any, received: Any = MISSING
    ) -> list[tuple[str, Any]]:
        """Return the writes of a result: state, edges and what the routers answer. Raises what routers raise."""
        writes = result_writes(self.stage.cells.plan, self.node, result, received)
        if scope.pushed:
            writes = [*scope.pushed, *writes]
        if not self.node.branches:
            return writes
        shown = result if isinstance(result, dict) and not self.stage.cells.plan.bare else {}
        return await self._route(context, scope, task, writes, shown)

    async def _route(
        self,
        context: Context,
        scope: Scope,
        task: Task,
        writes: list[tuple[str, Any]],
        shown: dict[str, Any] | None = None,
    ) -> list[tuple[str, Any]]:
        routed = list(writes)
        for branch in self.node.branches:
            routed.extend(await self._routed(branch, context, scope, task, writes, shown or {}))
        return routed

    async def _routed(
        self,
        branch: BranchPlan,
        context: Context,
        scope: Scope,
        task: Task,
        writes: list[tuple[str, Any]],
        shown: dict[str, Any],
    ) -> list[tuple[str, Any]]:
        """Ask one router. It sees the state with this task's writes, and any other keys that the node returned.

        If its annotation says what it sees, it gets no others.
        """
        cells = self.stage.cells
        values = fresh_values(cells, branch.schema, writes, view)
        seen: Any
        if branch.schema.kind == "bare":
            seen = values.get(ROOT)
        else:
            if branch.schema.build is None and not branch.exact:
                values = {**shown, **values}
            for key, manager in branch.schema.managed.items():
                values[key] = manager.get(task.moment)
            seen = values if branch.schema.build is None else branch.schema.build(values)
        answer = await branch.call(context, scope, seen)
        scope.pause_all_the_same()
        return branch_writes(cells.plan, self.node.name, branch, answer)

    async def _retry_pause(self, scope: Scope, error: Exception) -> float | None:
        """Return the seconds to wait before another attempt; None if this was the last."""
        if isinstance(error, NodeCancelledError):  # of a call, which may have been cancelled with this node
            await anyio.lowlevel.checkpoint_if_cancelled()
        policy = matching(self.node.retry, error)
        if policy is None or scope.attempt >= policy.max_attempts:
            return None
        return policy.pause(scope.attempt, random())  # noqa: S311 - jitter, not a secret


def _paused(scope: Scope, raised: tuple[Interrupt, ...]) -> Paused:
    questions = scope.questions
    asked = tuple(questions.asked) or raised
    left, answered = questions.left(asked) if scope.at_once else ((), ())
    return Paused((*asked, *left), (*questions.settled, *answered))


def _command_of(signal: BaseException) -> Any:
    """Return the command of a subgraph to its parent, also out of a task group; None if there is none."""
    if isinstance(signal, ChildCommand):
        return signal.command
    assert isinstance(signal, BaseExceptionGroup)  # noqa: S101 - nothing else is caught
    commands, rest = signal.split(ChildCommand)
    leaf: BaseException | None = commands if rest is None else None
    while isinstance(leaf, BaseExceptionGroup):
        leaf = leaf.exceptions[0]
    return leaf.command if isinstance(leaf, ChildCommand) else None


def _parted(error: BaseException) -> tuple[BaseException | None, BaseException | None]:
    """Part what left a task group into its pauses and its failures; a cancel that came with them comes again."""
    if not isinstance(error, BaseExceptionGroup):
        return None, error
    _, rest = error.split(cancelled_class())
    return (None, error) if rest is None else rest.split(GraphInterrupt)


def _asked_in(pause: BaseException | None) -> tuple[Any, ...]:
    if isinstance(pause, BaseExceptionGroup):
        return tuple(question for part in pause.exceptions for question in _asked_in(part))
    return pause.interrupts if isinstance(pause, GraphInterrupt) else ()


def matching(policies: tuple[RetryPolicy, ...], error: Exception) -> RetryPolicy | None:
    """Return the first policy that retries the error."""
    for policy in policies:
        if policy.matches(error):
            return policy
    return None
