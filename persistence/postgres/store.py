"""PostgresStore: long-term memory in PostgreSQL, shared by any number of processes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Self

from persistence.contracts.store import SearchOp
from persistence.errors import BackendError, TransientBackendError
from persistence.outlasting import outlast
from persistence.postgres import shelved
from persistence.postgres.backend import Database, Source
from persistence.postgres.saver import checked, chosen
from persistence.postgres.shelved import Changes, Shelves
from persistence.stores.carrying_out import Reading
from persistence.stores.lanes import Failed, Lane
from persistence.stores.managed import ManagedStore
from persistence.writer.limits import DEFAULT_LIMITS

if TYPE_CHECKING:
    from anyio.abc import TaskGroup

    from persistence.contracts.store import IndexConfig, Op, Result, TTLConfig
    from persistence.postgres.options import Options
    from persistence.serde.serializer import Serializer


class PostgresStore(ManagedStore):
    """Keeps items in a PostgreSQL database; a saver's tables may stand beside them.

    Open it with ``async with store`` (or ``with store``); that creates or migrates its tables if need be. The puts of a
    batch are one transaction; what many tasks put at once shares one, without sharing each other's failures. Filters
    leave out on the server what cannot pass, by bound values; a search by meaning uses pgvector and its index, which
    finds nearly all of the nearest. With a serializer that encrypts, both look at every item of the namespace.
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

        ``source``, ``options`` and ``settings`` are those of ``PostgresSaver``. ``index`` says how to search by meaning
        (pgvector must be there to be created), ``ttl`` when items expire. ``serde`` turns values into bytes, with the
        safe defaults if it is None. ``clock`` tells the seconds by which items expire; processes must agree on it.
        """
        super().__init__(index=index, ttl=ttl, serde=serde, clock=clock)
        self._database = Database(checked(source), chosen(options, settings), DEFAULT_LIMITS)
        self._shelves = Shelves(self._codec, self._dims)
        self._writes: Lane[Changes] | None = None

    @classmethod
    def from_conn_string(
        cls,
        conn_string: str,
        *,
        pipeline: bool = False,
        index: IndexConfig | None = None,
        ttl: TTLConfig | None = None,
        **settings: Any,
    ) -> Self:
        """Return a store for a URL; open it with ``async with`` or ``with``.

        ``pipeline`` is accepted for programs that pass it.
        """
        del pipeline
        return cls(conn_string, index=index, ttl=ttl, **settings)

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Carry out operations together; returns one result each, None for puts, which are one transaction.

        Reads see the state before the batch's puts. Cancelled once the puts are on their way, they are done all the
        same, and the cancel arrives after that; before that, nothing is.

        Raises:
            PersistenceClosedError: The store is not open.
            SaverLoopError: It is open on another event loop.
            TransientBackendError: The database could not be reached for too long.
            BackendError: The database refused; nothing was written.
        """
        writes = self._opened()
        given = list(ops)
        plan = await self._planned(given)
        if not plan.size:
            return []
        now = self._clock()
        reading = Reading([None] * plan.size, [])
        if plan.reads:
            filters = {place: op.filter for place, op in enumerate(given) if isinstance(op, SearchOp)}
            reading = await self._database.read(partial(self._shelves.look, plan=plan, filters=filters, now=now))
        if plan.puts or reading.refreshes:
            await writes.order(Changes(reading.refreshes, plan.puts, now))
        return reading.results

    async def asetup(self) -> None:
        """Create or migrate the tables; opening the store does it already."""
        self._opened()
        await self._database.persist(self._prepare)

    def setup(self) -> None:
        """See ``asetup``; opens and closes the store if it is closed."""
        if self._home is not None:
            self._wait("asetup")
            return
        with self:
            self._wait("asetup")

    async def asweep_ttl(self) -> int:
        """Delete what has expired; return how many items that were."""
        self._opened()
        now, swept = self._clock(), 0
        while True:
            found = await self._database.persist(partial(shelved.sweep, now=now))
            swept += found
            if found < shelved.SWEPT:
                return swept

    async def _prepare(self, session: Any) -> None:
        await shelved.prepare(session, self._database.name, self._dims, seals=self._codec.serde.encrypts)

    async def _open(self) -> None:
        await self._database.open(self._prepare)

    def _start(self, nursery: TaskGroup) -> None:
        self._writes = Lane(self._write)
        nursery.start_soon(self._writes.run, name=f"writes of {self!r}")

    async def _drain(self) -> None:
        writes, self._writes = self._writes, None
        if writes is not None:
            writes.close()
            await outlast(writes.stopped.wait)

    async def _close(self) -> None:
        await self._database.close()

    async def _write(self, works: Sequence[Changes]) -> Sequence[Any]:
        """Write what many asked for together; if that is refused, each alone."""
        try:
            await self._database.persist(partial(self._shelves.change, changes=works))
        except TransientBackendError:
            raise
        except BackendError:
            if len(works) == 1:
                raise
            return [await self._alone(work) for work in works]
        return [None] * len(works)

    async def _alone(self, work: Changes) -> Failed[Changes] | None:
        try:
            await self._database.persist(partial(self._shelves.change, changes=(work,)))
        except BackendError as error:
            return Failed(error)
        return None

    def _opened(self) -> Lane[Changes]:
        if self._writes is None or self._home is None:
            raise self._closed()
        self._home.check(self)
        return self._writes

    def __repr__(self) -> str:
        """Name the database without its password, and tell whether it is open."""
        return f"<{type(self).__name__} {self._database.name}, {'closed' if self._home is None else 'open'}>"
