"""JSON in jsonb columns, which keep a value's meaning but not its text; pure.

What jsonb would refuse or change is written so that it comes back: a NUL and the character that escapes it, floats
without a fraction, negative zero. Keys come back in another order, so a checksum is made of the JSON with sorted keys.
"""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from persistence.writer.encoding import checksum

ESCAPE: Final = "\ue000"
"""A character that nobody is meant to use: ``ESCAPE 0`` stands for NUL, ``ESCAPE 1`` for itself."""

_NUL: Final = "\\u0000"
_NUL_OR_ESCAPE: Final = re.compile(r"\\u0000|\\.|" + ESCAPE)
_ESCAPED: Final = re.compile(f"{ESCAPE}([01])")
_ODD_NUMBER: Final = re.compile(r"(?:^|[:,\[])(?:-0\.0|-?\d+(?:\.\d+)?[eE])")
"""May also match inside a string; what it finds is only looked at more closely."""
_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*')

_NEGATIVE_ZERO: Final = "-1e-400"
"""Not zero to a numeric, but negative zero to everybody who reads a float."""

_NO_FLOATS: Final = frozenset({str, int, bool, type(None)})

_encode = msgspec.json.Encoder(order="sorted").encode
_decode = msgspec.json.Decoder().decode


def canonical(text: str) -> str:
    """Return the same JSON with sorted keys. Raises msgspec.DecodeError."""
    return _encode(_decode(text)).decode()


def sealed(text: str) -> tuple[str, str]:
    """Return JSON for a jsonb column with the checksum of what it means."""
    body = _decode(text)
    data = _encode(body)
    return _escaped(data.decode(), numbers=_holds_floats(body)), checksum(data)


def stored(text: str) -> str:
    """Return JSON as a jsonb column takes it and gives it back."""
    return _escaped(text, numbers=True)


def restored(text: str) -> str:
    """Return what ``stored`` was given, with sorted keys."""
    if ESCAPE in text:
        text = _ESCAPED.sub(lambda match: ESCAPE if match[1] == "1" else _NUL, text)
    try:
        return canonical(text)
    except msgspec.MsgspecError:
        return text  # whoever reads it on will find the damage and name its place


def value(item: Any) -> str:
    """Return a value as a jsonb column would hold it, to be compared with."""
    return stored(_encode(item).decode())


def key(name: str) -> str:
    """Return a key as jsonb columns hold it."""
    return name.replace(ESCAPE, f"{ESCAPE}1").replace("\0", f"{ESCAPE}0")


def _escaped(text: str, *, numbers: bool) -> str:
    if ESCAPE in text or _NUL in text:
        text = _NUL_OR_ESCAPE.sub(_escape, text)
    if numbers and _ODD_NUMBER.search(text):
        text = _TOKEN.sub(_number, text)
    return text


def _holds_floats(body: Any) -> bool:
    """Whether a checkpoint may hold floats: as values, which is seldom, or where none belong."""
    try:
        held = (*body["channel_values"].values(), *body["channel_versions"].values())
    except (TypeError, KeyError, AttributeError):
        return True
    return not _NO_FLOATS.issuperset(map(type, held))


def _escape(match: re.Match[str]) -> str:
    found = match[0]
    return f"{ESCAPE}0" if found == _NUL else f"{ESCAPE}1" if found == ESCAPE else found


def _number(match: re.Match[str]) -> str:
    found = match[0]
    if found[0] == '"':
        return found
    if found == "-0.0":
        return _NEGATIVE_ZERO
    # A numeric made of 1e16 is a whole number, and would come back as an int.
    return f"{int(float(found))}.0" if "e" in found.lower() and abs(float(found)) >= 1 else found
