"""The hub: one bounded buffer between a run and whoever reads it, so that neither loses, doubles or waits in vain."""

from __future__ import annotations

from contextlib import redirect_stdout
from io import StringIO
from random import Random
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from persistence.memory import InMemorySaver
from runtime.errors import GraphDrained, StreamOverflowError, UnknownStreamModeError
from runtime.graph import START, StateGraph
from runtime.runtime import RunControl
from runtime.streaming import hub as hubs
from runtime.streaming.hub import (
    CAPACITY,
    END_OF_STREAM,
    OVERFLOW,
    PATIENCE,
    Hub,
    HubStatistics,
    StreamClosedError,
    check_modes,
)
from runtime.types import Send, StreamWriter
from tests.stories.graphs import CONFIG, Log, chain, collect

LOOPS = ["asyncio", "trio"]


def hub(*modes: str, **options: Any) -> Hub:
    return Hub(frozenset(modes or ("custom",)), single=True, **options)


class Run:
    """What a hub asks of a run that writes items."""

    ns = ""


RUN: Any = Run()


async def settle() -> None:
    """Let every task go as far as it can."""
    for _ in range(20):
        await anyio.sleep(0)


# ---- the buffer ------------------------------------------------------------------------------------------------------


async def test_chunks_come_out_in_order_and_then_the_end() -> None:
    made = hub()
    for number in range(5):
        made.put_nowait("", "custom", number)
    made.finish(error := ValueError("boom"))
    assert [await made.get() for _ in range(5)] == list(range(5))
    assert await made.get() == (END_OF_STREAM, error)


async def test_a_reader_waits_for_a_chunk_and_for_the_end() -> None:
    made, got = hub(), list[Any]()

    async def read() -> None:
        got.append(await made.get())
        got.append(await made.get())

    async with anyio.create_task_group() as group:
        group.start_soon(read)
        await settle()
        made.put_nowait("", "custom", 1)
        await settle()
        assert got == [1]
        made.finish(None)
    assert got == [1, (END_OF_STREAM, None)]


async def test_a_writer_waits_for_room() -> None:
    made = hub()
    for number in range(CAPACITY):
        await made.put_custom(RUN, number)
    assert made.full
    async with anyio.create_task_group() as group:
        group.start_soon(made.put_custom, RUN, "last")
        await settle()
        assert made.statistics() == HubStatistics(capacity=CAPACITY, waiting=CAPACITY, peak=CAPACITY)
        await made.get()
    assert made.statistics() == HubStatistics(capacity=CAPACITY, waiting=CAPACITY, peak=CAPACITY)


async def test_several_writers_that_wait_for_room_all_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hubs, "CAPACITY", 1)
    made, got = hub(), list[Any]()
    made.put_nowait("", "custom", "first")
    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            for number in range(5):
                group.start_soon(made.put_custom, RUN, number)
            await settle()
            for _ in range(6):
                got.append(await made.get())
    assert got[0] == "first"
    assert sorted(got[1:]) == list(range(5))


async def test_several_readers_each_get_a_chunk() -> None:
    made, got = hub(), list[Any]()

    async def read() -> None:
        got.append(await made.get())

    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            for _ in range(3):
                group.start_soon(read)
            await settle()
            for number in range(3):
                made.put_nowait("", "custom", number)
    assert sorted(got) == [0, 1, 2]


async def test_a_reader_that_leaves_frees_writers_and_readers() -> None:
    made, got = hub(), list[Any]()
    refused: list[Any] = []

    async def write() -> None:
        try:
            await made.put_custom(RUN, 1)
            await made._put("", "custom", 1)
        except StreamClosedError as error:
            refused.append(error)

    async def read() -> None:
        got.append(await made.get())

    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(read)
            await settle()
            made.close()
        for number in range(CAPACITY):
            made.put_nowait("", "custom", number)
        async with anyio.create_task_group() as group:
            group.start_soon(write)
    assert got == [(END_OF_STREAM, None)]
    assert len(refused) == 1


async def test_a_writer_that_waits_when_the_reader_leaves_is_told() -> None:
    made = hub()
    for number in range(CAPACITY):
        made.put_nowait("", "custom", number)

    async def write() -> None:
        with pytest.raises(StreamClosedError):
            await made._put("", "custom", "last")

    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(write)
            await settle()
            made.close()
    assert made.statistics().waiting == 0


