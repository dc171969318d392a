"""Limits that keep what was done, retries that write once, settings in the wrong place, history limits, joins."""

import logging
import warnings
from typing import Any

import anyio
import pytest

from runtime.errors import ConfigError, GraphRecursionError
from runtime.graph import END, START, StateGraph
from runtime.types import Command, Durability, RetryPolicy
from tests.stories.graphs import CONFIG, Log, chain, collect, history, note

pytestmark = pytest.mark.anyio

QUICK = RetryPolicy(initial_interval=0.001, jitter=False)


# The step limit


def loop(until: int) -> StateGraph:
    builder = StateGraph(Log)
    builder.add_node("n", lambda state: {"a": state.get("a", 0) + 1})
    builder.add_edge(START, "n")
    builder.add_conditional_edges("n", lambda state: "n" if state["a"] < until else END)
    return builder


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
async def test_a_run_that_meets_its_limit_keeps_its_state_and_can_go_on(saver: Any, durability: Durability) -> None:
    graph = loop(12).compile(checkpointer=saver)
    with pytest.raises(GraphRecursionError):
        await graph.ainvoke({"a": 0}, {**CONFIG, "recursion_limit": 5}, durability=durability)
    snapshot = await graph.aget_state(CONFIG)
    assert (snapshot.values["a"], snapshot.next) == (5, ("n",))
    result = await graph.ainvoke(None, {**CONFIG, "recursion_limit": 50}, durability=durability)
    assert result["a"] == 12


@pytest.mark.parametrize(("limit", "finishes"), [(11, False), (12, True), (13, True)])
async def test_the_limit_counts_exactly(saver: Any, limit: int, finishes: bool) -> None:
    graph = loop(12).compile(checkpointer=saver)
    if finishes:
        assert (await graph.ainvoke({"a": 0}, {**CONFIG, "recursion_limit": limit}))["a"] == 12
    else:
        with pytest.raises(GraphRecursionError):
            await graph.ainvoke({"a": 0}, {**CONFIG, "recursion_limit": limit})


# Retries


def failing_twice(output: Any) -> Any:
    attempts: list[int] = []

    async def node(_state: Log) -> Any:
        attempts.append(1)
        if len(attempts) < 3:
            raise ConnectionError
        return output

    return node


def retried(node: Any) -> StateGraph:
    builder = StateGraph(Log)
    builder.add_node("n", node, retry_policy=QUICK)
    builder.add_node("m", note("m"))
    builder.add_edge(START, "n")
    return builder


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ({"log": ["once"]}, ["once"]),
        (Command(update={"log": ["once"]}), ["once"]),
        (Command(update={"log": ["once"]}, goto="m"), ["once", "m"]),
        ([{"log": ["once"]}, Command(goto="m")], ["once", "m"]),
    ],
)
async def test_only_the_last_attempt_counts(saver: Any, output: Any, expected: list[str]) -> None:
    graph = retried(failing_twice(output)).compile(checkpointer=saver)
    assert (await graph.ainvoke({}, CONFIG))["log"] == expected
    assert (await graph.aget_state(CONFIG)).values["log"] == expected


async def test_updates_are_streamed_once() -> None:
    graph = retried(failing_twice({"log": ["once"]})).compile()
    assert await collect(graph.astream({})) == [{"n": {"log": ["once"]}}]


async def test_a_router_that_raises_has_its_node_retried_and_written_once(saver: Any) -> None:
    runs: list[str] = []

    async def n(_state: Log) -> dict[str, Any]:
        runs.append("n")
        return {"log": ["once"]}

    def route(_state: Log) -> str:
        if len(runs) < 3:
            raise ConnectionError
        return "m"

    builder = retried(n)
    builder.add_conditional_edges("n", route)
    graph = builder.compile(checkpointer=saver)
    assert (await graph.ainvoke({}, CONFIG))["log"] == ["once", "m"]
    assert runs == ["n"] * 3


