"""The process in which changed rows are read, shown and gone on from; see ``tests.persistence.serde.confined``."""

from __future__ import annotations

import sqlite3
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from traceback import walk_tb
from typing import Any, Final

import anyio

from persistence.errors import PersistenceError
from persistence.memory import InMemorySaver
from persistence.memory import tables as memory
from persistence.serde.encrypted import EncryptedSerializer
from persistence.serde.registry import SHARED
from persistence.serde.serializer import Serializer
from persistence.sqlite import SqliteSaver, opening
from persistence.writer.addressing import config_of
from runtime.errors import RuntimeLibraryError
from runtime.graph import CompiledStateGraph
from runtime.schema import instances
from runtime.types import Command
from tests.persistence.serde.confined import Watch, confine, each
from tests.persistence.serde.forging import Forger
from tests.torture.rows.graphs import graph
from tests.torture.rows.tampering import Row, Tables, Tamperer

CONFIG: Final[dict[str, Any]] = {"configurable": {"thread_id": "t"}}
TYPED: Final = (PersistenceError, RuntimeLibraryError)
KINDS: Final = ("sqlite", "memory", "encrypted")
_NAMES: Final = ("checkpoints", "checkpoint_writes", "checkpoint_blobs")


class File:
    """A thread in a SQLite file."""

    def __init__(self, path: Path) -> None:
        """Open a connection of its own."""
        self._connection = sqlite3.connect(path, isolation_level=None)

    def rows(self) -> Tables:
        """Return what is there."""
        return Tables(*(self._connection.execute(f"SELECT * FROM {name}").fetchall() for name in _NAMES))

    def put(self, tables: Tables) -> None:
        """Have exactly these rows."""
        self._connection.execute("BEGIN IMMEDIATE")
        for name, rows in zip(_NAMES, tables, strict=True):
            self._connection.execute(f"DELETE FROM {name}")
            for row in rows:
                marks = ", ".join("?" * len(row))
                self._connection.execute(f"INSERT OR REPLACE INTO {name} VALUES ({marks})", row)
        self._connection.execute("COMMIT")


class Shelf:
    """A thread in memory."""

    def __init__(self, saver: InMemorySaver) -> None:
        """Take the saver."""
        self._saver = saver

    def put(self, tables: Tables) -> None:
        """Have exactly these rows."""
        held = memory.Tables()
        for row in tables.checkpoints:
            self._space(held, row).put(row)
        for row in tables.writes:
            self._space(held, row).writes.setdefault(row[2], {})[row[3], row[4]] = row
        for row in tables.blobs:
            self._space(held, row).blobs[row[:4]] = row[4:]
        self._saver._tables = held

    def _space(self, held: memory.Tables, row: Row) -> memory.Space:
        return held.threads.setdefault(row[0], {}).setdefault(row[1], memory.Space())


async def read_changed(kind: str, arguments: list[str]) -> None:
    """Read the rows that the seeds of a file stand for, and take down how each reading ended."""
    watch = Watch()
    forger = Forger("rows")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "t.sqlite")
        serde = EncryptedSerializer(b"k" * 32, strict=False) if kind == "encrypted" else Serializer(strict=False)
        async with SqliteSaver(path, serde=serde) as file:
            await _paused(file)
            shelf = InMemorySaver(serde=serde)
            saver = shelf if kind == "memory" else file
            held: Shelf | File = Shelf(shelf) if kind == "memory" else File(path)
            rows = File(path).rows()
            compiled = graph(saver)
            held.put(rows)
            assert await read_all(saver, compiled) == []  # and what is loaded when first used is loaded
            _know_annotations(serde)
            confine()
            for seed, note in each(arguments):
                forger._random.seed(seed)  # else all seeds put the same values into the rows
                changed, what = Tamperer(seed, forger).changed(rows)
                try:
                    held.put(changed)
                except sqlite3.Error as refusal:
                    note(f"refused {type(refusal).__name__}")
                    continue
                with watch.limited():
                    broken = await read_all(saver, compiled)
                broken += watch.seen
                note(f"broken: {broken} after {what}"[:3000].replace("\n", " ") if broken else "held")


async def _paused(saver: Any) -> None:
    await graph(saver).ainvoke({"words": [], "text": ""}, CONFIG)


def _know_annotations(serde: Serializer) -> None:
    """Have read what the program's own classes declare, once each: the words are theirs, whoever put them in a row.

    A row in which such an instance stands in the place of a graph's input has its class's annotations looked up, which
    the interpreter compiles. It may compile nothing else, and nothing twice.
    """
    for known in (serde.registry, SHARED):
        for cls in known._by_type:
            instances._writable(cls)


async def read_all(saver: Any, compiled: CompiledStateGraph) -> list[str]:
    """Do all that a program may do with a thread; return what broke."""
    where = config_of("t", "", "x")

    async def history() -> None:
        async for _ in compiled.aget_state_history(CONFIG):
            pass

    async def listed() -> None:
        async for one in saver.alist(CONFIG):
            where.update(one.config)

    acts: dict[str, Callable[[], Awaitable[Any]]] = {
        "aget_tuple": lambda: saver.aget_tuple(CONFIG),
        "alist": listed,
        "aget_state": lambda: compiled.aget_state(CONFIG, subgraphs=True),
        "history": history,
        "go on": lambda: compiled.ainvoke(None, CONFIG, durability="sync"),
        "replay": lambda: compiled.ainvoke(None, where, durability="exit"),
        "answer": lambda: compiled.ainvoke(Command(resume="yes"), CONFIG, durability="async"),
        "new input": lambda: compiled.ainvoke({"words": ["new"]}, CONFIG),
        "aupdate_state": lambda: compiled.aupdate_state(CONFIG, {"number": 3}),
        "acopy_thread": lambda: saver.acopy_thread("t", "copy"),
        "adelete_for_runs": lambda: saver.adelete_for_runs(["no such run"]),
        "aprune": lambda: saver.aprune(["t"]),
    }
    broken: list[str] = []
    for name, act in acts.items():
        try:
            await act()
        except TYPED:
            continue
        except Exception as error:  # noqa: BLE001 - whatever it is, it has no type of ours
            if not _is_reducers(error):
                broken.append(f"{name}: {_place(error)} {type(error).__name__}: {error}")
    return broken


def _is_reducers(error: BaseException) -> bool:
    """Whether a reducer raised it, which is a function of the program's and says itself what it cannot add to what."""
    files = [frame.f_code.co_filename for frame, _ in walk_tb(error.__traceback__)]
    return any(file.endswith("channels/reducers.py") for file in files)


def _place(error: BaseException) -> str:
    *_, (frame, number) = walk_tb(error.__traceback__)
    return f"{Path(frame.f_code.co_filename).name}:{number}"


if __name__ == "__main__":
    opening.GROWN_LOG = 0  # type: ignore[misc]
    anyio.run(read_changed, sys.argv[1], sys.argv[2:])
