"""A process frozen for longer than its leases last: its thread is taken, and it writes nothing when it wakes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from persistence.postgres import PostgresSaver
from persistence.sqlite import SqliteSaver
from persistence.writer.limits import Limits
from tests.stories.graphs import CONFIG, chain, history

PROGRAM = """
import sys

import anyio

from persistence.postgres import PostgresSaver
from persistence.sqlite import SqliteSaver
from persistence.writer.limits import Limits
from tests.stories.graphs import CONFIG, chain

where, durability = sys.argv[1:]
limits = Limits(lease_seconds=0.6)
postgres = where.startswith("postgresql:")


async def slow(_state):
    print("at work", flush=True)
    await anyio.to_thread.run_sync(sys.stdin.readline)
    return {"log": ["from the dead"]}


async def main():
    saver = PostgresSaver(where, limits=limits) if postgres else SqliteSaver(where, limits=limits)
    async with saver:
        graph = chain("first", ("slow", slow), "last").compile(saver)
        try:
            await graph.ainvoke({}, CONFIG, durability=durability)
        except Exception as error:
            print(type(error).__name__, flush=True)
        else:
            print("no error", flush=True)


anyio.run(main)
"""

ROOT = Path(__file__).parents[2]


@pytest.fixture(params=["sqlite", "postgres"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Name a database that processes share."""
    if request.param == "sqlite":
        return str(tmp_path / "shared.sqlite")
    return str(request.getfixturevalue("postgres_url"))


def opened(where: str) -> Any:
    limits = Limits(lease_seconds=0.6)
    return PostgresSaver(where, limits=limits) if where.startswith("postgresql:") else SqliteSaver(where, limits=limits)


@pytest.fixture(params=["sync", "async"])
def child(request: pytest.FixtureRequest, where: str) -> Iterator[subprocess.Popen[str]]:
    """Start a process that is at work on the thread until it is given a line."""
    started = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, where, request.param],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    with started:
        yield started
        started.kill()


@pytest.mark.slow
async def test_who_wakes_up_late_writes_nothing(where: str, child: subprocess.Popen[str]) -> None:
    assert child.stdin is not None
    assert child.stdout is not None
    assert await anyio.to_thread.run_sync(child.stdout.readline) == "at work\n"
    async with opened(where) as saver:
        graph = chain("first", "slow", "last").compile(saver)
        while not (await graph.aget_state(CONFIG)).values.get("log"):  # in async it may be on its way
            await anyio.sleep(0.01)
        child.send_signal(signal.SIGSTOP)
        assert await graph.ainvoke(None, CONFIG) == {"log": ["first", "slow", "last"]}
        before = [each async for each in saver.alist(CONFIG)]
        child.send_signal(signal.SIGCONT)
        child.stdin.write("\n")
        child.stdin.flush()
        assert await anyio.to_thread.run_sync(child.stdout.readline) == "FencedError\n"
        assert [each async for each in saver.alist(CONFIG)] == before
        found = await history(graph)
        assert [one.parent_config for one in found] == [*[one.config for one in found[1:]], None]
        lease = await saver.alease("t")
        assert lease is not None
        assert (lease.epoch, lease.owner, lease.held) == (2, saver.lease_owner, False)
