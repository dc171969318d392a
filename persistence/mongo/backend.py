"""The MongoDB backend: one collection, each batch as a whole."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from pymongo import ASCENDING, IndexModel

from persistence.mongo import reading, writing
from persistence.mongo.faults import FOLLOWS
from persistence.mongo.server import Layout
from persistence.writer.batching import segments

if TYPE_CHECKING:
    from collections.abc import Sequence

    from persistence.contracts.backend import Page, Query, Request
    from persistence.mongo.server import Server

_CHECKPOINTS: Final = {"kind": "checkpoint"}

THREADS: Final = Layout(
    "threads",
    (
        IndexModel(
            [
                ("thread_id", ASCENDING),
                ("kind", ASCENDING),
                ("checkpoint_id", ASCENDING),
                ("checkpoint_ns", ASCENDING),
            ],
            name="of_a_thread",
        ),
        IndexModel(
            [("checkpoint_id", ASCENDING), ("thread_id", ASCENDING), ("checkpoint_ns", ASCENDING)],
            name="newest_first",
            partialFilterExpression=_CHECKPOINTS,
        ),
        IndexModel([("run_id", ASCENDING)], name="of_a_run", partialFilterExpression=_CHECKPOINTS),
        IndexModel([("owner", ASCENDING)], name="of_an_owner", partialFilterExpression={"kind": "chunk"}),
        IndexModel(
            [("thread_id", ASCENDING), ("checkpoint_ns", ASCENDING), (FOLLOWS, ASCENDING)],
            name=FOLLOWS,
            unique=True,
            partialFilterExpression={FOLLOWS: {"$type": "string"}},
        ),
    ),
)


class MongoBackend:
    """A saver's threads on one server."""

    def __init__(self, server: Server) -> None:
        """Keep checkpoints on a server; nothing is opened yet."""
        self._server = server

    async def open(self) -> None:
        """Connect once, and create the indexes if they are not there.

        Raises:
            BackendOpenError: The server cannot be reached, or refuses.
        """
        await self._server.open()

    async def close(self) -> None:
        """Close every connection that is ours; safe to call again."""
        await self._server.close()

    async def setup(self) -> None:
        """Create the indexes; safe from many processes at once."""
        await self._server.setup()

    async def commit(self, batch: Sequence[Request]) -> None:
        """Apply the requests in order: in one transaction where the server has them."""
        await self._server.write(partial(writing.commit, segments=segments(batch)))

    async def load(self, thread_id: str, checkpoint_ns: str, checkpoint_id: str | None) -> Page:
        """Return the addressed checkpoint, or the newest one."""
        find = partial(reading.load, thread_id=thread_id, checkpoint_ns=checkpoint_ns, checkpoint_id=checkpoint_id)
        return await self._server.read(find)

    async def page(self, query: Query) -> Page:
        """Return a page of matching checkpoints."""
        return await self._server.read(partial(reading.page, query=query))

    def __repr__(self) -> str:
        """Name the server, without its password."""
        return repr(self._server)
