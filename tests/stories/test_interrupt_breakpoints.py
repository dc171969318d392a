"""Breakpoints set in a subgraph, and in the graph around it; pauses that nothing keeps."""

from __future__ import annotations

import logging
import re
from typing import Any

import pytest

from persistence.memory import InMemorySaver
from runtime.types import Command, interrupt
from tests.stories.graphs import CONFIG, Log, chain, collect, fan
from tests.stories.nests import Runs, asked, questions

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("kept", [None, True])
@pytest.mark.parametrize("where", ["before", "after"])
async def test_a_breakpoint_in_a_subgraph_pauses_the_whole_run(saver: Any, where: str, kept: Any) -> None:
    runs = Runs()
    options: dict[str, Any] = {"interrupt_before": ["b"]} if where == "before" else {"interrupt_after": ["a"]}
    child = chain(runs.step("a"), runs.step("b")).compile(checkpointer=kept, **options)
    graph = chain(("p", child), runs.step("end")).compile(checkpointer=saver)
    result = await graph.ainvoke({}, CONFIG)
    assert result == {"log": []}
    snapshot = await graph.aget_state(CONFIG, subgraphs=True)
    assert (snapshot.next, snapshot.interrupts) == (("p",), ())
    assert snapshot.tasks[0].state.next == ("b",)
    assert await graph.ainvoke(None, CONFIG) == {"log": ["a", "b", "end"]}
    assert runs == {"a": 1, "b": 1, "end": 1}


async def test_before_a_subgraph_there_is_nothing_to_see_in_it(saver: Any) -> None:
    graph = chain(("p", chain("a").compile())).compile(checkpointer=saver, interrupt_before=["p"])
    await graph.ainvoke({}, CONFIG)
    inner = (await graph.aget_state(CONFIG, subgraphs=True)).tasks[0].state
    assert (inner.values, inner.next, inner.tasks, inner.metadata) == ({}, (), (), None)
    assert inner.config == (await graph.aget_state(CONFIG)).tasks[0].state
    assert await graph.ainvoke(None, CONFIG) == {"log": ["a"]}


async def test_it_is_streamed_once_for_the_whole_run(saver: Any) -> None:
    child = chain("a", "b").compile(interrupt_before=["b"])
    graph = chain(("p", child)).compile(checkpointer=saver)
    chunks = await collect(graph.astream({}, CONFIG, stream_mode="updates", subgraphs=True))
    assert chunks[-1] == ((), {"__interrupt__": ()})
    assert [chunk for _, chunk in chunks] == [{"a": {"log": ["a"]}}, {"__interrupt__": ()}]


async def test_every_node_of_a_subgraph(saver: Any) -> None:
    child = chain("a", "b").compile(interrupt_before="*")
    graph = chain(("p", child), "end").compile(checkpointer=saver, interrupt_before=["end"])
    seen = []
    value: Any = {}
    for _ in range(4):
        await graph.ainvoke(value, CONFIG)
        snapshot = await graph.aget_state(CONFIG, subgraphs=True)
        inner = snapshot.tasks[0].state if snapshot.tasks else None
        seen.append((snapshot.next, inner.next if inner is not None else None))
        value = None
    assert seen == [(("p",), ("a",)), (("p",), ("b",)), (("end",), None), ((), None)]


async def test_two_levels_down(saver: Any) -> None:
    runs = Runs()
    inner = chain(runs.step("a"), runs.step("b")).compile(interrupt_before=["b"])
    middle = chain(runs.step("m"), ("q", inner)).compile()
    graph = chain(("p", middle)).compile(checkpointer=saver)
    await graph.ainvoke({}, CONFIG)
    assert (await graph.aget_state(CONFIG)).next == ("p",)
    result = await graph.ainvoke(None, CONFIG)
    assert result["log"][-2:] == ["a", "b"]
    assert runs == {"m": 1, "a": 1, "b": 1}


async def test_in_a_function_the_rest_of_the_node_waits(saver: Any) -> None:
    runs = Runs()
    child = chain(runs.step("a"), runs.step("b")).compile(interrupt_before=["b"])

    async def node(_state: Log) -> dict[str, Any]:
        runs["node"] += 1
        noted = (await child.ainvoke({"log": []}))["log"]
        runs["rest"] += 1
        return {"log": noted}

    graph = chain(("f", node)).compile(checkpointer=saver)
    await graph.ainvoke({}, CONFIG)
    assert runs == {"node": 1, "a": 1}
    assert await graph.ainvoke(None, CONFIG) == {"log": ["a", "b"]}
    assert runs == {"node": 2, "rest": 1, "a": 1, "b": 1}


