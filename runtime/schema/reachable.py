"""Which classes a value of an annotated type can be made of; the serialiser may rebuild these and no others."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from enum import Enum
from typing import Any, Final, Literal, NewType, ParamSpec, TypeGuard, TypeVar, TypeVarTuple

import msgspec
import typing_extensions as te

from runtime.channels import BaseChannel
from runtime.schema.hints import is_dataclass, is_pydantic, is_pydantic_dataclass, try_fields_of
from runtime.schema.messages import message_types
from runtime.types.attributes import attribute
from runtime.types.managed import ManagedValue

_NOT_CLASSES_OF_VALUES: Final = frozenset(
    {"builtins", "typing", "typing_extensions", "types", "collections.abc", "abc", "msgspec"}
)


def types_in(*annotations: Any) -> set[type]:
    """Return every class that the annotations mention, those of nested fields included.

    Builtins and typing constructs are left out, and so are TypedDicts, whose values are plain dicts. A reducer or
    type with an attribute ``value_types`` (a function without parameters) names further annotations by it.
    """
    return {hint for hint in _reached(annotations) if _is_class(hint) and _is_class_of_values(hint)}


def is_for_msgspec(annotation: Any) -> bool:
    """Tell whether an annotation mentions a Struct or ``msgspec.Meta`` outside of pydantic's own models.

    pydantic takes no Struct, and passes over what a Meta asks for.
    """
    return any(
        issubclass(hint, msgspec.Struct)
        if _is_class(hint)
        else te.get_origin(hint) is te.Annotated and any(isinstance(meta, msgspec.Meta) for meta in hint.__metadata__)
        for hint in _reached([annotation], models=False)
    )


def _reached(annotations: Iterable[Any], *, models: bool = True) -> Iterator[Any]:
    """Yield the annotations and all that they mention, each once; ``models``: also what pydantic's models have."""
    seen: set[int] = set()
    waiting = list(annotations)
    kept = []  # an id is only worth something as long as its object lives
    while waiting:
        hint = waiting.pop()
        if id(hint) in seen:
            continue
        seen.add(id(hint))
        kept.append(hint)
        yield hint
        if not _is_class(hint):
            waiting.extend(_parts(hint))
        elif models or not (is_pydantic(hint) or is_pydantic_dataclass(hint)):
            waiting.extend(_inside(hint))


def _is_class(hint: Any) -> TypeGuard[type]:
    return isinstance(hint, type) and te.get_origin(hint) is None


def _is_class_of_values(cls: type) -> bool:
    return not (
        # what ``make_dataclass`` makes says that it is of ``types``
        (cls.__module__ in _NOT_CLASSES_OF_VALUES and not dataclasses.is_dataclass(cls))
        or te.is_typeddict(cls)
        or _is_protocol(cls)
        or issubclass(cls, (BaseChannel, ManagedValue))
    )


def _is_protocol(cls: type) -> bool:
    try:
        return te.is_protocol(cls)
    except Exception:  # noqa: BLE001 - a metaclass may raise anything where it is asked for what is not there
        return False


def _inside(cls: type) -> list[Any]:
    """Return what the fields of a class mention."""
    parts: list[Any] = _named_by(cls)
    if cls.__name__ == "BaseMessage" and cls.__module__.startswith("langchain_core."):
        parts.extend(message_types())  # which one a value is made of, such an annotation leaves open
    generic = attribute(cls, "__pydantic_generic_metadata__")
    if generic:
        parts.extend(generic["args"])
    if (
        te.is_typeddict(cls)
        or is_dataclass(cls)
        or is_pydantic(cls)
        or issubclass(cls, msgspec.Struct)
        or (issubclass(cls, tuple) and hasattr(cls, "_fields"))
        or attribute(cls, "__attrs_attrs__") is not None
    ):
        parts.extend(try_fields_of(cls).values())
    return parts


def _parts(hint: Any) -> list[Any]:
    """Return what a typing construct is made of."""
    if isinstance(hint, te.TypeAliasType):
        return [hint.__value__]
    if isinstance(hint, NewType):
        return [hint.__supertype__]
    if isinstance(hint, dataclasses.InitVar):
        return [hint.type]
    if isinstance(hint, TypeVar):
        return [hint.__bound__, *hint.__constraints__]
    if isinstance(hint, BaseChannel):
        return [hint.typ]
    origin = te.get_origin(hint)
    if origin is te.Annotated:
        return [hint.__origin__, *(part for meta in hint.__metadata__ for part in _of_metadata(meta))]
    if origin is Literal:
        return [type(choice) for choice in te.get_args(hint) if isinstance(choice, Enum)]
    if origin is None or origin is type:
        return []
    return [origin, *_named_by(hint), *_flat(te.get_args(hint)), *try_fields_of(hint).values()]


def _flat(arguments: Any) -> list[Any]:
    """Return type arguments, those of a Callable's parameter list included."""
    flat: list[Any] = []
    for argument in arguments:
        if isinstance(argument, list):
            flat.extend(_flat(argument))
        elif not isinstance(argument, (str, ParamSpec, TypeVarTuple)):
            flat.append(argument)
    return flat


def _of_metadata(meta: Any) -> list[Any]:
    if isinstance(meta, BaseChannel) or te.get_origin(meta) is not None:
        return [meta]
    return _named_by(meta)


def _named_by(something: Any) -> list[Any]:
    named = attribute(something, "value_types")
    return list(named()) if callable(named) else []
