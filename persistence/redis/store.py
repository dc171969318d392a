"""RedisStore: long-term memory in Redis or Valkey, shared by any number of processes."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Self

from persistence.redis import shelved
from persistence.redis.options import Options
from persistence.redis.saver import given, with_arguments
from persistence.redis.server import Server, Session, Source, checked
from persistence.redis.shelved import Refreshed, Shelves
from persistence.stores.remote import Changes, RemoteStore
from persistence.writer.limits import DEFAULT_LIMITS
from persistence.writer.remote import chosen

if TYPE_CHECKING:
    from persistence.contracts.store import IndexConfig, Op, TTLConfig
    from persistence.serde.serializer import Serializer
    from persistence.stores.planning import Plan


class RedisStore(RemoteStore[Session, Refreshed]):
    """Keeps items on a Redis (6.2 or newer) or Valkey server; a saver's keys may stand beside them.

    Open it with ``async with store`` (or ``with store``). The puts of a batch are one call of a script, done as a
    whole; what many tasks put at once shares one, without sharing each other's failures. Items with a time to live
    vanish from the server by themselves. The server has no index for filters or vectors: a filter decodes the items of
    its namespace here, and a search by meaning compares every vector of it here, so choose namespaces so that one
    holds what is searched together. What was acknowledged survives what the server's ``appendfsync`` survives.
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

        ``source``, ``options`` and ``settings`` are those of ``RedisSaver``. ``index`` says how to search by meaning,
        ``ttl`` when items expire. ``serde`` turns values into bytes, with the safe defaults if it is None. ``clock``
        tells the seconds by which items expire; processes must agree on it.
        """
        self._server = Server(checked(source), chosen(Options, options, settings), DEFAULT_LIMITS)
        super().__init__(self._server, index=index, ttl=ttl, serde=serde, clock=clock)

    @classmethod
    def from_conn_string(
        cls,
        conn_string: str | None = None,
        *,
        redis_client: Any = None,
        connection_args: dict[str, Any] | None = None,
        index: IndexConfig | None = None,
        ttl: TTLConfig | None = None,
        **settings: Any,
    ) -> Self:
        """Return a store for a URL, or for a client of one's own; open it with ``async with`` or ``with``."""
        arguments = with_arguments(settings, connection_args)
        return cls(*given(conn_string, redis_client), index=index, ttl=ttl, **arguments)

    async def asetup(self) -> None:
        """Do nothing: keys need no tables."""
        self._opened()

    def setup(self) -> None:
        """Do nothing: keys need no tables."""

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
