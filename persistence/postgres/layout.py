"""Tables that one tenant of a database owns: a saver's, a store's. Each has its own numbered migrations.

Looking comes first and takes no lock, so that opening costs one query where there is nothing to do, and works for a
role that may not create tables. Changing takes a lock, looks again, and is one transaction.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from persistence.errors import BackendOpenError, SchemaVersionError
from persistence.postgres.statements import QUERIES

if TYPE_CHECKING:
    from persistence.postgres.sessions import Session

LOCK = 0x6163_746F_7267_7261
"""The advisory lock that migrations hold."""


class Layout(NamedTuple):
    """A tenant's tables and how they came to be."""

    tables: Mapping[str, tuple[str, ...]]
    """The columns of each table, in order."""
    migrations: Mapping[int, str]
    ledger: str
    """The table of the migrations that were applied."""
    number: str
    """The column of the ledger."""
    since: Mapping[str, int] = MappingProxyType({})
    """The migrations that made those tables which the first did not."""

    async def migrate(self, session: Session, name: str) -> None:
        """Bring the tables up to date; safe with several processes at once.

        Raises:
            SchemaVersionError: A newer version of this library wrote them.
            BackendOpenError: They belong to another program. Nothing was changed.
        """
        if not self._missing(await self._seen(session, name)):
            return
        async with session.transaction():
            await session.rows(QUERIES["lock_migrations"], LOCK)
            missing = self._missing(await self._seen(session, name))
            if missing:
                await session.script(f"CREATE TABLE IF NOT EXISTS {self.ledger} ({self.number} integer PRIMARY KEY)")
            for number in missing:
                await session.script(self.migrations[number])
                await session.rows(f"INSERT INTO {self.ledger} ({self.number}) VALUES ($1)", number)  # noqa: S608

    async def is_there(self, session: Session, name: str) -> bool:
        """Tell whether the tables are there. Raises what ``migrate`` raises for those of others."""
        return bool(await self._seen(session, name))

    def _missing(self, seen: frozenset[int]) -> list[int]:
        return [number for number in self.migrations if number not in seen]

    async def _seen(self, session: Session, name: str) -> frozenset[int]:
        """Return the migrations the database has seen; refuse what is not ours or newer than this library."""
        names = [*self.tables, self.ledger]
        present = {row["name"]: tuple(row["columns"]) for row in await session.rows(QUERIES["columns"], names)}
        if not present:
            return frozenset()
        wrong = sorted(
            table
            for table, columns in {**self.tables, self.ledger: (self.number,)}.items()
            if present.get(table) != columns
        )
        seen: frozenset[int] = frozenset()
        if self.ledger in present and self.ledger not in wrong:
            rows = await session.rows(f"SELECT {self.number} FROM {self.ledger}")  # noqa: S608 - names of our own
            seen = frozenset(row[0] for row in rows)
            wrong = [table for table in wrong if self.since.get(table, 1) <= max(seen, default=0)]
        if 0 in seen:
            message = (
                f"{name} holds LangGraph's tables {', '.join(sorted(present))}. Use another database, or another "
                "schema by adding ?search_path=NAME to the URL. Nothing was changed."
            )
            raise BackendOpenError(message)
        if max(seen, default=0) > max(self.migrations):
            message = (
                f"{name} was written by a newer version of this library (migration {max(seen)}, this one knows "
                f"{max(self.migrations)}): upgrade to open it. Nothing was changed."
            )
            raise SchemaVersionError(message)
        if wrong:
            message = (
                f"{name} belongs to another program: {', '.join(sorted(present))} exist, but {', '.join(wrong)} are "
                "not as this library makes them. Use another database, or another schema by adding "
                "?search_path=NAME to the URL. Nothing was changed. If LangGraph made it, `actorgraph migrate` brings "
                "what it holds over."
            )
            raise BackendOpenError(message)
        return seen
