"""A run as an iterator: left, closed, dropped or shared, it never leaves anybody waiting."""

from __future__ import annotations

import gc
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest

from persistence.memory import InMemorySaver
from runtime.errors import BlockingCallError
from runtime.graph.stream import GraphStream
from runtime.types import StreamWriter
from tests.stories.graphs import CONFIG, chain, collect


async def settle() -> None:
    """Let every task go as far as it can."""
    for _ in range(20):
        await anyio.sleep(0)


class Working:
    """A node that says so and then waits for ever."""

    def __init__(self) -> None:
        self.begun = anyio.Event()
        self.ended = anyio.Event()

    async def __call__(self, _state: Any, writer: StreamWriter) -> None:
        writer("working")
        self.begun.set()
        try:
            await anyio.sleep_forever()
        finally:
            self.ended.set()

    def stream(self) -> GraphStream:
        """Return a stream of a run with this node."""
        return chain(("node", self)).compile().astream({}, stream_mode="custom")


async def test_the_run_begins_with_the_first_chunk_asked_for() -> None:
    working = Working()
    stream = working.stream()
    await settle()
    assert not working.begun.is_set()
    assert stream.statistics().waiting == 0
    await anext(stream)
    assert working.begun.is_set()
    await stream.aclose()


async def test_a_stream_that_was_never_begun_closes_at_once_and_stays_closed() -> None:
    working = Working()
    stream = working.stream()
    await stream.aclose()
    assert await collect(stream) == []
    assert not working.begun.is_set()


async def test_a_stream_that_was_read_to_its_end_stays_at_its_end() -> None:
    stream = chain("a").compile().astream({})
    assert aiter(stream) is stream
    assert await collect(stream) == [{"a": {"log": ["a"]}}]
    for _ in range(2):
        with pytest.raises(StopAsyncIteration):
            await anext(stream)
    await stream.aclose()


async def test_the_error_of_the_run_comes_after_its_chunks() -> None:
    async def fail(_state: Any, writer: StreamWriter) -> None:
        writer("before")
        raise ValueError("boom")

    stream = chain(("node", fail)).compile().astream({}, stream_mode="custom")
    assert await anext(stream) == "before"
    with pytest.raises(ValueError, match="boom"):
        await anext(stream)
    with pytest.raises(StopAsyncIteration):
        await anext(stream)


async def test_leaving_returns_when_every_node_has_stopped() -> None:
    working = Working()
    async with working.stream() as stream:
        await anext(stream)
    assert working.ended.is_set()


async def test_a_stream_that_is_dropped_ends_its_run() -> None:
    working = Working()
    stream = working.stream()
    await anext(stream)
    del stream
    gc.collect()
    with anyio.fail_after(5):
        await working.ended.wait()


async def test_a_reader_that_is_cancelled_closes_the_stream() -> None:
    working = Working()
    stream = working.stream()
    await anext(stream)
    with anyio.move_on_after(0.01):
        await anext(stream)
    assert working.ended.is_set()
    assert await collect(stream) == []


async def test_a_stream_may_be_read_and_closed_by_different_tasks() -> None:
    working, got = Working(), list[Any]()
    stream = working.stream()

    async def read() -> None:
        got.extend(await collect(stream))

    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(read)
            await working.begun.wait()
            await settle()
            await stream.aclose()
    assert got == ["working"]
    assert working.ended.is_set()


async def test_a_reader_hears_of_the_close_though_the_run_ends_by_itself() -> None:
    """The node cannot be cancelled, and reports its end to a stream that is closed."""
    go_on, begun, got = anyio.Event(), anyio.Event(), list[Any]()

    async def node(_state: Any) -> None:
        begun.set()
        with anyio.CancelScope(shield=True):
            await go_on.wait()

    stream = chain(("node", node)).compile().astream({})

    async def read() -> None:
        got.extend(await collect(stream))

    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(read)
            await begun.wait()
            await settle()
            group.start_soon(stream.aclose)
            await settle()
            go_on.set()
    assert got == []


async def test_several_tasks_may_share_a_stream() -> None:
    got: list[Any] = []
    stream = chain("a", "b", "c").compile().astream({})

    async def read() -> None:
        got.append(await anext(stream))

    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            for _ in range(3):
                group.start_soon(read)
    assert sorted(key for chunk in got for key in chunk) == ["a", "b", "c"]
    await stream.aclose()


@pytest.mark.parametrize("fails", [False, True])
async def test_its_end_reaches_every_task_that_reads_it(*, fails: bool) -> None:
    """Of an error one of them hears."""
    go_on, ends = anyio.Event(), list[str]()

    async def node(_state: Any) -> None:
        await go_on.wait()
        if fails:
            raise ValueError

    stream = chain(("node", node)).compile().astream({}, stream_mode="custom")

    async def read() -> None:
        try:
            await anext(stream)
        except (StopAsyncIteration, ValueError) as end:
            ends.append(type(end).__name__)

    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            for _ in range(3):
                group.start_soon(read)
            await settle()
            go_on.set()
    assert sorted(ends) == ["StopAsyncIteration"] * 2 + ["ValueError" if fails else "StopAsyncIteration"]


async def test_what_is_written_after_the_end_is_not_kept() -> None:
    kept: list[StreamWriter] = []

    async def node(_state: Any, writer: StreamWriter) -> None:
        kept.append(writer)

    stream = chain(("node", node)).compile().astream({}, stream_mode="custom")
    assert await collect(stream) == []
    kept[0]("too late")
    assert stream.statistics().waiting == 0


async def test_a_stream_closed_twice_is_closed() -> None:
    working = Working()
    stream = working.stream()
    await anext(stream)
    async with anyio.create_task_group() as group:
        group.start_soon(stream.aclose)
        group.start_soon(stream.aclose)
    assert working.ended.is_set()


async def test_what_had_finished_when_the_reader_left_is_saved() -> None:
    working = Working()
    graph = chain("first", ("node", working)).compile(InMemorySaver())
    async with graph.astream({}, CONFIG, stream_mode="custom") as stream:
        assert await anext(stream) == "working"
    state = await graph.aget_state(CONFIG)
    assert (state.values["log"], state.next) == (["first"], ("node",))


async def test_a_node_is_refused_the_stream_of_its_own_run() -> None:
    kept: list[GraphStream] = []

    async def refused(call: Callable[[], Awaitable[Any]]) -> None:
        with pytest.raises(BlockingCallError, match="the node for the run"):
            await call()

    async def node(_state: Any) -> dict[str, Any]:
        await refused(kept[0].aclose)
        await refused(lambda: anext(kept[0]))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(refused, kept[0].aclose)
        return {"log": ["refused"]}

    kept.append(chain(("node", node)).compile().astream({}))
    with anyio.fail_after(10):
        assert await collect(kept[0]) == [{"node": {"log": ["refused"]}}]
