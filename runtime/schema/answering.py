"""Answers to questions that say what they expect: the schema shown to the client, and the check of what comes back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import msgspec
import typing_extensions as te

from runtime.errors import UNFIT_ANSWER, GraphDefinitionError
from runtime.schema.hints import is_pydantic, is_schema, kind_of
from runtime.schema.reachable import is_for_msgspec


def described(schema: Any) -> Any:
    """Return what clients see of a response schema: JSON schema, or None where none can be made.

    Raises GraphDefinitionError for a type that cannot even be read.
    """
    if schema is None or isinstance(schema, Mapping):
        return schema
    if _is_pydantic(schema):
        return schema.model_json_schema()
    adapter = _read(_adapter, schema)
    return _read(_shown, schema) if adapter is None else adapter.json_schema()


def accepted(schema: Any, answer: Any) -> Any:
    """Return the answer as the schema's type. A JSON schema is only for the client, so it accepts everything.

    Raises the validating library's own error, marked (see ``runtime.errors.is_invalid_resume``), and likewise
    GraphDefinitionError for a type that cannot be read.
    """
    if schema is None or isinstance(schema, Mapping) or not (_is_pydantic(schema) or is_schema(schema)):
        return answer
    try:
        if _is_pydantic(schema):
            return schema.model_validate(answer)
        adapter = _read(_adapter, schema)
        if adapter is not None:
            return adapter.validate_python(answer)
        _read(_decoder, schema)
        return msgspec.convert(answer, _meant(schema), strict=False, dec_hook=_as_model)
    except Exception as error:
        error.add_note(UNFIT_ANSWER)
        raise


def _read(reading: Callable[[Any], Any], schema: Any) -> Any:
    """Return what is made of a type. Raises GraphDefinitionError, whatever the code of the type's own raises."""
    try:
        return reading(schema)
    except Exception as error:
        msg = (
            f"The response_schema {_named(schema)} cannot be read: {type(error).__name__}: {error}. Give a type that "
            "pydantic or msgspec takes, a JSON schema, or none."
        )
        raise GraphDefinitionError(msg) from error


def _named(schema: Any) -> str:
    try:
        return repr(schema)
    except Exception:  # noqa: BLE001 - likewise
        return f"of the kind {type(schema).__name__}"


def _adapter(schema: Any) -> Any:
    """Return what pydantic checks a type by, as on LangGraph; None for what is msgspec's affair.

    That is what mentions a Struct or ``msgspec.Meta``, what pydantic does not know, and all where it is not installed.
    """
    try:
        return _made(schema, repr(schema)) if is_schema(schema) else None
    except TypeError:  # what cannot be hashed: made anew each time
        return _made.__wrapped__(schema, "")


@lru_cache(maxsize=256)
def _made(schema: Any, _written: str) -> Any:
    """Make it; ``_written`` tells types apart that are equal, but not the same: other orders of choices."""
    try:
        import pydantic  # noqa: PLC0415 - optional
    except ImportError:
        return None
    if is_for_msgspec(schema) and _is_known(schema):
        return None
    try:
        adapter = pydantic.TypeAdapter(schema)
        adapter.json_schema()
    except (pydantic.PydanticUserError, pydantic.errors.PydanticSchemaGenerationError, NameError):
        return None
    return adapter


def _is_known(schema: Any) -> bool:
    """Tell whether msgspec takes a type, which it does not do of a model beside other choices."""
    try:
        _decoder(schema)
    except (TypeError, NameError):
        return False
    return True


def _decoder(schema: Any) -> Any:
    return msgspec.json.Decoder(_meant(schema))


def _shown(schema: Any) -> Any:
    """Return a type's JSON schema by msgspec, in which pydantic tells of its own models; None if there is none."""
    mentioned: dict[str, Any] = {}

    def of_model(cls: Any) -> Any:
        if not is_pydantic(cls):
            msg = f"There is no JSON schema for {cls!r}."
            raise TypeError(msg)
        model = cls.model_json_schema()
        mentioned.update(model.pop("$defs", {}))
        return model

    try:
        shown = msgspec.json.schema(_meant(schema), schema_hook=of_model)
    except (TypeError, NameError):
        return None
    return {**shown, "$defs": {**mentioned, **shown.get("$defs", {})}} if mentioned else shown


def _meant(schema: Any) -> Any:
    """Return what an alias stands for: msgspec knows only those that the language has itself."""
    while isinstance(schema, te.TypeAliasType):
        schema = schema.__value__
    return schema


def _as_model(cls: Any, value: Any) -> Any:
    return cls.model_validate(value) if is_pydantic(cls) else value


def _is_pydantic(schema: Any) -> bool:
    return isinstance(schema, type) and kind_of(schema) == "pydantic"
