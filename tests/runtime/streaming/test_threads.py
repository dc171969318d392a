"""Streams and threads: what a worker thread does must wake the event loop, on either one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
from anyio import from_thread, to_thread

from runtime.config import get_stream_writer
from tests.stories.graphs import Log, chain

if TYPE_CHECKING:
    from runtime.types import StreamWriter


async def test_a_sync_node_wakes_a_reader_that_waits() -> None:
    """Each item is asked for before it is written, so the loop sleeps when it comes."""
    asked = anyio.Event()

    def node(_state: Log, writer: StreamWriter) -> None:
        for item in range(20):
            from_thread.run(asked.wait)
            writer(item)

    with anyio.fail_after(10):
        async with chain(("n", node)).compile().astream({}, stream_mode="custom") as stream:
            asked.set()
            assert [item async for item in stream] == list(range(20))


async def test_an_async_node_may_hand_its_writer_to_a_thread() -> None:
    async def node(_state: Log) -> None:
        await to_thread.run_sync(get_stream_writer(), "from a thread")

    with anyio.fail_after(10):
        async with chain(("n", node)).compile().astream({}, stream_mode="custom") as stream:
            assert [item async for item in stream] == ["from a thread"]


async def test_a_stream_may_be_dropped_in_another_thread() -> None:
    """Garbage is collected in whatever thread happens to allocate."""
    ended = anyio.Event()

    async def node(_state: Log, writer: StreamWriter) -> None:
        writer("working")
        try:
            await anyio.sleep_forever()
        finally:
            ended.set()

    held: list[Any] = [chain(("n", node)).compile().astream({}, stream_mode="custom")]
    with anyio.fail_after(10):
        assert await anext(held[0]) == "working"
        await to_thread.run_sync(held.clear)
        await ended.wait()
