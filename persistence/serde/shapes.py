"""How instances of registered classes are stored: enums, dataclasses, Structs, named tuples, subclasses of builtins.

A shape is what is known of one class. No shape runs ``__init__``, ``__post_init__`` or a validator when it reads: a
value comes back as it was, not as the class would make it today. What a class gained since (fields with a default) is
filled in; what it lost is left out; a new field without a default is an error that names it.
"""

from __future__ import annotations

import dataclasses
import enum
import types
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

from persistence.errors import CorruptDataError
from persistence.serde import tags
from persistence.serde.parts import attributes_of, exactly
from persistence.serde.writing import Refusal, Writer, pack

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import msgspec
    from msgspec.msgpack import Ext
    from typing_extensions import TypeIs

_HEAP_TYPE: Final = 1 << 9
_OTHERS_AND_ABSENT: Final = 2
_OTHERS: Final = "An attribute of a stored object"
_SKIPPED: Final = "__orig_class__"  # typing hangs Box[int] on instances made by Box[int](...)


class Shape(Protocol):
    """How instances of one class are written and read."""

    code: int

    def write(self, writer: Writer, value: Any, depth: int) -> Ext:
        """Return the extension for an instance. Raises Refusal."""
        ...

    def read(self, parts: list[Any]) -> object:
        """Return the instance for what follows the stored name."""
        ...


def solid_base(cls: type) -> type:
    """Return the nearest base that is written in C, which decides how an instance is laid out."""
    base = cls
    while base.__flags__ & _HEAP_TYPE and base.__base__ is not None:
        base = base.__base__
    return base


def slots_of(cls: type) -> tuple[str, ...]:
    """Return the names of all slots of a class, its bases' included."""
    return tuple(
        name
        for base in reversed(cls.__mro__)
        if base.__flags__ & _HEAP_TYPE
        for name, member in vars(base).items()
        if type(member) is types.MemberDescriptorType
    )


def lacking(cls: type, name: str) -> CorruptDataError:
    """Say that a class has gained a field that its stored instances cannot have."""
    return CorruptDataError(
        f"A stored {cls.__qualname__} has no field {name!r}, which the class has now, without a default; give it one."
    )


def trimmed(head: Sequence[object], *optional: object) -> list[object]:
    """Append the optional parts, but not the empty ones at the end, which readers take for granted."""
    kept = list(optional)
    while kept and not kept[-1]:
        kept.pop()
    return [*head, *kept]


class EnumShape:
    """Members by name, so that a value may change; combinations of flags by value."""

    code = tags.ENUM

    def __init__(self, name: str, cls: type[enum.Enum]) -> None:
        """Remember the class and its stored name."""
        self._name = name
        self._cls = cls

    def write(self, writer: Writer, value: enum.Enum, depth: int) -> Ext:
        """Return the extension for a member."""
        member = value._name_
        if self._cls._member_map_.get(member) is value:
            return pack(self.code, [self._name, *writer.items((member,), depth)])
        if not isinstance(value, enum.Flag):
            msg = f"it is a {self._cls.__qualname__} that is not one of the enum's members"
            raise Refusal(msg)
        return pack(self.code, [self._name, None, writer.convert(value._value_, depth)])

    def read(self, parts: list[Any]) -> object:
        """Return the member."""
        member, *value = parts
        if member is not None:
            return self._cls._member_map_[exactly(str, member, "The name of a stored enum member")]
        if not issubclass(self._cls, enum.Flag):
            msg = f"A stored {self._cls.__qualname__} has no member name."
            raise CorruptDataError(msg)
        (number,) = value
        return self._cls(exactly(int, number, f"A stored {self._cls.__qualname__}"))


