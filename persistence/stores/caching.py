"""ManagedCache: what caches on a database share: opening and closing, keys, types."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from types import TracebackType
from typing import Self

from persistence.blocking import BlockingCache
from persistence.contracts.cache import BaseCache, FullKey, Namespace
from persistence.errors import PersistenceClosedError
from persistence.outlasting import outlast
from persistence.serde.caching import CachedValues
from persistence.serde.serializer import Serializer
from persistence.serde.values import text_bytes
from persistence.writer.home import Homed


class ManagedCache(Homed, BlockingCache, BaseCache):
    """A cache that can be open, on one event loop."""

    def __init__(self, serde: Serializer | None) -> None:
        """Make a closed cache; ``serde`` turns values into bytes, with the safe defaults if it is None."""
        self._values = CachedValues(serde)

    async def __aenter__(self) -> Self:
        """Connect once, and create or migrate what the cache needs.

        Raises:
            BackendOpenError: The database cannot be opened; nothing was changed.
            PersistenceError: The cache is open already.
        """
        await self._move_in("cache", self._open, self._close)
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close the connections. Cancelling the scope around does not cut this short."""
        try:
            await outlast(self._close)
        finally:
            self._home = None

    @abstractmethod
    async def _open(self) -> None:
        """Connect."""

    @abstractmethod
    async def _close(self) -> None:
        """Disconnect, cancelled or not; safe to call again."""

    def key_of(self, value: object) -> str:
        """Return a digest of the value's stored form. Raises SerializationError."""
        return self._values.key_of(value)

    def register_types(self, types: Iterable[type]) -> None:
        """Allow values of these types to be kept and rebuilt."""
        self._values.serde.register_types(types)

    def _check(self) -> None:
        """Raise PersistenceClosedError if the cache is not open, SaverLoopError on another event loop."""
        if self._home is None:
            message = f"{self!r} is not open: use it inside 'async with cache:' (or 'with cache:')."
            raise PersistenceClosedError(message)
        self._home.check(self)


def name_of(key: FullKey) -> str:
    """Return an entry's name: each label of its namespace with a colon after it, then its key."""
    namespace, last = key
    return "".join(f"{_safe(label)}:" for label in namespace) + _safe(last)


def bounds_of(namespace: Namespace) -> tuple[str, str]:
    """Return the first name in and below a namespace, and the first after it; both empty for all there are."""
    first = "".join(f"{_safe(label)}:" for label in namespace)
    return (first, f"{first[:-1]};") if first else ("", "")


def _safe(text: str) -> str:
    """Return a text without colons; any text, and no two alike."""
    return text_bytes(text).decode("latin-1").replace("%", "%25").replace(":", "%3A")
