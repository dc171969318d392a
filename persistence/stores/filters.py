"""Filters on values: one rule for every store, run on the decoded value. Nothing of a filter becomes a query's text."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from decimal import Decimal
from types import MappingProxyType
from typing import Any, Final, TypeAlias

Test: TypeAlias = Callable[[Any], bool]

DEEPEST: Final = 100
"""Levels a filter may be nested; values cannot be stored much deeper."""

_ORDERING: Final[Mapping[str, Callable[[Any, Any], bool]]] = MappingProxyType(
    {"$gt": operator.gt, "$gte": operator.ge, "$lt": operator.lt, "$lte": operator.le}
)
OPERATORS: Final = ("$eq", "$ne", *_ORDERING)


def compiled(conditions: Mapping[str, Any] | None) -> Test | None:
    """Return the test that a filter stands for; None if it lets everything pass.

    Raises:
        TypeError: The filter is no mapping, or a number is compared with something that is none.
        ValueError: An operator is unknown, a text to compare numbers with is no number, or it is nested too deeply.
    """
    if conditions is None:
        return None
    if not isinstance(conditions, Mapping):
        message = f"A filter is a dict of conditions by key, not {type(conditions).__name__}."
        raise TypeError(message)
    # The keys of the filter itself are always keys of the value, whatever they look like.
    return _fields(conditions, 0) if conditions else None


def _condition(expected: object, depth: int) -> Test:
    if depth > DEEPEST:
        message = f"The filter is nested more than {DEEPEST} levels deep."
        raise ValueError(message)
    if isinstance(expected, Mapping):
        if any(isinstance(name, str) and name.startswith("$") for name in expected):
            return _operators(expected)
        return _fields(expected, depth)
    if isinstance(expected, list | tuple):
        return _elements([_condition(each, depth + 1) for each in expected])
    return lambda value: _equal(value, expected)


def _fields(expected: Mapping[Any, Any], depth: int) -> Test:
    """Return the test that these keys pass theirs; a value may have others."""
    tests = [(name, _condition(condition, depth + 1)) for name, condition in expected.items()]
    return lambda value: isinstance(value, Mapping) and all(test(value.get(name)) for name, test in tests)


def _elements(tests: list[Test]) -> Test:
    def passes(value: Any) -> bool:
        if not isinstance(value, list | tuple) or len(value) != len(tests):
            return False
        return all(test(element) for test, element in zip(tests, value, strict=True))

    return passes


def _operators(expected: Mapping[Any, Any]) -> Test:
    tests = [_operator(name, operand) for name, operand in expected.items()]
    return lambda value: all(test(value) for test in tests)


def _operator(name: object, operand: Any) -> Test:
    if name == "$eq":
        return lambda value: _equal(value, operand)
    if name == "$ne":
        return lambda value: not _equal(value, operand)
    compare = _ORDERING.get(name) if isinstance(name, str) else None
    if compare is None:
        message = f"Unsupported operator: {name!r:.80}. There are {', '.join(OPERATORS)}."
        raise ValueError(message)
    limit = _operand(str(name), operand)

    def ordered(value: Any) -> bool:
        number = _number(value)
        return number is not None and compare(number, limit)

    return ordered


def _operand(name: str, operand: object) -> Any:
    if not isinstance(operand, int | float | Decimal | str):
        message = f"{name} compares numbers, not {type(operand).__name__}."
        raise TypeError(message)
    number = _number(operand)
    if number is None:
        message = f"{name} compares numbers, and {operand!r:.80} is none."
        raise ValueError(message)
    return number


def _number(value: object) -> Any:
    """Return a number, or what a text says as one; None for anything else."""
    if isinstance(value, Decimal):
        return None if value.is_nan() else value
    if isinstance(value, int | float):
        return value
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            return None
    return None


def _equal(value: object, other: object) -> bool:
    try:
        return bool(value == other)
    except Exception:  # noqa: BLE001 - what cannot be compared (arrays, foreign classes) is not equal
        return False