class DataclassShape:
    """Fields by name, whether they live in slots or in the instance's dict."""

    code = tags.DATACLASS

    def __init__(self, name: str, cls: type) -> None:
        """Look at the class's fields."""
        self._name = name
        self._cls = cls
        self._fields = {field.name: field for field in dataclasses.fields(cls)}
        self._slots = slots_of(cls)
        self._has_dict = bool(cls.__dictoffset__)

    def write(self, writer: Writer, value: object, depth: int) -> Ext:
        """Return the extension for an instance."""
        state = dict(value.__dict__) if self._has_dict else {}
        for slot in self._slots:
            try:
                state[slot] = object.__getattribute__(value, slot)
            except AttributeError:
                continue
        state.pop(_SKIPPED, None)
        fields, others, absent = divided(state, self._fields)
        head = [self._name, writer.attributes(fields, depth)]
        return pack(self.code, trimmed(head, writer.attributes(others, depth), absent))

    def read(self, parts: list[Any]) -> object:
        """Return the instance."""
        fields, *rest = parts
        others, absent = (rest or [{}]) + [[]] if len(rest) < _OTHERS_AND_ABSENT else rest
        attributes_of(fields, "A field of a stored dataclass")
        exactly(list, absent, "The list of unset fields of a stored dataclass")
        state = fields if fields.keys() == self._fields.keys() else self._evolved(fields, absent)
        if others:
            state = {**state, **attributes_of(others, _OTHERS)}
        value: Any = object.__new__(self._cls)
        for slot in self._slots:
            if slot in state:
                object.__setattr__(value, slot, state.pop(slot))
        if self._has_dict:
            value.__dict__.update(state)
        return value

    def _evolved(self, stored: Mapping[str, object], absent: list[str]) -> dict[str, object]:
        state = {name: item for name, item in stored.items() if name in self._fields}
        for name, field in self._fields.items():
            if name in state or name in absent:
                continue
            if field.default is not dataclasses.MISSING:
                state[name] = field.default
            elif field.default_factory is not dataclasses.MISSING:
                state[name] = field.default_factory()
            elif field.init:
                raise lacking(self._cls, name)
        return state


class StructShape:
    """Fields by name; made by the class itself, but never through ``__post_init__``."""

    code = tags.STRUCT

    def __init__(self, name: str, cls: type[msgspec.Struct]) -> None:
        """Look at the class's fields."""
        self._name = name
        self._cls = cls
        self._fields = frozenset(cls.__struct_fields__)
        self._has_dict = bool(cls.__dictoffset__)
        self._make = _maker_without_post_init(cls) if hasattr(cls, "__post_init__") else cls

    def write(self, writer: Writer, value: msgspec.Struct, depth: int) -> Ext:
        """Return the extension for an instance."""
        try:
            fields = {field: getattr(value, field) for field in value.__struct_fields__}
        except AttributeError as error:
            msg = f"it is a {self._cls.__qualname__} with an unset field ({error})"
            raise Refusal(msg) from None
        others = dict(value.__dict__) if self._has_dict else {}
        others.pop(_SKIPPED, None)
        return pack(
            self.code, trimmed([self._name, writer.attributes(fields, depth)], writer.attributes(others, depth))
        )

    def read(self, parts: list[Any]) -> object:
        """Return the instance."""
        fields, *others = parts
        attributes_of(fields, "A field of a stored Struct")
        if fields.keys() != self._fields:
            fields = {name: item for name, item in fields.items() if name in self._fields}
        try:
            value = self._make(**fields)
        except TypeError as error:
            msg = f"A stored {self._cls.__qualname__} does not fit the class as it is now: {error}."
            raise CorruptDataError(msg) from error
        if others:
            (attributes,) = others
            value.__dict__.update(attributes_of(attributes, _OTHERS))
        return value


class NamedTupleShape:
    """Items in order."""

    code = tags.NAMED_TUPLE

    def __init__(self, name: str, cls: type[tuple[Any, ...]]) -> None:
        """Look at the class's fields."""
        self._name = name
        self._cls = cls
        self._fields: tuple[str, ...] = cast("Any", cls)._fields
        self._defaults: dict[str, object] = getattr(cls, "_field_defaults", {})
        self._has_dict = bool(cls.__dictoffset__)

    def write(self, writer: Writer, value: tuple[object, ...], depth: int) -> Ext:
        """Return the extension for an instance."""
        if self._has_dict and value.__dict__:
            msg = f"it is a {self._cls.__qualname__}, a tuple with attributes of its own ({', '.join(value.__dict__)})"
            raise Refusal(msg)
        return pack(self.code, [self._name, *writer.items(tuple.__iter__(value), depth)])

    def read(self, parts: list[Any]) -> object:
        """Return the instance."""
        items = list(parts)
        if len(items) > len(self._fields):
            msg = f"A stored {self._cls.__qualname__} has {len(items)} items; the class has {len(self._fields)} now."
            raise CorruptDataError(msg)
        for field in self._fields[len(items) :]:
            if field not in self._defaults:
                raise lacking(self._cls, field)
            items.append(self._defaults[field])
        return tuple.__new__(self._cls, items)


