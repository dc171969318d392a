"""A store's rows in SQLite: a table (see ``stores.carrying_out``) that works in its connection's thread."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from itertools import starmap
from typing import Any, Final

from persistence.contracts.store import Namespace
from persistence.errors import BackendOpenError, CorruptDataError
from persistence.serde.serializer import Typed
from persistence.sqlite.connection import file_of
from persistence.sqlite.faults import described
from persistence.sqlite.layout import Layout
from persistence.sqlite.opening import CACHE_KIB, WAL_PAGES, Synchronous, require_writable, switch_to_wal
from persistence.sqlite.statements import migrations, queries
from persistence.stores.carrying_out import Candidate, Row
from persistence.stores.lanes import Failed
from persistence.stores.namespaces import below, column, from_column
from persistence.stores.planning import Put
from persistence.stores.ranking import DECIMALS, FLOAT_BYTES
from persistence.stores.ttl import deadline, moment

Work = Callable[[sqlite3.Connection], Any]

TABLES: Final = {
    "store": (
        ("id", 1),
        ("namespace", 0),
        ("key", 0),
        ("type", 0),
        ("value", 0),
        ("created_at", 0),
        ("updated_at", 0),
        ("ttl_minutes", 0),
        ("expires_at", 0),
    ),
    "store_vectors": (("item", 1), ("dims", 0), ("type", 0), ("vectors", 0)),
    "store_migrations": (("number", 1),),
}
"""Columns of each table, with their place in the primary key."""

SWEPT: Final = 1000
"""Items deleted in one transaction, so that sweeping many holds nobody up for long."""

_MOST: Final = 2**62
"""Larger than any number of items, and no larger than SQLite's numbers."""

_SQL: Final = queries("store_queries.sql")
_PLACED: Final = {
    place: {
        query: _SQL[name].format(place=_SQL[place])
        for query, name in (
            ("rows", f"rows_{place}"),
            ("candidates", "candidates"),
            ("nearest", "nearest"),
            ("namespaces", "namespaces"),
        )
    }
    for place in ("anywhere", "below")
}
"""The queries that are asked of everything, and of a namespace and what is below it."""
LAYOUT: Final = Layout(
    TABLES, migrations("store_migration"), "store_migrations", _SQL["applied_migrations"], _SQL["note_migration"]
)


def prepare_writer(connection: sqlite3.Connection, path: str, synchronous: Synchronous, patience: float) -> bool:
    """Check the database, bring the store's tables up to date; return whether it lives in memory only.

    Raises:
        BackendOpenError: It is no database, damaged, another program's, or cannot be written. It was not changed.
        SchemaVersionError: A newer version of this library wrote it. It was not changed.
    """
    try:
        require_writable(connection, path)
        LAYOUT.check(connection, path)
        in_memory = not file_of(connection)
        switch_to_wal(connection, path, patience, in_memory=in_memory)
        connection.execute(f"PRAGMA synchronous = {synchronous}")
        connection.execute(f"PRAGMA wal_autocheckpoint = {WAL_PAGES}")
        connection.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
        LAYOUT.migrate(connection, path)
        connection.execute("PRAGMA foreign_keys = ON")  # vectors go with their item
    except sqlite3.Error as error:
        message = f"{path} cannot be opened: {described(error)}"
        raise BackendOpenError(message) from error
    return in_memory


def prepare_reader(connection: sqlite3.Connection) -> None:
    """Make a connection that cannot write."""
    connection.execute("PRAGMA query_only = ON")


def in_transaction(connection: sqlite3.Connection, works: Sequence[Work], *, begin: str) -> list[Any]:
    """Do several things in one transaction; return for each its result, or ``Failed`` if it alone was undone.

    Raises:
        sqlite3.Error: Nothing was kept of any of them.
    """
    connection.execute(begin)
    try:
        outcomes = [_attempted(connection, work) for work in works] if len(works) > 1 else [works[0](connection)]
        connection.execute("COMMIT")
    finally:
        # A failed COMMIT leaves the transaction open or has rolled it back already, depending on the fault.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
    return outcomes


def sweep(connection: sqlite3.Connection, now: float) -> int:
    """Delete some of what has expired; return how many items that were."""
    return connection.execute(_SQL["sweep"], (now, SWEPT)).rowcount


def _attempted(connection: sqlite3.Connection, work: Work) -> Any:
    connection.execute("SAVEPOINT attempt")
    try:
        outcome = work(connection)
    except Exception as error:
        if not connection.in_transaction:  # a full disk, say, has undone everything already
            raise
        connection.execute("ROLLBACK TO attempt")
        outcome = Failed(error)
    connection.execute("RELEASE attempt")
    return outcome


