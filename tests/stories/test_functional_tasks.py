"""Calls of tasks: how they are made and awaited, and what becomes of their results."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from typing import Any, TypedDict

import anyio
import pytest
from anyio import to_thread

from persistence.errors import SerializationError
from persistence.memory import InMemoryStore
from runtime.errors import NodeCancelledError
from runtime.func import entrypoint, task
from runtime.graph import START, StateGraph
from runtime.runtime import Runtime
from runtime.store import BaseStore
from runtime.types import Command, interrupt
from runtime.types.config import RunnableConfig
from runtime.types.streams import StreamWriter
from tests.stories.calls import Hanging, double, fail, triple
from tests.stories.graphs import CONFIG, collect

pytestmark = pytest.mark.anyio


# ---- making and awaiting ---------------------------------------------------------------------------------------------


def test_a_task_is_called_inside_a_run_only() -> None:
    with pytest.raises(RuntimeError, match="task 'double' outside"):
        _ = double(1)


async def test_calls_start_at_once_and_run_beside_each_other(saver: Any) -> None:
    met = [anyio.Event(), anyio.Event()]

    @task
    async def meet(mine: int) -> int:
        met[mine].set()
        await met[1 - mine].wait()
        return mine

    @entrypoint(checkpointer=saver)
    async def flow(given: int) -> Any:
        first, second = meet(0), meet(1)
        return [await second, await first, await second]

    assert await flow.ainvoke(1, CONFIG) == [1, 0, 1]


async def test_async_code_calls_sync_tasks_and_the_other_way_round(saver: Any) -> None:
    @entrypoint(checkpointer=saver)
    async def flow(given: int) -> Any:
        return await double(await triple(given))

    @entrypoint(checkpointer=saver)
    def sync(given: int) -> Any:
        futures = [double(given), triple(given)]
        return [future.result() for future in futures]

    assert await flow.ainvoke(1, CONFIG) == 6
    assert await sync.ainvoke(1, CONFIG) == [2, 3]


async def test_gather_gives_results_in_the_order_of_the_calls(anyio_backend_name: str, saver: Any) -> None:
    if anyio_backend_name != "asyncio":
        pytest.skip("gather is asyncio's")

    @entrypoint(checkpointer=saver)
    async def flow(given: int) -> Any:
        answers = await asyncio.gather(*[double(number) for number in range(given)])
        failures = await asyncio.gather(double(1), fail(2), return_exceptions=True)
        done = [await each for each in asyncio.as_completed([double(1), double(2)])]
        return [answers, [repr(each) for each in failures], sorted(done)]

    assert await flow.ainvoke(4, CONFIG) == [[0, 2, 4, 6], ["2", "ValueError(2)"], [2, 4]]


async def test_task_groups_hold_waits_for_calls(saver: Any) -> None:
    @entrypoint(checkpointer=saver)
    async def flow(given: int) -> Any:
        found: dict[int, int] = {}

        async def wait(number: int, future: Any) -> None:
            found[number] = await future

        async with anyio.create_task_group() as group:
            for number in range(given):
                group.start_soon(wait, number, double(number))
        return [found[number] for number in range(given)]

    assert await flow.ainvoke(4, CONFIG) == [0, 2, 4, 6]


async def test_a_failure_in_a_task_group_is_the_workflows(saver: Any) -> None:
    @entrypoint(checkpointer=saver)
    async def flow(given: int) -> Any:
        async def wait(future: Any) -> None:
            await future

        async with anyio.create_task_group() as group:
            group.start_soon(wait, fail(given))
            group.start_soon(wait, double(given))

    with pytest.raises(ExceptionGroup) as failed:
        await flow.ainvoke(7, CONFIG)
    assert [repr(each) for each in failed.value.exceptions] == ["ValueError(7)"]


async def test_a_future_says_how_its_call_stands(saver: Any) -> None:
    hanging = Hanging()
    hang = task(hanging.hang, name="hang")

    @entrypoint(checkpointer=saver)
    async def flow(given: int) -> Any:
        future = hang()
        await hanging.started.wait()
        assert not future.done()
        assert "hang running" in repr(future)
        with pytest.raises(RuntimeError, match=r"await it instead of result"):
            future.result()
        future.cancel()
        with pytest.raises(NodeCancelledError, match="'hang' was cancelled"):
            await future
        assert future.done()
        assert future.cancelled()
        good, bad = double(given), fail(given)
        assert await good == good.result() == 2
        assert good.exception() is None
        with pytest.raises(ValueError, match="1"):
            await bad
        assert isinstance(bad.exception(), ValueError)
        assert not bad.cancelled()

    await flow.ainvoke(1, CONFIG)
    assert hanging.cancelled == 1


async def test_result_waits_as_long_as_it_is_told(saver: Any) -> None:
    hanging = Hanging()
    hang = task(hanging.hang, name="hang")

    @entrypoint(checkpointer=saver)
    def flow(given: int) -> Any:
        future = hang()
        with pytest.raises(TimeoutError):
            future.result(timeout=0)
        assert not future.done()
        future.cancel()
        with pytest.raises(NodeCancelledError):
            future.result()
        failure = fail(given).exception(timeout=10)
        return repr(failure)

    assert await flow.ainvoke(1, CONFIG) == "ValueError(1)"


async def test_calls_can_be_made_from_threads_of_the_users_own(saver: Any) -> None:
    @entrypoint(checkpointer=saver)
    def flow(given: int) -> Any:
        with ThreadPoolExecutor(2) as pool:
            contexts = [copy_context() for _ in range(2)]
            jobs = [pool.submit(context.run, lambda: double(given).result()) for context in contexts]
            return [job.result() for job in jobs]

    @entrypoint(checkpointer=saver)
    async def hopping(given: int) -> Any:
        return await to_thread.run_sync(lambda: double(given).result())

    assert await flow.ainvoke(2, CONFIG) == [4, 4]
    assert await hopping.ainvoke(3, CONFIG) == 6


async def test_nodes_of_a_graph_call_tasks(saver: Any) -> None:
    class State(TypedDict, total=False):
        number: int
        routed: int

    async def node(state: State) -> Any:
        return {"number": await double(state["number"])}

    def sync(state: State) -> Any:
        return {"number": triple(state["number"]).result()}

    async def route(state: State) -> str:
        return "sync" if await double(state["number"]) == 4 else "node"

    builder = StateGraph(State)
    builder.add_node("node", node)
    builder.add_node("sync", sync)
    builder.add_edge(START, "node")
    builder.add_conditional_edges("node", route, ["sync", "node"])
    graph = builder.compile(checkpointer=saver)
    assert await graph.ainvoke({"number": 1}, CONFIG) == {"number": 6}
    with pytest.raises(RuntimeError, match="while a thread was updated"):
        await graph.aupdate_state(CONFIG, {"number": 1}, as_node="node")


# ---- what a task may be, and what it gets ----------------------------------------------------------------------------


async def test_methods_partials_and_lambdas_can_be_tasks() -> None:
    class Adder:
        def __init__(self, number: int) -> None:
            self.number = number

        async def add(self, given: int) -> int:
            return given + self.number

        async def __call__(self, given: int) -> int:
            return given * self.number

        @task
        async def minus(self, given: int) -> int:
            """Subtract."""
            return given - self.number

    adder = Adder(5)
    calls: list[tuple[Any, Any]] = [
        (task(adder.add), 1),
        (task(adder.add, name="renamed"), 2),
        (task(adder, name="called"), 3),
        (task(partial(Adder.add, adder), name="partly"), 4),
        (task(lambda given: given), 5),
        (adder.minus, 6),
    ]

    @entrypoint()
    async def flow(given: int) -> Any:
        return [await call(number) for call, number in calls]

    assert await collect(flow.astream(1)) == [
        {"add": 6},
        {"renamed": 7},
        {"called": 15},
        {"partly": 9},
        {"<lambda>": 5},
        {"minus": 1},
        {"flow": [6, 7, 15, 9, 5, 1]},
    ]
    assert Adder.minus.__doc__ == "Subtract."
    assert repr(Adder.minus) == "<task minus>"


async def test_a_task_gets_what_its_signature_asks_for(saver: Any) -> None:
    store = InMemoryStore()

    @task
    async def ask(
        given: int,
        *,
        config: RunnableConfig,
        writer: StreamWriter,
        runtime: Runtime[Any],
        store: BaseStore | None = None,
        previous: Any = None,
    ) -> Any:
        writer(given)
        info = runtime.execution_info
        assert info is not None
        assert config["metadata"]["langgraph_path"] == ("__pregel_push", ("__pregel_pull", "flow"), 0, True)
        assert config["metadata"]["langgraph_triggers"] == ("__pregel_push",)
        caller, _, own = info.checkpoint_ns.partition("|")
        assert caller.startswith("flow:")
        assert own == f"ask:{info.task_id}"
        return [given, config["metadata"]["langgraph_node"], store is not None, previous, runtime.previous]

    @task
    async def first(config: RunnableConfig) -> Any:
        return config["metadata"]["langgraph_node"]

    @entrypoint(checkpointer=saver, store=store)
    async def flow(given: int) -> Any:
        return [await ask(given), await first()]

    assert await flow.ainvoke(1, CONFIG) == [[1, "ask", True, None, None], "first"]
    assert await collect(flow.astream(2, CONFIG, stream_mode="custom")) == [2]
    assert (await flow.aget_state(CONFIG)).values[0][3] == [[1, "ask", True, None, None], "first"]


async def test_what_the_caller_gives_is_not_injected() -> None:
    @task
    async def by_name(given: int, config: Any = None, *, store: Any = None) -> Any:
        return [given, config, store]

    @task
    def many(*given: int, previous: Any = "not injected") -> Any:
        return [given, previous]

    @entrypoint(store=InMemoryStore())
    async def flow(given: int) -> Any:
        return [
            await by_name(1, "mine", store="my own"),
            await by_name(1, config="mine", store=None),
            await many(1, 2, 3),
            await many(1, previous=4),
        ]

    assert await flow.ainvoke(1) == [[1, "mine", "my own"], [1, "mine", None], [(1, 2, 3), None], [(1,), 4]]


# ---- results ---------------------------------------------------------------------------------------------------------


@dataclass
class Money:
    amount: int


class Unknown:
    """Has no stored form."""


async def test_results_of_the_users_own_types_are_results(saver: Any) -> None:
    @task
    async def pay(amount: int) -> Money:
        return Money(amount)

    @entrypoint(checkpointer=saver)
    async def flow(given: int) -> Any:
        return (await pay(given)).amount

    assert await flow.ainvoke(3, CONFIG) == 3


@pytest.mark.parametrize("durability", ["async", "sync", "exit"])
@pytest.mark.parametrize("caught", [True, False])
async def test_a_result_that_cannot_be_stored_fails_its_call(saver: Any, durability: Any, caught: bool) -> None:
    made = []

    @task
    async def make(given: int) -> Any:
        made.append(given)
        return Unknown() if given == 1 else given

    @entrypoint(checkpointer=saver)
    async def flow(given: int) -> Any:
        before = await double(given)
        try:
            return [before, await make(given)]
        except SerializationError as error:
            if not caught:
                raise
            return str(error)

    if caught:
        assert "task 'make'" in await flow.ainvoke(1, CONFIG, durability=durability)
    else:
        with pytest.raises(SerializationError, match=r"task 'make'.*Unknown"):
            await flow.ainvoke(1, CONFIG, durability=durability)
        (pending,) = (await flow.aget_state(CONFIG)).tasks
        assert "SerializationError" in pending.error
    assert await flow.ainvoke(2, CONFIG, durability=durability) == [4, 2]
    assert made == [1, 2]


async def test_without_a_saver_anything_can_be_a_result() -> None:
    @task
    async def make() -> Any:
        return Unknown()

    @entrypoint()
    async def flow(given: int) -> Any:
        return type(await make()).__name__

    assert await flow.ainvoke(1) == "Unknown"


@pytest.mark.parametrize("durability", ["async", "sync", "exit"])
async def test_what_the_caller_does_with_a_result_does_not_change_the_stored_one(saver: Any, durability: Any) -> None:
    made = []

    @task
    async def make() -> Any:
        made.append(1)
        return {"items": [1]}

    @entrypoint(checkpointer=saver)
    async def flow(given: int) -> Any:
        result = await make()
        result["items"].append(2)
        result["more"] = True
        interrupt("wait")
        return result

    await flow.ainvoke(1, CONFIG, durability=durability)
    await flow.ainvoke(None, CONFIG, durability=durability)
    done = await flow.ainvoke(Command(resume="go"), CONFIG, durability=durability)
    assert done == {"items": [1, 2], "more": True}
    assert made == [1]
