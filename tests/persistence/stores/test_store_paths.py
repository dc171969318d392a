"""Paths to the texts of a value."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.store.base import get_text_at_path

from persistence.stores.paths import parsed, texts

VALUE: dict[str, Any] = {
    "a": {"b": "x", "n": 1, "f": 1.50, "t": True, "none": None, "e": {}},
    "l": [{"b": "1"}, {"b": "2", "c": "3"}, {"z": 1}],
    "m": [["p", "q"], ["r"]],
    "s": "str",
    "emp": [],
    "d": {"z": 1, "a": "é"},
}


def found(path: str, value: Any = VALUE) -> list[str]:
    return list(texts(value, parsed(path)))


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("a.b", ["x"]),
        ("a.n", ["1"]),
        ("a.f", ["1.5"]),
        ("a.none", []),
        ("a.e", ["{}"]),
        ("l[*].b", ["1", "2"]),
        ("l[0].b", ["1"]),
        ("l[-1]", ['{"z": 1}']),
        ("l[-1].b", []),
        ("l[3]", []),
        ("l[-4]", []),
        ("m[*][*]", ["p", "q", "r"]),
        ("m[*][0]", ["p", "r"]),
        ("m[0][-1]", ["q"]),
        ("s[0]", []),
        ("s[*]", []),
        ("a[*]", []),
        ("a.*", ["x", "1", "1.5", "True", "{}"]),
        ("emp", ["[]"]),
        ("emp[*]", []),
        ("{s,a.b}", ["str", "x"]),
        ("{s, missing}", ["str"]),
        ("l[*].{b,c}", ["1", "2", "3"]),
        ("d", ['{"a": "é", "z": 1}']),
        ("missing.at.all", []),
        ("$.a.b", ["x"]),
    ],
)
def test_a_path_leads_to_texts(path: str, expected: list[str]) -> None:
    assert found(path) == expected


def test_the_whole_value_is_json() -> None:
    value = {"b": [1, (2,)], "a": date(2026, 6, 12), 3: None, "ü": 1.5}
    assert found("$", value) == found("", value) == ['{"3": null, "a": "2026-06-12", "b": [1, [2]], "ü": 1.5}']


@pytest.mark.parametrize("path", ["l[", "l]", "l[x]", "l[1.5]", "{a", "a}", ".a", "l[*", "{a,{b}}", "l[]"])
def test_a_path_that_is_not_well_formed_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match="not well formed"):
        parsed(path)


steps = st.lists(st.sampled_from(["a", "b", "x", "*", "[0]", "[-1]", "[*]"]), min_size=1, max_size=4)
last = st.lists(st.sampled_from(["{a,b}", "{x}"]), max_size=1)
leaves = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "p", "q"])
values = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abx"), inner, max_size=3)
)


@given(st.dictionaries(st.sampled_from("abx"), values, max_size=3), steps, last)
def test_paths_agree_with_the_peer(value: dict[str, Any], first: list[str], last: list[str]) -> None:
    """It ignores what follows braces; here the path goes on."""
    parts = first + last
    path = ".".join(parts).replace(".[", "[")
    if path.startswith("["):
        path = "a" + path
    assert found(path, value) == get_text_at_path(value, path)


def test_a_path_goes_on_behind_braces() -> None:
    assert found("{a,b}.x", {"a": {"x": "1"}, "b": {"x": "2", "y": "3"}}) == ["1", "2"]
