"""A stream's run goes on unread while somebody of this process waits for its thread: it may be the reader."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest

from persistence.memory import InMemorySaver
from persistence.sqlite import SqliteSaver
from tests.stories.graphs import CONFIG, chain

MODES = ["sync", "async", "exit"]


async def again(graph: Any) -> None:
    assert (await graph.ainvoke({"log": []}, CONFIG))["log"][-2:] == ["one", "two"]


async def edited(graph: Any) -> None:
    await graph.aupdate_state(CONFIG, {"log": ["by hand"]})
    assert (await graph.aget_state(CONFIG)).values["log"][-2:] == ["two", "by hand"]


async def test_the_reader_waits_for_one_who_stands_behind_its_stream() -> None:
    """Both came while another run had the thread, so nobody held it yet whom the last one could have hurried."""
    gate = anyio.Event()

    async def first(state: Any) -> dict[str, Any]:
        if "slow" in state["log"]:
            await gate.wait()
        return {}

    graph = chain(("first", first), "one", "two").compile(InMemorySaver())
    with anyio.fail_after(10):
        async with anyio.create_task_group() as group:
            group.start_soon(graph.ainvoke, {"log": ["slow"]}, CONFIG)
            await anyio.wait_all_tasks_blocked()
            stream = graph.astream({"log": ["stream"]}, CONFIG)
            ended = anyio.Event()

            async def read() -> None:
                assert await anext(stream) == {"first": None}
                await ended.wait()
                assert [chunk async for chunk in stream] == [{"one": {"log": ["one"]}}, {"two": {"log": ["two"]}}]

            async def last() -> None:
                await again(graph)
                ended.set()

            group.start_soon(read)
            await anyio.wait_all_tasks_blocked()
            group.start_soon(last)
            await anyio.wait_all_tasks_blocked()
            gate.set()


@pytest.mark.parametrize("durability", MODES)
@pytest.mark.parametrize("use", [again, edited], ids=["again", "edited"])
async def test_the_reader_uses_the_thread_through_another_saver(tmp_path: Path, use: Any, durability: Any) -> None:
    """As a service does that opens one for each request."""
    path = tmp_path / "threads.sqlite"
    with anyio.fail_after(10):
        async with SqliteSaver(path) as one, SqliteSaver(path) as other:
            builder = chain("one", "two")
            stream = builder.compile(one).astream({"log": []}, CONFIG, durability=durability)
            assert await anext(stream) == {"one": {"log": ["one"]}}
            await stream.durable() if durability == "async" else None  # the other saver sees who has the thread
            if durability != "exit":  # there, a run has its thread only while it saves
                await use(builder.compile(other))
            assert [chunk async for chunk in stream] == [{"two": {"log": ["two"]}}]
            if durability == "exit":
                await use(builder.compile(other))