class SubclassShape:
    """Subclasses of str, int, list, dict ...: the builtin value and the instance's attributes."""

    code = tags.SUBCLASS

    def __init__(self, name: str, cls: type, base: type) -> None:
        """Remember how the builtin below the class is taken out and put in."""
        self._name = name
        self._cls = cls
        self._base: Any = base
        self._fill = _FILLERS.get(base)
        self._has_dict = bool(cls.__dictoffset__)

    def write(self, writer: Writer, value: Any, depth: int) -> Ext:
        """Return the extension for an instance."""
        others = dict(value.__dict__) if self._has_dict else {}
        others.pop(_SKIPPED, None)
        builtin = writer.convert(_BUILTINS[self._base](value), depth)
        return pack(self.code, trimmed([self._name, builtin], writer.attributes(others, depth)))

    def read(self, parts: list[Any]) -> object:
        """Return the instance."""
        builtin, *others = parts
        if type(builtin) is not self._base:
            msg = f"A stored {self._cls.__qualname__} holds a {type(builtin).__name__}, not a {self._base.__name__}."
            raise CorruptDataError(msg)
        value: Any = self._base.__new__(self._cls, *([builtin] if self._fill is None else []))
        if self._fill is not None:
            self._fill(value, builtin)
        if others:
            (attributes,) = others
            value.__dict__.update(attributes_of(attributes, _OTHERS))
        return value


_BUILTINS: Final[dict[type, Callable[[Any], object]]] = {
    str: str.__str__,
    int: int.__int__,
    float: float.__float__,
    complex: complex.__complex__,
    bytes: lambda value: bytes(memoryview(value)),
    bytearray: lambda value: bytearray(memoryview(value)),
    tuple: lambda value: tuple(tuple.__iter__(value)),
    list: lambda value: list(list.__iter__(value)),
    dict: dict.copy,
    set: lambda value: set(set.__iter__(value)),
    frozenset: lambda value: frozenset(frozenset.__iter__(value)),
}
"""Take the exact builtin out of an instance of a subclass, past whatever the subclass overrides."""

_FILLERS: Final[dict[type, Callable[[Any, Any], object]]] = {
    bytearray: bytearray.extend,
    list: list.extend,
    dict: dict.update,
    set: set.update,
}
"""Put a mutable builtin's contents into a bare instance; immutable ones are made with theirs."""


def divided(
    state: dict[str, object], fields: Mapping[str, object]
) -> tuple[dict[str, object], dict[str, object], list[str]]:
    """Split an object's attributes into fields, others, and the names of fields it does not have."""
    if state.keys() == fields.keys():
        return state, {}, []
    mine = {name: state[name] for name in fields if name in state}
    others = {name: item for name, item in state.items() if name not in fields}
    return mine, others, [name for name in fields if name not in state]


def _maker_without_post_init(cls: type[msgspec.Struct]) -> Callable[..., Any]:
    """Return what makes instances like the class does, less ``__post_init__``.

    msgspec offers no other way to set fields on a bare instance: a subclass without the method makes it, and is then
    exchanged for the class, whose layout is the same.
    """

    def leave_alone(self: object) -> None:
        """Do nothing: the stored values are final."""

    def body(namespace: dict[str, object]) -> None:
        namespace.update(__post_init__=leave_alone, __module__=cls.__module__, __qualname__=cls.__qualname__)

    twin = types.new_class(cls.__name__, (cls,), {}, body)
    become: Any = vars(object)["__class__"].__set__

    def make(**fields: object) -> object:
        value = twin(**fields)
        become(value, cls)
        return value

    return make


def is_named_tuple(cls: type) -> TypeIs[type[tuple[Any, ...]]]:
    """Whether a class was made by ``NamedTuple`` or ``namedtuple``, or derives from one that was."""
    fields = getattr(cls, "_fields", None)
    return issubclass(cls, tuple) and isinstance(fields, tuple) and all(isinstance(name, str) for name in fields)


def is_laid_out_like_object(cls: type) -> bool:
    """Whether a bare instance can be made without asking the class."""
    try:
        object.__new__(cls)
    except TypeError:
        return False
    return True


def builtin_shape(name: str, cls: type) -> Shape | None:
    """Return the shape of a subclass of a builtin; None if it is not one that can be stored."""
    base = solid_base(cls)
    if base in _BUILTINS and not slots_of(cls):
        return SubclassShape(name, cls, base)
    return None
