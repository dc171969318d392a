"""The Redis backend: scripts on one server, each batch as a whole."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from persistence.redis import reading, writing
from persistence.writer.batching import segments

if TYPE_CHECKING:
    from collections.abc import Sequence

    from persistence.contracts.backend import Page, Query, Request
    from persistence.redis.server import Server


class RedisBackend:
    """A saver's threads on one server."""

    def __init__(self, server: Server, ttl: int, *, refreshes: bool) -> None:
        """Keep threads for so many milliseconds after the last write, 0 for ever; ``refreshes``: or the last read."""
        self._server = server
        self._ttl = ttl
        self._refresh = ttl if refreshes else 0

    async def open(self) -> None:
        """Connect once; there is nothing to create.

        Raises:
            BackendOpenError: The server cannot be reached, or refuses.
        """
        await self._server.open()

    async def close(self) -> None:
        """Close every connection that is ours; safe to call again."""
        await self._server.close()

    async def setup(self) -> None:
        """Do nothing: keys need no tables."""

    async def commit(self, batch: Sequence[Request]) -> None:
        """Apply the requests in order; a batch of units is one round trip, done as a whole or not at all."""
        await self._server.write(partial(writing.commit, segments=segments(batch), ttl=self._ttl))

    async def load(self, thread_id: str, checkpoint_ns: str, checkpoint_id: str | None) -> Page:
        """Return the addressed checkpoint, or the newest one."""
        find = partial(
            reading.load,
            thread_id=thread_id,
            checkpoint_ns=checkpoint_ns,
            checkpoint_id=checkpoint_id,
            ttl=self._refresh,
        )
        return await self._server.read(find)

    async def page(self, query: Query) -> Page:
        """Return a page of matching checkpoints."""
        return await self._server.read(partial(reading.page, query=query, ttl=self._refresh))

    def __repr__(self) -> str:
        """Name the server, without its password."""
        return repr(self._server)
