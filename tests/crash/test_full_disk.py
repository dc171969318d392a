"""A disk that is full: what was acknowledged is there, and with room again every thread goes on."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from persistence.errors import BackendError
from persistence.sqlite import SqliteSaver
from runtime.graph import CompiledStateGraph
from runtime.types import Durability
from tests.stories.graphs import chain, thread

pytestmark = pytest.mark.anyio

LARGE = "x" * 20_000
MOUNT, UNMOUNT = shutil.which("mount") or "false", shutil.which("umount") or "false"


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own with room for 1 MiB."""
    where = tmp_path / "disk"
    where.mkdir()
    if subprocess.run([MOUNT, "-t", "tmpfs", "-o", "size=1M", "tmpfs", str(where)], check=False).returncode:
        pytest.skip("this machine lets nobody mount a small disk")
    yield where
    subprocess.run([UNMOUNT, "--lazy", str(where)], check=True)


async def large(_state: Any) -> Any:
    """Add to the log what soon fills the disk."""
    return {"log": [LARGE]}


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
async def test_what_was_acknowledged_is_there_and_the_rest_goes_on(disk: Path, durability: Durability) -> None:
    builder, path, told = chain(("a", large), ("b", large)), str(disk / "threads.sqlite"), list[str]()

    async def go(graph: CompiledStateGraph, name: str) -> None:
        begun = (await graph.aget_state(thread(name))).next
        await graph.ainvoke(None if begun else {}, thread(name), durability=durability)
        told.append(name)

    async def check(graph: CompiledStateGraph) -> None:
        for name in told:
            state = await graph.aget_state(thread(name))
            assert (state.values, state.next) == ({"log": [LARGE, LARGE]}, ())

    async with SqliteSaver(path) as saver:
        graph = builder.compile(checkpointer=saver)
        with pytest.raises(BackendError, match="the disk is full: free space"):
            while True:
                await go(graph, f"t{len(told)}")
        assert told
        await check(graph)
        await anyio.run_process([MOUNT, "-o", "remount,size=64M", str(disk)])
        for _ in range(3):  # the first of them is the one that failed
            await go(graph, f"t{len(told)}")
    async with SqliteSaver(path) as saver:
        await check(builder.compile(checkpointer=saver))
