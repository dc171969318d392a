"""Answers to questions that say what they expect: the schema shown to the client, and the check of what comes back."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import msgspec
import typing_extensions as te

from runtime.errors import UNFIT_ANSWER
from runtime.schema.hints import is_pydantic, is_schema, kind_of
from runtime.schema.reachable import is_for_msgspec


def described(schema: Any) -> Any:
    """Return what clients see of a response schema: JSON schema, or None where none can be made."""
    if schema is None or isinstance(schema, Mapping):
        return schema
    if _is_pydantic(schema):
        return schema.model_json_schema()
    adapter = _adapter(schema)
    if adapter is not None:
        return adapter.json_schema()
    try:
        return _shown(schema)
    except (TypeError, NameError):
        return None


def accepted(schema: Any, answer: Any) -> Any:
    """Return the answer as the schema's type. A JSON schema is only for the client, so it accepts everything.

    Raises the validating library's own error, marked (see ``runtime.errors.is_invalid_resume``).
    """
    if schema is None or isinstance(schema, Mapping) or not (_is_pydantic(schema) or is_schema(schema)):
        return answer
    try:
        if _is_pydantic(schema):
            return schema.model_validate(answer)
        adapter = _adapter(schema)
        if adapter is not None:
            return adapter.validate_python(answer)
        return msgspec.convert(answer, _meant(schema), strict=False, dec_hook=_as_model)
    except Exception as error:
        error.add_note(UNFIT_ANSWER)
        raise


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
        msgspec.json.Decoder(_meant(schema))
    except (TypeError, NameError):
        return False
    return True


def _shown(schema: Any) -> Any:
    """Return a type's JSON schema by msgspec, in which pydantic tells of its own models."""
    mentioned: dict[str, Any] = {}

    def of_model(cls: Any) -> Any:
        if not is_pydantic(cls):
            msg = f"There is no JSON schema for {cls!r}."
            raise TypeError(msg)
        model = cls.model_json_schema()
        mentioned.update(model.pop("$defs", {}))
        return model

    shown = msgspec.json.schema(_meant(schema), schema_hook=of_model)
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
