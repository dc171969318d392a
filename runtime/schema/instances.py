"""From an instance of a state type to the writes it stands for.

Only fields that were set are writes. A pydantic model remembers which these are. A dataclass, Struct or NamedTuple
cannot tell "left alone" from "set to the default", so a field that equals its default counts as left alone: to put
such a field back to its default, return a dict. As a graph's input, an instance also brings its defaults, where they
replace nothing.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
from collections.abc import Callable, Container, Mapping
from typing import Any, Final

import msgspec

from runtime.channels import MISSING, detached
from runtime.errors import GraphDefinitionError
from runtime.schema.hints import field_names, is_dataclass, is_pydantic, kind_of
from runtime.types.attributes import attribute, field_value
from runtime.types.command import Command, Overwrite, Send
from runtime.types.interrupts import Interrupt

_CONTAINERS: Final = (list, dict, set)


_COPIED: Final = ("dataclass", "pydantic", "struct")

_NO_STATES: Final = (Command, Interrupt, Overwrite, Send)
"""Classes of the runtime's own: an instance says what to do, not what the state is."""


def updates_of(value: object, received: object = MISSING) -> list[tuple[str, Any]] | None:
    """Return the writes that an instance of an annotated class stands for; None for anything else.

    ``received`` is what the node was given, if known: returned itself, changed in place, all its fields are writes.
    """
    cls: Any = type(value)
    present = _fields(value)
    if present is None:
        return None
    defaults = _defaults(cls)
    given: set[str] | None = _set_fields(value)
    if given is not None:
        return [(name, item) for name, item in present if name in given or _was_filled(item, defaults.get(name))]
    if value is received:
        return present
    return [(name, item) for name, item in present if name not in defaults or not _is_same(item, defaults[name]())]


def input_of(value: object, written: Container[str]) -> list[tuple[str, Any]] | None:
    """Return the writes that an instance stands for as a graph's input; None for what is no instance.

    Its defaults are among them, for keys that are not ``written`` yet: a caller gives a whole state, and there is
    nothing that they could replace. None as a pydantic model's default is left out: it stands for no value there,
    whatever the field's type says.
    """
    chosen, present = updates_of(value), _fields(value)
    if chosen is None or present is None:
        return None
    names = {name for name, _ in chosen}
    no_value = (None, msgspec.UNSET) if _set_fields(value) is not None else (msgspec.UNSET,)
    return [
        (name, item)
        for name, item in present
        if name in names or (name not in written and not any(item is each for each in no_value))
    ]


def apart(value: Any) -> Any:
    """Return a model, dataclass, Struct or NamedTuple as a copy, its containers copied too; anything else as it is.

    Copying runs code of the value's class. What that does not let be copied stays as it is, and is shared.
    """
    try:
        return _copied(value)
    except Exception:  # noqa: BLE001 - see above
        return value


def _copied(value: Any) -> Any:
    cls: Any = type(value)
    if isinstance(value, tuple):
        named = getattr(cls, "_fields", ())
        changed = {name: fresh for name in named if (fresh := detached(item := getattr(value, name))) is not item}
        return value._replace(**changed) if changed else value  # type: ignore[attr-defined]  # a NamedTuple
    fields = _fields(value) if kind_of(cls) in _COPIED else None
    if fields is None:
        return value
    changed = {name: fresh for name, item in fields if (fresh := detached(item)) is not item}
    copied = copy.copy(value)
    if copied is value:
        return value
    for name, fresh in changed.items():
        if isinstance(copied, msgspec.Struct):
            msgspec.structs.force_setattr(copied, name, fresh)
        elif _set_fields(value) is not None:
            copied.__dict__[name] = fresh
        else:
            object.__setattr__(copied, name, fresh)
    return copied


def _fields(value: object) -> list[tuple[str, Any]] | None:
    if isinstance(value, _NO_STATES):
        return None
    cls: Any = type(value)
    names = _writable(cls)
    if names is None:
        return None
    return [(name, item) for name in names if (item := field_value(value, name, MISSING)) is not MISSING]


def _set_fields(value: object) -> set[str] | None:
    """Return the names of the fields of a pydantic model that were set; None for anything else."""
    cls: Any = type(value)
    found: set[str] | None = attribute(value, "__pydantic_fields_set__") if _is_model(cls) else None
    return found


@functools.lru_cache(maxsize=1024)
def _is_model(cls: type) -> bool:
    return is_pydantic(cls)


@functools.lru_cache(maxsize=1024)
def _writable(cls: type) -> tuple[str, ...] | None:
    if kind_of(cls) in ("bare", "typeddict"):
        return None
    try:
        return field_names(cls)
    except GraphDefinitionError:
        return None


@functools.lru_cache(maxsize=1024)
def _defaults(cls: type) -> Mapping[str, Callable[[], Any]]:
    """Return a way to make the default of each field that has one."""
    kind = kind_of(cls)
    if kind == "pydantic":
        return _pydantic_defaults(cls)
    if kind == "struct":
        return {
            field.name: _maker(field.default, field.default_factory, msgspec.NODEFAULT)
            for field in msgspec.structs.fields(cls)
            if not field.required
        }
    if is_dataclass(cls):
        return {
            field.name: _maker(field.default, field.default_factory, dataclasses.MISSING)
            for field in dataclasses.fields(cls)
            if field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING
        }
    named: Mapping[str, Any] | None = attribute(cls, "_field_defaults")
    if named is not None:
        return {name: _constant(default) for name, default in named.items()}
    declared = {name: attribute(cls, name, _SLOT) for name in field_names(cls)}
    return {name: _constant(default) for name, default in declared.items() if not _is_slot(default)}


def _pydantic_defaults(cls: Any) -> Mapping[str, Callable[[], Any]]:
    """Only containers count: pydantic hands out a new one each time, which a program may fill without setting it."""
    defaults: dict[str, Callable[[], Any]] = {}
    for name, field in cls.model_fields.items():
        if isinstance(field.default, _CONTAINERS):
            defaults[name] = _constant(field.default)
        elif field.default_factory in _CONTAINERS:
            defaults[name] = field.default_factory
    return defaults


def _maker(default: Any, factory: Any, absent: object) -> Callable[[], Any]:
    return factory if default is absent else _constant(default)


def _constant(value: Any) -> Callable[[], Any]:
    return lambda: value


_SLOT: Final = object()


def _is_slot(value: object) -> bool:
    """Tell whether a class attribute is the descriptor of a slot, not a default."""
    return value is _SLOT or hasattr(type(value), "__set__")


def _was_filled(item: Any, default: Callable[[], Any] | None) -> bool:
    return default is not None and not _is_same(item, default())


def _is_same(item: Any, default: Any) -> bool:
    if item is default:
        return True
    if type(item) is not type(default):  # False is not 0, although they are equal
        return False
    try:
        return bool(item == default)
    except Exception:  # noqa: BLE001 - arrays, for one, have no single answer: then it was set
        return False
