"""The JSON that checkpoints and metadata are stored as: strict, so that nothing is changed on the way."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import msgspec

from persistence.errors import SerializationError

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_DEPTH: Final = 100
"""How deep metadata and filters may be nested: they are facts, and databases and drivers have limits of their own."""

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode

_EXACT = frozenset({str, int, bool, type(None)})


def decode(text: str | bytes) -> Any:
    """Return the value of JSON. Raises msgspec.DecodeError."""
    try:
        return _decode(text)
    except RecursionError:
        message = "JSON is nested too deeply to be read"
        raise msgspec.DecodeError(message) from None


def dump(value: Any, what: str) -> bytes:
    """Return JSON. Raises SerializationError, calling the value ``what``."""
    try:
        return _encode(value)
    except (TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError) as error:
        message = f"{what} cannot be stored as JSON: {error}"
        raise SerializationError(message) from error


def check(mapping: Mapping[str, Any], what: str) -> None:
    """Refuse what JSON would change in silence: NaN, tuples inside, dates, keys that are no strings.

    Raises SerializationError naming the key.
    """
    for key, value in mapping.items():
        if type(key) is not str:
            message = f"{what} key {key!r} is not a string."
            raise SerializationError(message)
        if type(value) not in _EXACT and not _is_json(value, MAX_DEPTH):
            message = (
                f"{what} {key!r} holds a {type(value).__name__}, which JSON cannot keep as it is; "
                f"use strings, finite numbers, booleans, None, lists and dicts of them, up to {MAX_DEPTH} levels deep."
            )
            raise SerializationError(message)


def same(left: Any, right: Any) -> bool:
    """Compare two JSON values: numbers by value, but true is not 1."""
    if type(left) is bool or type(right) is bool:
        return left is right
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(value, right[key]) for key, value in left.items())
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    return bool(left == right)


def _is_json(value: Any, levels: int) -> bool:
    kind = type(value)
    if kind in _EXACT:
        return True
    if kind is float:
        return math.isfinite(value)
    if not levels:
        return False
    if kind is list:
        return all(_is_json(item, levels - 1) for item in value)
    if kind is dict:
        return not value or all(type(key) is str and _is_json(item, levels - 1) for key, item in value.items())
    return False
