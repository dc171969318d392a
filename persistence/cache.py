"""What caches of third parties are made of: the base class with a serialiser, under LangGraph's names."""

from __future__ import annotations

from abc import ABCMeta
from collections.abc import Iterable
from typing import Any, Generic

from typing_extensions import TypeVar

from persistence.contracts.cache import BaseCache as CacheContract
from persistence.contracts.cache import FullKey, Namespace
from persistence.serde.caching import CachedValues
from persistence.serde.serializer import Serializer

__all__ = ["BaseCache", "FullKey", "Namespace"]


ValueT = TypeVar("ValueT", default=Any)
"""What a cache keeps."""


class BaseCache(CacheContract, Generic[ValueT], metaclass=ABCMeta):
    """Keeps results of nodes; ``aget``, ``aset`` and ``aclear`` are what a cache of your own has to have.

    Every cache of this project counts as an instance of it, for programs that ask.
    """

    @classmethod
    def __subclasshook__(cls, other: type) -> bool:
        return True if cls is BaseCache and issubclass(other, CacheContract) else NotImplemented

    def __init__(self, *, serde: Any = None) -> None:
        """Take what turns values into bytes: ``self.serde.dumps_typed(value)``, ``loads_typed``; safe by default."""
        self.serde: Any = Serializer() if serde is None else serde
        self._keys = CachedValues(self.serde if isinstance(self.serde, Serializer) else None)

    def key_of(self, value: object) -> str:
        """Return a digest of the value's stored form. Raises SerializationError."""
        return self._keys.key_of(value)

    def register_types(self, types: Iterable[type]) -> None:
        """Allow values of these types to be kept and rebuilt."""
        known = tuple(types)
        self._keys.serde.register_types(known)
        if self.serde is not self._keys.serde and hasattr(self.serde, "register_types"):
            self.serde.register_types(known)
