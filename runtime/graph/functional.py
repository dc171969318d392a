"""The functional API: a workflow as one function, its steps as ``@task`` functions."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial, update_wrapper
from types import SimpleNamespace
from typing import Any, Generic, TypeVar, get_type_hints, overload

from runtime.actors.calling import Call
from runtime.channels import LastValue
from runtime.context.scope import current_scope
from runtime.engine.plan import NodePlan, Plan
from runtime.errors import UnsupportedFunctionError
from runtime.graph.builder import policies
from runtime.graph.compiled import CompiledStateGraph
from runtime.graph.subgraphs import programs_in
from runtime.run.caching import caching_for
from runtime.run.calls import TaskFuture
from runtime.run.program import Program
from runtime.schema.introspect import introspect
from runtime.types.constants import END, PREVIOUS, RETURN, START
from runtime.types.policy import CachePolicy, RetryPolicy, TimeoutPolicy

R = TypeVar("R")
S = TypeVar("S")

Policies = RetryPolicy | Sequence[RetryPolicy] | None


class TaskFunction(Generic[R]):
    """A function whose calls inside a workflow are tasks: run beside each other, recorded, not run again on resume."""

    def __init__(
        self, function: Callable[..., Any], name: str | None, retry: Policies, cache: Any, timeout: Any
    ) -> None:
        self.function = function
        self.name = name or str(getattr(function, "__name__", type(function).__name__))
        call = Call(function, self.name)
        policy = TimeoutPolicy.coerce(timeout)
        if policy is not None and not call.is_async:
            msg = f"Task {self.name!r} is a sync function: it cannot be cancelled, so it cannot have a timeout."
            raise ValueError(msg)
        call.function = _spread(call.function, is_async=call.is_async)
        self._node = NodePlan(
            self.name,
            call,
            introspect(object),
            retry=policies(retry),
            timeout=policy,
            cache=cache,
            mapper=lambda result: [(RETURN, result)],
        )
        update_wrapper(self, function)

    def __call__(self, *args: Any, **kwargs: Any) -> TaskFuture:
        """Start the task. Returns a future; raises RuntimeError outside of a workflow or node."""
        scope = current_scope(f"task {self.name!r}")
        future: TaskFuture = scope.run.start_call(self._node, scope, (args, kwargs))
        return future


def _spread(function: Callable[..., Any], *, is_async: bool) -> Callable[..., Any]:
    """Return a function of one packed argument, as nodes are called."""
    if is_async:

        async def spread_async(packed: Any, **injected: Any) -> Any:
            return await function(*packed[0], **{**packed[1], **injected})

        return spread_async

    def spread(packed: Any, **injected: Any) -> Any:
        return function(*packed[0], **{**packed[1], **injected})

    return spread


@overload
def task(func: Callable[..., R]) -> TaskFunction[R]: ...
@overload
def task(
    *,
    name: str | None = None,
    retry_policy: Policies = None,
    cache_policy: CachePolicy | None = None,
    timeout: Any = None,
) -> Callable[[Callable[..., R]], TaskFunction[R]]: ...
def task(
    func: Callable[..., Any] | None = None,
    *,
    name: str | None = None,
    retry_policy: Policies = None,
    cache_policy: CachePolicy | None = None,
    timeout: Any = None,
) -> Any:
    """Make a function a task: ``@task`` or ``@task(name=..., retry_policy=...)``.

    Its arguments and result are stored with the checkpoint, so they must be values that can be stored. A caller must
    start its tasks in an order that does not depend on anything but its input and their results.
    """
    made = partial(TaskFunction, name=name, retry=retry_policy, cache=cache_policy, timeout=timeout)
    return made if func is None else made(func)


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

    def __init__(
        self,
        checkpointer: Any = None,
        *,
        cache: Any = None,
        store: Any = None,
        context_schema: Any = None,
        cache_policy: CachePolicy | None = None,
        retry_policy: Policies = None,
        timeout: Any = None,
        name: str | None = None,
    ) -> None:
        self._checkpointer = checkpointer
        self._cache = cache
        self._store = store
        self._context_schema = context_schema
        self._cache_policy = cache_policy
        self._retry = policies(retry_policy)
        self._timeout = TimeoutPolicy.coerce(timeout)
        self._name = name

    def __call__(self, func: Callable[..., Any]) -> CompiledStateGraph[Any, Any, Any, Any]:
        """Return the graph."""
        if inspect.isgeneratorfunction(func) or inspect.isasyncgenfunction(func):
            msg = "Generators cannot be entrypoints: write to the stream with a StreamWriter instead."
            raise UnsupportedFunctionError(msg)
        name = self._name or str(getattr(func, "__name__", type(func).__name__))
        if not inspect.signature(func).parameters:
            msg = f"Entrypoint {name!r} must take at least one parameter: its input."
            raise ValueError(msg)
        bare = introspect(object)
        node = NodePlan(
            name,
            Call(func, name),
            bare,
            triggers=(START,),
            retry=self._retry,
            timeout=self._timeout,
            cache=self._cache_policy,
            subgraphs=programs_in(func),
            source=START,
            mapper=_results,
        )
        plan = Plan(
            name=name,
            nodes={name: node},
            state={END: LastValue(object, END), PREVIOUS: LastValue(object, PREVIOUS)},
            internal={},
            managed={},
            input_schema=bare,
            output_schema=bare,
            input_keys=frozenset(),
            output_keys=(END,),
            bare=False,
            single=END,
        ).seal()
        program = Program(
            plan=plan,
            saver=self._checkpointer,
            store=self._store,
            caching=caching_for(self._cache, plan),
            context_schema=self._context_schema,
        )
        hints = tuple(_hints(func).values())
        described: Any = SimpleNamespace(state_schema=object, input_schema=object, output_schema=object, hints=hints)
        graph: Any = CompiledStateGraph(described, program)
        update_wrapper(graph, func, updated=())
        compiled: CompiledStateGraph[Any, Any, Any, Any] = graph
        return compiled


def _results(result: Any) -> list[tuple[str, Any]]:
    if isinstance(result, entrypoint.final):
        return [(END, result.value), (PREVIOUS, result.save)]
    return [(END, result), (PREVIOUS, result)]


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    try:
        return get_type_hints(function)
    except Exception:  # noqa: BLE001 - hints that do not resolve register nothing
        return {}
