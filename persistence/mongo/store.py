"""MongoDBStore: long-term memory in MongoDB, shared by any number of processes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Self

from persistence.errors import BackendError, TransientBackendError
from persistence.mongo import shelved
from persistence.mongo.looking import Shelves
from persistence.mongo.saver import chosen, with_database
from persistence.mongo.server import Server, Source, checked
from persistence.mongo.shelved import ITEMS, Changes, Refreshed
from persistence.outlasting import outlast
from persistence.stores.carrying_out import Reading
from persistence.stores.lanes import Failed, Lane
from persistence.stores.managed import ManagedStore
from persistence.writer.limits import DEFAULT_LIMITS

if TYPE_CHECKING:
    from anyio.abc import TaskGroup

    from persistence.contracts.store import IndexConfig, Op, Result, TTLConfig
    from persistence.mongo.options import Options
    from persistence.serde.serializer import Serializer


class MongoDBStore(ManagedStore):
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
        super().__init__(index=index, ttl=ttl, serde=serde, clock=clock)
        self._server = Server(checked(source), chosen(options, settings), DEFAULT_LIMITS, ITEMS)
        self._shelves = Shelves(self._codec, self._dims)
        self._writes: Lane[Changes] | None = None

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

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Carry out operations together; returns one result each, None for puts.

        Reads see the state before the batch's puts. Cancelled once the puts are on their way, they are done all the
        same, and the cancel arrives after that; before that, nothing is.

        Raises:
            PersistenceClosedError: The store is not open.
            SaverLoopError: It is open on another event loop.
            TransientBackendError: The server could not be reached for too long.
            BackendError: The server refused.
        """
        writes = self._opened()
        plan = await self._planned(ops)
        if not plan.size:
            return []
        now = self._clock()
        reading, refreshes = Reading([None] * plan.size, []), list[Refreshed]()
        if plan.reads:
            reading, refreshes = await self._server.read(partial(self._shelves.look, plan=plan, now=now))
        if plan.puts or refreshes:
            await writes.order(Changes(refreshes, plan.puts, now))
        return reading.results

    async def asetup(self) -> None:
        """Create the indexes; opening the store does it already."""
        self._opened()
        await self._server.setup()

    def setup(self) -> None:
        """See ``asetup``; blocks. Opens and closes the store if it is closed."""
        if self.home_token is not None:
            self._wait("asetup")
            return
        with self:
            self._wait("asetup")

    async def asweep_ttl(self) -> int:
        """Delete what has expired; return how many items that were."""
        self._opened()
        now, swept = self._clock(), 0
        while True:
            found = await self._server.persist(partial(shelved.sweep, now=now))
            swept += found
            if found < shelved.SWEPT:
                return swept

    async def _open(self) -> None:
        await self._server.open()

    def _start(self, nursery: TaskGroup) -> None:
        self._writes = Lane(self._write)
        nursery.start_soon(self._writes.run, name=f"writes of {self!r}")

    async def _drain(self) -> None:
        writes, self._writes = self._writes, None
        if writes is not None:
            writes.close()
            await outlast(writes.stopped.wait)

    async def _close(self) -> None:
        await self._server.close()

    async def _write(self, works: Sequence[Changes]) -> Sequence[Any]:
        """Write what many asked for together; if that is refused, each alone."""
        try:
            await self._change(works)
        except TransientBackendError:
            raise
        except BackendError:
            if len(works) == 1:
                raise
            return [await self._alone(work) for work in works]
        return [None] * len(works)

    async def _alone(self, work: Changes) -> Failed[Changes] | None:
        try:
            await self._change((work,))
        except BackendError as error:
            return Failed(error)
        return None

    async def _change(self, works: Sequence[Changes]) -> None:
        await self._server.persist(partial(shelved.change, changes=works, dims=self._dims))

    def _opened(self) -> Lane[Changes]:
        if self._writes is None or self._home is None:
            raise self._closed()
        self._home.check(self)
        return self._writes

    def __repr__(self) -> str:
        """Name the server without its password, and tell whether it is open."""
        return f"<{type(self).__name__} {self._server.name}, {'closed' if self._home is None else 'open'}>"
