"""The process in which changed rows of a store and a cache are read; see ``tests.persistence.serde.confined``."""

from __future__ import annotations

import random
import sqlite3
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

import anyio

from persistence.errors import PersistenceError
from persistence.sqlite import SqliteStore
from persistence.sqlite.cache import SqliteCache
from tests.persistence.serde.confined import Watch, confine, each
from tests.persistence.serde.forging import Forger

TABLES: Final = ("store", "store_vectors", "cache_entries")
COLUMNS: Final[dict[str, tuple[str, ...]]] = {
    "store": ("namespace", "key", "value", "value", "created_at", "updated_at", "ttl_minutes", "expires_at"),
    "store_vectors": ("item", "dims", "vectors", "vectors"),
    "cache_entries": ("namespace", "key", "value", "value", "expires_at"),
}
TEXTS: Final = (
    "",
    ".",
    "a..b",
    "x" * 5000,
    "2024-01-01",
    "2024-01-01T00:00:00",
    "\N{BALLOON}",
    "9999-12-31T23:59:59+00:00",
)
NUMBERS: Final = (None, 0.0, -1.0, 1e308, float("inf"), float("-inf"), 1e-300)
WHOLE: Final = (0, 1, 2, -1, 2**62)
BLOBS: Final = (b"", b"\0", b"\0" * 8, b"\xff" * 8, b"\0\0\xc0\x7f" * 2, b"\xff" * 12, b"x" * 4096)


def embed(texts: list[str]) -> list[list[float]]:
    """Return vectors of two dimensions."""
    return [[float(len(text)), 1.0] for text in texts]


async def read_changed(arguments: list[str]) -> None:
    """Read the rows that the seeds of a file stand for, and take down how each reading ended."""
    watch, forger = Watch(), Forger("items")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "t.sqlite")
        index: Any = {"dims": 2, "embed": embed}
        async with SqliteStore(path, index=index) as store, SqliteCache(path) as cache:
            for number in range(4):
                await store.aput(("a", f"b{number}"), "k", {"text": "t" * number, "n": number}, ttl=number or None)
                await cache.aset({(("c",), f"k{number}"): ({"n": (number,)}, None)})
            file = sqlite3.connect(path, isolation_level=None)
            rows = {name: file.execute(f"SELECT rowid, * FROM {name}").fetchall() for name in TABLES}
            assert await _read(store, cache) == []
            confine()
            for seed, note in each(arguments):
                forger._random.seed(seed)  # else all seeds put the same values into the rows
                what = _change(file, rows, random.Random(seed), forger)
                with watch.limited():
                    broken = await _read(store, cache)
                broken += watch.seen
                note(f"broken: {broken} after {what}"[:3000].replace("\n", " ") if broken else "held")
            file.close()


def _change(file: sqlite3.Connection, rows: dict[str, list[Any]], chance: random.Random, forger: Forger) -> str:
    """Have the original rows, and change one or two columns."""
    for name, held in rows.items():
        file.execute(f"DELETE FROM {name}")
        for _, *row in held:
            file.execute(f"INSERT INTO {name} VALUES ({', '.join('?' * len(row))})", row)
    done = []
    for _ in range(chance.choice([1, 1, 2])):
        name = chance.choice(TABLES)
        column = chance.choice(COLUMNS[name])
        changes: dict[str, Any] = {column: chance.choice(NUMBERS)}
        if column in {"value", "vectors"}:
            kind, data = forger.typed()
            changes = {column: data if chance.random() < 0.7 else chance.choice(BLOBS), "type": kind}
            if column == "vectors" and chance.random() < 0.7:
                changes["type"] = "f32"
        elif column in {"item", "dims"}:
            changes = {column: chance.choice(WHOLE)}
        elif name == "cache_entries" and column != "expires_at":
            changes = {column: chance.choice(BLOBS)}
        elif column not in {"ttl_minutes", "expires_at"}:
            changes = {column: chance.choice(TEXTS)}
        number = chance.choice(rows[name])[0]
        given = ", ".join(f"{key} = ?" for key in changes)
        try:
            file.execute(f"UPDATE {name} SET {given} WHERE rowid = ?", (*changes.values(), number))
        except sqlite3.Error as refusal:
            done.append(f"refused: {refusal}")
        done.append(f"{name} {changes!r:.300}")
    return "; ".join(done)


async def _read(store: SqliteStore, cache: SqliteCache) -> list[str]:
    """Do all that a program may do with items and kept results; return what broke."""
    keys: list[Any] = [(("c",), f"k{number}") for number in range(4)]
    acts: dict[str, Callable[[], Awaitable[Any]]] = {
        "aget": lambda: store.aget(("a", "b1"), "k"),
        "asearch": lambda: store.asearch(("a",), limit=9),
        "filtered": lambda: store.asearch((), filter={"n": {"$gte": 1}}, limit=9),
        "by meaning": lambda: store.asearch(("a",), query="tt", limit=9),
        "by meaning, filtered": lambda: store.asearch(("a",), query="tt", filter={"n": 2}, limit=9),
        "alist_namespaces": lambda: store.alist_namespaces(max_depth=1),
        "cache": lambda: cache.aget(keys),
        "aput": lambda: store.aput(("a", "b2"), "k", {"text": "new"}),
        "adelete": lambda: store.adelete(("a", "b3"), "k"),
        "cache again": lambda: cache.aset({keys[0]: (1, 5.0)}),
    }
    broken: list[str] = []
    for name, act in acts.items():
        try:
            await act()
        except PersistenceError:
            continue
        except Exception as error:  # noqa: BLE001 - whatever it is, it has no type of ours
            trace = error.__traceback__
            while trace is not None and trace.tb_next is not None:
                trace = trace.tb_next
            where = "" if trace is None else f"{Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}"
            broken.append(f"{name}: {where} {type(error).__name__}: {error}")
    return broken


if __name__ == "__main__":
    anyio.run(read_changed, sys.argv[1:])
