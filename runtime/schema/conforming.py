"""Whether a value already is what an annotation asks for.

msgspec converts from plain data: it refuses a member of an Enum where that Enum is declared, and an instance of a
subclass. Both are valid values of a state, so what msgspec refuses is looked at once more here.
"""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Collection, Mapping
from enum import Enum
from typing import Any, Union

import msgspec
import typing_extensions as te

from runtime.schema.hints import unwrap


def conforms(value: Any, hint: Any) -> bool:
    """Tell whether a value is an instance of the annotated type, down to the items of containers.

    Says no where it cannot tell, such as for constraints.
    """
    hint, metadata = unwrap(hint)
    if any(isinstance(meta, msgspec.Meta) for meta in metadata):
        return False
    if hint is Any or hint is object:
        return True
    origin, arguments = te.get_origin(hint), te.get_args(hint)
    if origin in (Union, types.UnionType):
        return any(conforms(value, choice) for choice in arguments)
    if origin is te.Literal:
        return any(value == choice and type(value) is type(choice) for choice in arguments)
    if hint is None:
        return value is None
    if isinstance(origin, type):
        return isinstance(value, origin) and _items_conform(value, arguments)
    return isinstance(hint, type) and _is_instance(value, hint)


def _is_instance(value: Any, cls: type) -> bool:
    if issubclass(cls, (msgspec.Struct, Enum)) or dataclasses.is_dataclass(cls):
        return isinstance(value, cls)
    return type(value) is cls  # a bool is no int


def _items_conform(value: Any, arguments: tuple[Any, ...]) -> bool:
    if isinstance(value, tuple):
        if len(arguments) == 2 and arguments[1] is ...:  # noqa: PLR2004 - tuple[item, ...]
            arguments = (arguments[0],) * len(value)
        return len(value) == len(arguments) and all(map(conforms, value, arguments))
    if isinstance(value, Mapping):
        key, item = arguments
        return all(conforms(name, key) and conforms(each, item) for name, each in value.items())
    if isinstance(value, Collection) and len(arguments) == 1:
        return all(conforms(each, arguments[0]) for each in value)
    return False
