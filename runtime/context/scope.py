"""The scope of one task: everything that its node can reach through context variables or injected parameters."""

from __future__ import annotations

import sys
from contextvars import ContextVar
from time import time
from typing import TYPE_CHECKING, Any, Protocol

from persistence.portal import is_elsewhere
from runtime.context.passing import LIBRARY, heard, seat
from runtime.context.runtime import ExecutionInfo, RunControl, Runtime
from runtime.engine.questions import Questions
from runtime.engine.tasks import HandlerTask
from runtime.errors import GraphInterrupt, NodeError, StreamOverflowError
from runtime.types.asking import ASKER
from runtime.types.constants import NS_SEP

if TYPE_CHECKING:
    from collections.abc import Callable

    from runtime.engine.plan import Plan
    from runtime.engine.tasks import Task
    from runtime.types.config import CallConfig, RunnableConfig
    from runtime.types.streams import StreamWriter


class Answerer(Protocol):
    """Where a subgraph stands in its parent."""

    @property
    def scope(self) -> Scope:
        """Scope of the parent's task."""
        ...

    @property
    def aside(self) -> bool:
        """Whether that task started it beside its own line of work, so maybe at once with others."""
        ...


class Subruns(Protocol):
    """The subgraphs that an attempt runs."""

    beside: bool
    """Whether one was called beside the node's own line of work."""

    async def end(self) -> None:
        """Cancel what still runs."""
        ...


class RunView(Protocol):
    """What a scope needs to know of its run."""

    plan: Plan
    config: CallConfig
    context: Any
    store: Any
    control: RunControl | None

    @property
    def previous(self) -> Any:
        """What the workflow returned or saved on the thread last time."""
        ...

    hub: Any
    """Where the run reports to, or None."""
    answerer: Answerer | None
    """Who answers questions instead: the parent's task, for a subgraph without state of its own."""
    depth: int
    """How many runs this one is nested in, itself included."""
    loose_answers: list[Any]
    """An answer given while nothing waited: the next question gets it."""
    width: int
    """How many tasks the superstep has."""

    def start_call(self, node: Any, scope: Scope, arguments: Any) -> Any:
        """Start a call of a @task function; return its future."""
        ...

    def cancel_calls(self, task: Task) -> None:
        """Cancel the @task calls that a task has made and that are at work."""
        ...

    def write_custom(self, item: Any, mode: str = "custom", *, once: bool = False, ns: str | None = None) -> None:
        """Put an item on the stream of a mode; ``once``: unless its message was told before."""
        ...


SCOPE: ContextVar[Scope] = ContextVar("actorgraph_scope")


