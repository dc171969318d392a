"""Plain functions in async runs: they do not block the loop, and context variables go in but not out."""

import contextvars
import threading
from typing import Any

import anyio
import pytest

from runtime.errors import NodeError
from runtime.func import task
from runtime.graph import END, START, StateGraph
from runtime.types import RetryPolicy
from tests.stories.graphs import CONFIG, Log, chain, collect, fan, note

pytestmark = pytest.mark.anyio

VARIABLE: contextvars.ContextVar[str] = contextvars.ContextVar("VARIABLE", default="unset")


class Heart:
    """Beats on the loop; blocking code can wait for a beat, which never comes if it blocks the loop."""

    def __init__(self) -> None:
        self.called = threading.Event()
        self.beat = threading.Event()

    def wait(self) -> None:
        """Block until the loop has made progress. To be called from user code."""
        self.called.set()
        assert self.beat.wait(10), "the loop was blocked"

    async def run(self, work: Any) -> Any:
        """Await work while beating."""
        result: list[Any] = []
        async with anyio.create_task_group() as group:

            async def pump() -> None:
                while not self.called.is_set():
                    await anyio.sleep(0.001)
                self.beat.set()

            group.start_soon(pump)
            result.append(await work)
        return result[0]


async def test_a_sync_node_does_not_block_the_loop() -> None:
    heart = Heart()

    def n(_state: Log) -> dict[str, Any]:
        heart.wait()
        return {"log": ["n"]}

    assert (await heart.run(chain(("n", n)).compile().ainvoke({})))["log"] == ["n"]


async def test_sync_nodes_run_side_by_side() -> None:
    meeting = threading.Barrier(3, timeout=10)

    def meet(name: str) -> Any:
        def node(_state: Log) -> dict[str, Any]:
            meeting.wait()
            return {"log": [name]}

        return node

    graph = fan(*[(name, meet(name)) for name in ("x", "y", "z")], first=None, last=None).compile()
    assert (await graph.ainvoke({}))["log"] == ["x", "y", "z"]


async def test_a_sync_router_does_not_block_the_loop() -> None:
    heart = Heart()

    def route(_state: Log) -> str:
        heart.wait()
        return END

    builder = StateGraph(Log)
    builder.add_node("n", note("n"))
    builder.add_edge(START, "n")
    builder.add_conditional_edges("n", route)
    assert (await heart.run(builder.compile().ainvoke({})))["log"] == ["n"]


async def test_a_sync_error_handler_and_a_sync_task_do_not_block_the_loop() -> None:
    hearts = Heart(), Heart()

    async def bad(_state: Log) -> None:
        raise ValueError

    def handler(_state: Log, error: NodeError) -> dict[str, Any]:
        hearts[0].wait()
        return {"log": [error.node]}

    @task
    def work() -> str:
        hearts[1].wait()
        return "worked"

    async def call(_state: Log) -> dict[str, Any]:
        return {"log": [await work()]}

    handled = StateGraph(Log).add_node("bad", bad, error_handler=handler).add_edge(START, "bad").compile()
    assert (await hearts[0].run(handled.ainvoke({})))["log"] == ["bad"]
    assert (await hearts[1].run(chain(("call", call)).compile().ainvoke({})))["log"] == ["worked"]


@pytest.mark.parametrize("kind", ["sync", "async"])
async def test_a_node_sees_the_callers_context_variables(kind: str) -> None:
    seen: list[str] = []

    def sync_node(_state: Log) -> None:
        seen.append(VARIABLE.get())

    async def async_node(_state: Log) -> None:
        seen.append(VARIABLE.get())

    token = VARIABLE.set("request 7")
    try:
        await chain(("n", sync_node if kind == "sync" else async_node)).compile().ainvoke({})
    finally:
        VARIABLE.reset(token)
    assert seen == ["request 7"]


