"""Filters in SQL: they leave out what cannot pass, and the test in Python decides about the rest.

The test compares as Python does, in which 1 equals True and a text may stand for a number. So every condition here lets
through whatever it is not sure about: values that jsonb cannot compare so, and all of them where they are encrypted.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from persistence.postgres import jsonb
from persistence.stores.namespaces import below, column

if TYPE_CHECKING:
    from collections.abc import Iterator

    from persistence.contracts.store import Namespace

EXACT: Final = 2**53
"""Up to here jsonb and Python agree about which ints and floats are equal."""

_ORDER: Final = {"$gt": ">", "$gte": ">=", "$lt": "<", "$lte": "<="}


class Values:
    """Bound values, each with the number it goes by."""

    def __init__(self, *first: object) -> None:
        """Start with those that have a place of their own."""
        self.held: list[object] = list(first)

    def bind(self, value: object) -> str:
        """Return how to refer to a value."""
        self.held.append(value)
        return f"${len(self.held)}"


def projection(value: Mapping[Any, Any]) -> tuple[str, str]:
    """Return a document as filters see it: its plain values, and the keys of the others."""
    plain: dict[str, Any] = {}
    opaque: list[str] = []
    for key, item in value.items():
        if isinstance(key, str) and _encodes(key):
            if _is_plain(item):
                plain[key] = item
            else:
                opaque.append(key)
    return jsonb.value(plain), jsonb.value(opaque)


def alive_below(prefix: Namespace, now: float, values: Values) -> list[str]:
    """Return the conditions that items lie at or below a namespace and have not expired."""
    found = [f"(s.expires_at IS NULL OR s.expires_at > {values.bind(now)}::double precision)"]
    if prefix:
        exact, first, after = map(values.bind, (column(prefix), *below(prefix)))
        found.append(f"(s.namespace = {exact} OR (s.namespace >= {first} AND s.namespace < {after}))")
    return found


def narrowed(conditions: Mapping[str, Any] | None, values: Values) -> Iterator[str]:
    """Yield conditions that whatever passes a filter meets."""
    for key, expected in (conditions or {}).items():
        if not isinstance(key, str) or not _encodes(key):
            continue
        if not isinstance(expected, Mapping):
            yield from _equals(key, expected, values)
        elif not any(isinstance(name, str) and name.startswith("$") for name in expected):
            continue
        else:
            for name, operand in expected.items():
                if name == "$eq":
                    yield from _equals(key, operand, values)
                elif name in _ORDER and _is_number(operand):
                    yield _compares(key, _ORDER[name], operand, values)


def _equals(key: str, expected: object, values: Values) -> Iterator[str]:
    if not _is_plain(expected):
        return
    alike: list[object] = [expected]
    if isinstance(expected, bool | int | float) and expected in {0, 1}:
        alike = [0.0, -0.0, False] if expected == 0 else [1, True]
    name = values.bind(jsonb.key(key))
    held = values.bind([jsonb.value(each) for each in alike])
    absent = f" OR s.plain -> {name}::text IS NULL" if expected is None else ""
    yield (
        f"(s.plain IS NULL OR s.opaque ? {name}::text{absent} "
        f"OR s.plain -> {name}::text = ANY ({held}::text[]::jsonb[]))"
    )


def _compares(key: str, order: str, operand: object, values: Values) -> str:
    name, limit = values.bind(jsonb.key(key)), values.bind(jsonb.value(operand))
    found = f"s.plain -> {name}::text"
    return f"(jsonb_typeof({found}) IS DISTINCT FROM 'number' OR {found} {order} {limit}::text::jsonb)"


def _is_plain(value: object) -> bool:
    if type(value) is str:
        return _encodes(value)
    return value is None or type(value) is bool or _is_number(value)


def _is_number(value: object) -> bool:
    if type(value) is float:
        return math.isfinite(value) and abs(value) <= EXACT
    return type(value) is int and abs(value) <= EXACT


def _encodes(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
