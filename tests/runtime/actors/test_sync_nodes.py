"""Sync nodes: in threads of their own, with all that async nodes have."""

from __future__ import annotations

import threading
from typing import Any

import anyio
import pytest
from anyio import to_thread

from runtime.actors import calling
from runtime.actors.node import NodeActor
from runtime.actors.outcomes import COMPLETED, Failed, Paused
from runtime.context.scope import get_stream_writer
from runtime.graph import START, StateGraph
from runtime.types import Send, interrupt
from tests.runtime.actors.staging import handled, result, stage, task_of
from tests.runtime.engine.sketching import Everything
from tests.stories.graphs import collect


async def test_a_sync_node_runs_in_another_thread() -> None:
    here = threading.get_ident()
    assert await result(lambda _given: {"last": threading.get_ident()}) != here


async def test_a_sync_node_can_ask_and_hear_its_answer() -> None:
    def node(_given: Any) -> Any:
        return {"last": interrupt("q")}

    run = stage(node=node)
    outcome, _ = await handled(run)
    assert isinstance(outcome, Paused)
    assert [question.value for question in outcome.interrupts] == ["q"]
    again = task_of(run, "node")
    again.answers = ["A"]
    assert await NodeActor(again.node, run).handle(again) is COMPLETED
    assert again.writes == [("last", "A")]


async def test_a_sync_node_streams_as_it_goes() -> None:
    """Its reader sees the first item before the node goes on: the thread waits for that."""
    first_was_read = threading.Event()

    def node(_state: Any) -> Any:
        write = get_stream_writer()
        write(1)
        assert first_was_read.wait(5)
        write(2)

    builder: StateGraph[Any, Any, Any, Any] = StateGraph(Everything)
    builder.add_node("node", node).add_edge(START, "node")
    seen = []
    async for item in builder.compile().astream({}, stream_mode="custom"):
        seen.append(item)
        first_was_read.set()
    assert seen == [1, 2]


@pytest.mark.parametrize("error", [ValueError("boom"), StopIteration(), KeyError("k")], ids=repr)
async def test_what_a_sync_node_raises_is_its_failure(error: Exception) -> None:
    def node(_given: Any) -> None:
        raise error

    outcome, _ = await handled(stage(node=node))
    assert isinstance(outcome, Failed)
    assert error in (outcome.error, outcome.error.__cause__)


@pytest.mark.slow
async def test_sync_nodes_that_wait_for_nested_runs_do_not_wait_for_each_other() -> None:
    """More of them than there are threads, two levels deep: each depth has threads of its own."""
    count = calling.THREADS + 10

    def graph(function: Any) -> Any:
        builder: StateGraph[Any, Any, Any, Any] = StateGraph(Everything)
        builder.add_node("node", function).add_edge(START, "node")
        return builder.compile()

    innermost = graph(lambda _state: {"items": [1]})
    middle = graph(lambda _state: {"items": innermost.invoke({})["items"]})
    builder: StateGraph[Any, Any, Any, Any] = StateGraph(Everything)
    builder.add_node("node", lambda _given: {"items": middle.invoke({})["items"]})
    builder.add_conditional_edges(START, lambda _state: [Send("node", number) for number in range(count)], ["node"])
    outer = builder.compile()
    with anyio.fail_after(15):
        assert len((await outer.ainvoke({}))["items"]) == count
        assert len((await to_thread.run_sync(outer.invoke, {}))["items"]) == count


async def test_streams_of_sync_nodes_come_in_order() -> None:
    def node(_state: Any) -> None:
        for number in range(20):
            get_stream_writer()(number)

    builder: StateGraph[Any, Any, Any, Any] = StateGraph(Everything)
    builder.add_node("node", node).add_edge(START, "node")
    assert await collect(builder.compile().astream({}, stream_mode="custom")) == list(range(20))


async def test_sync_nodes_begin_in_the_order_of_their_tasks() -> None:
    """Which worker thread wakes up first is chance; more of them than there are threads begin in order, too."""
    begun: list[int] = []

    def node(number: int) -> dict[str, Any]:
        begun.append(number)
        return {}

    many = 3 * calling.THREADS
    builder = StateGraph(Everything).add_node("node", node)
    builder.add_conditional_edges(START, lambda _state: [Send("node", number) for number in range(many)], ["node"])
    graph = builder.compile()
    with anyio.fail_after(15):
        for _ in range(5):
            begun.clear()
            await graph.ainvoke({})
            assert begun == list(range(many))
