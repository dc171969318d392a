"""LangGraph under the same work: the same graph and clients over its saver for SQLite."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt

from tests.crash.failpoints import Failpoints, watch_statements
from tests.crash.zygote import Forked, Zygote
from tests.torture.appending.clients import Clients, Work, graph_of
from tests.torture.appending.finding import judged
from tests.torture.appending.graphs import Kit
from tests.torture.appending.operations import Log, Operation
from tests.torture.appending.processes import StartingLine

THEIRS = Kit(StateGraph, START, END, Command, interrupt)


def start(zygote: Zygote, path: Path, work: Work, log: Path, *, fatal: int = 0, line: StartingLine | None) -> Forked:
    """Start a process of clients on LangGraph."""
    told = {"path": str(path), "work": vars(work), "log": str(log), "fatal": fatal}
    return zygote.start(append, told={**told, "line": "" if line is None else str(line.path)})


def append(told: dict[str, Any]) -> None:
    """Be the child."""
    points = Failpoints(told["fatal"])
    watch_statements(points)

    async def main() -> None:
        async with AsyncSqliteSaver.from_conn_string(told["path"]) as saver:
            with _alone(Path(f"{told['path']}.setup")):
                await saver.setup()
            clients = Clients(Work(**told["work"]), THEIRS, saver, Log(Path(told["log"])))
            clients.reached = lambda _node: points.at("in a node")
            if told["line"]:
                StartingLine(Path(told["line"])).wait()
            points.armed = True
            await clients.run()

    anyio.run(main)


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Let one process at a time do something: two that set its database up at once may find it locked."""
    with path.open("wb") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        yield


def judge(path: Path, work: Work, history: list[Operation]) -> list[str]:
    """Return what the checker objects to in what its saver has stored."""

    async def read() -> list[str]:
        async with AsyncSqliteSaver.from_conn_string(str(path)) as saver:
            return await judged(graph_of(THEIRS, saver), work.names(), history)

    return anyio.run(read)
