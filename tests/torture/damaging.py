"""Rows that are not what was written: damaged, cut short, of another type, of another row, gone."""

from __future__ import annotations

import json
import random
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from tests.persistence.postgres.server import Server

BLOBS: Final = "checkpoint_blobs"
WRITES: Final = "checkpoint_writes"
CHECKPOINTS: Final = "checkpoints"

KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    CHECKPOINTS: ("thread_id", "checkpoint_ns", "checkpoint_id"),
    WRITES: ("thread_id", "checkpoint_ns", "checkpoint_id", "task_id", "idx"),
    BLOBS: ("thread_id", "checkpoint_ns", "channel", "version"),
}

Row = dict[str, Any]


class Tables(Protocol):
    """A database seen by whoever damages it."""

    def rows(self, table: str, thread: str) -> list[Row]:
        """Return a thread's rows, sorted by their keys."""
        ...

    def put(self, table: str, row: Row) -> None:
        """Store a row in place of the one with its key."""
        ...

    def drop(self, table: str, row: Row) -> None:
        """Delete a row."""
        ...


class SqliteTables:
    """Over a connection of SQLite's own."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        connection.row_factory = sqlite3.Row
        self._connection = connection

    def rows(self, table: str, thread: str) -> list[Row]:
        order = ", ".join(KEYS[table])
        found = self._connection.execute(f"SELECT * FROM {table} WHERE thread_id = ? ORDER BY {order}", (thread,))
        return [dict(row) for row in found]

    def put(self, table: str, row: Row) -> None:
        names, marks = ", ".join(row), ", ".join("?" * len(row))
        self._connection.execute(f"INSERT OR REPLACE INTO {table} ({names}) VALUES ({marks})", tuple(row.values()))
        self._connection.commit()

    def drop(self, table: str, row: Row) -> None:
        where = " AND ".join(f"{name} = ?" for name in KEYS[table])
        self._connection.execute(f"DELETE FROM {table} WHERE {where}", tuple(row[name] for name in KEYS[table]))
        self._connection.commit()


class PostgresTables:
    """Over a connection for each statement; JSON is text here."""

    _JSON: Final = ("checkpoint", "metadata")

    def __init__(self, server: Server, url: str) -> None:
        self._server = server
        self._url = url

    def rows(self, table: str, thread: str) -> list[Row]:
        order = ", ".join(KEYS[table])
        names = [name for (name,) in self._ask(
            "SELECT attname::text FROM pg_attribute WHERE attrelid = to_regclass($1) AND attnum > 0"
            " AND NOT attisdropped ORDER BY attnum", table
        )]  # fmt: skip
        columns = ", ".join(f"{name}::text" if name in self._JSON else name for name in names)
        found = self._ask(f"SELECT {columns} FROM {table} WHERE thread_id = $1 ORDER BY {order}", thread)
        return [dict(zip(names, row, strict=True)) for row in found]

    def put(self, table: str, row: Row) -> None:
        self.drop(table, row)
        marks = [f"${place}" + ("::text::jsonb" if name in self._JSON else "") for place, name in enumerate(row, 1)]
        self._ask(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({', '.join(marks)})", *row.values())

    def drop(self, table: str, row: Row) -> None:
        where = " AND ".join(f"{name} = ${place}" for place, name in enumerate(KEYS[table], 1))
        self._ask(f"DELETE FROM {table} WHERE {where}", *(row[name] for name in KEYS[table]))

    def _ask(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        return self._server.rows(sql, *values, url=self._url)


@contextmanager
def sqlite_tables(path: str) -> Iterator[Tables]:
    """Yield the tables of a file."""
    with closing(sqlite3.connect(path)) as connection:
        yield SqliteTables(connection)


@dataclass
class Harm:
    """What is done to one row, and how to undo it."""

    tables: Tables
    table: str
    thread: str
    other_thread: str
    dice: random.Random
    _before: list[Row] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.own = self.tables.rows(self.table, self.thread)
        self.row = self.dice.choice(self.own)

    def other(self, *, foreign: bool = False, **alike: Any) -> Row | None:
        """Return another row of the table, with another content; None if there is none."""
        rows = self.tables.rows(self.table, self.other_thread) if foreign else self.own
        fitting = [
            row
            for row in rows
            if row is not self.row
            and all(row[name] == value for name, value in alike.items())
            and any(row.get(name) != self.row.get(name) for name in ("blob", "checkpoint") if name in row)
        ]
        return self.dice.choice(fitting) if fitting else None

    def change(self, row: Row, **new: Any) -> None:
        self._before.append(row)
        self.tables.put(self.table, {**row, **new})

    def drop(self) -> None:
        self._before.append(self.row)
        self.tables.drop(self.table, self.row)

    def mend(self) -> None:
        """Put everything back."""
        for row in self._before:
            self.tables.put(self.table, row)


Do = Callable[[Harm], None]
"""Does one kind of harm, or nothing where there is no row for it."""


def _bit(harm: Harm) -> None:
    data = bytearray(harm.row["blob"] or b"\0")
    data[harm.dice.randrange(len(data))] ^= 1 << harm.dice.randrange(8)
    harm.change(harm.row, blob=bytes(data))


def _cut(harm: Harm) -> None:
    data = harm.row["blob"]
    if data:
        harm.change(harm.row, blob=data[: harm.dice.randrange(len(data))])


def _another_type(harm: Harm) -> None:
    kinds = ("pickle", "json", "msgpack", "bytes", "null", "msgpack+add", "msgpack+aes", "", "os.system", "json:00")
    harm.change(harm.row, type=harm.dice.choice([kind for kind in kinds if kind != harm.row["type"]]))


def _gone(harm: Harm) -> None:
    harm.drop()


def _exchanged(*columns: str, foreign: bool = False) -> Do:
    """Put there what another row holds, and, if that is of the same thread, the other way round."""

    def do(harm: Harm) -> None:
        alike = {"channel": harm.row["channel"]} if foreign and "channel" in harm.row else {}
        other = harm.other(foreign=foreign, **alike)
        if other is None:
            return
        harm.change(harm.row, **{name: other[name] for name in columns})
        if not foreign:
            harm.change(other, **{name: harm.row[name] for name in columns})

    return do


def _another_value(column: str) -> Do:
    """Change a value inside the JSON of a checkpoint row, so that it is JSON still."""

    def do(harm: Harm) -> None:
        held = json.loads(harm.row[column])
        key = harm.dice.choice(sorted(held))
        change = harm.dice.choice(("gone", "other", "kind"))
        if change == "gone":
            del held[key]
        elif change == "other" and isinstance(held[key], int):
            held[key] += 1
        elif change == "other" and isinstance(held[key], str):
            held[key] += "0"
        else:
            held[key] = [held[key]]
        harm.change(harm.row, **{column: json.dumps(held)})

    return do


def _another_parent(harm: Harm) -> None:
    ids = [row["checkpoint_id"] for row in harm.own if row["checkpoint_id"] != harm.row["parent_checkpoint_id"]]
    harm.change(harm.row, parent_checkpoint_id=harm.dice.choice([*ids, "nowhere"]))


def _another(column: str) -> Do:
    """Change a name that stands beside a value."""

    def do(harm: Harm) -> None:
        harm.change(harm.row, **{column: harm.row[column] + "0"})

    return do


VALUE: Final = ("type", "blob")
WHOLE: Final = ("type", "checkpoint", "metadata")

DAMAGES: Final[Mapping[str, tuple[str, Do]]] = {
    **{
        f"{table}: {name}": (table, do)
        for table in (BLOBS, WRITES)
        for name, do in {
            "a bit": _bit,
            "cut short": _cut,
            "another type": _another_type,
            "exchanged": _exchanged(*VALUE),
            "foreign": _exchanged(*VALUE, foreign=True),
        }.items()
    },
    f"{BLOBS}: gone": (BLOBS, _gone),
    f"{WRITES}: another channel": (WRITES, _another("channel")),
    f"{WRITES}: another path": (WRITES, _another("task_path")),
    f"{CHECKPOINTS}: another value": (CHECKPOINTS, _another_value("checkpoint")),
    f"{CHECKPOINTS}: another fact": (CHECKPOINTS, _another_value("metadata")),
    f"{CHECKPOINTS}: another type": (CHECKPOINTS, _another_type),
    f"{CHECKPOINTS}: another parent": (CHECKPOINTS, _another_parent),
    f"{CHECKPOINTS}: exchanged": (CHECKPOINTS, _exchanged(*WHOLE)),
    f"{CHECKPOINTS}: foreign": (CHECKPOINTS, _exchanged(*WHOLE, foreign=True)),
}
"""Each kind of harm with the table it is done to."""
