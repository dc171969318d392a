"""A cache's rows: functions that run in its connection's thread."""

from __future__ import annotations

import sqlite3
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from persistence.errors import BackendOpenError
from persistence.serde.serializer import place
from persistence.serde.values import text_bytes
from persistence.sqlite.connection import file_of
from persistence.sqlite.faults import described
from persistence.sqlite.layout import Layout
from persistence.sqlite.opening import require_writable, switch_to_wal
from persistence.sqlite.statements import migrations, queries

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from persistence.contracts.cache import FullKey, Namespace
    from persistence.serde.caching import Stored
    from persistence.serde.serializer import Typed

TABLES: Final = {
    "cache_entries": (("namespace", 1), ("key", 2), ("type", 0), ("value", 0), ("expires_at", 0)),
    "cache_migrations": (("v", 1),),
}
"""Columns of each table, with their place in the primary key."""

_SQL: Final = queries("cache_queries.sql")
_LAYOUT: Final = Layout(
    TABLES, migrations("cache_migration"), "cache_migrations", _SQL["applied_migrations"], _SQL["note_migration"]
)


def prepare(connection: sqlite3.Connection, path: str, patience: float) -> None:
    """Check the database and bring the cache's tables up to date, beside those of a saver if it has them.

    Raises:
        BackendOpenError: It is no database, damaged, another program's, or cannot be written. It was not changed.
        SchemaVersionError: A newer version of this library wrote it. It was not changed.
    """
    try:
        require_writable(connection, path)
        _LAYOUT.check(connection, path)
        in_memory = not file_of(connection)
        switch_to_wal(connection, path, patience, in_memory=in_memory)
        # No fsync per commit: the loss of power costs results that can be made again, and never the file.
        connection.execute("PRAGMA synchronous = NORMAL")
        _LAYOUT.migrate(connection, path)
    except sqlite3.Error as error:
        message = f"{path} cannot be opened: {described(error)}"
        raise BackendOpenError(message) from error


def find(connection: sqlite3.Connection, keys: Sequence[FullKey], now: float) -> dict[FullKey, Typed]:
    """Return what is stored under these keys and has not expired."""
    found = {}
    for key in keys:
        row = connection.execute(_SQL["find"], (*_columns(key), now)).fetchone()
        if row is not None:
            found[key] = row
    return found


def put(connection: sqlite3.Connection, entries: Sequence[Stored], now: float) -> None:
    """Store entries, all or none; what has expired is deleted on the way."""
    rows = [(*_columns(key), kind, value, None if ttl is None else now + ttl) for key, (kind, value), ttl in entries]
    with _transaction(connection):
        connection.execute(_SQL["forget_expired"], (now,))
        connection.executemany(_SQL["put"], rows)


def clear(connection: sqlite3.Connection, namespaces: Sequence[Namespace] | None) -> None:
    """Delete namespaces with those that begin with them, or everything."""
    with _transaction(connection):
        for namespace in [()] if namespaces is None else namespaces:
            first = place(*namespace)
            if first:
                connection.execute(_SQL["forget_within"], (first, _after(first)))
            else:
                connection.execute(_SQL["forget_all"])


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    # IMMEDIATE takes the write lock at once: a lock that is upgraded half way fails without waiting its turn.
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _columns(key: FullKey) -> tuple[Any, ...]:
    namespace, name = key
    return place(*namespace), text_bytes(name)


def _after(first: bytes) -> bytes:
    """Return the smallest bytes that are greater than all that begin with these."""
    kept = first.rstrip(b"\xff")
    return kept[:-1] + bytes((kept[-1] + 1,))
