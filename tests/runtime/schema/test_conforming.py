"""Valid values that msgspec does not convert."""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Annotated, Any, Literal, NamedTuple, Optional

import msgspec
import pytest

from runtime.schema.conforming import conforms


class Color(Enum):
    RED = 1


class Size(msgspec.Struct):
    width: int


class Wide(Size):
    pass


@dataclasses.dataclass
class Point:
    x: int


class Pair(NamedTuple):
    x: int


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        (Color.RED, Color),
        (Color.RED, Color | None),
        (None, Optional[Color]),
        (Wide(1), Size),
        (Point(1), Annotated[Point, "what it is"]),
        ([Color.RED, Color.RED], list[Color]),
        ({Color.RED: Wide(1)}, dict[Color, Size]),
        ((Color.RED, 1), tuple[Color, int]),
        ((Color.RED, Color.RED), tuple[Color, ...]),
        ((), tuple[Color, ...]),
        ({Color.RED}, set[Color]),
        (deque([Color.RED]), deque[Color]),
        ([Color.RED], Sequence[Color]),
        ({"a": [Color.RED]}, Mapping[str, list[Color]]),
        ([object(), None], list[Any]),
        (Color.RED, Literal[Color.RED]),
        (1, int),
        (object(), object),
    ],
)
def test_instances_conform(value: Any, hint: Any) -> None:
    assert conforms(value, hint)


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        (1, Color),
        ([Color.RED, 1], list[Color]),
        (True, int),
        (Size(1), Wide),
        ((Color.RED,), tuple[Color, int]),
        ({"a": 1}, dict[str, Color]),
        ({1: Color.RED}, dict[str, Color]),
        (1, Literal[True]),
        (5, Annotated[int, msgspec.Meta(ge=3)]),
        ("x", list[str]),
        (Color.RED, None),
        (Color.RED, "Color"),
        (type, type[Color]),
        (Pair(Color.RED), tuple[int]),  # type: ignore[arg-type]
    ],
)
def test_anything_else_does_not(value: Any, hint: Any) -> None:
    assert not conforms(value, hint)
