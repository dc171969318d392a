"""RedisCache: results that processes and machines share."""

from __future__ import annotations

import math
import struct
import time
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from persistence.redis.options import Options
from persistence.redis.scripts import CLEAR_CACHE, READ_CACHE, WRITE_CACHE
from persistence.redis.server import Server, Source, checked, unpacked
from persistence.redis.shelved import LONGEST
from persistence.stores.caching import ManagedCache, bounds_of, name_of
from persistence.writer.limits import DEFAULT_LIMITS
from persistence.writer.remote import chosen

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from persistence.contracts.cache import FullKey, Namespace
    from persistence.redis.server import Session
    from persistence.serde.serializer import Serializer, Typed

CLEARED: Final = 1000
"""Entries deleted by one call, so that clearing many holds nobody up for long."""

_EXPIRY: Final = struct.Struct("<d")
_NEVER: Final = math.inf


class RedisCache(ManagedCache):
    """Keeps values on a Redis (6.2 or newer) or Valkey server, which vanish from it when their time is over.

    Open it with ``async with cache`` (or ``with cache``). A saver's keys may stand beside it. Keys are digests of
    inputs. A serializer that encrypts hides the values, not which inputs were equal.
    """

    def __init__(
        self,
        source: Source,
        *,
        serde: Serializer | None = None,
        clock: Callable[[], float] = time.time,
        options: Options | None = None,
        **settings: Any,
    ) -> None:
        """Describe a cache; nothing is opened yet.

        ``source``, ``options`` and ``settings`` are those of ``RedisSaver``. ``serde`` turns values into bytes, with
        the safe defaults if it is None. ``clock`` tells the seconds by which values expire; processes must agree on it.
        """
        super().__init__(serde)
        self._server = Server(checked(source), chosen(Options, options, settings), DEFAULT_LIMITS)
        self._clock = clock

    async def _open(self) -> None:
        await self._server.open()

    async def _close(self) -> None:
        await self._server.close()

    async def aget(self, keys: Sequence[FullKey]) -> dict[FullKey, Any]:
        """Return what is there of these keys.

        Raises:
            PersistenceError: The cache is not open, or the server cannot be read.
        """
        server, now = self._opened(), self._clock()
        found: Sequence[bytes | None] = await server.read(partial(_read, names=[name_of(key) for key in keys]))
        stored = {key: typed for key, data in zip(keys, found, strict=True) if (typed := _typed(data, now)) is not None}
        return self._values.load(stored)

    async def aset(self, pairs: Mapping[FullKey, tuple[Any, float | None]]) -> None:
        """Keep values, each with the seconds that it stays; stored when this returns.

        Raises:
            PersistenceError: The cache is not open, a value cannot be stored, or the server refused. Nothing was kept
                then.
        """
        server, now = self._opened(), self._clock()
        entries: list[tuple[str, int, str]] = []
        values: list[bytes] = []
        for key, (kind, data), ttl in self._values.dump(pairs):
            until = _NEVER if ttl is None else now + ttl
            values.append(_EXPIRY.pack(until) + kind.encode() + b"\0" + data)
            milliseconds = 0 if ttl is None else max(1, min(math.ceil(ttl * 1000), LONGEST))
            entries.append((name_of(key), milliseconds, repr(until)))
        await server.persist(partial(_write, job=(repr(now), entries), values=values))

    async def aclear(self, namespaces: Sequence[Namespace] | None = None) -> None:
        """Forget what is in these namespaces and in those that begin with them; None: everything.

        Raises:
            PersistenceError: The cache is not open, or the server refused.
        """
        server = self._opened()
        for namespace in [()] if namespaces is None else namespaces:
            await server.persist(partial(_clear, bounds=_bounds(namespace)))

    def _opened(self) -> Server:
        self._check()
        return self._server

    def __repr__(self) -> str:
        """Name the server without its password, and tell whether it is open."""
        return f"<RedisCache {self._server.name}, {'closed' if self._home is None else 'open'}>"


async def _read(session: Session, names: Sequence[str]) -> Sequence[bytes | None]:
    return unpacked(*await session.run(READ_CACHE, names)) if names else ()


async def _write(session: Session, job: object, values: Sequence[bytes]) -> None:
    await session.run(WRITE_CACHE, job, values)


async def _clear(session: Session, bounds: tuple[str, str]) -> None:
    while await session.run(CLEAR_CACHE, (*bounds, CLEARED)) == CLEARED:
        pass


def _bounds(namespace: Namespace) -> tuple[str, str]:
    """Return the bounds of the names of all entries in and below a namespace."""
    first, after = bounds_of(namespace)
    return (f"[{first}", f"({after}") if first else ("-", "+")


def _typed(data: bytes | None, now: float) -> Typed | None:
    """Return what an entry holds, None if it is not there, damaged or expired."""
    if data is None or len(data) < _EXPIRY.size or not _EXPIRY.unpack_from(data)[0] > now:
        return None
    kind, _, value = data[_EXPIRY.size :].partition(b"\0")
    return kind.decode("utf-8", "replace"), value
