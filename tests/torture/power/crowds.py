"""Many clients at once, whose runs share commits, and who delete, prune and begin anew: as a process that is recorded.

Each thread is one client's, which notes what it begins and what it was told has ended. So whatever a loss leaves, the
last line of a thread says what may be there of it.
"""

from __future__ import annotations

import operator
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypedDict

import anyio
import anyio._backends._asyncio  # anyio imports them at the first run, which every child's is
import anyio._backends._trio

from persistence.sqlite import SqliteSaver, opening
from runtime.graph import END, START, CompiledStateGraph, StateGraph
from tests.crash.cases import SMALL_LOG
from tests.crash.ledger import Ledger
from tests.crash.tracing import pass_gate

CLIENTS: Final = 12
THREADS: Final = 3
"""Of each client, one after the other."""
NODES: Final = ("one", "two", "three")
LONG: Final = 300
"""Letters of what a node appends: enough that values get rows of their own."""
MODES: Final = ("sync", "async", "exit")


@dataclass(frozen=True)
class Crowd:
    """One kind of run of many clients."""

    loop: Literal["asyncio", "trio"]
    pages: int
    """Pages in the log at which a commit also folds it into the file."""
    seed: int
    from_nothing: bool
    """Whether there is no database yet."""
    synchronous: Literal["NORMAL", "FULL"] = "FULL"


class Book(TypedDict):
    """What the runs append to."""

    log: Annotated[list[str], operator.add]


def graph_of(saver: Any) -> CompiledStateGraph:
    """Return the graph that all of them run."""
    builder = StateGraph(Book)

    def named(name: str) -> Any:
        async def node(_state: Book) -> Book:
            return {"log": [name * LONG]}

        return node

    for name in NODES:
        builder.add_node(name, named(name))
    for source, target in zip((START, *NODES), (*NODES, END), strict=True):
        builder.add_edge(source, target)
    return builder.compile(checkpointer=saver)


def given(thread: str, life: int) -> Book:
    """Return what a run begins with: threads that were deleted and begun anew are in another life."""
    return {"log": [f"{thread} in life {life}"]}


def result(thread: str, life: int) -> list[str]:
    """Return the log of a run that is over."""
    return [*given(thread, life)["log"], *(name * LONG for name in NODES)]


def config(thread: str) -> Any:
    """Return how a thread is named to a graph."""
    return {"configurable": {"thread_id": thread}}


class Client:
    """One of the clients."""

    def __init__(self, number: int, seed: int, saver: SqliteSaver, ledger: Ledger) -> None:
        """Share the saver and the ledger with the others."""
        self._number = number
        self._dice = random.Random(f"{seed} {number}")
        self._saver = saver
        self._graph = graph_of(saver)
        self._ledger = ledger

    async def run(self) -> None:
        """Use one thread after the other."""
        for number in range(THREADS):
            await self._use(f"{self._number}-{number}")

    async def _use(self, thread: str) -> None:
        await self._begin(thread, 1)
        choice = self._dice.random()
        if choice < 0.4:
            self._ledger.note("deleting", thread, 1)
            await self._saver.adelete_thread(thread)
            self._ledger.note("deleted", thread, 1)
            if choice < 0.2:
                await self._begin(thread, 2)
        elif choice < 0.7:
            self._ledger.note("pruning", thread, 1)
            await self._saver.aprune([thread], strategy="keep_latest")
            self._ledger.note("pruned", thread, 1)

    async def _begin(self, thread: str, life: int) -> None:
        mode: Any = self._dice.choice(MODES)
        self._ledger.note("begun", thread, life, mode)
        await self._graph.ainvoke(given(thread, life), config(thread), durability=mode)
        self._ledger.note("done", thread, life)


def run_crowd(loop: str, pages: int, seed: int, synchronous: Any, database: str, ledger: str, gate: str) -> None:
    """Be the child, once its gate is open."""
    pass_gate(gate)
    opening.WAL_PAGES = pages  # type: ignore[misc]
    opening.GROWN_LOG = opening._SPILLED_BLOB = SMALL_LOG  # type: ignore[misc]
    notes = Ledger(Path(ledger))

    async def main() -> None:
        async with SqliteSaver(database, synchronous=synchronous) as saver:
            async with anyio.create_task_group() as group:
                for number in range(CLIENTS):
                    group.start_soon(Client(number, seed, saver, notes).run)
            seen = saver.statistics()
            notes.note("shared", seen.units, seen.batches, seen.largest_batch)

    anyio.run(main, backend=loop)
