"""Failures, limits, cancels and what nodes reach: right below another graph, however the graph came to be there."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from persistence.memory import InMemoryStore
from runtime.errors import GraphDrained, GraphRecursionError
from runtime.func import entrypoint
from runtime.graph import START, StateGraph
from runtime.runtime import RunControl, Runtime
from runtime.types import Command, Durability, RetryPolicy, RunnableConfig, StreamWriter
from tests.stories.graphs import CONFIG, Gate, Log, chain, collect, fan
from tests.stories.nests import Runs, asked
from tests.stories.places import PLACES

pytestmark = pytest.mark.anyio

QUICK = RetryPolicy(initial_interval=0, jitter=False)


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest) -> Any:
    """Puts a graph below another."""
    return PLACES[request.param]


def keeps(place: Any) -> bool:
    """Whether the graph below has state of its own."""
    return place is not PLACES["stateless"]


@pytest.mark.parametrize("durability", ["exit", "async", "sync"])
async def test_after_a_failure_only_what_had_not_finished_runs(saver: Any, place: Any, durability: Durability) -> None:
    runs = Runs()
    graph = place(chain(runs.step("a"), runs.failer("b"), runs.step("c")), saver)
    with pytest.raises(ConnectionError):
        await graph.ainvoke({"log": []}, CONFIG, durability=durability)
    assert (await graph.aget_state(CONFIG)).next != ()
    assert (await graph.ainvoke(None, CONFIG, durability=durability))["log"] == ["a", "b", "c"]
    assert runs == {"a": 1 if keeps(place) else 2, "b": 2, "c": 1}
    assert (await graph.aget_state(CONFIG)).next == ()


async def test_a_finished_sibling_is_not_run_again(saver: Any, place: Any) -> None:
    runs, gate = Runs(), Gate()

    async def ok(_state: Log) -> dict[str, Any]:
        runs["ok"] += 1
        gate.open.set()
        return {"log": ["ok"]}

    async def bad(state: Log) -> dict[str, Any]:
        if not gate.mended:
            await gate.open.wait()
            await anyio.wait_all_tasks_blocked()  # what the sibling wrote is recorded by then
        return await gate.fail(state)

    graph = place(fan(("ok", ok), ("bad", bad), first=None), saver)
    with pytest.raises(ValueError, match="boom"):
        await graph.ainvoke({"log": []}, CONFIG)
    gate.mended = True
    assert (await graph.ainvoke(None, CONFIG))["log"] == ["bad", "ok", "join"]
    assert runs["ok"] == (1 if keeps(place) else 2)


async def test_only_the_last_attempt_counts(saver: Any, place: Any) -> None:
    runs = Runs()
    builder = StateGraph(Log).add_node(*runs.failer("n", 2), retry_policy=QUICK).set_entry_point("n")
    graph = place(builder, saver)
    assert (await graph.ainvoke({"log": []}, CONFIG))["log"] == ["n"]
    assert runs["n"] == 3


async def test_a_limit_inside_keeps_what_was_done(saver: Any, place: Any) -> None:
    runs = Runs()
    builder = chain(runs.step("a"), runs.step("b"), runs.step("c"))
    graph = place(builder, saver)
    with pytest.raises(GraphRecursionError):
        await graph.ainvoke({"log": []}, {**CONFIG, "recursion_limit": 2})
    assert (await graph.ainvoke(None, CONFIG))["log"] == ["a", "b", "c"]
    assert runs == ({"a": 1, "b": 1, "c": 1} if keeps(place) else {"a": 2, "b": 2, "c": 1})


async def test_a_cancelled_run_goes_on_where_it_was(saver: Any, place: Any) -> None:
    runs = Runs()
    reached, released, ended = anyio.Event(), anyio.Event(), anyio.Event()

    async def slow(_state: Log) -> dict[str, Any]:
        reached.set()
        try:
            await released.wait()
        finally:
            ended.set()
        return {"log": ["slow"]}

    graph = place(chain(runs.step("a"), ("slow", slow)), saver)
    async with anyio.create_task_group() as nursery:
        nursery.start_soon(graph.ainvoke, {"log": []}, CONFIG)
        await reached.wait()
        nursery.cancel_scope.cancel()
    assert ended.is_set()
    assert graph.statistics() == ()
    released.set()
    assert (await graph.ainvoke(None, CONFIG))["log"] == ["a", "slow"]
    assert runs["a"] == (1 if keeps(place) else 2)


async def test_a_reader_who_leaves_ends_what_is_below(saver: Any, place: Any) -> None:
    ended = anyio.Event()

    async def slow(_state: Log, writer: StreamWriter) -> None:
        writer("at work")
        try:
            await anyio.sleep_forever()
        finally:
            ended.set()

    graph = place(chain("a", ("slow", slow)), saver)
    async with graph.astream({"log": []}, CONFIG, stream_mode="custom", subgraphs=True) as stream:
        async for _, chunk in stream:
            assert chunk == "at work"
            break
    assert ended.is_set()
    assert graph.statistics() == ()


@pytest.mark.parametrize("durability", ["exit", "async", "sync"])
async def test_a_drain_stops_the_graph_below_between_its_supersteps(
    saver: Any, place: Any, durability: Durability
) -> None:
    runs, control = Runs(), RunControl()

    async def first(_state: Log) -> dict[str, Any]:
        runs["first"] += 1
        control.request_drain("enough")
        return {"log": ["first"]}

    graph = place(chain(("first", first), runs.step("second")), saver)
    if keeps(place):
        with pytest.raises(GraphDrained, match="enough"):
            await graph.ainvoke({"log": []}, CONFIG, control=control, durability=durability)
        assert (await graph.aget_state(CONFIG)).next != ()
        assert (await graph.aget_state(CONFIG)).interrupts == ()
        assert (await graph.ainvoke(None, CONFIG, durability=durability))["log"] == ["first", "second"]
    else:  # without state of its own it would start over, so it is let run to its end
        result = await graph.ainvoke({"log": []}, CONFIG, control=control, durability=durability)
        assert result["log"] == ["first", "second"]
    assert runs == {"first": 1, "second": 1}
    assert graph.statistics() == ()


async def test_a_drain_lets_siblings_of_the_graph_below_finish(saver: Any, place: Any) -> None:
    control, drained = RunControl(), anyio.Event()

    async def first(_state: Log) -> dict[str, Any]:
        control.request_drain()
        drained.set()
        return {"log": ["first"]}

    async def sibling(_state: Log) -> dict[str, Any]:
        await drained.wait()
        await anyio.wait_all_tasks_blocked()
        return {"log": ["sibling"]}

    below = place(chain(("first", first), "second"), None)
    graph = fan(("a", below), ("b", sibling), first=None).compile(saver)
    with pytest.raises(GraphDrained):
        await graph.ainvoke({"log": []}, CONFIG, control=control)
    assert "sibling" in (await graph.aget_state(CONFIG)).values["log"]
    assert (await graph.ainvoke(None, CONFIG))["log"] == ["first", "second", "sibling", "join"]


async def test_a_drain_of_a_graph_below_alone_is_its_callers_to_handle(saver: Any) -> None:
    child = chain("first", "second").compile()

    async def node(_state: Log) -> dict[str, Any]:
        control = RunControl()
        control.request_drain("only this")
        with pytest.raises(GraphDrained, match="only this"):
            await child.ainvoke({"log": []}, control=control)
        return {"log": ["node"]}

    assert (await chain(("node", node), "next").compile(saver).ainvoke({}, CONFIG))["log"] == ["node", "next"]


async def test_a_question_below_is_told_before_a_drain(saver: Any) -> None:
    control = RunControl()

    async def drains(_state: Log) -> dict[str, Any]:
        control.request_drain()
        return {"log": ["drains"]}

    child = chain(("drains", drains), "second").compile()
    graph = fan(("child", child), Runs().asker("n"), first=None).compile(saver)
    assert asked(await graph.ainvoke({"log": []}, CONFIG, control=control)) == ["n?"]
    result = await graph.ainvoke(Command(resume="yes"), CONFIG)
    assert result["log"] == ["drains", "second", "n:yes", "join"]


async def test_nodes_below_reach_store_config_and_stream(saver: Any, place: Any) -> None:
    """Each event comes once, with the path of its graph."""
    seen: list[Any] = []

    async def node(_state: Log, config: RunnableConfig, runtime: Runtime[Any]) -> dict[str, Any]:
        runtime.stream_writer("once")
        assert runtime.execution_info is not None
        seen.append((config["configurable"]["tenant"], config["metadata"]["user"], runtime.execution_info.thread_id))
        return {"log": ["n"]}

    graph = place(chain(("n", node)), saver)
    call = {"configurable": {"thread_id": "t", "tenant": "acme"}, "metadata": {"user": "eve"}}
    chunks = await collect(graph.astream({"log": []}, call, stream_mode="custom", subgraphs=True))
    assert [chunk for _, chunk in chunks] == ["once"]
    deep = (PLACES["two levels down"], PLACES["in a task"])
    assert len(chunks[0][0]) == (2 if place in deep else 1)
    assert seen == [("acme", "eve", "t")]


async def test_deleting_the_thread_deletes_what_is_below(saver: Any, place: Any) -> None:
    graph = place(chain(Runs().step("a"), Runs().asker("n")), saver)
    await graph.ainvoke({"log": []}, CONFIG)
    await saver.adelete_thread("t")
    assert [one async for one in saver.alist(CONFIG)] == []
    assert (await graph.aget_state(CONFIG)).values in ({}, None)


async def test_a_workflow_hands_its_store_down(saver: Any) -> None:
    """A graph that was compiled with a store of its own uses that one instead."""

    async def keep(_state: Log, runtime: Runtime[Any]) -> dict[str, Any]:
        await runtime.store.aput(("notes",), "k", {"v": 1})
        return {}

    own, given = InMemoryStore(), InMemoryStore()
    builder = StateGraph(Log).add_node("keep", keep).add_edge(START, "keep")
    heir, independent = builder.compile(), builder.compile(store=own)

    @entrypoint(checkpointer=saver, store=given)
    async def workflow(which: str) -> None:
        await (heir if which == "heir" else independent).ainvoke({"log": []})

    await workflow.ainvoke("independent", CONFIG)
    assert (await own.aget(("notes",), "k")) is not None
    assert (await given.aget(("notes",), "k")) is None
    await workflow.ainvoke("heir", CONFIG)
    assert (await given.aget(("notes",), "k")) is not None
