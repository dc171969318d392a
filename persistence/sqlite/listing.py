"""Looking into a database without a graph and without a saver: it is opened for reading, and never changed.

A saver migrates what it opens, switches it to WAL and takes its write lock. Who only looks must be able to look at a
backup, at a read-only disk, or at a file that another process is busy writing.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing, contextmanager
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from persistence.contracts.listing import (
    CheckpointSummary,
    StoredCheckpoint,
    TaskSummary,
    ThreadSummary,
    outcome,
    outcomes,
    summary,
)
from persistence.errors import BackendOpenError, SchemaVersionError
from persistence.sqlite import reading
from persistence.sqlite.faults import described, read_fault
from persistence.sqlite.opening import TABLES, prepare_reader
from persistence.sqlite.statements import MIGRATIONS, QUERIES
from persistence.writer.looking import stored, summary_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from persistence.serde.serializer import Serializer

_SQL: Final = {
    name: (files("persistence.sqlite") / "sql" / f"{name}.sql").read_text("utf-8")
    for name in (
        "count_checkpoints", "count_threads", "list_checkpoints", "list_tables", "list_tasks", "list_threads",
        "sum_up_threads", "thread_bytes", "walk_threads",
    )
}  # fmt: skip
_TENANTS: Final = {"store_migrations": "a store", "cache_migrations": "a cache"}
"""Whose file it is, by their tables."""
_PATIENCE: Final = 5.0
"""Seconds to wait for a process that holds the file's lock."""


class Listing:
    """Reads one database; made by ``look_into``. Every method raises PersistenceError if the database fails."""

    def __init__(self, connection: sqlite3.Connection, path: str) -> None:
        """Wrap an open connection."""
        self._connection = connection
        self._path = path

    def threads(self, limit: int | None = None) -> list[ThreadSummary]:
        """Return threads, the last active first."""
        found = [row[0] for row in self._rows("list_threads", ())] if limit is None else self._newest(limit)
        rows = self._rows("sum_up_threads", {"threads": msgspec.json.encode(found).decode()})
        return [ThreadSummary(row[0], row[1], row[2], summary(row[3:8]), outcomes(row[8])) for row in rows]

    def thread_count(self) -> int:
        """Return how many threads there are."""
        count: int = self._rows("count_threads", ())[0][0]
        return count

    def checkpoint_count(self, thread_id: str) -> int:
        """Return how many checkpoints a thread has, in all its namespaces."""
        count: int = self._rows("count_checkpoints", (thread_id,))[0][0]
        return count

    def thread_bytes(self, thread_id: str) -> int:
        """Return the bytes that a thread's rows hold; reads all of them."""
        count: int = self._rows("thread_bytes", {"thread_id": thread_id})[0][0]
        return count

    def checkpoints(self, thread_id: str, limit: int | None = None) -> list[CheckpointSummary]:
        """Return a thread's checkpoints, newest first."""
        rows = self._rows("list_checkpoints", {"thread_id": thread_id, "limit": -1 if limit is None else limit})
        return [summary(row) for row in rows]

    def tasks(self, thread_id: str, checkpoint_ns: str, checkpoint_id: str) -> list[TaskSummary]:
        """Return the tasks that wrote against a checkpoint."""
        rows = self._rows("list_tasks", (thread_id, checkpoint_ns, checkpoint_id))
        return [TaskSummary(task_id, path, outcome(msgspec.json.decode(indices))) for task_id, path, indices in rows]

    def checkpoint(
        self, thread_id: str, checkpoint_ns: str, checkpoint_id: str | None, serializer: Serializer
    ) -> StoredCheckpoint | None:
        """Return one checkpoint with its values, or the newest one; None if there is none."""
        try:
            page = reading.load(self._connection, thread_id, checkpoint_ns, checkpoint_id)
        except sqlite3.Error as error:
            raise read_fault(error, self._path) from error
        if not page.checkpoints:
            return None
        row = page.checkpoints[0]
        return stored(row, page, serializer, summary_of(row), self.tasks(*row[:3]))

    def _newest(self, limit: int) -> list[str]:
        """Return the threads that were active last, walking back from the newest checkpoint."""
        found: dict[str, None] = {}
        try:
            with closing(self._connection.execute(_SQL["walk_threads"])) as walk:
                for (thread_id,) in walk:
                    found[thread_id] = None
                    if len(found) >= limit:
                        break
        except sqlite3.Error as error:
            raise read_fault(error, self._path) from error
        return list(found)

    def _rows(self, query: str, values: Any) -> list[Any]:
        try:
            return self._connection.execute(_SQL[query], values).fetchall()
        except sqlite3.Error as error:
            raise read_fault(error, self._path) from error


@contextmanager
def look_into(path: str | os.PathLike[str]) -> Iterator[Listing]:
    """Open a database for reading.

    Raises:
        BackendOpenError: There is no such file, or it is no database of this library.
        SchemaVersionError: A newer version of this library wrote it.
    """
    name = os.fspath(path)
    if not Path(name).is_file():
        message = f"There is no file {name!r}; looking does not create one."
        raise BackendOpenError(message)
    try:
        # Not mode=ro: such a connection leaves the -wal and -shm files that it had to make lying about.
        uri = f"{Path(name).absolute().as_uri()}?mode=rw"
        with closing(sqlite3.connect(uri, uri=True, timeout=_PATIENCE, isolation_level=None)) as connection:
            prepare_reader(connection)
            _check(connection, name)
            yield Listing(connection, name)
    except sqlite3.Error as error:
        message = f"{name} cannot be opened: {described(error)}"
        raise BackendOpenError(message) from error


def _check(connection: sqlite3.Connection, path: str) -> None:
    present = {name for (name,) in connection.execute(_SQL["list_tables"])}
    if not present.issuperset(TABLES):
        message = f"{path} holds no threads: {_contents(present, path)}"
        raise BackendOpenError(message)
    newest = max((number for (number,) in connection.execute(QUERIES["applied_migrations"])), default=0)
    if newest > max(MIGRATIONS):
        message = (
            f"{path} was written by a newer version of this library (migration {newest}, this one knows "
            f"{max(MIGRATIONS)}): upgrade to read it."
        )
        raise SchemaVersionError(message)


def _contents(present: set[str], path: str) -> str:
    """Say what a file holds in place of threads."""
    if {"checkpoints", "writes"} <= present:
        return (
            "it looks like LangGraph's. Bring its threads over: "
            f"actorgraph migrate --from langgraph-sqlite {path} --to NEW_FILE --graph MODULE:GRAPH"
        )
    tenants = [name for table, name in _TENANTS.items() if table in present]
    if tenants:
        return f"it is the file of {' and '.join(tenants)}. A saver keeps threads, in the file that it was given."
    return "no saver of this library has written it."
