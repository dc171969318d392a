"""Values and vectors as a store keeps them: encoded when they are put, bound to their address if they are encrypted."""

from __future__ import annotations

from typing import Any, Final

from persistence.contracts.store import Item, Namespace, SearchItem, Value
from persistence.errors import CorruptDataError, SerializationError
from persistence.serde.registry import register_types
from persistence.serde.serializer import Serializer, Typed, place

VECTORS: Final = "f32"
"""The type of packed vectors: numbers of single precision, little-endian, without a checksum."""

# So that a node may keep what it found in its state.
register_types(Item, SearchItem)


class Codec:
    """A store's serializer, and how the store uses it."""

    def __init__(self, serde: Serializer) -> None:
        """Use a serializer."""
        self.serde = serde

    def encode(self, namespace: Namespace, key: str, value: Value) -> Typed:
        """Return the stored form of a value. Raises SerializationError naming the item."""
        try:
            typed = self.serde.dumps_typed(value)
        except SerializationError as error:
            message = f"The item {key!r} of {namespace!r} cannot be stored: {error}"
            raise SerializationError(message) from error
        return self.serde.seal(typed, _place("value", namespace, key))

    def decode(self, namespace: Namespace, key: str, typed: Typed) -> Value:
        """Return the value of a stored form.

        Raises:
            StoredDataError: It cannot be read back.
        """
        value: Any = self.serde.loads_typed(self.serde.open(typed, _place("value", namespace, key)))
        if not isinstance(value, dict):
            message = f"The item {key!r} of {namespace!r} holds a {type(value).__name__}, not a dict."
            raise CorruptDataError(message)
        return value

    def encode_vectors(self, namespace: Namespace, key: str, vectors: bytes) -> Typed:
        """Return the stored form of packed vectors. They tell what a text is about, so they are sealed like it."""
        return self.serde.seal((VECTORS, vectors), _place("vectors", namespace, key))

    def decode_vectors(self, namespace: Namespace, key: str, typed: Typed) -> bytes:
        """Return the packed vectors of a stored form.

        Raises:
            StoredDataError: It cannot be read back.
        """
        kind, vectors = typed
        if kind == VECTORS and not self.serde.encrypts:
            return vectors
        kind, vectors = self.serde.open(typed, _place("vectors", namespace, key))
        if kind != VECTORS:
            message = f"The vectors of item {key!r} of {namespace!r} are stored as {kind!r}: put the item again."
            raise CorruptDataError(message)
        return vectors


def _place(what: str, namespace: Namespace, key: str) -> bytes:
    return place("store", what, *namespace, key)
