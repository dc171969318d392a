"""Processes whose runs die, and processes that find and continue them."""

from __future__ import annotations

import os
import signal
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio._backends._asyncio  # anyio imports them at the first run, which every child's is
import anyio._backends._trio

from persistence.postgres import PostgresSaver
from persistence.sqlite import SqliteSaver
from runtime.graph import CompiledStateGraph
from runtime.graph.recovery import arecover
from runtime.runtime import Runtime
from tests.crash.ledger import Ledger
from tests.stories.graphs import chain, thread
from tests.torture.appending.processes import StartingLine

THREADS = tuple("abc")
NODES = ("first", "slow", "last")
NAME = "worker"
"""Of the graph whose runs die."""


def saver_at(where: str) -> Any:
    """Return a closed saver: of PostgreSQL for a URL, of SQLite for a path."""
    return PostgresSaver(where) if where.startswith("postgres") else SqliteSaver(where)


def die() -> None:
    """End this process as if it had been killed from outside."""
    os.kill(os.getpid(), signal.SIGKILL)


def die_at_work(where: str) -> None:
    """Be a process that dies while three runs are in their second node, and one of another graph has ended."""

    async def main() -> None:
        at_work, everyone = 0, anyio.Event()

        async def slow(_state: Any) -> None:
            nonlocal at_work
            at_work += 1
            if at_work == len(THREADS):
                everyone.set()
            await anyio.sleep_forever()

        async with saver_at(where) as saver, anyio.create_task_group() as group:
            graph = chain("first", ("slow", slow), "last").compile(saver, name=NAME)
            for name in THREADS:
                group.start_soon(partial(graph.ainvoke, {}, thread(name), durability="sync"))
            await chain("first").compile(saver, name="other").ainvoke({}, thread("done"))
            await everyone.wait()
            die()

    anyio.run(main)


def die_in(where: str, ledger: str, name: str, node: str, loop: str) -> None:
    """Be a process that notes what its runs do, and dies when one of them is in one of its nodes."""

    async def main() -> None:
        notes, begun, everyone = Ledger(Path(ledger)), set[str](), anyio.Event()

        async def reached(at: str, in_thread: str) -> None:
            begun.add(in_thread)
            if len(begun) == len(THREADS):
                everyone.set()
            await everyone.wait()  # what has not begun cannot be recovered
            if (in_thread, at) == (name, node):
                die()

        async with saver_at(where) as saver, anyio.create_task_group() as group:
            graph = noting(saver, notes, reached)
            for each in THREADS:
                group.start_soon(partial(graph.ainvoke, {}, thread(each), durability="sync"))

    anyio.run(main, backend=loop)


def recover(where: str, ledger: str, line: str, loop: str) -> None:
    """Be a process that continues what died, beside another that began at the same moment; note what was said."""

    async def main() -> None:
        notes = Ledger(Path(ledger))

        async def reached(_at: str, _in_thread: str) -> None:
            await anyio.lowlevel.checkpoint()

        async with saver_at(where) as saver:
            graph = noting(saver, notes, reached)
            StartingLine(Path(line)).wait()
            for each in await arecover(graph, durability="sync"):
                notes.note("told", each.thread_id, each.status)

    anyio.run(main, backend=loop)


def noting(saver: Any, notes: Ledger, reached: Any) -> CompiledStateGraph:
    """Return a chain whose nodes note on disk that they run, and in which thread."""

    def node(name: str) -> Any:
        async def noted(_state: Any, runtime: Runtime[None]) -> dict[str, Any]:
            assert runtime.execution_info is not None
            in_thread = runtime.execution_info.thread_id
            notes.note("ran", in_thread, name)
            await reached(name, in_thread)
            return {"log": [name]}

        return (name, noted)

    return chain(*map(node, NODES)).compile(saver, name=NAME)