async def test_state_is_edited_at_a_breakpoint_inside(saver: Any) -> None:
    child = chain("a", ("b", lambda state: {"log": [f"b {state['a']}"]})).compile(interrupt_before=["b"])
    graph = chain(("p", child)).compile(checkpointer=saver)
    await graph.ainvoke({"a": 1}, CONFIG)
    inside = (await graph.aget_state(CONFIG)).tasks[0].state
    await graph.aupdate_state(inside, {"a": 2})
    assert await graph.ainvoke(None, CONFIG) == {"a": 2, "log": ["a", "b 2"]}


async def test_beside_a_question(saver: Any) -> None:
    runs = Runs()
    child = chain(runs.step("a"), runs.step("b")).compile(interrupt_before=["b"])
    graph = fan(("p", child), runs.asker("n"), first=None).compile(checkpointer=saver)
    result = await graph.ainvoke({}, CONFIG)
    assert asked(result) == ["n?"]
    assert set((await graph.aget_state(CONFIG)).next) == {"n", "p"}
    result = await graph.ainvoke(Command(resume={questions(result)["n?"]: "yes"}), CONFIG)
    assert result["log"] == ["n:yes", "a", "b", "join"]
    assert (runs["a"], runs["b"], runs["n"]) == (1, 1, 2)


async def test_breakpoints_given_to_a_call_are_those_of_the_root_only(saver: Any) -> None:
    child = chain("a", "b").compile()
    graph = chain(("p", child), "b").compile(checkpointer=saver)
    assert await graph.ainvoke({}, CONFIG, interrupt_before=["b"]) == {"log": ["a", "b"]}
    assert (await graph.aget_state(CONFIG)).next == ("b",)


async def test_before_a_subgraph_and_after_it(saver: Any) -> None:
    child = chain("a").compile()
    graph = chain("n", ("p", child), "end").compile(checkpointer=saver, interrupt_before=["p"], interrupt_after=["p"])
    seen = []
    value: Any = {}
    for _ in range(3):
        await graph.ainvoke(value, CONFIG)
        seen.append((await graph.aget_state(CONFIG)).next)
        value = None
    assert seen == [("p",), ("end",), ()]


async def test_without_a_checkpointer_the_run_ends_there() -> None:
    child = chain("a", "b").compile(interrupt_before=["b"])
    graph = chain(("p", child), "end").compile()
    assert await graph.ainvoke({}) == {"log": []}


# ---- without a checkpointer ------------------------------------------------------------------------------------------


def asking(_state: Any) -> None:
    interrupt("?")


PAUSES: dict[str, tuple[Any, dict[str, Any], str]] = {
    "a question": (asking, {}, r"interrupt\(\)"),
    "before": (lambda _state: None, {"interrupt_before": ["node"]}, "interrupt_before"),
    "after": (lambda _state: None, {"interrupt_after": "*"}, "interrupt_after"),
}


@pytest.mark.parametrize("pause", PAUSES)
async def test_a_pause_that_nothing_keeps_is_told_once(pause: str, caplog: pytest.LogCaptureFixture) -> None:
    node, options, how = PAUSES[pause]
    builder = chain(("node", node), "last")
    with caplog.at_level(logging.WARNING, "actorgraph"):
        await builder.compile(InMemorySaver(), **options).ainvoke({}, CONFIG)
        assert caplog.messages == []
        graph = builder.compile(**options)
        await graph.ainvoke({})
        await graph.ainvoke({})
    (told,) = caplog.messages
    assert re.match(rf"Run of graph 'LangGraph' paused \({how}\), and cannot be resumed: .*no checkpointer", told)


async def test_a_pause_of_a_subgraph_that_keeps_nothing_is_its_parents(caplog: pytest.LogCaptureFixture) -> None:
    inner = chain(("node", asking)).compile(checkpointer=False)
    with caplog.at_level(logging.WARNING, "actorgraph"):
        assert "__interrupt__" in await chain(("inner", inner)).compile(InMemorySaver()).ainvoke({}, CONFIG)
    assert caplog.messages == []
