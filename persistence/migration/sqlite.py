"""A file that LangGraph's SqliteSaver, SqliteStore or both have written, opened so that it cannot be changed."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Coroutine, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Final, Self, TypeVar
from urllib.parse import quote

import anyio

from persistence.errors import BackendError, BackendOpenError, StoredDataError
from persistence.migration.records import ForeignCheckpoint, ForeignItem, ForeignThread, ForeignWrite
from persistence.migration.statements import queries
from persistence.outlasting import outlast
from persistence.sqlite.connection import Connection
from persistence.sqlite.faults import described, read_fault
from persistence.writer.bridge import BRIDGE, on_trio

T = TypeVar("T")

_SQL: Final = queries("sqlite.sql")
_PATIENCE: Final = 5.0
"""Seconds to wait for a program that holds the file's lock."""
_CHECKPOINT_COLUMNS: Final = {"thread_id", "checkpoint_ns", "checkpoint_id", "type", "checkpoint", "metadata"}


class SqliteSource:
    """Reads the file; versions 2 and 3 of langgraph-checkpoint-sqlite."""

    def __init__(self, path: str) -> None:
        """Read from a file; nothing is opened yet."""
        self._path = path
        self._connection: Connection | None = None
        self._bridged = False
        self._tables: dict[str, set[str]] = {}

    async def __aenter__(self) -> Self:
        """Open the file. Raises BackendOpenError if it is not there, or not LangGraph's."""
        path = Path(self._path).absolute()  # noqa: ASYNC240 - asks for the current directory
        if not path.is_file():
            msg = f"There is no file {self._path!r} to migrate from."
            raise BackendOpenError(msg)
        if on_trio():
            BRIDGE.acquire()
            self._bridged = True
        try:
            await self._look(path)
        except BaseException:
            await outlast(self._close)
            raise
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Close the file."""
        await outlast(self._close)

    async def threads(self) -> Sequence[ForeignThread]:
        """Return every thread, by id."""
        if "checkpoints" not in self._tables:
            return []
        return [ForeignThread(*row) for row in await self._fetch("threads")]

    async def heads(self, thread_id: str) -> dict[str, str]:
        """Return the newest checkpoint id of each of a thread's namespaces."""
        return dict(await self._fetch("heads", thread_id))

    async def checkpoints(
        self, thread_id: str, checkpoint_ns: str, after: str, limit: int
    ) -> Sequence[ForeignCheckpoint]:
        """Return the checkpoints with ids greater than ``after``, oldest first, at most ``limit``."""
        return await self._run(partial(self._page, thread_id, checkpoint_ns, after, limit))

    async def writes(self, thread_id: str, checkpoint_ns: str, checkpoint_id: str) -> Sequence[ForeignWrite]:
        """Return the writes against one checkpoint."""
        return await self._run(lambda connection: self._writes(connection, (thread_id, checkpoint_ns, checkpoint_id)))

    async def item_count(self) -> int:
        """Return how many items the store has; 0 if there is no store."""
        return (await self._fetch("item_count"))[0][0] if "store" in self._tables else 0

    async def has_vectors(self) -> bool:
        """Tell whether items are indexed for search by meaning."""
        return "store_vectors" in self._tables and bool((await self._fetch("vector_count"))[0][0])

    async def items(self, start: int, limit: int) -> Sequence[ForeignItem]:
        """Return items in the order of their creation, so many after the first ``start``."""
        query = "items" if "expires_at" in self._tables["store"] else "items_without_expiry"
        return [_item(*row) for row in await self._fetch(query, start, limit)]

    async def _look(self, path: Path) -> None:
        try:
            with anyio.CancelScope(shield=True):  # half an opening cannot be closed
                self._connection = await self._cross(Connection.open, f"file:{quote(str(path))}?mode=ro", _PATIENCE)
            rows = await self._fetch("tables")
        except (sqlite3.Error, StoredDataError, BackendError) as error:
            why = described(error) if isinstance(error, sqlite3.Error) else error
            msg = f"{self._path} cannot be read as a database of LangGraph's: {why}"
            raise BackendOpenError(msg) from error
        self._tables = {name: set(columns.split(",")) for name, columns in rows}
        self._check()

    def _check(self) -> None:
        """Refuse files that are not LangGraph's."""
        held = self._tables.get("checkpoints")
        if held is not None and (not held >= _CHECKPOINT_COLUMNS or "writes" not in self._tables):
            msg = f"{self._path} was not written by LangGraph's SqliteSaver: its tables have other columns."
            raise BackendOpenError(msg)
        if held is None and "prefix" not in self._tables.get("store", ()):
            msg = f"{self._path} has no tables of LangGraph's SqliteSaver or SqliteStore."
            raise BackendOpenError(msg)
        if "prefix" not in self._tables.get("store", ("prefix",)):
            del self._tables["store"]

    def _page(
        self, thread_id: str, checkpoint_ns: str, after: str, limit: int, connection: sqlite3.Connection
    ) -> list[ForeignCheckpoint]:
        rows = connection.execute(_SQL["checkpoints"], (thread_id, checkpoint_ns, after, limit)).fetchall()
        return [
            ForeignCheckpoint(
                thread_id,
                checkpoint_ns,
                checkpoint_id,
                parent or None,
                (kind or "msgpack", body),
                metadata or "",
                writes=self._writes(connection, (thread_id, checkpoint_ns, checkpoint_id)),
            )
            for checkpoint_id, parent, kind, body, metadata in rows
        ]

    def _writes(self, connection: sqlite3.Connection, key: tuple[str, str, str]) -> list[ForeignWrite]:
        query = "writes" if "task_path" in self._tables["writes"] else "writes_without_path"
        return [
            ForeignWrite(task_id, path, channel, (kind or "msgpack", value or b""))
            for task_id, path, channel, kind, value in connection.execute(_SQL[query], key)
        ]

    async def _fetch(self, query: str, *values: object) -> list[Any]:
        return await self._run(lambda connection: connection.execute(_SQL[query], values).fetchall())

    async def _run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        assert self._connection is not None  # noqa: S101 - open while it is used
        try:
            return await self._cross(self._connection.run, work)
        except sqlite3.Error as error:
            raise read_fault(error, self._path) from error

    async def _cross(self, function: Callable[..., Coroutine[Any, Any, T]], *args: object) -> T:
        """Run an asyncio coroutine: here on asyncio, over the bridge on trio."""
        return await (BRIDGE.call(function, *args) if self._bridged else function(*args))

    async def _close(self) -> None:
        if self._connection is not None:
            await self._cross(self._connection.close)
            self._connection = None
        if self._bridged:
            self._bridged = False
            BRIDGE.release()


def _item(  # noqa: PLR0917 - the columns of a row
    prefix: str,
    key: str,
    value: str | bytes,
    created_at: str,
    updated_at: str,
    expires_at: str | None,
    ttl: float | None,
) -> ForeignItem:
    text = value.decode() if isinstance(value, bytes) else value
    expires = None if expires_at is None else _seconds(expires_at)
    return ForeignItem(prefix, key, text, _seconds(created_at), _seconds(updated_at), expires, ttl)


def _seconds(text: str) -> float:
    moment = datetime.fromisoformat(text)
    return (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).timestamp()
