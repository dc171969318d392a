"""One level of copying."""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict, deque
from typing import Any

import pytest

from runtime.channels import base, detached
from runtime.channels.reducers import overwritten


class Stack(list[int]):
    """A list with something of its own."""

    name = ""


class Opaque:
    """Not a container."""


CONTAINERS = [
    [1],
    {"a": 1},
    {1},
    deque([1], maxlen=2),
    defaultdict(list, a=[1]),
    OrderedDict(a=1),
    Counter("aab"),
    bytearray(b"x"),
    Stack([1]),
]


@pytest.mark.parametrize("value", CONTAINERS, ids=lambda value: type(value).__name__)
def test_a_container_is_copied_with_its_type(value: Any) -> None:
    copied = detached(value)
    assert copied == value
    assert copied is not value
    assert type(copied) is type(value)
    assert type(detached(copied)) is type(value)


@pytest.mark.parametrize("value", [1, "a", None, b"x", (1, [2]), frozenset({1}), Opaque(), range(3)])
def test_anything_else_is_handed_on(value: object) -> None:
    assert detached(value) is value
    assert detached(value) is value


def test_what_a_container_holds_is_shared() -> None:
    inner: list[int] = []
    assert detached({"a": inner})["a"] is inner


def test_what_makes_a_container_special_is_kept() -> None:
    assert detached(deque([1], maxlen=2)).maxlen == 2
    assert detached(defaultdict(list))["new"] == []
    stack = Stack([1])
    stack.name = "kept"
    assert detached(stack).name == "kept"


def test_only_so_many_types_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "_REMEMBERED", 0)

    class Local(list[int]):
        pass

    value = Local([1])
    assert type(detached(value)) is Local
    assert detached(value) is not value
    assert Local not in base._COPIERS


def test_a_plain_value_is_no_overwrite() -> None:
    assert overwritten([1]) == (False, None)
