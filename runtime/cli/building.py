"""JSON input to what a state's schema names: a dataclass's fields become an instance of it.

Schemas that validate (pydantic, msgspec.Struct) build such values themselves, from Python as well. A TypedDict or a
dataclass does not: Python callers hand it instances, which JSON does not have.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from runtime.channels import LastValue
from runtime.cli.failing import CommandError
from runtime.schema.conforming import conforms
from runtime.schema.hints import fields_of, is_pydantic, unwrap
from runtime.schema.introspect import introspect
from runtime.schema.reachable import types_in

if TYPE_CHECKING:
    from runtime.graph import CompiledStateGraph


class _Unbuildable(Exception):  # noqa: N818 - it never leaves this file
    """JSON cannot say what a class asks for; the value stays as it was given."""


def built(graph: CompiledStateGraph, given: Any) -> Any:
    """Return input with instances where the graph's input schema names classes.

    Raises:
        CommandError: a value has not the form of its key's class. Keys with a reducer keep such a value: what a reducer
            takes may be something else than what it makes.
    """
    schema = introspect(graph.builder.input_schema)
    if schema.kind not in ("typeddict", "annotated", "dataclass") or not isinstance(given, dict):
        return given
    hints = fields_of(schema.type)
    made = dict(given)
    for key in given.keys() & schema.channels.keys():
        hint, _ = unwrap(hints[key])
        if conforms(given[key], hint) or not types_in(hint):
            continue
        try:
            made[key] = msgspec.convert(given[key], hint, dec_hook=_model)
        except (TypeError, _Unbuildable):  # TypeError: such as a union of two classes, which msgspec cannot tell apart
            continue
        except ValueError as error:
            if type(schema.channels[key]) is LastValue:
                msg = f"--input: {key!r} is no {_name(hint)}: {error}"
                raise CommandError(msg, kind="InvalidInput", key=key) from error
    return made


def _model(cls: type, value: Any) -> Any:
    """Return an instance of a class that msgspec does not know: of a pydantic model, if it is one."""
    if not is_pydantic(cls):
        raise _Unbuildable
    model: Any = cls
    return model.model_validate(value)


def _name(hint: Any) -> str:
    return hint.__name__ if isinstance(hint, type) else str(hint)
