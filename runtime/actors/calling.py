"""Calling user functions: what their signature asks for, whether they are async, sync ones in worker threads."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Generator
from contextvars import Context
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import anyio
from anyio.lowlevel import RunVar

from persistence.portal import this_thread
from runtime.actors.cancelling import misplaced
from runtime.actors.threaded import in_thread
from runtime.errors import NodeCancelledError, NotCallableError
from runtime.types.functions import is_async

if TYPE_CHECKING:
    from runtime.context.scope import Scope

THREADS: Final = 40
"""Worker threads for sync nodes, per event loop and depth of nesting; more calls wait their turn.

anyio's own default, which most hosts know. Each depth has its own, because a sync node that waits for a nested run or
for a @task call holds its thread meanwhile: with one pool for all, forty of them would wait for each other for ever.
"""

RUNTIME: Final = "__pregel_runtime"
"""Where LangGraph's ToolNode looks for the Runtime, in ``configurable``."""

_LIMITERS: RunVar[dict[int, anyio.CapacityLimiter]] = RunVar("actorgraph_thread_limiters")

_INJECTED: Final = {
    "config": ("RunnableConfig", "dict", "Dict", "Mapping", "CallConfig"),
    "writer": ("StreamWriter", "Callable"),
    "store": ("BaseStore", "Store"),
    "previous": (),
    "runtime": (),
    "error": ("NodeError",),
}
"""Parameter name to the type names that its annotation may mention; none: any annotation."""


class Call:
    """A user's function with what is known of it before it is ever called."""

    __slots__ = ("function", "hands_on", "is_async", "name", "wants")

    def __init__(self, function: Any, name: str, *, takes_input: bool = True) -> None:
        """Look at a function; unless it ``takes_input``, its first parameter may be an injected one."""
        self.name = name
        self.function: Callable[..., Any] = function
        if not callable(function):
            for method in ("ainvoke", "invoke"):
                if callable(getattr(function, method, None)):
                    self.function = getattr(function, method)
                    break
            else:
                msg = f"{name!r}: expected a function, callable or runnable, got {type(function).__name__}."
                if callable(getattr(function, "compile", None)):
                    msg += " Compile it first: give what its compile() returns."
                raise NotCallableError(msg)
        self.hands_on = self.function is not function and not hasattr(function, "get_state")
        """Whether it is a runnable, and no graph: what runs inside it finds the Runtime in its config."""
        self.is_async = is_async(self.function)
        self.wants = _wanted(self.function, 1 if takes_input else 0)

    def arguments(self, scope: Scope) -> dict[str, Any]:
        """Return the injected parameters."""
        given: dict[str, Any] = {}
        for parameter in self.wants:
            if parameter == "store":
                given[parameter] = scope.run.store
            elif parameter == "previous":
                given[parameter] = scope.run.previous
            else:
                given[parameter] = getattr(scope, parameter)
        if self.hands_on and "config" in given:
            config = given["config"]
            given["config"] = {**config, "configurable": {**config["configurable"], RUNTIME: scope.runtime}}
        return given

    async def __call__(self, context: Context, scope: Scope, value: Any) -> Any:
        """Run the function in the given context copy; a sync one in a worker thread."""
        function = self.function
        if self.wants:
            function = partial(function, **self.arguments(scope))
        if self.is_async:
            return await Contained(context.run(function, value), context, scope)
        scope.waits()
        scope.inside = True
        try:
            cut_short = partial(scope.run.cancel_calls, scope.task)
            result = await in_thread(partial(context.run, function, value), _limiter(scope.depth), cut_short)
        except (NodeCancelledError, anyio.get_cancelled_exc_class()):
            # If the thread waited for a call when the node was cancelled, this is how that ended, and no failure.
            await anyio.lowlevel.checkpoint()
            raise
        if inspect.isawaitable(result):
            return await Contained(result, context, scope)
        return result


class Contained:
    """Awaits something inside a context copy, so that what a node sets does not reach the next one.

    Every step of the awaitable goes through ``context.run``. An own task would do the same at the price of spawning
    it.
    """

    __slots__ = ("awaitable", "context", "scope")

    def __init__(self, awaitable: Awaitable[Any], context: Context, scope: Scope) -> None:
        self.awaitable = awaitable
        self.context = context
        self.scope = scope
        """Told when the awaitable waits for the first time."""

    def __await__(self) -> Generator[Any, Any, Any]:
        run, scope = self.context.run, self.scope
        steps: Any = self.awaitable
        if not inspect.iscoroutine(steps):
            steps = _awaited(steps)
        scope.inside, scope.thread = True, this_thread()
        try:
            waiting = run(steps.send, None)
        except StopIteration as stop:
            return stop.value
        except GeneratorExit as error:
            raise misplaced(error) from error
        scope.waits()
        while True:
            scope.inside = False
            advance = steps.send
            try:
                given = yield waiting
                hub = scope.run.hub
                if hub is not None and hub.full:
                    yield from hub.room().__await__()  # a slow consumer slows the node
            except GeneratorExit:
                run(steps.close)
                raise
            except BaseException as error:  # noqa: BLE001 - everything is the awaitable's to handle
                advance, given = steps.throw, error
            scope.inside = True
            try:
                waiting = run(advance, given)
            except StopIteration as stop:
                return stop.value
            except GeneratorExit as error:
                raise misplaced(error) from error
            finally:
                given = None  # an error whose traceback holds this frame would be a cycle


async def _awaited(awaitable: Awaitable[Any]) -> Any:
    """Make a coroutine of anything that can be awaited; what others make may lack ``send`` and ``throw``."""
    return await awaitable


def _wanted(function: Any, taken: int) -> tuple[str, ...]:
    """Return the parameters to inject; ``taken``: how many the caller gives by position."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return ()
    wanted = []
    for position, parameter in enumerate(parameters):
        names = _INJECTED.get(parameter.name)
        if names is None or parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            continue
        if position < taken and parameter.kind is parameter.POSITIONAL_OR_KEYWORD:
            continue
        if isinstance(function, partial) and parameter.name in function.keywords:
            continue
        if names and parameter.annotation is not parameter.empty:
            text = parameter.annotation if isinstance(parameter.annotation, str) else repr(parameter.annotation)
            if not any(name in text for name in names):
                continue
        wanted.append(parameter.name)
    return tuple(wanted)


def _limiter(depth: int) -> anyio.CapacityLimiter:
    try:
        limiters = _LIMITERS.get()
    except LookupError:
        limiters = {}
        _LIMITERS.set(limiters)
    if depth not in limiters:
        limiters[depth] = anyio.CapacityLimiter(THREADS)
    return limiters[depth]
