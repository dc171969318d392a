"""InMemoryCache: results kept for as long as this process lives, and no more of them than fit."""

from __future__ import annotations

import time
from collections import OrderedDict
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from persistence.blocking import BlockingCache
from persistence.contracts.cache import BaseCache
from persistence.serde.caching import CachedValues

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from types import TracebackType
    from typing import Self

    from persistence.contracts.cache import FullKey, Namespace
    from persistence.serde.serializer import Serializer, Typed

MAX_ENTRIES: Final = 10_000
"""Values kept at most; the one that was not asked for longest makes room."""

MAX_BYTES: Final = 64 * 1024 * 1024
"""Bytes kept at most, likewise. Small beside what a process with that many results uses anyway."""

ENTRY_BYTES: Final = 500
"""Counted for each entry beside its key and value: the objects around them, measured."""


@dataclass(frozen=True, slots=True)
class CacheStatistics:
    """How full a cache is and what it was good for."""

    max_entries: int
    max_bytes: int
    entries: int
    bytes: int
    peak_entries: int
    peak_bytes: int
    hits: int
    misses: int
    """Keys that were asked for and not there, the expired ones included."""
    evictions: int
    """Entries that made room for others, and values that were larger than all the room."""
    expirations: int
    """Entries found to be past their time."""


@dataclass(frozen=True, slots=True)
class _Entry:
    stored: Typed
    expires_at: float | None
    size: int


class InMemoryCache(BlockingCache, BaseCache):
    """Keeps encoded values in this process's memory, the least recently used leaving first.

    Values are encoded like in a database, so no two readers share an object and whatever works here works there. It
    needs no opening, and any event loop and thread may use it at once.
    """

    home_token: None = None
    home_thread: None = None

    def __init__(
        self,
        *,
        serde: Serializer | None = None,
        max_entries: int = MAX_ENTRIES,
        max_bytes: int = MAX_BYTES,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Make an empty cache.

        ``serde`` turns values into bytes, with the safe defaults if it is None; ``clock`` tells the seconds by which
        values expire.
        """
        if max_entries < 1 or max_bytes < 1:
            message = f"A cache holds at least 1 entry of 1 byte, got {max_entries} entries and {max_bytes} bytes."
            raise ValueError(message)
        self._values = CachedValues(serde)
        self._max_entries = max_entries
        self._max_bytes = max_bytes
        self._clock = clock
        self._lock = Lock()
        self._entries: OrderedDict[FullKey, _Entry] = OrderedDict()
        """The least recently used first."""
        self._bytes = 0
        self._peak_entries = self._peak_bytes = 0
        self._hits = self._misses = self._evictions = self._expirations = 0

    async def aget(self, keys: Sequence[FullKey]) -> dict[FullKey, Any]:
        """Return what is there of these keys."""
        now = self._clock()
        with self._lock:
            stored = {key: entry.stored for key in keys if (entry := self._fresh(key, now)) is not None}
        return self._values.load(stored)

    async def aset(self, pairs: Mapping[FullKey, tuple[Any, float | None]]) -> None:
        """Keep values, each with the seconds that it stays. Raises SerializationError; nothing was kept then."""
        dumped = self._values.dump(pairs)
        now = self._clock()
        with self._lock:
            for key, stored, ttl in dumped:
                self._drop(key)
                self._add(key, _Entry(stored, None if ttl is None else now + ttl, _size(key, stored)))

    async def aclear(self, namespaces: Sequence[Namespace] | None = None) -> None:
        """Forget what is in these namespaces and in those that begin with them; None: everything."""
        with self._lock:
            if namespaces is None:
                self._entries.clear()
                self._bytes = 0
                return
            heads = [tuple(namespace) for namespace in namespaces]
            for key in [key for key in self._entries if any(key[0][: len(head)] == head for head in heads)]:
                self._drop(key)

    def key_of(self, value: object) -> str:
        """Return a digest of the value's stored form. Raises SerializationError."""
        return self._values.key_of(value)

    def register_types(self, types: Iterable[type]) -> None:
        """Allow values of these types to be kept and rebuilt."""
        self._values.serde.register_types(types)

    def statistics(self) -> CacheStatistics:
        """Return how full it is and what it was good for."""
        with self._lock:
            return CacheStatistics(
                max_entries=self._max_entries,
                max_bytes=self._max_bytes,
                entries=len(self._entries),
                bytes=self._bytes,
                peak_entries=self._peak_entries,
                peak_bytes=self._peak_bytes,
                hits=self._hits,
                misses=self._misses,
                evictions=self._evictions,
                expirations=self._expirations,
            )

    async def __aenter__(self) -> Self:
        """Return the cache; there is nothing to open."""
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Keep everything: the cache can be used again."""

    def _fresh(self, key: FullKey, now: float) -> _Entry | None:
        """Return an entry that has not expired, and note that it was used."""
        entry = self._entries.get(key)
        if entry is not None and entry.expires_at is not None and entry.expires_at <= now:
            self._drop(key)
            self._expirations += 1
            entry = None
        if entry is None:
            self._misses += 1
            return None
        self._hits += 1
        self._entries.move_to_end(key)
        return entry

    def _add(self, key: FullKey, entry: _Entry) -> None:
        if entry.size > self._max_bytes:
            self._evictions += 1
            return
        while len(self._entries) >= self._max_entries or self._bytes + entry.size > self._max_bytes:
            self._drop(next(iter(self._entries)))
            self._evictions += 1
        self._entries[key] = entry
        self._bytes += entry.size
        self._peak_entries = max(self._peak_entries, len(self._entries))
        self._peak_bytes = max(self._peak_bytes, self._bytes)

    def _drop(self, key: FullKey) -> None:
        entry = self._entries.pop(key, None)
        if entry is not None:
            self._bytes -= entry.size

    def __repr__(self) -> str:
        """Tell how much it holds."""
        return f"<InMemoryCache: {len(self._entries)} of {self._max_entries} entries, {self._bytes} bytes>"


def _size(key: FullKey, stored: Typed) -> int:
    return ENTRY_BYTES + sum(map(len, key[0])) + len(key[1]) + len(stored[1])
