"""Which class a stored name means, and how the class's instances are stored."""

from __future__ import annotations

import dataclasses
import enum
from typing import TYPE_CHECKING, Any, Final

import msgspec

from persistence.errors import CorruptDataError, UnknownTypeError
from persistence.serde import arrays, exceptions, models, shapes, tags
from persistence.serde.known import known_class, known_name
from persistence.serde.parts import exactly
from persistence.serde.registry import SHARED, Registry
from persistence.serde.writing import Refusal, Write

if TYPE_CHECKING:
    from persistence.serde.reading import Read, Reader
    from persistence.serde.shapes import Shape


class Catalog:
    """A serializer's registry, backed by the shared one, with what is known of each class."""

    def __init__(self, registry: Registry, *, strict: bool) -> None:
        """Start from a registry; unless strict, classes met while writing are added to it."""
        self._registry: Final = registry
        self._strict = strict
        self._writes: dict[type, Write] = {}
        self._shapes: dict[str, Shape] = {}
        self._own_changes = registry.changes
        self._shared_changes = SHARED.changes

    def writer_for(self, cls: type) -> Write:
        """Return how instances of a class without a code of its own are written.

        Raises:
            Refusal: the class is not registered, or has no form that can be stored.
        """
        self._refresh()
        write = self._writes.get(cls)
        if write is None:
            write = self._found_write(cls)
            self._refresh()
            self._writes[cls] = write
        return write

    def read(self, code: int, parts: list[Any]) -> object:
        """Rebuild an instance of the class that the first part names.

        Raises:
            UnknownTypeError: nobody registered the name.
            CorruptDataError: the class is of another kind than the stored instance.
        """
        self._refresh()
        name, *rest = parts
        exactly(str, name, "The name of a stored class")
        shape = self._shapes.get(name)
        if shape is None:
            shape = self._shapes[name] = self._found_shape(name)
        if shape.code != code:
            msg = f"A stored {name} has the code {code}, but that class is now {_KINDS[shape.code]}."
            raise CorruptDataError(msg)
        return shape.read(rest)

    def _refresh(self) -> None:
        """Forget what was derived from the registries, should one of them have changed."""
        own, shared = self._registry.changes, SHARED.changes
        if own != self._own_changes or shared != self._shared_changes:
            self._own_changes, self._shared_changes = own, shared
            self._writes, self._shapes = {}, {}

    def _found_write(self, cls: type) -> Write:
        name = self._registry.name_of(cls) or SHARED.name_of(cls) or known_name(cls)
        if name is None:
            special = arrays.array_writer(cls) or models.secret_writer(cls)
            if special is not None:
                return special
            name = exceptions.builtin_name(cls) or self._admitted(cls)
        if self._find(name) is not cls:
            msg = (
                f"its class {_title(cls)} is registered, but the stored name {name!r} belongs to another class; "
                f"give it a name of its own with registry.register({cls.__name__}, name=...)"
            )
            raise Refusal(msg)
        shape = _shape_of(name, cls)
        if shape is None:
            raise Refusal(_no_form(cls))
        return shape.write

    def _found_shape(self, name: str) -> Shape:
        cls = self._find(name)
        if cls is None:
            msg = (
                f"A stored value is of the class {name!r:.200}, which is not registered; nothing was imported. "
                f"Register it with register_types(...), or let the graph's state schema name it."
            )
            raise UnknownTypeError(msg)
        shape = _shape_of(name, cls)
        if shape is None:
            msg = f"A stored value is of the class {name!r}, but instances of {_title(cls)} cannot be stored."
            raise CorruptDataError(msg)
        return shape

    def _find(self, name: str) -> type | None:
        return self._registry.lookup(name) or SHARED.lookup(name) or exceptions.BUILTIN.get(name) or known_class(name)

    def _admitted(self, cls: type) -> str:
        """Return the name of a class that is not registered: in strict mode there is none."""
        kind = _kind(cls)
        if kind is None:
            raise Refusal(_no_form(cls))
        if self._strict:
            raise Refusal(self._unregistered(cls, kind))
        self._registry.register(cls)
        name = self._registry.name_of(cls)
        return name if name is not None else f"{cls.__module__}:{cls.__qualname__}"

    def _unregistered(self, cls: type, kind: str) -> str:
        twin = self._find(f"{cls.__module__}:{cls.__qualname__}")
        if twin is not None:
            return (
                f"its class {_title(cls)} ({kind}) is not the registered class of that name: it was defined again, "
                f"or another one was; compile the graph again, or call register_types({cls.__name__})"
            )
        return (
            f"its class {_title(cls)} ({kind}) is not registered; call register_types({cls.__name__}) of "
            "persistence.serde, or annotate the graph's state schema with it, or what its task or entrypoint returns"
        )


def _title(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


def _no_form(cls: type) -> str:
    return (
        f"it is a {_title(cls)}, which has no stored form; keep it out of the state, or use a dataclass, Struct, "
        f"pydantic model, enum or named tuple"
    )


def _kind(cls: type) -> str | None:
    """Say what kind of class it is, if instances of it can be stored once it is registered."""
    shape = _shape_of("", cls)
    return None if shape is None else _KINDS[shape.code]


def _shape_of(name: str, cls: type) -> Shape | None:
    if issubclass(cls, enum.Enum):
        return shapes.EnumShape(name, cls)
    if issubclass(cls, BaseException):
        return exceptions.ExceptionShape(name, cls)
    if issubclass(cls, msgspec.Struct):
        return shapes.StructShape(name, cls)
    if models.is_model(cls):
        return models.ModelShape(name, cls)
    if shapes.is_named_tuple(cls):
        return shapes.NamedTupleShape(name, cls)
    if dataclasses.is_dataclass(cls):
        return shapes.DataclassShape(name, cls) if shapes.is_laid_out_like_object(cls) else None
    return shapes.builtin_shape(name, cls)


_KINDS: Final[dict[int, str]] = {
    tags.ENUM: "an enum",
    tags.EXCEPTION: "an exception",
    tags.STRUCT: "a msgspec Struct",
    tags.MODEL: "a pydantic model",
    tags.NAMED_TUPLE: "a named tuple",
    tags.DATACLASS: "a dataclass",
    tags.SUBCLASS: "a subclass of a builtin",
}


def _instance_reader(code: int) -> Read:
    def read(reader: Reader, data: memoryview) -> object:
        return reader.catalog.read(code, reader.array(data))

    return read


READS: Final[dict[int, Read]] = {
    tags.SECRET: models.read_secret,
    tags.ARRAY: arrays.read_array,
    tags.ARRAY_SCALAR: arrays.read_scalar,
    **{code: _instance_reader(code) for code in _KINDS},
}
"""How the codes of optional packages and of registered classes are read."""
