"""Workflows of one function: their parameters, what they return and remember, their threads from outside."""

from __future__ import annotations

import asyncio
from typing import Any

import anyio
import pytest

from persistence.memory import InMemorySaver, InMemoryStore
from runtime.errors import EmptyInputError, GraphDefinitionError, InvalidUpdateError, UnknownNodeError
from runtime.func import entrypoint, task
from runtime.runtime import Runtime
from runtime.store import BaseStore
from runtime.types import Command, StateUpdate, TimeoutPolicy
from runtime.types.config import RunnableConfig
from runtime.types.streams import StreamWriter
from tests.stories.graphs import CONFIG, collect, history, steps, thread

pytestmark = pytest.mark.anyio


def test_the_decorator_without_parentheses_says_to_write_them() -> None:
    def flow(given: int) -> int:
        return given

    with pytest.raises(TypeError, match=r"Write @entrypoint\(\) with parentheses: 'flow' was given"):
        entrypoint(flow)


# ---- parameters ------------------------------------------------------------------------------------------------------


async def test_a_workflow_gets_what_its_signature_asks_for(saver: Any) -> None:
    store = InMemoryStore()
    seen: dict[str, Any] = {}

    @entrypoint(checkpointer=saver, store=store)
    async def flow(
        given: int,
        *,
        previous: Any = None,
        config: RunnableConfig,
        store: BaseStore | None,
        writer: StreamWriter,
        runtime: Runtime[Any],
    ) -> int:
        seen.update(previous=previous, config=config, store=store, runtime=runtime)
        writer("written")
        return given

    assert await flow.ainvoke(1, CONFIG) == 1
    assert await collect(flow.astream(2, CONFIG, context={"user": "u"}, stream_mode="custom")) == ["written"]
    assert seen["previous"] == 1
    assert seen["store"] is store
    assert seen["config"]["configurable"]["thread_id"] == "t"
    assert seen["config"]["metadata"]["langgraph_node"] == "flow"
    runtime = seen["runtime"]
    assert (runtime.previous, runtime.store, runtime.context) == (1, store, {"user": "u"})
    assert runtime.execution_info.thread_id == "t"


async def test_parameters_by_position_are_injected_as_well() -> None:
    @entrypoint()
    async def flow(given: int, config: RunnableConfig, previous: Any, runtime: Any) -> Any:
        return [given, config["metadata"]["langgraph_node"], previous, runtime.previous]

    assert await flow.ainvoke(1) == [1, "flow", None, None]


async def test_a_sync_workflow_runs_beside_the_event_loop(saver: Any) -> None:
    @entrypoint(checkpointer=saver)
    def flow(given: int, *, previous: Any = None, writer: StreamWriter) -> Any:
        writer(previous)
        return [*(previous or []), given]

    assert await flow.ainvoke(1, CONFIG) == [1]
    assert await collect(flow.astream(2, CONFIG, stream_mode=["custom", "values"])) == [
        ("custom", [1]),
        ("values", [1, 2]),
    ]


def test_a_workflow_can_be_called_from_blocking_code(blocking_saver: Any) -> None:
    @task
    async def double(given: int) -> int:
        return 2 * given

    @entrypoint(checkpointer=blocking_saver)
    def flow(given: int, *, previous: Any = None) -> Any:
        return [previous, double(given).result()]

    assert flow.invoke(1, CONFIG) == [None, 2]
    assert list(flow.stream(2, CONFIG)) == [{"double": 4}, {"flow": [[None, 2], 4]}]
    assert flow.get_state(CONFIG).values == [[None, 2], 4]


async def test_what_can_be_called_can_be_a_workflow(saver: Any) -> None:
    class Adder:
        def __init__(self, number: int) -> None:
            self.number = number

        async def add(self, given: int) -> int:
            return given + self.number

        async def __call__(self, given: int) -> int:
            return given * self.number

    bound = entrypoint(checkpointer=saver)(Adder(5).add)
    called = entrypoint(checkpointer=saver)(Adder(5))
    assert (bound.name, called.name) == ("add", "Adder")
    assert (await bound.ainvoke(1, thread("1")), await called.ainvoke(2, thread("2"))) == (6, 10)


