"""Cancels that meet the end of what they cancel: a superstep's timeout, a thread's turn, a reader who leaves."""

from __future__ import annotations

import asyncio
from itertools import product
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from persistence.memory import InMemorySaver
from runtime.errors import NodeCancelledError
from runtime.graph import END, START, StateGraph
from tests.cancellation.working import State, Work
from tests.crash.virtual_time import both_loops, run

CONFIG: dict[str, Any] = {"configurable": {"thread_id": "t"}}

NAMES = ("left", "middle", "right")


class Lasting:
    """A graph whose nodes side by side take given times, the first time that they run."""

    def __init__(self, *seconds: float) -> None:
        self.seconds = dict(zip(NAMES, seconds, strict=True))
        self.returned: list[str] = []

    def graph(self) -> StateGraph[Any]:
        builder = StateGraph(State)
        for name in NAMES:
            builder.add_node(name, self.node(name))
            builder.add_edge(START, name)
        builder.add_node("last", self.node("last"))
        builder.add_edge(list(NAMES), "last")
        builder.add_edge("last", END)
        return builder

    def node(self, name: str) -> Any:
        async def node(state: State) -> State:
            await anyio.sleep(self.seconds.pop(name, 0))
            self.returned.append(name)
            return {"log": [name]}

        return node


@both_loops
@pytest.mark.parametrize("seconds", list(product((0.5, 1.0, 1.5), repeat=3)), ids=str)
def test_a_superstep_that_times_out_keeps_what_had_returned(loop: str, seconds: tuple[float, float, float]) -> None:
    """One second is given: who needs more is cancelled, who needs exactly that may be either."""
    lasting = Lasting(*seconds)

    async def story() -> None:
        graph = lasting.graph().compile(checkpointer=InMemorySaver())
        graph.step_timeout = 1.0
        result = None
        try:
            result = await graph.ainvoke({}, CONFIG)
        except TimeoutError:
            assert max(seconds) >= 1.0
            left = set(NAMES) - set(lasting.returned) or {"last"}
            assert set((await graph.aget_state(CONFIG)).next) == left
        else:
            assert max(seconds) <= 1.0
        graph.step_timeout = None
        if result is None:
            result = await graph.ainvoke(None, CONFIG)
        assert result == {"log": [*NAMES, "last"]}
        assert sorted(lasting.returned) == sorted([*NAMES, "last"])

    run(loop, story)


@both_loops
@pytest.mark.parametrize("leaver", range(3))
def test_runs_that_wait_for_a_thread_and_are_cancelled_do_not_keep_it(loop: str, leaver: int) -> None:
    """Three runs on one thread: one at work, two in the queue. Whoever leaves, the others get their turn."""
    lasting, ended = Lasting(1.0, 1.0, 1.0), list[int]()

    async def story() -> None:
        graph = lasting.graph().compile(checkpointer=InMemorySaver())
        scopes = [anyio.CancelScope() for _ in range(3)]

        async def call(number: int) -> None:
            with scopes[number]:
                await graph.ainvoke({}, CONFIG)
                ended.append(number)

        async with anyio.create_task_group() as group:
            for number in range(3):
                group.start_soon(call, number)
                await anyio.sleep(0.1)
            scopes[leaver].cancel()
        assert ended == [number for number in range(3) if number != leaver]
        assert await graph.ainvoke(None, CONFIG, multitask_strategy="reject")

    run(loop, story)


@pytest.mark.parametrize("chunks", range(6))
async def test_a_reader_that_leaves_after_any_chunk_loses_nothing(chunks: int) -> None:
    work = Work()
    graph = work.fan().compile(checkpointer=InMemorySaver())
    async with graph.astream({}, CONFIG, stream_mode="updates", durability="exit") as stream:
        for _ in range(chunks):
            async for _chunk in stream:
                break
    assert work.running == 0
    returned = set(work.returned)
    assert len(returned) >= chunks
    given: dict[str, Any] | None = None if returned else {}
    assert (await graph.ainvoke(given, CONFIG, multitask_strategy="reject"))["log"][-1] == "last"
    assert set(work.returned.values()) == {1}


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_worker_that_somebody_cancels_is_a_failure_and_not_the_end() -> None:
    """A program that cancels tasks that it did not start must not get half a result for a whole one."""
    started, both = list[str](), anyio.Event()

    async def slow(state: State) -> None:
        started.append("slow")
        if len(started) == 2:
            both.set()
        await anyio.sleep_forever()

    builder = StateGraph(State)
    builder.add_node("slow", slow)
    builder.add_node("other", slow)
    builder.add_edge(START, "slow")
    builder.add_edge(START, "other")
    graph = builder.compile(checkpointer=InMemorySaver())
    task = asyncio.ensure_future(graph.ainvoke({}, CONFIG))
    await both.wait()
    for other in asyncio.all_tasks():
        if other.get_name() == "actorgraph worker":
            other.cancel()
            break
    with pytest.raises(NodeCancelledError):
        await task
    assert set((await graph.aget_state(CONFIG)).next) == {"slow", "other"}
