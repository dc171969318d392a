"""Asking a run to stop after its superstep, and keeping an idle node alive."""

from typing import Any

import anyio
import pytest

from runtime.errors import GraphDrained, NodeTimeoutError
from runtime.graph import START, StateGraph
from runtime.runtime import RunControl, Runtime
from runtime.types import Command, Send, TimeoutPolicy
from tests.stories.graphs import CONFIG, Log, chain, note, steps

pytestmark = pytest.mark.anyio


# Drain


async def test_a_drained_run_finishes_its_superstep_and_can_be_resumed(saver: Any) -> None:
    control = RunControl()

    async def x(_state: Log) -> dict[str, Any]:
        control.request_drain("deploy")
        return {"log": ["x"]}

    graph = chain(("x", x), "y").compile(checkpointer=saver)
    with pytest.raises(GraphDrained) as caught:
        await graph.ainvoke({}, CONFIG, control=control)
    assert caught.value.reason == "deploy"
    snapshot = await graph.aget_state(CONFIG)
    assert (snapshot.next, snapshot.values["log"]) == (("y",), ["x"])
    assert (await graph.ainvoke(None, CONFIG))["log"] == ["x", "y"]


async def test_a_node_can_see_that_a_drain_was_requested(saver: Any) -> None:
    control = RunControl()
    seen: list[Any] = []

    async def x(_state: Log, runtime: Runtime) -> None:
        seen.append(runtime.drain_requested)
        control.request_drain("soon")
        seen.extend([runtime.drain_requested, runtime.drain_reason])

    with pytest.raises(GraphDrained):
        await chain(("x", x), "y").compile(checkpointer=saver).ainvoke({}, CONFIG, control=control)
    assert seen == [False, True, "soon"]


async def test_a_drain_in_the_last_superstep_lets_the_run_end_normally(saver: Any) -> None:
    control = RunControl()

    async def last(_state: Log) -> dict[str, Any]:
        control.request_drain("too late")
        return {"log": ["last"]}

    graph = chain(("last", last)).compile(checkpointer=saver)
    assert (await graph.ainvoke({}, CONFIG, control=control))["log"] == ["last"]
    assert steps([await graph.aget_state(CONFIG)]) == [(1, "loop", ())]


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
async def test_a_drain_is_durable_in_every_mode(saver: Any, durability: Any) -> None:
    control = RunControl()

    async def x(_state: Log) -> dict[str, Any]:
        control.request_drain()
        return {"log": ["x"]}

    graph = chain(("x", x), "y").compile(checkpointer=saver)
    with pytest.raises(GraphDrained) as caught:
        await graph.ainvoke({}, CONFIG, control=control, durability=durability)
    assert caught.value.reason == "shutdown"
    assert (await graph.ainvoke(None, CONFIG))["log"] == ["x", "y"]


# Heartbeats and the timeouts of Sends


@pytest.mark.slow
async def test_a_heartbeat_restarts_the_idle_clock() -> None:
    beats: list[int] = []

    async def working(_state: Log, runtime: Runtime) -> dict[str, Any]:
        for number in range(10):
            await anyio.sleep(0.05)
            runtime.heartbeat()
            beats.append(number)
        return {"log": ["worked"]}

    builder = StateGraph(Log)
    builder.add_node("n", working, timeout=TimeoutPolicy(idle_timeout=0.4, refresh_on="heartbeat"))
    builder.add_edge(START, "n")
    assert (await builder.compile().ainvoke({}))["log"] == ["worked"]
    assert beats == list(range(10))


@pytest.mark.slow
async def test_a_stream_write_restarts_the_idle_clock_unless_only_heartbeats_do() -> None:
    async def writing(_state: Log, runtime: Runtime) -> dict[str, Any]:
        for number in range(10):
            await anyio.sleep(0.05)
            runtime.stream_writer(number)
        return {"log": ["worked"]}

    def build(refresh_on: Any) -> Any:
        builder = StateGraph(Log)
        builder.add_node("n", writing, timeout=TimeoutPolicy(idle_timeout=0.4, refresh_on=refresh_on))
        builder.add_edge(START, "n")
        return builder.compile()

    assert [one async for one in build("auto").astream({}, stream_mode="custom")] == list(range(10))
    with pytest.raises(NodeTimeoutError):
        await build("heartbeat").ainvoke({})


async def test_a_send_can_bring_its_own_timeout(saver: Any) -> None:
    async def work(item: str) -> dict[str, Any]:
        if item == "slow":
            await anyio.sleep_forever()
        return {"log": [item]}

    builder = StateGraph(Log)
    builder.add_node("src", lambda _state: Command(goto=[Send("work", "quick"), Send("work", "slow", timeout=0.02)]))
    builder.add_node("work", work)
    builder.add_node("unused", note("unused"))
    builder.add_edge(START, "src")
    graph = builder.compile(checkpointer=saver)
    with anyio.fail_after(10), pytest.raises(NodeTimeoutError, match="work"):
        await graph.ainvoke({}, CONFIG)
    assert (await graph.aget_state(CONFIG)).values["log"] == ["quick"]
