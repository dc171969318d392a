"""Under which epoch each row was written, told by its writer, and which one was in force then, told by the database.

Rows carry no epoch. So whoever is about to commit notes the one that each of its units shows, and a trigger notes, in
the transaction that stores a row, the epoch of its thread's lease. The two must be one.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from persistence.contracts.backend import Request, Rows

Key = tuple[str, str, str, str, int]
"""(thread, namespace, checkpoint, task, idx); of a checkpoint's own row the last two are ``OWN``."""

OWN: Final = ("", -1)

_TABLE: Final = (
    "CREATE TABLE IF NOT EXISTS epochs_in_force (thread text, ns text, id text, task text, idx int, epoch int)"
)
_READ: Final = "SELECT thread, ns, id, task, idx, min(epoch) FROM epochs_in_force GROUP BY 1, 2, 3, 4, 5"
"""The first time counts: a unit whose answer was lost is stored again, maybe after somebody has taken over."""
_NOTE: Final = (
    "INSERT INTO epochs_in_force SELECT NEW.thread_id, NEW.checkpoint_ns, NEW.checkpoint_id, {task}, {idx}, epoch "
    "FROM checkpoint_leases WHERE thread_id = NEW.thread_id"
)
_NOTED: Final = {
    "checkpoints": _NOTE.format(task="''", idx="-1"),
    "checkpoint_writes": _NOTE.format(task="NEW.task_id", idx="NEW.idx"),
}


class Noting:
    """A backend whose commits are noted before they are made."""

    def __init__(self, inner: Any, path: Path) -> None:
        self._inner = inner
        self._file = os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def __del__(self) -> None:
        os.close(self._file)

    async def commit(self, batch: Sequence[Request]) -> None:
        """Note, in one write that survives the process, and commit."""
        lines = [json.dumps((*key, epoch)) for request in batch for key, epoch in shown_by(request)]
        os.write(self._file, "".join(f"{line}\n" for line in lines).encode())
        await self._inner.commit(batch)


def shown_by(request: Request) -> Iterator[tuple[Key, int]]:
    """Yield the rows of a unit that shows a lease, each with its epoch."""
    if not isinstance(request, Rows) or request.lease is None:
        return
    if request.checkpoint is not None:
        yield (*request.checkpoint[:3], *OWN), request.lease.epoch
    for row in (*request.writes, *request.upserts):
        yield row[:5], request.lease.epoch


class Epochs:
    """What both have told."""

    def __init__(self, shown: Mapping[Key, set[int]], in_force: Mapping[Key, int]) -> None:
        self._shown = shown
        self._in_force = in_force

    def __len__(self) -> int:
        """How many rows both have told of."""
        return len(self._shown.keys() & self._in_force.keys())

    def of(self, thread: str, checkpoint_id: str) -> int | None:
        """Return the epoch that the writer of a checkpoint showed; None if it showed none."""
        return max(self._shown.get((thread, "", checkpoint_id, *OWN), ()), default=None)

    def troubles(self, thread: str) -> list[str]:
        """Return which rows somebody stored who had the thread no more."""
        return [
            f"row {key[1:]} was stored under epoch {sorted(self._shown[key])} while {epoch} was in force"
            for key, epoch in self._in_force.items()
            if key[0] == thread and key in self._shown and epoch not in self._shown[key]
        ]


NONE: Final = Epochs({}, {})
"""Where writers have no epochs."""


def told(path: Path, in_force: Sequence[Sequence[Any]]) -> Epochs:
    """Return what writers have noted in a file, and the rows that the triggers have made."""
    shown: dict[Key, set[int]] = {}
    for line in path.read_text("utf-8").splitlines() if path.exists() else ():
        *key, epoch = json.loads(line)
        shown.setdefault(tuple(key), set()).add(epoch)
    return Epochs(shown, {tuple(row[:5]): row[5] for row in in_force})


def watch_file(path: str) -> None:
    """Have an SQLite database note the epochs in force."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(_TABLE)
        for table, note in _NOTED.items():
            connection.execute(f"CREATE TRIGGER noting_{table} AFTER INSERT ON {table} BEGIN {note}; END")


def read_file(path: str) -> list[tuple[Any, ...]]:
    """Return what it has noted."""
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(_READ).fetchall()


def watch_server(execute: Callable[[str], object]) -> None:
    """Have a schema of a PostgreSQL server do the same."""
    execute(_TABLE)
    for table, note in _NOTED.items():
        body = f"BEGIN {note}; RETURN NULL; END"
        execute(f"CREATE FUNCTION noting_{table}() RETURNS trigger LANGUAGE plpgsql AS $${body}$$")
        execute(f"CREATE TRIGGER noting_{table} AFTER INSERT ON {table} FOR EACH ROW EXECUTE FUNCTION noting_{table}()")


def read_server(rows: Callable[[str], list[tuple[Any, ...]]]) -> list[tuple[Any, ...]]:
    """Return what that has noted."""
    return rows(_READ)
