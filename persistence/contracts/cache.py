"""The cache port: where results of nodes are kept for equal inputs.

A cache may forget anything at any time. What it cannot read back (damaged, expired, of a type that is not registered)
it has not: a miss, never an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from persistence.errors import UnsupportedOperationError

Namespace: TypeAlias = tuple[str, ...]
"""A place for keys, from the general to the particular."""

FullKey: TypeAlias = tuple[Namespace, str]


class BaseCache:
    """What third parties subclass. Values go in and come out as they are; storing them is the cache's business."""

    async def aget(self, keys: Sequence[FullKey]) -> dict[FullKey, Any]:
        """Return what is there of these keys, as new objects that nobody else has."""
        raise self._lacks("aget")

    async def aset(self, pairs: Mapping[FullKey, tuple[Any, float | None]]) -> None:
        """Keep values, each with the seconds that it stays; None: until it is cleared.

        Values are turned into bytes before anything is waited for.

        Raises:
            SerializationError: A value cannot be stored; none of them was.
        """
        raise self._lacks("aset")

    async def aclear(self, namespaces: Sequence[Namespace] | None = None) -> None:
        """Forget what is in these namespaces and in those that begin with them; None: everything."""
        raise self._lacks("aclear")

    def key_of(self, value: object) -> str:
        """Return a key that stands for a value: the same for equal values in every process, for others another.

        Raises:
            SerializationError: The value has no stored form that could be compared.
        """
        raise self._lacks("key_of")

    def register_types(self, types: Iterable[type]) -> None:
        """Allow values of these types to be kept and rebuilt."""

    def _lacks(self, method: str) -> UnsupportedOperationError:
        return UnsupportedOperationError(f"{type(self).__name__} does not implement {method}().")