async def test_a_timed_out_attempt_leaves_no_writes(saver: Any) -> None:
    attempts: list[int] = []

    async def n(_state: Log) -> dict[str, Any]:
        attempts.append(1)
        if len(attempts) == 1:
            try:
                await anyio.sleep_forever()
            finally:
                attempts.append(0)
        return {"log": ["once"]}

    builder = StateGraph(Log)
    builder.add_node("n", n, retry_policy=QUICK, timeout=0.02)
    builder.add_edge(START, "n")
    graph = builder.compile(checkpointer=saver)
    assert (await graph.ainvoke({}, CONFIG))["log"] == ["once"]
    assert attempts == [1, 0, 1]


# Settings in the wrong place


@pytest.mark.parametrize("name", ["max_concurrency", "recursion_limit"])
async def test_a_setting_inside_configurable_is_refused_with_the_right_place(saver: Any, name: str) -> None:
    graph = chain("n").compile(checkpointer=saver)
    with pytest.raises(ConfigError, match=name) as caught:
        await graph.ainvoke({}, {"configurable": {"thread_id": "t", name: 3}})
    assert "configurable" in str(caught.value)
    assert await history(graph) == []


@pytest.mark.parametrize("name", ["durability", "multitask_strategy"])
async def test_a_call_option_inside_configurable_is_refused(saver: Any, name: str) -> None:
    graph = chain("n").compile(checkpointer=saver)
    with pytest.raises(ConfigError, match=name):
        await graph.ainvoke({}, {"configurable": {"thread_id": "t", name: "sync"}})


@pytest.mark.parametrize("name", ["thread_id", "checkpoint_id"])
async def test_an_address_at_the_top_level_works_or_is_refused_but_is_not_ignored(saver: Any, name: str) -> None:
    graph = chain("n").compile(checkpointer=saver)
    await graph.ainvoke({}, CONFIG)
    first = (await history(graph))[-1].config["configurable"]
    config = {"configurable": {key: first[key] for key in first if key != name}, name: first[name]}
    refusal: ValueError | None = None
    step: int | None = None
    try:
        step = (await graph.aget_state(config)).metadata["step"]
    except ValueError as error:
        refusal = error
    assert step == -1 or name in str(refusal)


@pytest.mark.parametrize("value", [0, -1, "3", 1.5])
async def test_a_wrong_concurrency_limit_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match="max_concurrency"):
        await chain("n").compile().ainvoke({}, {"max_concurrency": value})


async def test_an_unknown_keyword_is_refused() -> None:
    with pytest.raises(TypeError, match="durabilty"):
        await chain("n").compile().ainvoke({}, durabilty="sync")  # type: ignore[call-arg]  # what it is about


# History limits


@pytest.mark.parametrize(("limit", "expected"), [(0, 0), (1, 1), (2, 2), (None, 3)])
async def test_history_limits_are_exact(saver: Any, limit: int | None, expected: int) -> None:
    graph = chain("n").compile(checkpointer=saver)
    await graph.ainvoke({}, CONFIG)
    assert len(await history(graph, limit=limit)) == expected
    assert len([one async for one in saver.alist(CONFIG, limit=limit)]) == expected


async def test_a_negative_history_limit_is_refused(saver: Any) -> None:
    graph = chain("n").compile(checkpointer=saver)
    await graph.ainvoke({}, CONFIG)
    with pytest.raises(ValueError, match="limit"):
        await history(graph, limit=-1)


# A join that waits for a node that was skipped


async def test_a_join_that_still_waits_is_visible(saver: Any, caplog: pytest.LogCaptureFixture) -> None:
    builder = StateGraph(Log)
    for name in ("A", "B", "C", "D"):
        builder.add_node(name, note(name))
    builder.add_conditional_edges(START, lambda _state: "A", ["A", "B"])
    builder.add_edge(["A", "B"], "C")
    builder.add_edge("C", "D")
    graph = builder.compile(checkpointer=saver)
    with warnings.catch_warnings(record=True) as warned, caplog.at_level(logging.INFO):
        warnings.simplefilter("always")
        result = await graph.ainvoke({}, CONFIG)
    assert result["log"] == ["A"]
    snapshot = await graph.aget_state(CONFIG)
    assert snapshot.next == ()
    told = [str(one.message) for one in warned] + caplog.messages + [repr(getattr(snapshot, "waiting", ""))]
    assert [one for one in told if "C" in one and "B" in one], "nothing tells that C waits for B"