# ---- what is no workflow ---------------------------------------------------------------------------------------------


async def test_a_workflow_needs_an_input() -> None:
    with pytest.raises(ValueError, match="'flow' must take at least one parameter"):

        @entrypoint()
        async def flow() -> None: ...

    with pytest.raises(ValueError, match="'flow' must take at least one parameter"):

        @entrypoint()
        async def flow(*, previous: Any) -> None: ...


async def test_a_generator_is_no_workflow_and_no_task() -> None:
    def sync(given: int) -> Any:
        yield given

    async def not_sync(given: int) -> Any:
        yield given

    for function in (sync, not_sync):
        with pytest.raises(NotImplementedError, match="Generators"):
            entrypoint()(function)
        with pytest.raises(NotImplementedError, match="Generators"):
            task(function)


async def test_a_sync_function_cannot_have_a_timeout() -> None:
    def work(given: int) -> int:
        return given

    with pytest.raises(ValueError, match="'work' is a sync function"):
        entrypoint(timeout=1)(work)
    with pytest.raises(ValueError, match="'work' is a sync function"):
        task(timeout=TimeoutPolicy(run_timeout=1))(work)


async def test_names_must_not_break_namespaces() -> None:
    with pytest.raises(GraphDefinitionError, match="'a:b'"):
        task(name="a:b")(lambda: None)
    with pytest.raises(GraphDefinitionError, match=r"'a\|b'"):
        entrypoint(name="a|b")(lambda given: given)


async def test_a_checkpointer_must_be_one() -> None:
    with pytest.raises(TypeError, match="checkpointer must be a saver, .*got object|got object"):
        entrypoint(checkpointer=object())(lambda given: given)


# ---- what is returned and what is remembered -------------------------------------------------------------------------


async def test_previous_is_what_the_last_call_on_the_thread_returned(saver: Any) -> None:
    @entrypoint(checkpointer=saver)
    async def count(step: int, *, previous: int | None = None) -> int:
        return (previous or 0) + step

    assert [await count.ainvoke(step, thread("a")) for step in (1, 2, 3)] == [1, 3, 6]
    assert await count.ainvoke(10, thread("b")) == 10


async def test_without_a_checkpointer_nothing_is_remembered() -> None:
    @entrypoint()
    async def flow(given: int, *, previous: Any = None) -> Any:
        return [given, previous]

    assert [await flow.ainvoke(number) for number in (1, 2)] == [[1, None], [2, None]]


async def test_final_returns_one_value_and_remembers_another(saver: Any) -> None:
    @entrypoint(checkpointer=saver)
    async def flow(given: int, *, previous: int | None = None) -> entrypoint.final[int | None, int]:
        return entrypoint.final(value=previous, save=given)

    assert [await flow.ainvoke(number, CONFIG) for number in (1, 2, 3)] == [None, 1, 2]
    assert (await flow.aget_state(CONFIG)).values == 2


@pytest.mark.parametrize("value", [None, 0, "", False, [], {}])
async def test_falsy_values_are_values(saver: Any, value: Any) -> None:
    @entrypoint(checkpointer=saver)
    async def flow(given: bool, *, previous: Any = None) -> Any:
        return value if given else [previous]

    assert await flow.ainvoke(True, CONFIG) == value
    assert (await flow.aget_state(CONFIG)).values == value
    assert await flow.ainvoke(False, CONFIG) == [value]  # a falsy input is an input


