"""From a state type to channels: what a TypedDict, dataclass, Struct, pydantic model or bare type stands for."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import typing_extensions as te

from runtime.channels import BaseChannel, BinaryOperatorAggregate, DeltaChannel, LastValue
from runtime.errors import GraphDefinitionError
from runtime.schema.hints import Kind, class_of, fields_of, first_parameter_schema, is_schema, kind_of, unwrap
from runtime.schema.instances import updates_of
from runtime.schema.reachable import types_in
from runtime.schema.validating import Build, Validator, aliases_of, builders_of, validators_of
from runtime.types.constants import ROOT
from runtime.types.functions import is_async
from runtime.types.managed import ManagedValue

__all__ = [
    "Schema",
    "first_parameter_schema",
    "introspect",
    "merge_channels",
    "types_in",
    "updates_of",
]

Channel = BaseChannel[Any, Any]

_REDUCER_ARITY: Final = 2


@dataclass(frozen=True, slots=True)
class Schema:
    """A state type, taken apart once."""

    type: Any
    """As the program gave it."""
    kind: Kind
    channels: Mapping[str, Channel]
    """Empty templates, never changed: use ``fresh()`` or ``from_checkpoint()``. A bare type has one, ``__root__``."""
    managed: Mapping[str, type[ManagedValue]]
    """Keys that are computed, not stored."""
    build: Build | None
    """Makes what a node receives from the values there are; None: the dict itself, or the value of a bare type."""
    rebuild: Build | None
    """``build`` for values that went through ``validators``: these are not validated a second time.

    A validator such as "split this text" fails on its own result, and one that doubles a number would double it at
    every node; so a schema whose validators guard the writes is built with this. Otherwise the same as ``build``.
    """
    validators: Mapping[str, Validator]
    """For pydantic and Struct, for keys without a reducer: returns what to store, or raises the library's error."""
    aliases: Mapping[str, str] = field(default_factory=dict)
    """For pydantic and Struct: the key by another name that programs may write it by."""

    def updates(self, value: object) -> list[tuple[str, Any]] | None:
        """Return the writes that an instance of this type stands for; None if it is not one."""
        cls = class_of(self.type)
        if cls is None or self.kind in ("bare", "typeddict") or not isinstance(value, cls):
            return None
        return updates_of(value)


def introspect(schema: Any) -> Schema:
    """Return what a state type stands for. Raises GraphDefinitionError."""
    return _cached(schema) if isinstance(schema, type) else _introspected(schema)


def merge_channels(schemas: Iterable[Schema]) -> dict[str, Channel]:
    """Return one channel per key of all schemas. Raises GraphDefinitionError where they disagree.

    The first definition of a key counts. A later plain annotation of it says nothing new and is tolerated; a later
    reducer or other channel kind must equal the first.
    """
    merged: dict[str, Channel] = {}
    for schema in schemas:
        for key, channel in schema.channels.items():
            known = merged.setdefault(key, channel)
            if known is not channel and type(channel) is not LastValue and known != channel:
                msg = (
                    f"Channel {key!r} already exists with a different type: {known!r}, and {channel!r} in "
                    f"{_name(schema.type)}. Declare the key in the same way everywhere, or plain after the first time."
                )
                raise GraphDefinitionError(msg)
    return merged


@functools.lru_cache(maxsize=1024)
def _cached(schema: Any) -> Schema:
    return _introspected(schema)


def _introspected(schema: Any) -> Schema:
    if not is_schema(schema):
        msg = f"{schema!r} is not a state schema: give a type, or Annotated[type, reducer]."
        raise GraphDefinitionError(msg)
    kind = kind_of(class_of(schema)) if te.get_origin(schema) is not te.Annotated else "bare"
    if kind == "bare":
        channel = _declared(ROOT, schema, schema)
        if not isinstance(channel, BaseChannel):
            msg = f"{schema!r} is a managed value, which cannot be a whole state."
            raise GraphDefinitionError(msg)
        return Schema(schema, kind, {ROOT: channel}, {}, None, None, {})
    hints = fields_of(schema)
    declared = {key: _declared(key, hint, schema) for key, hint in hints.items()}
    channels = {key: cell for key, cell in declared.items() if isinstance(cell, BaseChannel)}
    managed = {key: cell for key, cell in declared.items() if not isinstance(cell, BaseChannel)}
    plain = {key: hints[key] for key, channel in channels.items() if type(channel) is LastValue}
    validators = validators_of(schema, kind, plain)
    build, rebuild = builders_of(schema, kind, validators)
    return Schema(schema, kind, channels, managed, build, rebuild, validators, aliases_of(schema, kind, channels))


def _declared(key: str, hint: Any, schema: Any) -> Channel | type[ManagedValue]:
    """Return the channel or managed value that one annotation asks for."""
    typ, metadata = unwrap(hint)
    for meta in metadata:
        if isinstance(meta, type) and issubclass(meta, ManagedValue):
            return meta
    for meta in metadata:
        if isinstance(meta, BaseChannel):
            return _of_instance(meta, typ, key)
        if isinstance(meta, type) and issubclass(meta, BaseChannel):
            return _of_class(meta, typ, key, schema)
    if metadata and callable(metadata[-1]):
        _check_reducer(metadata[-1], key, schema)
        return BinaryOperatorAggregate(typ, metadata[-1], key)
    return LastValue(typ, key)


def _of_instance(given: Channel, typ: Any, key: str) -> Channel:
    """Return an empty channel like the given one; a program may use the same instance for several keys."""
    channel = given.fresh()
    channel.key = key
    if isinstance(channel, (BinaryOperatorAggregate, DeltaChannel)):
        _check_sync(channel.operator if isinstance(channel, BinaryOperatorAggregate) else channel.reducer, key)
    if isinstance(channel, DeltaChannel):  # it is written without a type, and starts from that of the annotation
        channel.typ = typ
        channel = channel.fresh()
    return channel


def _of_class(kind: type[Channel], typ: Any, key: str, schema: Any) -> Channel:
    try:
        channel = kind(typ=typ)
    except TypeError as error:
        msg = f"Key {key!r} of {_name(schema)}: {kind.__name__} needs more than a type ({error}); give an instance."
        raise GraphDefinitionError(msg) from error
    channel.key = key
    return channel


def _check_reducer(reducer: Callable[..., Any], key: str, schema: Any) -> None:
    _check_sync(reducer, key)
    try:
        signature = inspect.signature(reducer)
    except (TypeError, ValueError) as error:
        msg = (
            f"Invalid reducer signature. {reducer!r}, at key {key!r} of {_name(schema)}, has none that can be read: "
            "wrap it in a function (a, b) -> c."
        )
        raise GraphDefinitionError(msg) from error
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    if sum(parameter.kind in positional for parameter in signature.parameters.values()) != _REDUCER_ARITY:
        msg = (
            f"Invalid reducer signature. Expected (a, b) -> c. Got {signature}, for {reducer!r} at key {key!r} of "
            f"{_name(schema)}."
        )
        raise GraphDefinitionError(msg)


def _check_sync(reducer: Any, key: str) -> None:
    if is_async(reducer):
        msg = (
            f"The reducer of key {key!r}, {reducer!r}, is an async function: folding writes is computing alone, and "
            "waits for nothing. Make it a plain function, and do what waits in a node."
        )
        raise GraphDefinitionError(msg)


def _name(schema: Any) -> str:
    return repr(schema.__qualname__) if isinstance(schema, type) else repr(schema)
