"""MongoDBStore: long-term memory in MongoDB, shared by any number of processes."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Self

from persistence.blocking import BlockingSetup
from persistence.mongo import shelved
from persistence.mongo.looking import Shelves
from persistence.mongo.options import Options
from persistence.mongo.saver import with_database
from persistence.mongo.server import Server, Session, Source, checked
from persistence.mongo.shelved import ITEMS, Refreshed
from persistence.stores.remote import Changes, RemoteStore
from persistence.writer.limits import DEFAULT_LIMITS
from persistence.writer.remote import chosen

if TYPE_CHECKING:
    from persistence.contracts.store import IndexConfig, Op, TTLConfig
    from persistence.serde.serializer import Serializer
    from persistence.stores.planning import Plan


class MongoDBStore(BlockingSetup, RemoteStore[Session, Refreshed]):
    """Keeps items on a MongoDB server (4.4 or newer); a saver's collections may stand beside them.

    Open it with ``async with store`` (or ``with store``). In a replica set or a sharded cluster the puts of a batch
    are one transaction; on a server that stands alone each item is whole, but a process or server that dies may leave
    a batch half done. What many tasks put at once is written together, without sharing each other's failures. Items
    with a time to live vanish from the server by themselves. A filter decodes the items of its namespace here, and a
    search by meaning compares every vector of it here, so choose namespaces so that one holds what is searched
    together.
    """

    def __init__(
        self,
        source: Source,
        *,
        index: IndexConfig | None = None,
        ttl: TTLConfig | None = None,
        serde: Serializer | None = None,
        clock: Callable[[], float] = time.time,
        options: Options | None = None,
        **settings: Any,
    ) -> None:
        """Describe a store; nothing is opened yet.

        ``source``, ``options`` and ``settings`` are those of ``MongoDBSaver``. ``index`` says how to search by
        meaning, ``ttl`` when items expire. ``serde`` turns values into bytes, with the safe defaults if it is None.
        ``clock`` tells the seconds by which items expire; processes must agree on it.
        """
        self._server = Server(checked(source), chosen(Options, options, settings), DEFAULT_LIMITS, ITEMS)
        super().__init__(self._server, index=index, ttl=ttl, serde=serde, clock=clock)

    @classmethod
    def from_conn_string(
        cls,
        conn_string: str,
        db_name: str | None = None,
        *,
        index: IndexConfig | None = None,
        ttl: TTLConfig | None = None,
        **settings: Any,
    ) -> Self:
        """Return a store for a URL, and a database if the URL names none; open it with ``async with`` or ``with``."""
        return cls(conn_string, index=index, ttl=ttl, **with_database(settings, db_name))

    async def asetup(self) -> None:
        """Create the indexes; opening the store does it already."""
        self._opened()
        await self._server.setup()

    async def _open(self) -> None:
        await self._server.open()

    async def _look(
        self, session: Session, *, plan: Plan, given: Sequence[Op], now: float
    ) -> tuple[list[Any], Sequence[Refreshed]]:
        del given
        return await Shelves(session, self._codec, self._dims, now).look(plan)

    async def _change(self, session: Session, *, changes: Sequence[Changes[Refreshed]]) -> None:
        await shelved.change(session, changes, self._dims)

    async def _sweep(self, session: Session, *, now: float) -> int:
        return await shelved.sweep(session, now)
