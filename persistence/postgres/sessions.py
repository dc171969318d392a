"""One connection at work: statements with a deadline, in whatever way the server may be spoken to."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from persistence.postgres.faults import is_lost

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    import asyncpg


class Session:
    """A borrowed connection.

    Behind a transaction pooler no statement is named, and each stands in a transaction: without, the pooler could hand
    the second half of a call to another server connection.
    """

    __slots__ = ("_connection", "_inside", "_pooler", "_seconds")

    def __init__(self, connection: asyncpg.Connection, seconds: float, *, pooler: bool) -> None:
        """Speak over a connection, giving every statement so many seconds."""
        self._connection = connection
        self._seconds = seconds
        self._pooler = pooler
        self._inside = False

    async def rows(self, sql: str, *values: object) -> Sequence[Any]:
        """Carry out one statement and return its rows: one round trip, one transaction unless inside of one."""
        if self._pooler and not self._inside:
            async with self.transaction():
                return await self.rows(sql, *values)
        found: Sequence[Any] = await self._connection.fetch(sql, *values, timeout=self._seconds)
        return found

    async def script(self, sql: str) -> None:
        """Carry out statements without values."""
        await self._connection.execute(sql, timeout=self._seconds)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[None]:
        """Commit everything inside together, or nothing if it fails."""
        # Behind a pooler the session's own settings are not ours to choose. Whoever is cut off or frozen in the middle
        # holds locks that others wait for; the server may not hear of it for hours, so it takes them back by itself.
        idle = max(1, round(self._seconds * 1000))
        await self.script(
            "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL jit = off; "
            f"SET LOCAL idle_in_transaction_session_timeout = {idle}"
        )
        self._inside = True
        try:
            yield
        except Exception as error:
            self._inside = False
            if not is_lost(error):
                await self.script("ROLLBACK")
            raise
        self._inside = False
        await self.script("COMMIT")
