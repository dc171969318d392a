"""Which subgraph a task shows: in its calls, in its error handler, and of several the one that has work left."""

from __future__ import annotations

from typing import Any

import pytest

from runtime.func import task
from runtime.graph import START, StateGraph
from runtime.types import Command, StateSnapshot
from tests.stories.graphs import CONFIG, Log, chain, history
from tests.stories.nests import Runs, asked

pytestmark = pytest.mark.anyio


async def seen(graph: Any, config: Any = CONFIG) -> Any:
    """Return what the first task of a thread shows."""
    return (await graph.aget_state(config, subgraphs=True)).tasks[0].state


@pytest.mark.parametrize("kept", [None, True])
@pytest.mark.parametrize("in_task", [False, True])
async def test_of_several_calls_the_one_that_waits(saver: Any, kept: Any, in_task: bool) -> None:
    child = chain(Runs().asker("n")).compile(checkpointer=kept)

    @task
    async def call(name: str) -> Any:
        return (await child.ainvoke({"log": [name]}))["log"]

    async def node(_state: Log) -> Any:
        for name in "abc":
            _ = await call(name) if in_task else await child.ainvoke({"log": [name]})
        return {"log": []}

    graph = chain(("p", node)).compile(checkpointer=saver)
    assert asked(await graph.ainvoke({"log": []}, CONFIG)) == ["n?"]
    for name in "abc":
        inner = await seen(graph)
        assert (inner.next, inner.values["log"][-1]) == (("n",), name)
        assert inner.interrupts == (await graph.aget_state(CONFIG)).interrupts
        await graph.ainvoke(Command(resume="yes"), CONFIG)
    before = next(one for one in await history(graph) if one.next == ("p",))
    assert (await seen(graph, before.config)).next == ()


async def test_calls_of_a_fresh_one_and_one_that_keeps_its_state(saver: Any) -> None:
    fresh, kept = chain("f").compile(), chain(Runs().asker("n")).compile(checkpointer=True)

    async def node(_state: Log) -> Any:
        return {"log": [*(await fresh.ainvoke({"log": []}))["log"], *(await kept.ainvoke({"log": []}))["log"]]}

    graph = chain(("p", node)).compile(checkpointer=saver)
    for _ in range(2):
        await graph.ainvoke({"log": []}, CONFIG)
        inner = await seen(graph)
        assert (inner.next, inner.config["configurable"]["checkpoint_ns"]) == (("n",), "p|1")
        await graph.ainvoke(Command(resume="yes"), CONFIG)


async def test_one_that_failed_and_the_one_in_the_error_handler(saver: Any) -> None:
    runs = Runs()
    failing, asking = chain(runs.failer("bad", 9)).compile(), chain(runs.asker("n")).compile()

    async def handle(_state: Log) -> Any:
        return await asking.ainvoke({"log": []})

    graph = StateGraph(Log).add_node("p", failing, error_handler=handle).add_edge(START, "p").compile(saver)
    assert asked(await graph.ainvoke({"log": []}, CONFIG)) == ["n?"]
    inner = await seen(graph)
    assert inner.next == ("n",)
    place = {key: inner.config["configurable"][key] for key in ("thread_id", "checkpoint_ns")}
    assert (await history(graph, {"configurable": place}))[0].next == ("n",)
    assert await graph.ainvoke(Command(resume="yes"), CONFIG) == {"log": ["n:yes"]}


async def test_one_that_failed_is_shown_where_the_handler_runs_none(saver: Any) -> None:
    async def handle(_state: Log) -> Any:
        return {"log": ["handled"]}

    failing = chain(Runs().failer("bad", 9)).compile()
    graph = StateGraph(Log).add_node("p", failing, error_handler=handle).add_edge(START, "p").compile(saver)
    assert await graph.ainvoke({"log": []}, CONFIG) == {"log": ["handled"]}
    before = next(one for one in await history(graph) if one.next == ("p",))
    inner = await seen(graph, before.config)
    assert isinstance(inner, StateSnapshot)
    assert inner.next == ("bad",)


async def test_before_anything_ran_a_task_shows_an_empty_snapshot_of_where_it_will_be(saver: Any) -> None:
    child = chain("c").compile()

    @task
    async def call() -> Any:
        return await child.ainvoke({"log": []})

    async def node(_state: Log) -> Any:
        return await call()

    graph = chain(("p", node)).compile(checkpointer=saver, interrupt_before=["p"])
    await graph.ainvoke({"log": []}, CONFIG)
    inner = await seen(graph)
    assert isinstance(inner, StateSnapshot)
    assert (inner.values, inner.next, inner.metadata) == ({}, (), None)
    assert inner.config["configurable"]["checkpoint_ns"].startswith("p:")