async def test_routers_and_retry_predicates_see_them_too() -> None:
    seen: list[str] = []
    attempts: list[int] = []

    def predicate(_error: Exception) -> bool:
        seen.append(f"predicate {VARIABLE.get()}")
        return True

    def route(_state: Log) -> str:
        seen.append(f"router {VARIABLE.get()}")
        return END

    async def n(_state: Log) -> None:
        attempts.append(1)
        if len(attempts) == 1:
            raise ValueError

    builder = StateGraph(Log)
    builder.add_node("n", n, retry_policy=RetryPolicy(initial_interval=0.001, jitter=False, retry_on=predicate))
    builder.add_edge(START, "n")
    builder.add_conditional_edges("n", route)
    token = VARIABLE.set("r7")
    try:
        await builder.compile().ainvoke({})
    finally:
        VARIABLE.reset(token)
    assert seen == ["predicate r7", "router r7"]


def setter(kind: str, value: str) -> Any:
    """A node that sets the variable and leaves it so."""

    def sync_node(_state: Log) -> None:
        VARIABLE.set(value)

    async def async_node(_state: Log) -> None:
        VARIABLE.set(value)
        await anyio.sleep(0)

    return sync_node if kind == "sync" else async_node


@pytest.mark.parametrize("kind", ["sync", "async"])
async def test_what_a_node_sets_reaches_neither_the_next_node_nor_the_caller(kind: str) -> None:
    seen: list[str] = []
    graph = chain(("a", setter(kind, "a")), ("b", lambda _state: seen.append(VARIABLE.get()))).compile()
    await graph.ainvoke({})
    assert seen == ["unset"]
    assert VARIABLE.get() == "unset"


@pytest.mark.parametrize("kind", ["sync", "async"])
async def test_what_a_node_sets_does_not_reach_its_siblings(kind: str) -> None:
    seen: list[str] = []
    done = anyio.Event()

    async def a(state: Log) -> None:
        if kind == "async":
            await setter(kind, "a")(state)
        else:
            setter(kind, "a")(state)
        done.set()

    async def b(_state: Log) -> None:
        await done.wait()
        await anyio.sleep(0)
        seen.append(VARIABLE.get())

    with anyio.fail_after(10):
        await fan(("a", a), ("b", b), first=None, last=None).compile().ainvoke({})
    assert seen == ["unset"]


async def test_a_node_that_runs_several_times_starts_clean_each_time() -> None:
    seen: list[str] = []

    async def n(state: Log) -> dict[str, Any]:
        seen.append(VARIABLE.get())
        VARIABLE.set(f"round {state['a']}")
        return {"a": state["a"] + 1}

    builder = StateGraph(Log)
    builder.add_node("n", n)
    builder.add_edge(START, "n")
    builder.add_conditional_edges("n", lambda state: "n" if state["a"] < 3 else END)
    await builder.compile().ainvoke({"a": 0})
    assert seen == ["unset"] * 3


async def test_a_variable_set_before_an_await_is_still_set_after_it() -> None:
    seen: list[str] = []

    async def n(_state: Log) -> None:
        VARIABLE.set("mine")
        await anyio.sleep(0.001)
        seen.append(VARIABLE.get())
        async with anyio.create_task_group() as group:

            async def child() -> None:
                seen.append(VARIABLE.get())

            group.start_soon(child)

    await chain(("n", n)).compile().ainvoke({})
    assert seen == ["mine", "mine"]


async def test_the_consumer_of_a_stream_keeps_its_own_context() -> None:
    graph = chain(("a", setter("async", "a")), ("b", setter("sync", "b"))).compile()
    token = VARIABLE.set("consumer")
    try:
        async for _ in graph.astream({}):
            assert VARIABLE.get() == "consumer"
        assert VARIABLE.get() == "consumer"
    finally:
        VARIABLE.reset(token)


async def test_a_stream_carries_the_context_it_was_started_in() -> None:
    seen: list[str] = []
    graph = chain(("n", lambda _state: seen.append(VARIABLE.get()))).compile()
    token = VARIABLE.set("request 8")
    try:
        await collect(graph.astream({}))
    finally:
        VARIABLE.reset(token)
    assert seen == ["request 8"]


def test_the_blocking_call_carries_context_too() -> None:
    seen: list[str] = []
    graph = chain(("n", lambda _state: seen.append(VARIABLE.get()))).compile()

    def call() -> None:
        VARIABLE.set("blocking")
        graph.invoke({}, CONFIG)

    contextvars.copy_context().run(call)
    assert seen == ["blocking"]
    assert VARIABLE.get() == "unset"