async def test_previous_survives_a_failed_call(saver: Any) -> None:
    @entrypoint(checkpointer=saver)
    async def flow(given: int, *, previous: Any = None) -> Any:
        if given < 0:
            raise ValueError(given)
        return [given, previous and previous[0]]

    assert await flow.ainvoke(1, CONFIG) == [1, None]
    with pytest.raises(ValueError, match="-1"):
        await flow.ainvoke(-1, CONFIG)
    assert (await flow.aget_state(CONFIG)).values == [1, None]
    assert await flow.ainvoke(2, CONFIG) == [2, 1]


async def test_what_the_caller_or_the_workflow_changes_later_is_not_remembered(saver: Any) -> None:
    kept: list[Any] = []

    @entrypoint(checkpointer=saver)
    async def flow(given: list[int], *, previous: Any = None) -> Any:
        given.append(0)
        if previous is not None:
            previous.append("changed")
        result = [len(previous or ())]
        kept.append(result)
        return result

    given = [1]
    first = await flow.ainvoke(given, CONFIG)
    assert given == [1]
    first.append("changed")
    kept[0].append("changed")
    assert await flow.ainvoke([1], CONFIG) == [2]  # its own change of `previous`, seen by itself only
    assert [one.values for one in await history(flow)] == [[2], [0], [0], None]


async def test_futures_that_are_returned_are_awaited(anyio_backend_name: str) -> None:
    @task
    async def double(given: int) -> int:
        return 2 * given

    @task
    async def quadruple(given: int) -> Any:
        return double(2 * given)

    @entrypoint()
    async def one(given: int) -> Any:
        return quadruple(given)

    @entrypoint()
    def sync(given: int) -> Any:
        return quadruple(given)

    assert (await one.ainvoke(1), await sync.ainvoke(2)) == (4, 8)
    if anyio_backend_name == "asyncio":

        @entrypoint()
        async def many(given: int) -> Any:
            return asyncio.gather(*[double(number) for number in range(given)])

        assert await many.ainvoke(3) == [0, 2, 4]


# ---- the thread, from outside ----------------------------------------------------------------------------------------


async def test_a_call_leaves_two_checkpoints(saver: Any) -> None:
    @task
    async def double(given: int) -> int:
        return 2 * given

    @entrypoint(checkpointer=saver)
    async def flow(given: int) -> Any:
        return {"result": await double(given)}

    await flow.ainvoke(1, CONFIG)
    await flow.ainvoke(2, CONFIG)
    snapshots = await history(flow)
    assert steps(snapshots) == [(2, "loop", ()), (1, "input", ("flow",)), (0, "loop", ()), (-1, "input", ("flow",))]
    assert [one.values for one in snapshots] == [{"result": 4}, {"result": 2}, {"result": 2}, None]
    assert [[done.result for done in one.tasks] for one in snapshots] == [[], [{"result": 4}], [], [{"result": 2}]]
    assert snapshots[0].parent_config == snapshots[1].config


async def test_an_empty_thread_is_empty(saver: Any) -> None:
    @entrypoint(checkpointer=saver)
    async def flow(given: int) -> int:
        return given

    snapshot = await flow.aget_state(CONFIG)
    assert (snapshot.values, snapshot.next, snapshot.tasks) == ({}, (), ())


async def test_an_update_is_what_the_next_call_finds(saver: Any) -> None:
    @entrypoint(checkpointer=saver)
    async def flow(given: int, *, previous: Any = None) -> Any:
        return [given, previous]

    assert await flow.aupdate_state(CONFIG, "before any call")
    assert await flow.ainvoke(1, CONFIG) == [1, "before any call"]
    await flow.aupdate_state(CONFIG, "new")
    assert (await flow.aget_state(CONFIG)).values == "new"
    assert await flow.ainvoke(2, CONFIG) == [2, "new"]
    await flow.aupdate_state(CONFIG, entrypoint.final(value="shown", save="kept"), as_node="flow")
    assert (await flow.aget_state(CONFIG)).values == "shown"
    assert await flow.ainvoke(3, CONFIG) == [3, "kept"]
    await flow.abulk_update_state(CONFIG, [[StateUpdate("a")], [StateUpdate("b")]])
    assert await flow.ainvoke(4, CONFIG) == [4, "b"]
    with pytest.raises(UnknownNodeError, match="flow"):
        await flow.aupdate_state(CONFIG, "x", as_node="other")


