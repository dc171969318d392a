"""Calling what a program wrote: what it is, what it asks for, and that nothing of it leaks into others."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator
from contextlib import aclosing, asynccontextmanager
from contextvars import ContextVar, copy_context
from typing import Any, Optional

import anyio
import pytest
import trio
from anyio import to_thread

from runtime.actors.calling import Call, Contained
from runtime.actors.outcomes import COMPLETED, Failed
from runtime.context.runtime import Runtime
from runtime.context.scope import Scope, get_config, get_runtime
from runtime.errors import GraphDefinitionError, NodeError, NotCallableError
from runtime.graph import START, StateGraph
from runtime.types import RetryPolicy, RunnableConfig, Send, StreamWriter
from tests.runtime.actors.staging import handled, of, result, stage, task_of
from tests.runtime.engine.sketching import Everything

VARIABLE: ContextVar[str] = ContextVar("variable", default="caller's")


# ---- what can be a node ----------------------------------------------------------------------------------------------


class Callable_:  # noqa: N801 - what it is
    def __call__(self, given: Any) -> Any:
        return {"last": given + 1}

    async def later(self, given: Any) -> Any:
        return {"last": given + 1}

    @classmethod
    def of_class(cls, given: Any) -> Any:
        return {"last": given + 1}


class AsyncCallable:
    async def __call__(self, given: Any) -> Any:
        await anyio.sleep(0)
        return {"last": given + 1}


class Runnable:
    """Not callable, with LangChain's methods."""

    def invoke(self, given: Any) -> Any:
        return {"last": given + 1}


class AsyncRunnable(Runnable):
    async def ainvoke(self, given: Any) -> Any:
        return {"last": given + 1}


