"""Values as JSON and as text: nothing fails, nothing is obeyed by a terminal."""

from __future__ import annotations

import dataclasses
import enum
import json
import math
import unicodedata
from collections import deque, namedtuple
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import PurePosixPath
from typing import Any
from uuid import UUID

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.cli.plain import in_words, plain, visible
from runtime.cli.showing import counted, moment, size
from runtime.cli.triggers import due_nodes, is_state, task_name
from runtime.cli.unregistered import Unregistered


@dataclasses.dataclass
class Point:
    x: int
    y: Any = None


class Record(msgspec.Struct):
    name: str


class Colour(enum.Enum):
    RED = 1


class Number(enum.IntEnum):
    ONE = 1


class Model:
    """Looks like a pydantic model."""

    def model_dump(self) -> dict[str, int]:
        return {"field": 7}


class Broken:
    def __repr__(self) -> str:
        msg = "no words"
        raise RuntimeError(msg)


class Moment(date):
    def isoformat(self) -> str:
        raise TypeError

    def __repr__(self) -> str:
        return "broken Moment"


Pair = namedtuple("Pair", "left right")  # noqa: PYI024 - the old form must work as well

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary() | st.datetimes() | st.uuids(),
    lambda inner: (
        st.lists(inner)
        | st.tuples(inner)
        | st.dictionaries(st.text() | st.integers(), inner)
        | st.builds(Point, st.integers(), inner)
        | st.builds(Unregistered, st.text(), inner)
    ),
    max_leaves=10,
)


@given(ANYTHING)
def test_everything_becomes_json(value: Any) -> None:
    assert json.loads(json.dumps(plain(value), allow_nan=False)) == plain(value)


@given(ANYTHING)
def test_words_hold_nothing_that_a_terminal_obeys(value: Any) -> None:
    text = in_words(value)
    assert {unicodedata.category(char) for char in text if char != "\n"}.isdisjoint({"Cc", "Cs", "Zl", "Zp"})
    text.encode()


@given(st.text())
def test_visible_text_is_left_alone_if_it_is_harmless(text: str) -> None:
    assert visible(visible(text)) == visible(text)
    if text.isprintable():
        assert visible(text) == text


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (Point(1, Point(2)), {"x": 1, "y": {"x": 2, "y": None}}),
        (Record("a"), {"name": "a"}),
        (Model(), {"field": 7}),
        (Colour.RED, 1),
        (Number.ONE, 1),
        ({"paint": [Colour.RED]}, {"paint": [1]}),
        (date(2024, 2, 3), "2024-02-03"),
        (time(1, 2, 3), "01:02:03"),
        (timedelta(days=1, seconds=3.5), "P1DT3.5S"),
        (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (Decimal("1.50"), "1.50"),
        (PurePosixPath("/a/b"), "/a/b"),
        ({date(2024, 2, 3): 1, Colour.RED: 2, Decimal("0.5"): 3}, {"2024-02-03": 1, "1": 2, "0.5": 3}),
        ({"c", "a", "b"}, ["a", "b", "c"]),
        (frozenset({(1, date(2024, 2, 3))}), [[1, "2024-02-03"]]),
        (Moment(2024, 2, 3), "broken Moment"),
        (Pair(1, [2]), {"left": 1, "right": [2]}),
        (deque([1, (2,)]), [1, [2]]),
        ({1: "a", "b": {2}}, {"1": "a", "b": [2]}),
        (b"\x00\xff", {"base64": "AP8="}),
        (math.inf, "inf"),
        (ValueError("boom"), "ValueError('boom')"),
        (datetime(2026, 1, 2, tzinfo=UTC), "2026-01-02T00:00:00+00:00"),
        (Broken(), "<Broken, whose repr fails: no words>"),
        (Unregistered("app:Order", {"id": 7}), {"type": "<unregistered type app:Order>", "content": {"id": 7}}),
    ],
)
def test_values_as_json(value: Any, shown: Any) -> None:
    assert plain(value) == shown


def test_a_value_that_holds_itself() -> None:
    endless: list[Any] = []
    endless.append(endless)
    assert json.dumps(plain(endless))


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("two\nlines", "two\nlines"),
        ("\x1b[31m", "\\x1b[31m"),
        ([1, 2], "[1, 2]"),
        ([Point(1), Unregistered("a:B", None)], '- {"x": 1, "y": null}\n- <unregistered type a:B> null'),
        ({"text": "a\nb"}, '{"text": "a\\nb"}'),
    ],
)
def test_values_in_words(value: Any, words: str) -> None:
    assert in_words(value) == words


def test_long_values_are_cut_and_say_so() -> None:
    assert in_words("x" * 5000, 10) == "xxxxxxxxxx… (5,000 characters; --json shows all)"


def test_sizes_counts_and_times() -> None:
    assert [size(count) for count in (0, 1023, 1536, 5 << 20, 3 << 40)] == [
        "0 B",
        "1023 B",
        "1.5 KiB",
        "5.0 MiB",
        "3072.0 GiB",
    ]
    assert [counted(count, "thread") for count in (0, 1, 1200)] == ["0 threads", "1 thread", "1,200 threads"]
    assert moment("2026-11-30T21:26:04.743910+02:00") == "11-30 19:26:04"
    assert (moment(None), moment("yesterday")) == ("?", "yesterday")


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("~__pregel_pull, poem", "poem"),
        ("~__pregel_pull, a, b", "a, b"),
        ("~__pregel_push, 0000000012", "Send 12"),
        ("~__pregel_push, 0000000000", "v (Send 0)"),
        ("~__pregel_push, 0000000001, False", "w, x (Send 1)"),
        ("~__pregel_push, 0000000002, False", "Send 2"),
        ("~__pregel_push, ~__pregel_pull, a, b, 0000000010, 0000000001", "call 10 of a, b"),
        ("~__pregel_push, ~__pregel_push, 0000000000, False, 0000000000, 0000000001", "call 0 of v (Send 0)"),
        ("~__pregel_push", "__pregel_push"),
        ("~__pregel_push, ~", "call ? of ?"),
        ("", "?"),
    ],
)
def test_names_of_stored_tasks(path: str, name: str) -> None:
    assert task_name(path, ["v", "w, x"]) == name


def test_which_channels_are_state() -> None:
    assert [name for name in ("topic", "branch:to:poem", "join:a+b:c", "__start__") if is_state(name)] == ["topic"]


def test_nodes_that_are_due() -> None:
    class Sent:
        node = "worker"

    checkpoint: Any = {
        "channel_values": {
            "topic": "cats",
            "branch:to:poem": None,
            "branch:to:seen": None,
            "join:a+b:both": {"a", "b"},
            "join:a+b:waiting": {"a"},
            "__pregel_tasks": [Sent(), Unregistered("x:Send", {"node": "unknown worker"})],
        },
        "channel_versions": {"branch:to:poem": "2", "branch:to:seen": "2", "join:a+b:both": "2"},
        "versions_seen": {"poem": {"branch:to:poem": "1"}, "seen": {"branch:to:seen": "2"}},
    }
    assert due_nodes(checkpoint) == ["poem", "both", "worker (Send)", "unknown worker (Send)"]
