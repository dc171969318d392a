"""Addresses and filters: what a config may say, and what metadata must hold."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from persistence.errors import SerializationError
from persistence.writer import plain_json
from persistence.writer.addressing import address, config_of, optional_part
from persistence.writer.filtering import metadata_matches, metadata_run_id, normal_filter


def test_a_config_names_thread_namespace_and_checkpoint() -> None:
    assert address(config_of("t", "ns", "c")) == ("t", "ns", "c")
    assert address({"configurable": {"thread_id": "t"}}) == ("t", "", None)
    assert address({"configurable": {"thread_id": "é\U0001f600", "checkpoint_id": ""}}) == ("é\U0001f600", "", None)
    assert optional_part(None, "thread_id") is None
    assert optional_part({}, "thread_id") is None
    assert optional_part({"configurable": {"checkpoint_ns": ""}}, "checkpoint_ns") == ""


@pytest.mark.parametrize("bad", [1, 1.5, b"t", ["t"], {"t": 1}, object()])
@pytest.mark.parametrize("key", ["thread_id", "checkpoint_ns", "checkpoint_id"])
def test_ids_are_strings(key: str, bad: object) -> None:
    with pytest.raises(TypeError, match=f"{key} must be a string, not"):
        address({"configurable": {"thread_id": "t", key: bad}})


def test_a_config_without_a_thread_says_how_to_name_one() -> None:
    configs: list[dict[str, Any]] = [{}, {"configurable": {}}, {"configurable": {"thread_id": None}}]
    for empty in configs:
        with pytest.raises(ValueError, match="No thread_id: pass config="):
            address(empty)
    with pytest.raises(TypeError, match="must be a mapping"):
        address({"configurable": "t"})


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text("ab\0'\".$"),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text("ab\0'\".$"), inner, max_size=2),
    max_leaves=4,
)
metadata_dicts = st.dictionaries(st.text("ab\0'\".$[]", max_size=3), json_values, max_size=4)


def asked(metadata: dict[str, Any], wanted: dict[str, Any]) -> bool:
    text = normal_filter(wanted)
    return text is None or metadata_matches(plain_json.dump(metadata, "x").decode(), text)


@given(metadata_dicts, metadata_dicts)
def test_filters_compare_json_values_under_any_key(metadata: dict[str, Any], other: dict[str, Any]) -> None:
    for key, value in metadata.items():
        assert asked(metadata, {key: value})
        if key in other:
            assert asked(metadata, {key: other[key]}) == (plain(value) == plain(other[key]))
    for key in other.keys() - metadata.keys():
        assert not asked(metadata, {key: other[key]})


def plain(value: Any) -> Any:
    """Make true and 1 differ, and keep 1 and 1.0 equal, as JSON has it."""
    if isinstance(value, bool):
        return ("bool", value)
    if isinstance(value, list):
        return [plain(item) for item in value]
    return {key: plain(item) for key, item in value.items()} if isinstance(value, dict) else value


def test_filters_on_edges() -> None:
    assert not asked({"a": 1}, {"b": None})
    assert asked({"a": None}, {"a": None})
    assert not asked({"a": 1}, {"a": True})
    assert asked({"a": 1}, {"a": 1.0})
    assert not asked({"a": "x"}, {"a": "x", "b": "y"})
    assert asked({}, {})
    with pytest.raises(SerializationError, match="filter 'a' holds a set"):
        normal_filter({"a": {1}})


def test_facts_that_contain_themselves_are_refused() -> None:
    endless: list[Any] = []
    endless.append({"again": endless})
    deep: dict[str, Any] = {}
    for _ in range(100_000):
        deep = {"a": deep}
    for value in (endless, deep):
        with pytest.raises(SerializationError, match="filter 'a' holds a .* up to 100 levels deep"):
            normal_filter({"a": value})


def test_metadata_that_does_not_parse_is_not_hidden() -> None:
    assert metadata_matches("{", '{"a":1}')
    assert metadata_matches("[]", '{"a":1}')
    assert metadata_matches("[" * 100_000, '{"a":1}')
    assert metadata_run_id("{") is None
    assert metadata_run_id('{"run_id":5}') is None
    assert metadata_run_id('{"run_id":"a\\u0000b"}') == "a\0b"
