"""Views, and the finding of deep changes."""

from __future__ import annotations

import copy
import dataclasses
import threading
from typing import Any

import numpy as np
import pydantic
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.schema import fingerprint, view


class Model(pydantic.BaseModel):
    items: list[int] = []


@dataclasses.dataclass
class Data:
    inner: dict[str, list[int]]
    lock: Any = None


class Unpicklable:
    def __init__(self) -> None:
        self.items: list[int] = []

    def __reduce__(self) -> Any:
        msg = "not me"
        raise TypeError(msg)


def test_a_view_can_be_changed_without_anyone_noticing() -> None:
    value = {"a": [1]}
    seen = view(value)
    seen["b"] = 2
    assert value == {"a": [1]}


@pytest.mark.parametrize(
    ("value", "change"),
    [
        ({"a": {"b": []}}, lambda value: value["a"]["b"].append(1)),
        ([[{1}]], lambda value: value[0][0].add(2)),
        (Model(), lambda value: value.items.append(1)),
        ([Data({"a": [1]})], lambda value: value[0].inner["a"].append(2)),
        (Data({}, threading.Lock()), lambda value: value.inner.update(a=[1])),
        ({"f": lambda: 0, "x": []}, lambda value: value["x"].append(1)),
        (np.zeros(2), lambda value: value.fill(1)),
        ({"cls": Data, "x": [1]}, lambda value: value["x"].clear()),
    ],
)
def test_a_deep_change_changes_the_digest(value: Any, change: Any) -> None:
    before = fingerprint(value)
    assert before is not None
    assert fingerprint(value) == before
    change(value)
    assert fingerprint(value) != before


def test_a_value_that_contains_itself_has_a_digest() -> None:
    value: list[Any] = []
    value.append(value)
    before = fingerprint(value)
    assert before is not None
    value.append(1)
    assert fingerprint(value) != before


def test_what_cannot_be_pickled_counts_by_identity() -> None:
    value = [Unpicklable(), [1]]
    before = fingerprint(value)
    assert before is not None
    value[1].append(2)  # type: ignore[attr-defined]
    assert fingerprint(value) != before
    assert fingerprint([Unpicklable()]) != before


def test_there_is_no_digest_of_what_is_too_deep() -> None:
    value: list[Any] = []
    for _ in range(100_000):
        value = [value]
    assert fingerprint(value) is None
    while value:  # taken apart here, as the interpreter would recurse
        value = value.pop()


nested = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=50, deadline=None)
@given(nested)
def test_reading_a_value_does_not_change_its_digest(value: Any) -> None:
    before = fingerprint(value)
    copy.deepcopy(value)
    view(value)
    repr(value)
    assert fingerprint(value) == before