async def test_an_update_ends_a_call_that_had_failed(saver: Any) -> None:
    runs = []

    @entrypoint(checkpointer=saver)
    async def flow(given: int, *, previous: Any = None) -> Any:
        runs.append(given)
        if given == 1:
            raise ValueError("no")
        return previous

    with pytest.raises(ValueError, match="no"):
        await flow.ainvoke(1, CONFIG)
    assert (await flow.aget_state(CONFIG)).next == ("flow",)
    await flow.aupdate_state(CONFIG, "by hand")
    snapshot = await flow.aget_state(CONFIG)
    assert (snapshot.values, snapshot.next) == ("by hand", ())
    assert await flow.ainvoke(None, CONFIG) == "by hand"
    assert await flow.ainvoke(2, CONFIG) == "by hand"
    assert runs == [1, 2]


async def test_an_update_in_the_past_makes_a_branch(saver: Any) -> None:
    @entrypoint(checkpointer=saver)
    async def flow(given: int, *, previous: int = 0) -> int:
        return given + (previous or 0)

    for number in (1, 2, 4):
        await flow.ainvoke(number, CONFIG)
    after_first = next(one for one in await history(flow) if one.values == 1 and not one.next)
    branch = await flow.aupdate_state(after_first.config, 100)
    assert await flow.ainvoke(1, branch) == 101
    assert sorted(one.values for one in await history(flow) if not one.next) == [1, 3, 7, 100, 101]


async def test_a_breakpoint_before_a_workflow(saver: Any) -> None:
    runs = []

    @entrypoint(checkpointer=saver)
    async def flow(given: int) -> int:
        runs.append(given)
        return given

    assert await flow.ainvoke(1, CONFIG, interrupt_before=["flow"]) is None
    assert ((await flow.aget_state(CONFIG)).next, runs) == (("flow",), [])
    assert await flow.ainvoke(None, CONFIG) == 1
    with pytest.raises(UnknownNodeError, match="flow"):
        await flow.ainvoke(1, CONFIG, interrupt_before=["other"])


async def test_a_workflow_has_nowhere_to_go(saver: Any) -> None:
    runs = []

    @entrypoint(checkpointer=saver)
    async def flow(given: Any) -> Any:
        runs.append(given)
        return given

    await flow.ainvoke(1, CONFIG)
    for command in (Command(goto="flow"), Command(update={"a": 1}), Command(update=1, resume=1)):
        with pytest.raises(InvalidUpdateError, match="'flow' is one function"):
            await flow.ainvoke(command, CONFIG)
    assert (runs, len(await history(flow))) == ([1], 2)


async def test_runs_side_by_side_keep_their_calls_apart(saver: Any) -> None:
    @task
    async def echo(given: int) -> int:
        await anyio.lowlevel.checkpoint()
        return given

    @entrypoint(checkpointer=saver)
    async def flow(given: int) -> list[int]:
        return [await echo(10 * given + number) for number in range(5)]

    results: dict[int, Any] = {}

    async def run(number: int) -> None:
        results[number] = await flow.ainvoke(number, thread(str(number)))

    async with anyio.create_task_group() as group:
        for number in range(10):
            group.start_soon(run, number)
    assert results == {number: [10 * number + place for place in range(5)] for number in range(10)}


@pytest.mark.parametrize("checkpointer", [None, InMemorySaver()])
async def test_there_must_be_something_to_resume(checkpointer: Any) -> None:
    @entrypoint(checkpointer=checkpointer)
    async def flow(given: int) -> int:
        return given

    with pytest.raises(EmptyInputError, match="nothing is saved for thread 't'|a graph without checkpointer"):
        await flow.ainvoke(None, CONFIG)
