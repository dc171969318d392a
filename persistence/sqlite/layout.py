"""Tables that one tenant of a database file owns: a saver's, a cache's. Each has its own numbered migrations.

Every check that can refuse a file runs before anything is written. Functions here run in the connection's thread.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from persistence.errors import BackendOpenError, SchemaVersionError

if TYPE_CHECKING:
    import sqlite3


class Layout(NamedTuple):
    """A tenant's tables and how they came to be."""

    tables: Mapping[str, tuple[tuple[str, int], ...]]
    """Columns of each table, with their place in the primary key."""
    migrations: Mapping[int, tuple[str, ...]]
    ledger: str
    """The table of the migrations that were applied."""
    applied: str
    """Query for the numbers in the ledger."""
    note: str
    """Adds a number to the ledger."""
    since: Mapping[str, int] = MappingProxyType({})
    """The migrations that made those tables which the first did not."""

    def migrate(self, connection: sqlite3.Connection, path: str) -> None:
        """Apply the migrations that the database has not seen, all or none; safe with several processes at once."""
        # IMMEDIATE: the lock is taken before looking, so nobody else migrates between the look and the change.
        connection.execute("BEGIN IMMEDIATE")
        try:
            seen = self.check(connection, path)
            missing = {number: statements for number, statements in self.migrations.items() if number not in seen}
            for number, statements in missing.items():
                for statement in statements:
                    connection.execute(statement)
                connection.execute(self.note, (number,))
            if missing:
                connection.execute("COMMIT")
            else:
                # Learn now, not at the first save, that the file cannot be written; this is rolled back.
                connection.execute(self.note, (0,))
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")

    def check(self, connection: sqlite3.Connection, path: str) -> frozenset[int]:
        """Return the migrations the database has seen; refuse what is not ours or newer than this library."""
        present = {
            name
            for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type IN ('table', 'view')")
            if name in self.tables
        }
        if not present:
            return frozenset()
        wrong = [
            name
            for name, columns in self.tables.items()
            if name not in present or _columns(connection, name) != columns
        ]
        if self.ledger in present and self.ledger not in wrong:
            seen = frozenset(number for (number,) in connection.execute(self.applied))
            newest = max(seen, default=0)
            if newest > max(self.migrations):
                message = (
                    f"{path} was written by a newer version of this library (migration {newest}, this one knows "
                    f"{max(self.migrations)}): upgrade to open it. It was not changed."
                )
                raise SchemaVersionError(message)
            wrong = [name for name in wrong if self.since.get(name, 1) <= newest]
        else:
            seen = frozenset()
        if wrong:
            message = (
                f"{path} belongs to another program: {', '.join(sorted(present))} exist, but "
                f"{', '.join(sorted(wrong))} are not as this library makes them. Use another file. It was not changed."
                " If LangGraph made it, `actorgraph migrate` brings what it holds over to another file."
            )
            raise BackendOpenError(message)
        return seen


def _columns(connection: sqlite3.Connection, table: str) -> tuple[tuple[str, int], ...]:
    rows = connection.execute("SELECT name, pk FROM pragma_table_info(?)", (table,))
    return tuple((name, place) for name, place in rows)
