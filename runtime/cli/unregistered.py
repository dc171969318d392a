"""Reading stored values whose classes this process does not know.

The commands that look into a database have no graph, so nobody has registered its types. Nothing is imported to find
them: an instance of an unknown class is shown by its stored name, with what is stored inside it.
"""

from __future__ import annotations

from typing import Any

from persistence.errors import UnknownTypeError
from persistence.serde import Serializer, catalog, containers, times, values
from persistence.serde.reading import Reader
from runtime.engine.vocabulary import register


class Unregistered:
    """Stands for an instance of a class that is not registered here."""

    __slots__ = ("content", "name")

    def __init__(self, name: str, content: object) -> None:
        self.name = name
        """``module:qualname``, or the name the class was registered under."""
        self.content = content
        """What the instance holds: fields, items or the like."""

    def __repr__(self) -> str:
        return f"<unregistered type {self.name}>"


class _Catalog(catalog.Catalog):
    """Rebuilds instances of known classes, and stands in for the others."""

    def read(self, code: int, parts: list[Any]) -> object:
        try:
            return super().read(code, parts)
        except UnknownTypeError:
            name, *rest = parts
            return Unregistered(str(name), rest[0] if rest else None)


class ShowingSerializer(Serializer):
    """Reads what the ordinary serializer reads, and puts ``Unregistered`` where that would refuse."""

    def __init__(self) -> None:
        super().__init__()
        register()  # no graph has done it: questions and the like are the runtime's own
        kinds = containers.READS | values.READS | times.READS | catalog.READS
        self._showing = Reader(_Catalog(self.registry, strict=True), kinds)

    def loads_typed(self, typed: tuple[str, bytes]) -> object:
        """Return the value of a stored form. Raises StoredDataError if it is damaged or encrypted."""
        try:
            return super().loads_typed(typed)
        except UnknownTypeError:
            # Its checksum is right, or it would not have come to looking at names.
            return self._showing.value(memoryview(typed[1])[4:])
