"""Opening, using and closing a saver are cancelled before every step: no thread, no lock, no half of a write stays."""

from __future__ import annotations

import sqlite3
import threading
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel

from persistence.sqlite import SqliteSaver
from persistence.writer.bridge import BRIDGE
from tests.cancellation.cancelling import CLEANING, Way, every_way
from tests.cancellation.stepping import Steps, counting_backend, living_tasks
from tests.cancellation.working import Work


class Session:
    """A saver that is opened, used by a run and closed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.work = Work()
        self.thread = ""

    async def call(self) -> None:
        async with SqliteSaver(self.path, synchronous="NORMAL") as saver:
            graph = self.work.fan().compile(checkpointer=saver)
            await graph.ainvoke({}, {"configurable": {"thread_id": self.thread}}, durability="sync")

    async def check(self, where: str) -> None:
        """The file can be opened again, and the run goes on."""
        returned = set(self.work.returned)
        config = {"configurable": {"thread_id": self.thread}}
        async with SqliteSaver(self.path, synchronous="NORMAL") as saver:
            graph = self.work.fan().compile(checkpointer=saver)
            given: dict[str, Any] | None = None if await saver.aget_tuple(config) else {}
            assert returned == set() or given is None, where
            assert (await graph.ainvoke(given, config))["log"] == ["first", "left", "middle", "right", "last"], where
        assert set(self.work.returned.values()) == {1}, where


@every_way
def test_a_saver_can_be_cancelled_from_opening_to_closing(way: Way, folder: Path) -> None:
    steps, session = Steps(), Session(folder / "threads.sqlite")

    async def main() -> int:
        living, threads = living_tasks(), set(threading.enumerate())
        for at in count(1):
            session.thread = f"{at}"
            session.work.begin()
            cancelled = await way.cancel(steps, at, session.call)
            taken, where = steps.taken, f"cancelled before step {at}"
            if not cancelled:
                return taken
            assert taken - at < CLEANING, where
            assert set(threading.enumerate()) <= threads, where  # an idle one of an earlier test may end meanwhile
            assert BRIDGE.users == 0, where
            with closing(sqlite3.connect(session.path, timeout=0)) as other:
                assert other.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
                other.execute("BEGIN IMMEDIATE")
            for _ in range(10):
                await anyio.lowlevel.checkpoint()
            assert living_tasks() == living, where
            await session.check(where)
        raise AssertionError

    assert anyio.run(main, backend=way.loop, backend_options=counting_backend(way.loop, steps)) > 20
