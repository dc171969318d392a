"""PostgresStore: long-term memory in PostgreSQL, shared by any number of processes."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Self

from persistence.blocking import BlockingSetup
from persistence.contracts.store import SearchOp
from persistence.postgres import shelved
from persistence.postgres.backend import Database, Source
from persistence.postgres.options import Options, PoolConfig, pooled
from persistence.postgres.saver import checked
from persistence.postgres.sessions import Session
from persistence.postgres.shelved import Shelves
from persistence.stores.carrying_out import Refresh
from persistence.stores.remote import Changes, RemoteStore
from persistence.writer.limits import DEFAULT_LIMITS
from persistence.writer.remote import chosen

if TYPE_CHECKING:
    from persistence.contracts.store import IndexConfig, Op, TTLConfig
    from persistence.serde.serializer import Serializer
    from persistence.stores.planning import Plan


class PostgresStore(BlockingSetup, RemoteStore[Session, Refresh]):
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
        self._database = Database(checked(source), chosen(Options, options, settings), DEFAULT_LIMITS)
        super().__init__(self._database, index=index, ttl=ttl, serde=serde, clock=clock)
        self._shelves = Shelves(self._codec, self._dims)

    @classmethod
    def from_conn_string(
        cls,
        conn_string: str,
        *,
        pipeline: bool = False,
        pool_config: PoolConfig | None = None,
        index: IndexConfig | None = None,
        ttl: TTLConfig | None = None,
        **settings: Any,
    ) -> Self:
        """Return a store for a URL; open it with ``async with`` or ``with``.

        ``pipeline`` is accepted for programs that pass it; of ``pool_config``, ``max_size`` is the ``pool_size``.
        """
        del pipeline
        return cls(conn_string, index=index, ttl=ttl, **pooled(pool_config, settings))

    async def asetup(self) -> None:
        """Create or migrate the tables; opening the store does it already."""
        self._opened()
        await self._database.persist(self._prepare)

    async def _prepare(self, session: Session) -> None:
        await shelved.prepare(session, self._database.name, self._dims, seals=self._codec.serde.encrypts)

    async def _open(self) -> None:
        await self._database.open(self._prepare)

    async def _look(
        self, session: Session, *, plan: Plan, given: Sequence[Op], now: float
    ) -> tuple[list[Any], Sequence[Refresh]]:
        filters = {place: op.filter for place, op in enumerate(given) if isinstance(op, SearchOp)}
        return await self._shelves.look(session, plan=plan, filters=filters, now=now)

    async def _change(self, session: Session, *, changes: Sequence[Changes[Refresh]]) -> None:
        await self._shelves.change(session, changes=changes)

    async def _sweep(self, session: Session, *, now: float) -> int:
        return await shelved.sweep(session, now)
