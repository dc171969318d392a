"""Answers to questions that say what they expect: the schema shown to the client, and the check of what comes back."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import msgspec

from runtime.errors import UNFIT_ANSWER
from runtime.schema.hints import is_schema, kind_of


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
        return msgspec.json.schema(schema)
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
        return msgspec.convert(answer, schema, strict=False)
    except Exception as error:
        error.add_note(UNFIT_ANSWER)
        raise


def _adapter(schema: Any) -> Any:
    """Return what pydantic checks a type by, as on LangGraph; None where it is not installed or does not know it."""
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
    try:
        adapter = pydantic.TypeAdapter(schema)
        adapter.json_schema()
    except (pydantic.PydanticUserError, pydantic.errors.PydanticSchemaGenerationError, NameError):
        return None
    return adapter


def _is_pydantic(schema: Any) -> bool:
    return isinstance(schema, type) and kind_of(schema) == "pydantic"
