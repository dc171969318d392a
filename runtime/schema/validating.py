"""What a type's own library says about values: checks at the write, and how a node's input is made."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from runtime.errors import GraphDefinitionError
from runtime.schema.conforming import conforms
from runtime.schema.hints import Kind, class_of, is_pydantic_dataclass
from runtime.schema.models import Model

Validator = Callable[[Any], Any]
Build = Callable[[dict[str, Any]], Any]


def validators_of(schema: Any, kind: Kind, plain: Mapping[str, Any]) -> dict[str, Validator]:
    """Return a check for each plain key, where the schema's library makes checks at all."""
    if kind == "pydantic" or is_pydantic_dataclass(schema):
        model = Model(schema)
        return {key: check for key in plain if (check := model.validator(key)) is not None}
    if kind == "struct":
        return {key: check for key, hint in plain.items() if (check := _converter(schema, key, hint)) is not None}
    return {}


def aliases_of(schema: Any, kind: Kind, keys: Iterable[str]) -> dict[str, str]:
    """Return by other name the key that its library knows a field by: pydantic's aliases, msgspec's renamed fields.

    Raises GraphDefinitionError if a name of one field is another field: what is written there would reach both.
    """
    names: Mapping[str, Iterable[str]] = {}
    if kind == "pydantic" or is_pydantic_dataclass(schema):
        names = Model(schema).aliases()
    elif kind == "struct":
        names = {each.name: [each.encode_name] for each in msgspec.structs.fields(class_of(schema) or schema)}
    found = {alias: key for key in keys for alias in names.get(key, ()) if alias != key}
    for alias, key in found.items():
        if alias in keys:
            msg = (
                f"{schema.__name__}: {alias!r} is an alias of {key!r} and another field as well; give one another name."
            )
            raise GraphDefinitionError(msg)
    return found


def builders_of(schema: Any, kind: Kind, validators: Mapping[str, Validator]) -> tuple[Build | None, Build | None]:
    """Return how to make a node's input, and how where the keys with validators are known to be valid."""
    if kind in ("typeddict", "annotated"):
        return None, None
    if kind == "pydantic":
        model = Model(schema)
        return model.builder(), model.builder(frozenset(validators))
    build = _calling(schema, Model(schema).spelling() if is_pydantic_dataclass(schema) else {})
    return build, build


def _calling(cls: Callable[..., Any], spelling: Mapping[str, str]) -> Build:
    if not spelling:
        return lambda values: cls(**values)
    return lambda values: cls(**{spelling.get(key, key): value for key, value in values.items()})


def _converter(schema: Any, key: str, hint: Any) -> Validator | None:
    """Return msgspec's check of one field; None where msgspec cannot check the type.

    The value is converted inside a struct of one field, so that the error names the key.
    """
    name = getattr(class_of(schema), "__name__", "State")
    try:
        holder = msgspec.defstruct(name, [(key, hint)])
        msgspec.convert({key: None}, holder)
    except msgspec.ValidationError:
        pass
    except TypeError:  # a type that msgspec does not know, such as a union of two classes
        return None

    def validate(value: Any) -> Any:
        try:
            return getattr(msgspec.convert({key: value}, holder), key)
        except msgspec.ValidationError:
            if conforms(value, hint):
                return value
            raise

    return validate
