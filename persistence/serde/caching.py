"""How a cache stores values, whatever keeps its bytes."""

from __future__ import annotations

import logging
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final

from persistence.errors import SerializationError, StoredDataError
from persistence.serde.serializer import Serializer, Typed, place

if TYPE_CHECKING:
    from collections.abc import Mapping

    from persistence.contracts.cache import FullKey

LOG: Final = logging.getLogger("actorgraph")

_DIGEST: Final = 20
"""Bytes. Inputs may come from strangers, so a key must not be made to collide with another."""

Stored = tuple["FullKey", Typed, "float | None"]
"""A key, its value in stored form, and the seconds that it stays."""


class CachedValues:
    """Turns values into bytes that carry a checksum, bound to their key where the serializer encrypts."""

    __slots__ = ("serde",)

    def __init__(self, serde: Serializer | None) -> None:
        """Take a serializer, or make one with the safe defaults."""
        self.serde = Serializer() if serde is None else serde

    def dump(self, pairs: Mapping[FullKey, tuple[Any, float | None]]) -> list[Stored]:
        """Return the stored form of each value. Raises SerializationError naming the key."""
        return [(key, self._dumped(key, value), ttl) for key, (value, ttl) in pairs.items()]

    def _dumped(self, key: FullKey, value: object) -> Typed:
        try:
            return self.serde.seal(self.serde.dumps_typed(value), key_place(key))
        except SerializationError as error:
            message = f"A value of cache namespace {key[0]!r} cannot be kept: {error}"
            raise SerializationError(message) from error

    def load(self, stored: Mapping[FullKey, Typed]) -> dict[FullKey, Any]:
        """Rebuild what can be rebuilt; what cannot is left out, and the log says why."""
        found = {}
        for key, typed in stored.items():
            try:
                found[key] = self.serde.loads_typed(self.serde.open(typed, key_place(key)))
            except StoredDataError as error:
                LOG.warning("A value of cache namespace %r is not used: %s", key[0], error)
        return found

    def key_of(self, value: object) -> str:
        """Return a digest of the value's stable form. Raises SerializationError."""
        return blake2b(self.serde.stable_form(value), digest_size=_DIGEST).hexdigest()


def key_place(key: FullKey) -> bytes:
    """Return where a value is kept, for a serializer that binds values to their place."""
    namespace, name = key
    return place(*namespace, name)