class Awaitable_:  # noqa: N801 - what it is
    """Awaited by a generator."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __await__(self) -> Generator[Any, Any, Any]:
        yield from anyio.sleep(0).__await__()
        return {"last": self.value + 1}


class Immediate(Awaitable_):
    """Awaited by a plain iterator, which can be neither sent to nor thrown at."""

    def __await__(self) -> Any:
        return iter(())


def plain(given: Any) -> Any:
    return {"last": given + 1}


async def coroutine(given: Any) -> Any:
    return {"last": given + 1}


def added(number: int, given: Any) -> Any:
    return {"last": given + number}


async def later_added(given: Any, *, number: int) -> Any:
    return {"last": given + number}


def returning_a_coroutine(given: Any) -> Any:
    return coroutine(given)


@functools.wraps(coroutine)
def wrapped(given: Any) -> Any:
    return coroutine(given)


@pytest.mark.parametrize(
    "function",
    [
        plain,
        coroutine,
        lambda given: {"last": given + 1},
        returning_a_coroutine,
        Callable_(),
        Callable_().later,
        Callable_.of_class,
        AsyncCallable(),
        AsyncCallable().__call__,
        Runnable(),
        AsyncRunnable(),
        functools.partial(added, 1),
        functools.partial(later_added, number=1),
        functools.partial(functools.partial(added), 1),
        wrapped,
        Awaitable_,
    ],
)
async def test_a_node_is_whatever_can_be_called_with_its_input(function: Any) -> None:
    run = of(StateGraph(Everything).add_node("node", function).add_edge(START, "node"))
    outcome, task = await handled(run, given=1)
    assert (outcome, task.writes) == (COMPLETED, [("last", 2)])


async def test_what_a_node_returns_may_be_awaited_by_a_plain_iterator() -> None:
    outcome, task = await handled(stage(node=Immediate), given=1)
    assert (outcome, task.writes) == (COMPLETED, [])


@pytest.mark.parametrize("thing", [1, None, object(), "name"])
def test_other_things_are_no_nodes(thing: Any) -> None:
    with pytest.raises(NotCallableError, match="'node': expected a function, callable or runnable, got") as caught:
        Call(thing, "node")
    assert isinstance(caught.value, GraphDefinitionError)
    assert isinstance(caught.value, TypeError)


def test_async_functions_are_recognised() -> None:
    functions = [
        coroutine,
        AsyncCallable(),
        Callable_().later,
        functools.partial(later_added, number=1),
        AsyncRunnable(),
    ]
    assert all(Call(function, "").is_async for function in functions)
    assert not any(
        Call(function, "").is_async for function in (plain, Callable_(), Callable_, Runnable(), wrapped, len)
    )


# ---- what a signature asks for ---------------------------------------------------------------------------------------


def wants(function: Callable[..., Any], **options: Any) -> tuple[str, ...]:
    return Call(function, "node", **options).wants


def test_parameters_are_known_by_name_and_annotation() -> None:
    def by_name(state: Any, config, writer, store, previous, runtime, error): ...  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    def annotated(
        state: Any, config: RunnableConfig, writer: StreamWriter, runtime: Runtime[Any], *, error: NodeError
    ) -> None: ...
    def optional(state: Any, config: Optional[RunnableConfig] = None, store: Any = None) -> None: ...
    def text(state: Any, config: "RunnableConfig | None", writer: "StreamWriter") -> None: ...  # noqa: UP037
    def plain_dict(state: Any, config: dict[str, Any]) -> None: ...
    def others(state: Any, config: int, writer: str, error: Exception) -> None: ...
    def positional(state: Any, config: RunnableConfig, /) -> None: ...
    def first(config: RunnableConfig) -> None: ...
    def rest(state: Any, *config: Any, **runtime: Any) -> None: ...

    assert wants(by_name) == ("config", "writer", "store", "previous", "runtime", "error")
    assert wants(annotated) == ("config", "writer", "runtime", "error")
    assert wants(optional) == ("config",)
    assert wants(text) == ("config", "writer")
    assert wants(plain_dict) == ("config",)
    assert [wants(function) for function in (others, positional, first, rest)] == [()] * 4
    assert wants(first, takes_input=False) == ("config",)
    assert wants(functools.partial(annotated, config={})) == ("writer", "runtime", "error")


def test_what_has_no_signature_asks_for_nothing() -> None:
    assert wants(type) == ()
    assert wants(dict.fromkeys) == ()


async def test_what_was_asked_for_is_given() -> None:
    async def node(given: Any, config: RunnableConfig, runtime: Runtime[Any], *, writer: StreamWriter) -> Any:
        writer("an item for nobody")
        assert runtime.execution_info is not None
        return {"last": (config["metadata"]["langgraph_node"], runtime.execution_info.node_attempt, given)}

    assert await result(node, "input") == ("node", 1, "input")


async def test_a_missing_argument_is_the_nodes_failure() -> None:
    def node(given: Any, more: Any) -> None: ...

    outcome, _ = await handled(stage(node=node))
    assert isinstance(outcome, Failed)
    assert "more" in str(outcome.error)


# ---- contexts --------------------------------------------------------------------------------------------------------


async def set_it(_given: Any) -> Any:
    before = VARIABLE.get()
    VARIABLE.set("node's")
    await anyio.sleep(0)
    return {"last": (before, VARIABLE.get())}


def set_it_in_a_thread(_given: Any) -> Any:
    before = VARIABLE.get()
    VARIABLE.set("node's")
    return {"last": (before, VARIABLE.get())}


@pytest.mark.parametrize("function", [set_it, set_it_in_a_thread])
async def test_a_variable_set_by_a_node_reaches_nobody_else(function: Any) -> None:
    VARIABLE.set("run's")
    for _ in range(2):
        assert await result(function) == ("run's", "node's")
    assert VARIABLE.get() == "run's"


async def test_what_a_node_starts_sees_what_the_node_has_set() -> None:
    async def look() -> None:
        seen.append(VARIABLE.get())

    async def node(_given: Any) -> None:
        VARIABLE.set("node's")
        async with anyio.create_task_group() as group:
            group.start_soon(look)
        await to_thread.run_sync(lambda: seen.append(VARIABLE.get()))
        await to_thread.run_sync(anyio.from_thread.run, look)

    seen: list[str] = []
    outcome, _ = await handled(stage(node=node))
    assert (outcome, seen) == (COMPLETED, ["node's"] * 3)


async def test_a_router_sees_what_its_node_has_set() -> None:
    seen: list[str] = []

    def router(_state: Any) -> list[Any]:
        seen.append(VARIABLE.get())
        return []

    builder: StateGraph[Any, Any, Any, Any] = StateGraph(Everything)
    builder.add_node("node", set_it).add_edge(START, "node").add_conditional_edges("node", router)
    outcome, _ = await handled(of(builder))
    assert (outcome, seen) == (COMPLETED, ["node's"])


async def test_an_attempt_starts_with_a_context_of_its_own() -> None:
    seen: list[str] = []

    async def node(_given: Any) -> None:
        seen.append(VARIABLE.get())
        VARIABLE.set("an attempt's")
        await anyio.sleep(0)
        if len(seen) < 3:
            raise ConnectionError

    builder: StateGraph[Any, Any, Any, Any] = StateGraph(Everything)
    builder.add_node("node", node, retry_policy=RetryPolicy(initial_interval=0, jitter=False)).add_edge(START, "node")
    outcome, _ = await handled(of(builder))
    assert (outcome, seen) == (COMPLETED, ["caller's"] * 3)


async def test_nodes_side_by_side_have_contexts_of_their_own() -> None:
    async def node(given: int) -> Any:
        VARIABLE.set(str(given))
        for _ in range(5):
            await anyio.sleep(0)
            assert VARIABLE.get() == str(given)
        return {"items": [given]}

    builder: StateGraph[Any, Any, Any, Any] = StateGraph(Everything)
    builder.add_node("node", node)
    builder.add_conditional_edges(START, lambda _state: [Send("node", number) for number in range(10)], ["node"])
    assert (await builder.compile().ainvoke({}))["items"] == list(range(10))


async def test_the_scope_of_a_node_ends_with_it() -> None:
    async def node(_given: Any) -> Any:
        assert get_runtime().execution_info is not None
        return {"last": get_config()["metadata"]["langgraph_node"]}

    assert await result(node) == "node"
    with pytest.raises(RuntimeError, match="Called get_config outside"):
        get_config()


# ---- structured concurrency inside a node ----------------------------------------------------------------------------


async def test_cancel_scopes_and_timeouts_work_inside_a_node() -> None:
    async def node(_given: Any) -> Any:
        with anyio.move_on_after(0.001) as scope:
            await anyio.sleep_forever()
        with pytest.raises(TimeoutError), anyio.fail_after(0.001):
            await anyio.sleep_forever()
        with anyio.CancelScope() as outer:
            outer.cancel()
            with anyio.CancelScope(shield=True):
                await anyio.sleep(0)
            await anyio.sleep(0)
        return {"last": (scope.cancelled_caught, outer.cancelled_caught)}

    assert await result(node) == (True, True)


async def test_task_groups_work_inside_a_node() -> None:
    async def fail() -> None:
        raise KeyError

    async def node(_given: Any) -> Any:
        caught = ""
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(anyio.sleep_forever)
                group.start_soon(fail)
        except* KeyError:
            caught = "caught"
        return {"last": caught}

    assert await result(node) == "caught"


async def test_what_the_event_loop_offers_works_inside_a_node() -> None:
    async def on_asyncio(_given: Any) -> Any:
        async with asyncio.timeout(5):
            async with asyncio.TaskGroup() as group:
                task = group.create_task(asyncio.sleep(0, "done"))
            return {"last": await asyncio.wait_for(asyncio.shield(task), 5)}

    async def on_trio(_given: Any) -> Any:
        async with trio.open_nursery() as nursery:
            send, receive = trio.open_memory_channel[str](0)
            nursery.start_soon(send.send, "done")
            return {"last": await receive.receive()}

    is_trio = trio.lowlevel.in_trio_run()
    assert await result(on_trio if is_trio else on_asyncio) == "done"


async def test_async_generators_and_context_managers_work_inside_a_node() -> None:
    closed: list[str] = []

    async def numbers() -> AsyncGenerator[int]:
        try:
            for number in range(3):
                await anyio.sleep(0)
                yield number
        finally:
            closed.append(VARIABLE.get())

    @asynccontextmanager
    async def around() -> AsyncIterator[str]:
        await anyio.sleep(0)
        yield "in"
        await anyio.sleep(0)

    async def node(_given: Any) -> Any:
        VARIABLE.set("node's")
        async with around() as inside, aclosing(numbers()) as counting:
            async for number in counting:
                if number == 1:
                    break
        return {"last": (inside, number)}

    assert await result(node) == ("in", 1)
    assert closed == ["node's"]


async def test_a_node_may_catch_what_is_thrown_into_it() -> None:
    async def node(_given: Any) -> Any:
        with anyio.CancelScope() as scope:
            scope.cancel()
            try:
                await anyio.sleep(1)
            except anyio.get_cancelled_exc_class():
                return {"last": "caught"}

    assert await result(node) == "caught"


async def test_a_node_that_is_never_finished_is_closed_in_its_own_context() -> None:
    """The event loop went away under it."""
    closed: list[str] = []

    async def node() -> None:
        VARIABLE.set("node's")
        try:
            await anyio.sleep_forever()
        finally:
            closed.append(VARIABLE.get())

    run = stage(node=node)
    steps = Contained(node(), copy_context(), Scope(run, task_of(run, "node"))).__await__()
    steps.send(None)
    steps.close()
    assert closed == ["node's"]