class StoreTable:
    """The rows, seen by one transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        """Use a connection that has begun a transaction."""
        self._connection = connection
        self._cursors: list[sqlite3.Cursor] = []

    def find(self, namespace: Namespace, key: str) -> Row | None:
        """Return the row of an address, expired or not."""
        found = self._connection.execute(_SQL["find"], (column(namespace), key)).fetchone()
        return None if found is None else _row(*found)

    def row(self, number: int) -> Row:
        """Return a row."""
        return _row(*self._connection.execute(_SQL["row"], (number,)).fetchone())

    def rows(self, prefix: Namespace, now: float, *, offset: int, limit: int | None) -> Iterable[Row]:
        """Yield the rows at and below a namespace by number: so many, or all."""
        page = {"limit": -1 if limit is None else min(limit, _MOST), "offset": min(offset, _MOST)}
        return starmap(_row, self._under("rows", prefix, {"now": now, **page}))

    def candidates(self, prefix: Namespace, dims: int, now: float, *, whole: bool) -> Iterable[Candidate]:
        """Yield the rows at and below a namespace, with their values if ``whole``."""
        return starmap(_candidate, self._under("candidates", prefix, {"now": now, "dims": dims, "whole": whole}))

    def nearest(
        self, prefix: Namespace, query: bytes, now: float, *, offset: int, limit: int
    ) -> list[tuple[int, float | None]] | None:
        """Return a page of the rows at and below a namespace with their scores, the likest to a packed vector first.

        None if their vectors cannot be compared as they are stored: whoever decodes them finds out why.
        """
        size = len(query)
        page = {"limit": min(limit, _MOST), "offset": min(offset, _MOST)}
        given = {"now": now, "query": query, "size": size, "dims": size // FLOAT_BYTES, "decimals": DECIMALS, **page}
        try:
            return self._under("nearest", prefix, given).fetchall()
        except sqlite3.OperationalError:
            return None

    def namespaces(self, prefix: Namespace, now: float) -> Iterable[Namespace]:
        """Yield the namespaces at and below one that hold rows."""
        return (from_column(text) for (text,) in self._under("namespaces", prefix, {"now": now}))

    def put(self, put: Put, dims: int, now: float, expires_at: float | None) -> None:
        """Create a row, or change it; an expired one is created anew."""
        assert put.typed is not None  # noqa: S101 - deletes have their own method
        address = column(put.namespace), put.key
        at = moment(now).isoformat(timespec="microseconds")
        execute = self._connection.execute
        execute(_SQL["delete_expired_item"], (*address, now))
        (number,) = execute(_SQL["put"], (*address, *put.typed, at, at, put.ttl, expires_at)).fetchone()
        execute(_SQL["delete_vectors"], (number,))
        if put.vectors is not None:
            execute(_SQL["put_vectors"], (number, dims, *put.vectors))

    def delete(self, namespace: Namespace, key: str) -> None:
        """Remove a row if it is there."""
        self._connection.execute(_SQL["delete"], (column(namespace), key))

    def prolong(self, number: int, ttl: float, now: float) -> None:
        """Start a row's time to live again, unless it has expired or has another one by now."""
        until = deadline(now, ttl)
        self._connection.execute(_SQL["prolong"], {"id": number, "ttl": ttl, "now": now, "expires_at": until})

    def close(self) -> None:
        """End what was not read to its end: an open cursor keeps the connection in the past."""
        for cursor in self._cursors:
            cursor.close()

    def _under(self, query: str, prefix: Namespace, values: Mapping[str, Any]) -> sqlite3.Cursor:
        bounds: dict[str, Any] = {}
        if prefix:
            first, after = below(prefix)
            bounds = {"exact": column(prefix), "first": first, "after": after}
        cursor = self._connection.execute(_PLACED["below" if prefix else "anywhere"][query], {**values, **bounds})
        self._cursors.append(cursor)
        return cursor


def _row(  # noqa: PLR0917 - the columns of a row
    number: int,
    namespace: str,
    key: str,
    kind: str,
    value: bytes,
    created_at: str,
    updated_at: str,
    ttl: float | None,
    expires_at: float | None,
) -> Row:
    try:
        created, updated = datetime.fromisoformat(created_at), datetime.fromisoformat(updated_at)
    except ValueError as error:
        message = f"The item {key!r} of {from_column(namespace)!r} has a time that is none: {error}."
        raise CorruptDataError(message) from error
    return Row(number, from_column(namespace), key, (kind, value), created, updated, ttl, expires_at)


def _candidate(  # noqa: PLR0917 - likewise
    number: int,
    namespace: str,
    key: str,
    kind: str,
    value: bytes | None,
    vectors_kind: str | None,
    vectors: bytes | None,
) -> Candidate:
    indexed: Typed | None = None if vectors is None or vectors_kind is None else (vectors_kind, vectors)
    return Candidate(number, from_column(namespace), key, None if value is None else (kind, value), indexed)