@pytest.mark.parametrize("backend", LOOPS)
@given(
    st.integers(1, 3),
    st.lists(st.integers(0, 6), min_size=1, max_size=4),
    st.randoms(use_true_random=False),
)
@settings(max_examples=60)
def test_nothing_is_lost_doubled_or_overtaken(backend: str, capacity: int, amounts: list[int], random: Random) -> None:
    got: list[tuple[int, int]] = []
    peaks: list[int] = []

    async def write(made: Hub, writer: int, amount: int) -> None:
        for number in range(amount):
            await made.put_custom(RUN, (writer, number))
            for _ in range(random.randint(0, 2)):
                await anyio.sleep(0)

    async def read(made: Hub) -> None:
        while (chunk := await made.get())[0] is not END_OF_STREAM:
            got.append(chunk)
            for _ in range(random.randint(0, 2)):
                await anyio.sleep(0)
        peaks.append(made.statistics().peak)

    async def main() -> None:
        made = hub()
        with anyio.fail_after(5):
            async with anyio.create_task_group() as readers:
                readers.start_soon(read, made)
                async with anyio.create_task_group() as writers:
                    for writer, amount in enumerate(amounts):
                        writers.start_soon(write, made, writer, amount)
                made.finish(None)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hubs, "CAPACITY", capacity)
        anyio.run(main, backend=backend)
    for writer, amount in enumerate(amounts):
        assert [number for who, number in got if who == writer] == list(range(amount))
    assert len(got) == sum(amounts)
    assert peaks[0] <= capacity


# ---- modes -----------------------------------------------------------------------------------------------------------


def test_modes_are_checked_by_name() -> None:
    assert check_modes("values") == (frozenset({"values"}), True)
    assert check_modes(["values", "updates"]) == (frozenset({"values", "updates"}), False)
    for wrong in ("value", ["values", "no such"]):
        with pytest.raises(UnknownStreamModeError, match="Known modes: values, updates, custom"):
            check_modes(wrong)


@pytest.mark.parametrize(
    ("single", "subgraphs", "ns", "chunk"),
    [
        (True, False, "", "item"),
        (False, False, "", ("custom", "item")),
        (True, True, "", ((), "item")),
        (False, True, "a:1|b:2", (("a:1", "b:2"), "custom", "item")),
    ],
)
async def test_a_chunk_says_what_cannot_be_told_otherwise(single: bool, subgraphs: bool, ns: str, chunk: Any) -> None:
    made = Hub(frozenset({"custom"}), single=single, subgraphs=subgraphs)
    made.put_nowait(ns, "custom", "item")
    assert await made.get() == chunk


async def test_nothing_is_made_for_a_mode_that_nobody_listens_to() -> None:
    made = hub("values")
    made.custom(RUN, "item")
    await made.put_custom(RUN, "item")
    await made.tasks_started(RUN, [])
    await made.checkpoint(RUN)
    assert made.statistics().waiting == 0


# ---- seen from a run -------------------------------------------------------------------------------------------------


def counting(ran: list[int], until: int) -> StateGraph[Any, Any, Any, Any]:
    """Return a loop of one node, which notes that it ran."""

    async def node(state: Any) -> dict[str, Any]:
        ran.append(1)
        await anyio.sleep(0)
        return {"a": state["a"] + 1}

    builder: StateGraph[Any, Any, Any, Any] = StateGraph(Log)
    builder.add_node("node", node).add_edge(START, "node")
    return builder.add_conditional_edges("node", lambda state: "node" if state["a"] < until else [], ["node"])


@pytest.mark.parametrize("mode", ["updates", "values", "tasks", "checkpoints", "debug"])
async def test_a_superstep_begins_when_its_reader_asks_for_more(mode: str) -> None:
    """What the superstep before told has all been read by then."""
    ran: list[int] = []
    graph = counting(ran, 4).compile(InMemorySaver())
    with anyio.fail_after(15):
        async with graph.astream({"a": 0}, CONFIG, stream_mode=mode) as stream:
            async for _chunk in stream:
                before = len(ran)
                await settle()
                assert len(ran) == before
    assert len(ran) == 4


async def test_what_was_not_asked_for_never_begins() -> None:
    """Who leaves after a chunk has the nodes that follow to himself; nobody needs to have read what is only printed."""
    ran: list[int] = []
    graph = counting(ran, 4).compile(InMemorySaver())
    async with graph.astream({"a": 0}, CONFIG, stream_mode="values") as stream:
        assert (await anext(stream))["a"] == 0
    assert ran == []
    async with graph.astream(None, CONFIG, stream_mode="updates") as stream:
        assert await anext(stream) == {"node": {"a": 1}}
    assert ran == [1]
    with redirect_stdout(StringIO()):
        assert await graph.ainvoke(None, CONFIG, print_mode="updates") == {"a": 4, "log": []}


