"""From stored extensions back to values.

msgspec does the reading and calls back for each extension. What may happen then is what the table of kinds says, and
for instances of classes what the catalog knows: nothing in the bytes is imported or called.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from msgspec.msgpack import Decoder

from persistence.errors import UnknownTypeError

if TYPE_CHECKING:
    from persistence.serde.catalog import Catalog

Read = Callable[["Reader", memoryview], object]
"""Turns the payload of one code into a value."""


class Reader:
    """Reads payloads; the decoders are made once, being dearer than most values."""

    __slots__ = ("_kinds", "array", "catalog", "frozenset", "set", "tuple", "value")

    def __init__(self, catalog: Catalog, kinds: Mapping[int, Read]) -> None:
        """Take the classes that may be rebuilt and how each code is read."""
        self.catalog: Final = catalog
        self._kinds = kinds
        self.value: Final = Decoder(ext_hook=self._build).decode
        self.array: Final = Decoder(list, ext_hook=self._build).decode
        self.tuple: Final = Decoder(tuple, ext_hook=self._build).decode
        self.set: Final = Decoder(set, ext_hook=self._build).decode
        self.frozenset: Final = Decoder(frozenset, ext_hook=self._build).decode

    def _build(self, code: int, data: memoryview) -> object:
        read = self._kinds.get(code)
        if read is None:
            msg = f"A stored value has the code {code}, which this version does not know; did a newer one write it?"
            raise UnknownTypeError(msg)
        return read(self, data)
