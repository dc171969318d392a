"""Values as other programs and a terminal can take them: plain JSON, and text without surprises."""

from __future__ import annotations

import base64
import dataclasses
import enum
import json
import math
import unicodedata
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import date, time, timedelta
from decimal import Decimal
from pathlib import PurePath
from typing import Any, Final
from uuid import UUID

import msgspec

from runtime.cli.unregistered import Unregistered

DEEPEST: Final = 64
"""Levels shown of a nested value; what lies deeper is shown as its repr. Also ends values that hold themselves."""

_WRITTEN: Final = (date, time, timedelta, UUID, Decimal, PurePath)
"""Types whose values have a usual text, such as that of ISO 8601."""
_SCALARS: Final = (bool, int, float, str, bytes, bytearray, *_WRITTEN)

_JOINERS: Final = "\u200c\u200d"
_ESCAPED: Final = frozenset({"Cc", "Cf", "Cs", "Cn", "Zl", "Zp"})
"""Categories that move the cursor, reorder text or cannot be encoded."""


def plain(value: Any, depth: int = 0) -> Any:
    """Return the value as JSON data.

    Enums are their values; dates, times, UUIDs and paths are text as they are usually written; what JSON has no form
    for is described in words.
    """
    if isinstance(value, enum.Enum) and depth < DEEPEST:
        return plain(value.value, depth + 1)
    if value is None or isinstance(value, _SCALARS):
        return _scalar(value)
    if depth >= DEEPEST:
        return _repr(value)
    if isinstance(value, Unregistered):
        return {"type": repr(value), "content": plain(value.content, depth + 1)}
    if isinstance(value, Mapping):
        return {_key(key): plain(item, depth + 1) for key, item in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return plain(value._asdict(), depth)
    if isinstance(value, Sequence):
        return [plain(item, depth + 1) for item in value]
    if isinstance(value, AbstractSet):  # in an order that is the same in each process
        return sorted((plain(item, depth + 1) for item in value), key=json.dumps)
    fields = _fields(value)
    return _repr(value) if fields is None else plain(fields, depth)


def _scalar(value: Any) -> Any:
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, (bytes, bytearray)):
        return {"base64": base64.b64encode(value).decode()}
    return _written(value)


def _written(value: Any) -> str:
    try:
        if isinstance(value, (date, time)):
            return value.isoformat()
        if isinstance(value, timedelta):  # not one of a subclass
            return str(msgspec.to_builtins(timedelta(value.days, value.seconds, value.microseconds)))
        return str(value)
    except Exception:  # noqa: BLE001 - a subclass may do what it likes
        return _repr(value)


def _key(key: Any) -> str:
    if isinstance(key, (enum.Enum, *_WRITTEN)):
        key = plain(key)
    return key if isinstance(key, str) else _repr(key)


def _fields(value: Any) -> dict[str, Any] | None:
    """Return an object's fields by name; None if it is no record."""
    if isinstance(value, (type, enum.Enum)):
        return None
    if dataclasses.is_dataclass(value):
        return {field.name: getattr(value, field.name, None) for field in dataclasses.fields(value)}
    if isinstance(value, msgspec.Struct):
        return {name: getattr(value, name, None) for name in value.__struct_fields__}
    dump = getattr(value, "model_dump", None)
    return dict(dump()) if callable(dump) else None


def _repr(value: Any) -> str:
    try:
        return repr(value)
    except Exception as error:  # noqa: BLE001 - a broken __repr__ must not hide the other values
        return f"<{type(value).__qualname__}, whose repr fails: {error}>"


def visible(text: str, keep: str = "") -> str:
    """Return text with every character escaped that a terminal would obey instead of show."""
    if text.isprintable():
        return text
    return "".join(
        char if char in keep or char in _JOINERS or unicodedata.category(char) not in _ESCAPED else _escape(char)
        for char in text
    )


def _escape(char: str) -> str:
    return char.encode("unicode_escape").decode()


def in_words(value: Any, most: int | None = None) -> str:
    """Return a value as text for a terminal, at most ``most`` characters of it.

    Text stays as it is, a list of records gets a line for each, everything else is JSON.
    """
    if isinstance(value, (list, tuple)) and not hasattr(value, "_asdict") and any(map(_is_record, value)):
        text = "\n".join(f"- {_line(item)}" for item in value)
    else:
        text = value if isinstance(value, str) else _line(value)
    shown = visible(text, keep="\n")
    if most is not None and len(shown) > most:
        return f"{shown[:most]}… ({len(shown):,} characters; --json shows all)"
    return shown


def _is_record(value: Any) -> bool:
    return isinstance(value, (Mapping, Unregistered)) or _fields(value) is not None


def _line(value: Any) -> str:
    if isinstance(value, Unregistered):
        return f"{value!r} {_line(value.content)}"
    return json.dumps(plain(value), ensure_ascii=False)