async def test_a_drain_that_a_chunk_leads_to_stops_the_run_there() -> None:
    ran: list[int] = []
    control = RunControl()
    graph = counting(ran, 4).compile(InMemorySaver())
    with pytest.raises(GraphDrained):
        async for _chunk in graph.astream({"a": 0}, CONFIG, stream_mode="updates", control=control):
            control.request_drain("enough")
    assert ran == [1]


@pytest.mark.slow
async def test_a_run_that_another_waits_for_goes_on_unread_until_the_buffer_is_full() -> None:
    """Then no node runs any more, until the reader goes on."""
    ran: list[int] = []
    graph = counting(ran, PATIENCE + CAPACITY).compile(InMemorySaver())
    with anyio.fail_after(15):
        config = {**CONFIG, "recursion_limit": 2 * PATIENCE}
        async with graph.astream({"a": 0}, config) as stream, anyio.create_task_group() as group:
            assert await anext(stream) == {"node": {"a": 1}}
            group.start_soon(graph.aupdate_state, CONFIG, {"log": ["by hand"]})
            while stream.statistics().waiting < PATIENCE:
                await anyio.sleep(0)
            await settle()
            assert len(ran) == PATIENCE + 2  # one was read, and one more than the buffer holds waits for room
            (running,) = graph.statistics()
            assert running.stream == stream.statistics()
            assert len(await collect(stream)) == PATIENCE + CAPACITY - 1
    assert len(ran) == PATIENCE + CAPACITY
    assert (await graph.aget_state(CONFIG)).values == {"a": PATIENCE + CAPACITY, "log": ["by hand"]}


@pytest.mark.slow
@pytest.mark.parametrize("sync", [False, True], ids=["async", "sync"])
async def test_a_reader_who_waits_for_the_thread_may_leave_much_unread_but_not_all(*, sync: bool) -> None:
    """Beyond that neither could go on, so the run fails."""

    def told(number: int) -> Any:
        async def node(_state: Any, writer: StreamWriter) -> None:
            for each in range(number):
                writer(each)
                await anyio.sleep(0)

        def blocking(_state: Any, writer: StreamWriter) -> None:
            for each in range(number):
                writer(each)

        return chain(("node", blocking if sync else node)).compile(InMemorySaver())

    with anyio.fail_after(15):
        graph = told(3 * CAPACITY)
        async with graph.astream({}, CONFIG, stream_mode="custom") as stream:
            assert await anext(stream) == 0
            await graph.aupdate_state(CONFIG, {})
            assert await collect(stream) == list(range(1, 3 * CAPACITY))
        graph = told(PATIENCE + CAPACITY)
        async with graph.astream({}, CONFIG, stream_mode="custom") as stream:
            assert await anext(stream) == 0
            await graph.aupdate_state(CONFIG, {})
            with pytest.raises(StreamOverflowError, match="waits for this run's end"):
                await collect(stream)


async def test_a_node_that_writes_is_slowed_when_it_waits() -> None:
    written: list[int] = []

    async def node(_state: Any, writer: StreamWriter) -> None:
        for number in range(3 * CAPACITY):
            writer(number)
            written.append(number)
            await anyio.sleep(0)

    graph = chain(("node", node)).compile()
    with anyio.fail_after(15):
        async with graph.astream({}, stream_mode="custom") as stream:
            assert await anext(stream) == 0
            while stream.statistics().waiting < CAPACITY:
                await anyio.sleep(0)
            await settle()
            assert len(written) <= CAPACITY + 2
            assert await collect(stream) == list(range(1, 3 * CAPACITY))


async def test_nodes_side_by_side_that_write_are_all_slowed_and_all_go_on() -> None:
    async def node(given: int, writer: StreamWriter) -> None:
        for number in range(CAPACITY):
            writer((given, number))
            await anyio.sleep(0)

    builder: StateGraph[Any, Any, Any, Any] = StateGraph(Log)
    builder.add_node("node", node)
    builder.add_conditional_edges(START, lambda _state: [Send("node", number) for number in range(4)], ["node"])
    with anyio.fail_after(15):
        async with builder.compile().astream({}, stream_mode="custom") as stream:
            first = await anext(stream)
            while stream.statistics().waiting < CAPACITY:
                await anyio.sleep(0)
            await settle()
            got = [first, *(await collect(stream))]
    for writer in range(4):
        assert [number for who, number in got if who == writer] == list(range(CAPACITY))


async def test_a_node_that_writes_and_never_waits_is_stopped() -> None:
    async def node(_state: Any, writer: StreamWriter) -> None:
        while True:
            writer("more")

    with anyio.fail_after(15), pytest.raises(StreamOverflowError, match=f"{OVERFLOW} chunks wait"):
        await collect(chain(("node", node)).compile().astream({}, stream_mode="custom"))