class Scope:
    """Built once per task; what it offers is built when asked for."""

    __slots__ = (
        "_config",
        "_questions",
        "attempt",
        "beat",
        "children",
        "ended",
        "first_attempt",
        "inside",
        "on_wait",
        "pushed",
        "run",
        "subruns",
        "task",
        "task_calls",
        "thread",
    )

    def __init__(self, run: RunView, task: Task) -> None:
        self.run = run
        self.task = task
        self.attempt = 1
        self.first_attempt: float | None = None
        """When that began, in Unix seconds; noted where it may be asked for."""
        self.children = 0
        """How many subgraphs this attempt has called."""
        self.task_calls = 0
        """How many @task functions this attempt has called."""
        self._questions: Questions | None = None
        self.inside: bool | None = False
        """Whether the node's own line of work is what runs right now, not something that it started beside it.

        None until its next step, where something beside it has used a state that is kept (see run/keeping).
        """
        self.thread: int | None = None
        """Where the node's own line of work runs, if that is an event loop: a thread that it started runs beside it."""
        self.subruns: Subruns | None = None
        """The subgraphs that the node runs, once it ran one."""
        self.ended = False
        """Whether the node is done; what it left behind cannot make calls any more."""
        self.beat: Any = None
        """Restarts the idle timeout, where there is one."""
        self.on_wait: Callable[[], None] | None = None
        """Told when the node starts to wait, so that others get to work."""
        self.pushed: list[tuple[str, Any]] = []
        """Messages that this attempt told and writes to the state, with their keys."""
        self._config: RunnableConfig | None = None

    def enter(self) -> None:
        """Make this the current scope; called inside the node's own context copy."""
        SCOPE.set(self)
        ASKER.set(self)
        run = self.run
        wanted = "callbacks" in run.config.raw or (run.hub is not None and run.hub.hears)
        if wanted or LIBRARY in sys.modules:
            seat(self.looked_at, wanted=wanted)

    def waits(self) -> None:
        """Say that the node waits for something."""
        if self.on_wait is not None:
            self.on_wait()

    def restart(self) -> None:
        """Begin another attempt."""
        owner = self
        while owner.run.answerer is not None:
            owner = owner.run.answerer.scope
        if owner is not self:
            owner.questions.withdraw(self)
        self.children = self.task_calls = 0
        self._questions = self.subruns = None
        self.pushed = []

    def forget(self, run: object) -> None:
        """Forget what a subgraph without state has asked: a Command to this graph has ended it."""
        self.questions.withdraw(run)
        if self.run.answerer is not None:
            self.run.answerer.scope.forget(run)

    @property
    def questions(self) -> Questions:
        """What this attempt asks."""
        if self._questions is None:
            self._questions = Questions(self.task)
        return self._questions

    def ask(self, value: Any, response_schema: Any) -> Any:
        """Return the recorded answer to this call, or pause the node."""
        return self.put(value, response_schema, aside=self.beside)

    @property
    def beside(self) -> bool:
        """Whether the caller works beside the node's own line, so maybe at once with others."""
        return not self.inside or (self.thread is not None and is_elsewhere(self.thread))

    def put(self, value: Any, response_schema: Any, *, aside: bool, askers: tuple[object, ...] = ()) -> Any:
        """Answer a question of this node, or of a subgraph without state of its own that it runs."""
        above = self.run.answerer
        if above is not None:
            aside = aside or above.aside or self.run.width > 1
            try:
                return above.scope.put(value, response_schema, aside=aside, askers=(*askers, self, self.run))
            except GraphInterrupt as pause:
                self.questions.take_over(pause.interrupts, askers)
                raise
        return self.questions.ask(value, response_schema, self.run.loose_answers, aside=aside, askers=askers)

    @property
    def at_once(self) -> bool:
        """Whether this attempt asked, or ran subgraphs, beside the node's own line of work."""
        asked = self._questions is not None and self._questions.at_once
        return asked or (self.subruns is not None and self.subruns.beside)

    @property
    def pausing(self) -> bool:
        """Whether this attempt has asked something that has no answer, or a subgraph of it has stopped."""
        return self._questions is not None and self._questions.open

    def pause_all_the_same(self) -> None:
        """Pause the node if it, or a router of it, has caught a pause: what was asked waits for its answer."""
        if self.pausing:
            raise GraphInterrupt

    @property
    def keys(self) -> tuple[str, ...]:
        """Keys of the state that the node can write to; a workflow function, or a call of one, has none."""
        plan = self.run.plan
        return () if plan.single is not None or self.task.around is not None else tuple(plan.state)

    @property
    def depth(self) -> int:
        """How deep the node is in runs and calls around it; it may wait for what is deeper, never the other way."""
        return self.run.depth + self.task.depth

    @property
    def config(self) -> RunnableConfig:
        """The config that the node sees: the call's, with where the node stands."""
        if self._config is None:
            call, task = self.run.config, self.task
            metadata = {
                **call.raw.get("metadata", {}),
                **({"thread_id": call.thread_id} if call.thread_id is not None else {}),
                **({"checkpoint_ns": call.checkpoint_ns} if call.checkpoint_ns else {}),
                **task.node.metadata,
                "langgraph_step": task.moment.step,
                "langgraph_node": task.name,
                "langgraph_triggers": task.triggers,
                "langgraph_path": task.path,
                "langgraph_checkpoint_ns": task.ns,
            }
            configurable = {
                **call.configurable,
                "checkpoint_id": task.moment.checkpoint_id,
                "checkpoint_ns": task.ns,
                "__pregel_task_id": task.id,
            }
            self._config = {
                **call.raw,
                "metadata": metadata,
                "configurable": configurable,
                "callbacks": None,
            }
            # They name the call; what a node calls has names of its own.
            self._config.pop("run_name", None)
            self._config.pop("run_id", None)
            hub = self.run.hub
            listening = [] if hub is None else hub.handlers(task.ns, self.tell)
            if listening or "callbacks" in call.raw or LIBRARY in sys.modules:
                node = task.node.call
                self._config["callbacks"] = heard(
                    call.raw.get("callbacks"),
                    listening,
                    self._config,
                    task_id=task.id,
                    is_async=node is None or node.is_async,
                )
        return self._config

    def looked_at(self) -> RunnableConfig:
        """Return the config to who looks at it later."""
        return self.config

    @property
    def error(self) -> NodeError | None:
        """What an error handler handles."""
        task = self.task
        return NodeError(task.failed.name, task.reason) if isinstance(task, HandlerTask) else None

    @property
    def runtime(self) -> Runtime[Any]:
        """The Runtime of this attempt."""
        run, task = self.run, self.task
        if self.first_attempt is None:
            self.first_attempt = time()
        return Runtime(
            context=run.context,
            store=run.store,
            stream_writer=self.write,
            heartbeat=self.heartbeat,
            previous=run.previous,
            control=run.control,
            execution_info=ExecutionInfo(
                checkpoint_id=task.moment.checkpoint_id,
                checkpoint_ns=task.ns,
                task_id=task.id,
                thread_id=run.config.thread_id,
                run_id=run.config.run_id,
                node_attempt=self.attempt,
                node_first_attempt_time=self.first_attempt,
            ),
        )

    @property
    def writer(self) -> StreamWriter:
        """Writes to the ``custom`` stream."""
        return self.write

    def write(self, item: Any) -> None:
        """Put an item on the ``custom`` stream; it is lost if nobody listens to that."""
        self.tell("custom", item)

    def tell(self, mode: str, item: Any, *, once: bool = False) -> None:
        """Put an item on the stream of a mode; ``once``: unless its message was told before."""
        self.alive(observable=True)
        try:
            called = self.task.around is not None
            place = self.task.ns.rpartition(NS_SEP)[0] if called else None  # that of the caller
            self.run.write_custom(item, mode, once=once, ns=place)
        except StreamOverflowError as error:
            msg = f"Node {self.task.name!r}: {error}"
            raise StreamOverflowError(msg) from None

    def heartbeat(self) -> None:
        """Restart the idle timeout."""
        self.alive(observable=False)

    def alive(self, *, observable: bool) -> None:
        """Restart the idle timeouts of this attempt, and of those that wait for it because they called it."""
        scope: Scope | None = self
        while scope is not None:
            if scope.beat is not None:
                scope.beat(observable=observable)
            scope = scope.task.around


def enclosing_depth() -> int:
    """Return how many runs the caller is nested in."""
    scope = SCOPE.get(None)
    return 0 if scope is None else scope.depth


def current_scope(caller: str) -> Scope:
    """Return the scope of the running node. Raises RuntimeError outside of one."""
    try:
        return SCOPE.get()
    except LookupError:
        msg = f"Called {caller} outside of a runnable context; it only works in code that a graph runs."
        raise RuntimeError(msg) from None


def get_runtime(context_schema: type | None = None) -> Runtime[Any]:  # noqa: ARG001 - the parameter is for type checkers
    """Return the Runtime of the running node."""
    return current_scope("get_runtime").runtime


def get_config() -> RunnableConfig:
    """Return the config of the running node."""
    return current_scope("get_config").config


def get_store() -> Any:
    """Return the store that the graph was compiled with, or None."""
    return current_scope("get_store").run.store


def get_stream_writer() -> StreamWriter:
    """Return the writer to the ``custom`` stream."""
    return current_scope("get_stream_writer").writer
