"""What happens in a process that is to be killed."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import anyio
import anyio._backends._asyncio  # anyio imports them at the first run, which every child's is
import anyio._backends._trio

from persistence.contracts.backend import Rows
from persistence.sqlite import SqliteSaver, opening
from runtime.graph import CompiledStateGraph
from tests.crash.failpoints import Failpoints, watch_statements, watch_units
from tests.crash.ledger import Ledger
from tests.crash.programs import CONFIG, PROGRAMS, go_on
from tests.crash.tracing import pass_gate

SMALL_LOG = 2**17
"""Bytes that opening gives the write-ahead log before it is used: enough for these runs."""


@dataclass(frozen=True)
class Case:
    """One run in a process of its own."""

    database: str
    ledger: str
    program: str
    durability: Literal["sync", "async", "exit"]
    backend: Literal["asyncio", "trio"]
    fatal: int = 0
    """The failpoint to die at; 0: none."""
    part: Literal["opening", "run", "run to the pause", "going on"] = "run"
    """``opening`` counts the places of opening an absent database, and runs nothing."""
    synchronous: Literal["NORMAL", "FULL"] = "FULL"
    pages: int = opening.WAL_PAGES
    """Pages in the log at which a commit also folds it into the file."""
    gate: str = ""
    """A named pipe to wait at before anything happens, so that a tracer can be attached; empty: none."""


class Child:
    """What happens in the process to be killed."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.ledger = Ledger(Path(case.ledger))
        self.points = Failpoints(case.fatal)
        self._durable: dict[str, anyio.Event] = {}

    def run(self) -> None:
        """Run the case to its end, if it has one."""
        opening.WAL_PAGES = self.case.pages  # type: ignore[misc]
        opening.GROWN_LOG = opening._SPILLED_BLOB = SMALL_LOG  # type: ignore[misc]
        watch_statements(self.points)
        watch_units(self.points, self._acknowledged)
        anyio.run(self._open if self.case.part == "opening" else self._main, backend=self.case.backend)
        self.ledger.note("passed", self.points.passed)

    async def _open(self) -> None:
        self.points.armed = True
        async with SqliteSaver(self.case.database):
            self.ledger.note("opened")

    async def _main(self) -> None:
        async with SqliteSaver(self.case.database, synchronous=self.case.synchronous) as saver:
            graph = PROGRAMS[self.case.program].build(self).compile(checkpointer=saver)
            self.points.armed = True
            self.points.at("before the run")
            result = await self._run(graph)
            self.ledger.note("result", json.dumps(result, default=str))
            self.points.at("after the run")
        self.points.at("after closing")

    async def _run(self, graph: CompiledStateGraph) -> Any:
        program, durability = PROGRAMS[self.case.program], self.case.durability
        if self.case.part == "going on":
            return await go_on(graph, program, durability)
        given = program.given if self.case.part == "run to the pause" else program.first
        return await graph.ainvoke(given, CONFIG, durability=durability)

    def note(self, *words: object) -> None:
        """Be the graph's witness."""
        self.points.at("in a node, before its line")
        self.ledger.note(*words)
        self.points.at("in a node, after its line")

    async def recorded(self, node: str) -> None:
        """Let another node's record become durable first: what is killed then has half a superstep on disk."""
        if self.case.durability != "exit" and self.case.part == "run":
            await self._durable.setdefault(node, anyio.Event()).wait()

    def _acknowledged(self, rows: Rows) -> None:
        if rows.checkpoint is not None:
            self.ledger.note("acknowledged", "checkpoint", rows.checkpoint[2])
        for row in (*rows.writes, *rows.upserts):
            self.ledger.note("acknowledged", "write", row[2], row[3], row[4])
            self._durable.setdefault(row[8].rpartition(", ")[2], anyio.Event()).set()


def run_case(**case: Any) -> None:
    """Run a case in this process, once its gate is open."""
    pass_gate(case["gate"])
    Child(Case(**case)).run()
