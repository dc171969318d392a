"""A thread that a graph goes on with which lacks some of its keys: their values stay with the thread."""

from __future__ import annotations

import operator
from typing import Annotated, Any, TypedDict

import pytest

from runtime.graph import START, StateGraph
from tests.stories.graphs import CONFIG, history

pytestmark = pytest.mark.anyio


class Whole(TypedDict, total=False):
    log: Annotated[list[str], operator.add]
    seen: Annotated[dict[str, int], operator.or_]
    number: int


class Part(TypedDict, total=False):
    number: int


def whole(saver: Any) -> Any:
    builder = StateGraph(Whole).add_node("whole", lambda state: {"log": ["w"], "seen": {str(len(state["log"])): 1}})
    return builder.add_edge(START, "whole").compile(saver)


def part(saver: Any) -> Any:
    return (
        StateGraph(Part)
        .add_node("part", lambda state: {"number": state["number"] + 1})
        .add_edge(START, "part")
        .compile(saver)
    )


async def test_what_it_does_not_know_it_leaves_alone(saver: Any) -> None:
    for _ in range(12):  # enough for additions that rest on others
        await whole(saver).ainvoke({"log": ["in"]}, CONFIG)
    assert await part(saver).ainvoke({"number": 1}, CONFIG) == {"number": 2}
    assert (await part(saver).aget_state(CONFIG)).values == {"number": 2}
    state = (await whole(saver).aget_state(CONFIG)).values
    assert (len(state["log"]), len(state["seen"]), state["number"]) == (24, 12, 2)
    result = await whole(saver).ainvoke({"log": ["in"]}, CONFIG)
    assert (len(result["log"]), len(result["seen"]), result["number"]) == (26, 13, 2)


async def test_forks_and_edits_leave_it_alone_too(saver: Any) -> None:
    await whole(saver).ainvoke({"log": ["in"]}, CONFIG)
    graph = part(saver)
    await graph.ainvoke({"number": 1}, CONFIG)
    point = next(each for each in await history(graph) if each.next == ("part",))
    assert await graph.ainvoke(None, point.config) == {"number": 2}
    await graph.aupdate_state(CONFIG, {"number": 9})
    assert (await whole(saver).aget_state(CONFIG)).values == {"log": ["in", "w"], "seen": {"1": 1}, "number": 9}


async def test_joins_and_triggers_of_a_graph_as_it_was_are_not_kept(saver: Any) -> None:
    builder = StateGraph(Part)
    for name in ("a", "b", "j"):
        builder.add_node(name, lambda _state: None)
    builder.add_edge(START, "a").add_edge(["a", "b"], "j")
    await builder.compile(saver).ainvoke({"number": 1}, CONFIG)
    await part(saver).ainvoke({"number": 1}, CONFIG)
    found = await saver.aget_tuple(CONFIG)
    assert set(found.checkpoint["channel_values"]) == {"number"}
