"""The functional API: a workflow as one function, its steps as ``@task`` functions."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial, update_wrapper, wraps
from inspect import Parameter
from math import inf
from types import SimpleNamespace
from typing import Any, Final, Generic, ParamSpec, Protocol, TypeVar, get_args, get_origin, overload

from runtime.actors.calling import Call
from runtime.channels import LastValue
from runtime.context.scope import current_scope
from runtime.engine.plan import NodePlan, Plan
from runtime.engine.vocabulary import register
from runtime.errors import GraphDefinitionError
from runtime.graph.arguments import (
    cache_policy_of,
    check_saver,
    check_store,
    policies,
    refuse_generators,
    renamed,
    timeout_of,
)
from runtime.graph.compiled import CompiledStateGraph
from runtime.graph.subgraphs import programs_in
from runtime.run.adapting import adapted
from runtime.run.caching import caching_for
from runtime.run.futures import TaskFuture
from runtime.run.program import Program
from runtime.schema.coerce import view
from runtime.schema.hints import annotations_of
from runtime.schema.introspect import introspect
from runtime.schema.reachable import types_in
from runtime.types.constants import END, NS_END, NS_SEP, PREVIOUS, RETURN, START
from runtime.types.policy import CachePolicy, RetryPolicy, TimeoutPolicy

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S")
T = TypeVar("T")

Policies = RetryPolicy | Sequence[RetryPolicy] | None

_BY_POSITION: Final = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD, Parameter.VAR_POSITIONAL)


class TaskFunction(Generic[P, T]):
    """A function whose calls inside a workflow are tasks: run beside each other, recorded, not run again on resume."""

    def __init__(
        self, function: Callable[..., Any], name: str | None, retry: Policies, cache: Any, timeout: Any
    ) -> None:
        refuse_generators(function, "tasks")
        self.function = function
        self.name = _named(function, name)
        call = Call(function, self.name, takes_input=False)
        self._node = NodePlan(
            self.name,
            call,
            introspect(object),
            retry=policies(retry),
            timeout=_timeout(timeout, call, "Task"),
            cache=cache_policy_of(cache),
            mapper=lambda result: [(RETURN, view(result))],
        )
        call.function = _spread(call.function, is_async=call.is_async)
        register(*types_in(annotations_of(function).get("return")))
        update_wrapper(self, function, updated=())

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> TaskFuture[T]:
        """Start the task. Returns a future; raises RuntimeError outside of a workflow or node."""
        scope = current_scope(f"task {self.name!r}")
        future: TaskFuture[T] = scope.run.start_call(self._node, scope, (args, kwargs))
        return future

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        """Return the task as a method: called with the instance first."""
        start: Callable[..., Any] = self
        return self if instance is None else partial(start, instance)

    def __repr__(self) -> str:
        return f"<task {self.name}>"


def _spread(function: Callable[..., Any], *, is_async: bool) -> Callable[..., Any]:
    """Return a function of one packed argument, as nodes are called. What the caller gives is not injected."""
    places = {
        name: inf if parameter.kind is Parameter.KEYWORD_ONLY else place
        for place, (name, parameter) in enumerate(_parameters(function).items())
    }

    def arguments(packed: Any, injected: dict[str, Any]) -> dict[str, Any]:
        args, given = packed
        return {**{name: value for name, value in injected.items() if places[name] >= len(args)}, **given}

    if is_async:

        async def spread_async(packed: Any, **injected: Any) -> Any:
            return await _finished(await function(*packed[0], **arguments(packed, injected)))

        return spread_async

    def spread(packed: Any, **injected: Any) -> Any:
        return function(*packed[0], **arguments(packed, injected))

    return spread


async def _finished(result: Any) -> Any:
    """Return a result, awaiting it if it is a future: ``return gather(...)``, ``return task(...)``."""
    return await result if inspect.isawaitable(result) else result


@overload
def task(
    func: Callable[P, Awaitable[T]],
    /,
    *,
    name: str | None = None,
    retry_policy: Policies = None,
    cache_policy: CachePolicy | None = None,
    timeout: Any = None,
) -> TaskFunction[P, T]: ...
@overload
def task(
    func: Callable[P, T],
    /,
    *,
    name: str | None = None,
    retry_policy: Policies = None,
    cache_policy: CachePolicy | None = None,
    timeout: Any = None,
) -> TaskFunction[P, T]: ...
@overload
def task(
    *,
    name: str | None = None,
    retry_policy: Policies = None,
    cache_policy: CachePolicy | None = None,
    timeout: Any = None,
) -> _TaskMaker: ...
@renamed(retry="retry_policy")
def task(
    func: Callable[..., Any] | None = None,
    *,
    name: str | None = None,
    retry_policy: Policies = None,
    cache_policy: CachePolicy | None = None,
    timeout: Any = None,
) -> Any:
    """Make a function a task: ``@task`` or ``@task(name=..., retry_policy=...)``.

    Its result is stored with the checkpoint, so it must be a value that can be stored; of its own types, those that the
    return annotation mentions can be read back by another process. A caller must start its tasks in an order that does
    not depend on anything but its input and their results.

    Args:
        func: a sync or async function; it may ask for ``config``, ``store``, ``writer``, ``previous`` and ``runtime``.
        name: shown to observers; part of what a stored result is found by.
        retry_policy: how failures are retried; of several, the first that matches.
        cache_policy: how results are kept for equal arguments.
        timeout: seconds, timedelta or TimeoutPolicy for one attempt; async functions only.

    """

    def make(function: Callable[..., Any]) -> TaskFunction[..., Any]:
        return TaskFunction(function, name, retry_policy, cache_policy, timeout)

    return make if func is None else make(func)


class _TaskMaker(Protocol):
    """What ``task(name=...)`` returns."""

    @overload
    def __call__(self, func: Callable[P, Awaitable[T]], /) -> TaskFunction[P, T]: ...
    @overload
    def __call__(self, func: Callable[P, T], /) -> TaskFunction[P, T]: ...


class entrypoint:  # noqa: N801 - LangGraph's public name
    """Make a function a workflow: a graph of one node, called with one input.

    What it returns is the output; with a checkpointer it is also the ``previous`` of the thread's next call, unless it
    returns ``entrypoint.final(value=..., save=...)``.
    """

    @dataclass(slots=True, frozen=True)
    class final(Generic[R, S]):  # noqa: N801 - LangGraph's public name
        """Return one value and remember another."""

        value: R
        save: S

    @renamed(retry="retry_policy", config_schema="context_schema")
    def __init__(  # noqa: PLR0917 - as in LangGraph
        self,
        checkpointer: Any = None,
        store: Any = None,
        cache: Any = None,
        context_schema: Any = None,
        cache_policy: CachePolicy | None = None,
        retry_policy: Policies = None,
        timeout: Any = None,
        *,
        name: str | None = None,
    ) -> None:
        if inspect.isroutine(checkpointer):
            msg = f"Write @entrypoint() with parentheses: {_named(checkpointer, None)!r} was given as its checkpointer."
            raise TypeError(msg)
        self._checkpointer = checkpointer
        self._cache = cache
        self._store = store
        self._context_schema = context_schema
        self._cache_policy = cache_policy_of(cache_policy)
        self._retry = policies(retry_policy)
        self._timeout = timeout
        self._name = name

    def __call__(self, func: Callable[..., Any]) -> CompiledStateGraph[Any, Any, Any, Any]:
        """Return the graph."""
        refuse_generators(func, "entrypoints")
        name = _named(func, self._name)
        if not any(parameter.kind in _BY_POSITION for parameter in _parameters(func).values()):
            msg = f"Entrypoint {name!r} must take at least one parameter: its input."
            raise GraphDefinitionError(msg)
        check_saver(self._checkpointer)
        check_store(self._store)
        bare = introspect(object)
        call = Call(func, name)
        timeout = _timeout(self._timeout, call, "Entrypoint")
        if call.is_async:
            call.function = _finishing(call.function)
        node = NodePlan(
            name,
            call,
            bare,
            triggers=(START,),
            retry=self._retry,
            timeout=timeout,
            cache=self._cache_policy,
            subgraphs=programs_in(func),
            source=START,
            mapper=_results,
        )
        hints = annotations_of(func)
        taken, returned = hints.get(next(iter(_parameters(func))), object), hints.get("return", object)
        if get_origin(returned) is entrypoint.final:
            returned = get_args(returned)[0]
        plan = Plan(
            name=name,
            nodes={name: node},
            state={END: LastValue(object, END), PREVIOUS: LastValue(object, PREVIOUS)},
            internal={},
            managed={},
            input_schema=replace(bare, type=taken),
            output_schema=replace(bare, type=returned),
            input_keys=frozenset(),
            output_keys=(END,),
            bare=False,
            single=END,
        ).seal()
        program = Program(
            plan=plan,
            saver=adapted(self._checkpointer),
            store=self._store,
            caching=caching_for(self._cache, plan),
            context_schema=self._context_schema,
        )
        described: Any = SimpleNamespace(
            state_schema=object, input_schema=object, output_schema=object, hints=tuple(hints.values())
        )
        graph: Any = CompiledStateGraph(described, program)
        update_wrapper(graph, func, updated=())
        compiled: CompiledStateGraph[Any, Any, Any, Any] = graph
        return compiled


def _finishing(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function, with its result awaited if it is a future."""

    @wraps(function, updated=())
    async def finishing(given: Any, **injected: Any) -> Any:
        return await _finished(await function(given, **injected))

    return finishing


def _results(result: Any) -> list[tuple[str, Any]]:
    if isinstance(result, entrypoint.final):
        return [(END, view(result.value)), (PREVIOUS, view(result.save))]
    return [(END, view(result)), (PREVIOUS, view(result))]


def _named(function: Any, given: str | None) -> str:
    name = given or str(getattr(function, "__name__", type(function).__name__))
    if NS_SEP in name or NS_END in name:
        msg = f"The name {name!r} contains {NS_SEP!r} or {NS_END!r}, of which namespaces are made. Give another name=."
        raise GraphDefinitionError(msg)
    return name


def _timeout(given: Any, call: Call, what: str) -> TimeoutPolicy | None:
    policy = timeout_of(given)
    if policy is not None and not call.is_async:
        msg = f"{what} {call.name!r} is a sync function: it cannot be cancelled, so it cannot have a timeout."
        raise GraphDefinitionError(msg)
    return policy


def _parameters(function: Any) -> Mapping[str, Parameter]:
    try:
        return inspect.signature(function).parameters
    except (TypeError, ValueError):  # some builtins have none
        return {"input": Parameter("input", Parameter.POSITIONAL_ONLY)}
