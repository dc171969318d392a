"""What a whole run costs, in calls: as much for each task and superstep, however many there are."""

from __future__ import annotations

import operator
from typing import Annotated, Any, TypedDict

import anyio.lowlevel
import pytest

from persistence.memory import InMemorySaver
from runtime.graph import START, CompiledStateGraph, StateGraph
from runtime.types import Send
from tests.runtime.engine.counting import calls

CONFIG: dict[str, Any] = {"configurable": {"thread_id": "t"}}


class Counted(TypedDict):
    """Which nodes have run."""

    done: Annotated[int, operator.add]


async def work(_state: Any) -> dict[str, Any]:
    return {"done": 1}


async def wait(_state: Any) -> dict[str, Any]:
    await anyio.lowlevel.checkpoint()
    return {"done": 1}


def fan_out(width: int, node: Any, saver: Any) -> CompiledStateGraph[Any, Any, Any, Any]:
    builder = StateGraph(Counted).add_node("node", node)
    builder.add_conditional_edges(START, lambda _state: [Send("node", {"done": 0}) for _ in range(width)], ["node"])
    return builder.compile(saver)


def one_of(nodes: int, saver: Any) -> CompiledStateGraph[Any, Any, Any, Any]:
    """Return a graph of which two nodes run."""
    builder = StateGraph(Counted)
    for number in range(nodes):
        builder.add_node(f"n{number}", work)
    builder.add_conditional_edges(START, lambda _state: "n3", [f"n{number}" for number in range(nodes)])
    return builder.add_edge("n3", "n4").compile(saver)


async def cost(graph: CompiledStateGraph[Any, Any, Any, Any], done: int) -> int:
    """Count the calls of one run, whatever happens meanwhile on the event loop included."""
    await graph.ainvoke({"done": 0}, {"configurable": {"thread_id": "first"}})  # what is made once is made
    with calls() as so_far:
        result = await graph.ainvoke({"done": 0}, CONFIG)
        spent = so_far()
    assert result == {"done": done}
    return spent


@pytest.mark.parametrize("node", [work, wait])
@pytest.mark.parametrize("saved", [False, True])
async def test_a_wide_superstep_costs_the_same_for_each_task(node: Any, saved: bool) -> None:
    narrow, wide = [await cost(fan_out(width, node, InMemorySaver() if saved else None), width) for width in (50, 200)]
    assert wide < 4 * narrow


@pytest.mark.parametrize("saved", [False, True])
async def test_a_run_costs_what_runs_and_not_what_the_graph_has(saved: bool) -> None:
    small, large = [await cost(one_of(nodes, InMemorySaver() if saved else None), 2) for nodes in (5, 500)]
    assert large < small * 1.1
