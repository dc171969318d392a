"""Databases for this project's own savers that count what they are given, or take longer than they need."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio

from persistence.contracts.backend import Rows
from persistence.memory.tables import Tables

if TYPE_CHECKING:
    from collections.abc import Sequence

    from persistence.contracts.backend import Backend, Page, Query, Request


class Counting:
    """A database in memory that counts the bytes of the rows it is given."""

    def __init__(self) -> None:
        """Make an empty one."""
        self._tables = Tables()
        self.bytes = 0

    async def open(self) -> None:
        """Open nothing."""

    async def close(self) -> None:
        """Close nothing."""

    async def setup(self) -> None:
        """Set nothing up."""

    async def commit(self, batch: Sequence[Request]) -> None:
        """Keep the requests."""
        for request in batch:
            self._tables.apply(request)
            if isinstance(request, Rows):
                self.bytes += weight(request)

    async def load(self, thread_id: str, checkpoint_ns: str, checkpoint_id: str | None) -> Page:
        """Return a checkpoint."""
        return self._tables.load(thread_id, checkpoint_ns, checkpoint_id)

    async def page(self, query: Query) -> Page:
        """Return some checkpoints."""
        return self._tables.page(query)


class Slowed:
    """A database whose every commit takes some seconds longer, as on a disk whose fsync does."""

    def __init__(self, backend: Backend, seconds: float) -> None:
        """Slow a database down."""
        self._backend = backend
        self._seconds = seconds
        self.open = backend.open
        self.close = backend.close
        self.setup = backend.setup
        self.load = backend.load
        self.page = backend.page

    async def commit(self, batch: Sequence[Request]) -> None:
        """Commit, then wait."""
        await self._backend.commit(batch)
        if self._seconds:
            await anyio.sleep(self._seconds)


def weight(rows: Rows) -> int:
    """Return the bytes of a unit's rows."""
    kept = [*([rows.checkpoint] if rows.checkpoint else []), *rows.blobs, *rows.writes, *rows.upserts]
    return sum(len(value) for row in kept for value in row if isinstance(value, str | bytes))
