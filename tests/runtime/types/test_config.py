"""A call's config: how several are merged, what is refused before anything runs, what checkpoints keep of it."""

from __future__ import annotations

import enum
import re
import uuid
from inspect import signature
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.errors import ConfigError
from runtime.graph import CompiledStateGraph
from runtime.types.config import (
    DEFAULT_RECURSION_LIMIT,
    RunnableConfig,
    checkpoint_config,
    merge_configs,
    parse_config,
)

keys = st.sampled_from(["a", "b", "thread_id"])
scalars = st.integers(0, 3)
configs = st.fixed_dictionaries(
    {},
    optional={
        "tags": st.lists(st.sampled_from(["x", "y"]), max_size=2),
        "metadata": st.dictionaries(keys, scalars),
        "configurable": st.dictionaries(keys, scalars),
        "recursion_limit": st.integers(1, 5) | st.none(),
        "run_name": st.sampled_from(["r", "s"]),
        "mine": scalars,
    },
)


@given(st.lists(configs | st.none(), max_size=4))
def test_merging_is_the_same_in_any_grouping(several: list[Any]) -> None:
    left: Any = {}
    for one in several:
        left = merge_configs(left, one)
    right: Any = {}
    for one in reversed(several):
        right = merge_configs(one, right)
    assert merge_configs(*several) == left == right


@given(configs, configs)
def test_what_comes_later_wins_and_tags_add_up(first: Any, second: Any) -> None:
    merged: Any = merge_configs(first, second)
    assert merged.get("tags", []) == [*first.get("tags", []), *second.get("tags", [])]
    assert merged.get("metadata", {}) == {**first.get("metadata", {}), **second.get("metadata", {})}
    limits = [one.get("recursion_limit") for one in (second, first) if one.get("recursion_limit") is not None]
    assert merged.get("recursion_limit") == (limits[0] if limits else None)


@given(configs)
def test_merging_changes_no_config(config: Any) -> None:
    before = repr(config)
    merged = merge_configs(config, config)
    merged.setdefault("configurable", {})["new"] = 1
    merged.setdefault("metadata", {})["new"] = 1
    merged.setdefault("tags", []).append("new")
    assert repr(config) == before


def test_an_unknown_key_is_a_setting_of_the_program() -> None:
    assert parse_config({"user": "u", "configurable": {"thread_id": "t"}}).configurable == {
        "user": "u",
        "thread_id": "t",
    }


def test_a_config_may_be_any_mapping() -> None:
    config = MappingProxyType({"configurable": MappingProxyType({"thread_id": "t"}), "tags": ("x",)})
    parsed = parse_config(config)
    assert (parsed.thread_id, parsed.raw["tags"]) == ("t", ["x"])


def test_no_config_has_defaults() -> None:
    parsed = parse_config(None, {})
    assert (parsed.thread_id, parsed.checkpoint_ns, parsed.checkpoint_id) == (None, "", None)
    assert (parsed.recursion_limit, parsed.max_concurrency, parsed.run_id) == (DEFAULT_RECURSION_LIMIT, None, None)
    assert parsed.stored == {}


@pytest.mark.parametrize("name", ["recursion_limit", "max_concurrency"])
@pytest.mark.parametrize("value", [0, -1, 1.5, "3", True])
def test_limits_are_whole_and_positive(name: str, value: Any) -> None:
    with pytest.raises(ConfigError, match=f"{name} must be an integer of at least 1"):
        parse_config({name: value})


OPTIONS: Final = sorted(RunnableConfig.__annotations__.keys() - {"configurable", "run_id"})
ARGUMENTS: Final = sorted(
    {
        name
        for method in (CompiledStateGraph.ainvoke, CompiledStateGraph.astream)
        for name, parameter in signature(method).parameters.items()
        if parameter.kind is parameter.KEYWORD_ONLY
    }
    - {"debug", "print_mode"}  # they only print, and programs have settings of these names
)


def test_the_names_to_be_refused_are_those_of_the_calls() -> None:
    """An argument that is added to a call is refused inside its config without further ado, or this says so."""
    assert {"interrupt_before", "durability", "context", "subgraphs"} <= set(ARGUMENTS)
    assert {"tags", "metadata", "run_name", "callbacks"} <= set(OPTIONS)


@pytest.mark.parametrize("name", OPTIONS)
def test_an_option_inside_configurable_is_told_its_place(name: str) -> None:
    message = rf"'{name}' inside config\['configurable'\] has no effect\. Pass it as config\['{name}'\]"
    with pytest.raises(ConfigError, match=message):
        parse_config({"configurable": {"thread_id": "t", name: 3}})


@pytest.mark.parametrize("name", ARGUMENTS)
@pytest.mark.parametrize("value", [["n"], "sync", True, 0], ids=repr)
def test_an_argument_inside_the_config_is_told_its_place(name: str, value: Any) -> None:
    right = f"has no effect. Pass it as the argument {name}= of the call"
    with pytest.raises(ConfigError, match=re.escape(f"{name!r} as a key of config {right}")):
        parse_config({name: value, "configurable": {"thread_id": "t"}})
    with pytest.raises(ConfigError, match=re.escape(f"{name!r} inside config['configurable'] {right}")):
        parse_config({"configurable": {"thread_id": "t", name: value}})


def test_a_run_id_among_the_programs_settings_is_its_own() -> None:
    assert parse_config({"configurable": {"run_id": "mine"}}).stored == {"run_id": "mine"}


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ("thread", "config must be a mapping, got 'thread'"),
        ([("configurable", {})], "config must be a mapping"),
        ({"configurable": "t"}, r"config\['configurable'\] must be a mapping, got 't'"),
        ({"metadata": ["m"]}, r"config\['metadata'\] must be a mapping"),
        ({"tags": "tag"}, r"config\['tags'\] must be a list of strings, got 'tag'"),
    ],
)
def test_a_config_of_another_shape_is_refused(config: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_config(config)


# ---- addresses -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["thread_id", "checkpoint_id", "checkpoint_ns"])
@pytest.mark.parametrize(
    "hostile",
    [{"$gt": ""}, {"": ""}, ["t"], ("t",), {"t"}, frozenset("t"), b"t", bytearray(b"t"), True, False, object()],
    ids=lambda hostile: type(hostile).__name__,
)
def test_shapes_that_a_query_could_misread_or_nobody_could_repeat_are_no_ids(name: str, hostile: Any) -> None:
    with pytest.raises(ConfigError, match=f"{name} must be a string, got {type(hostile).__name__}"):
        parse_config({"configurable": {name: hostile}})


@pytest.mark.parametrize("name", ["thread_id", "checkpoint_id", "checkpoint_ns"])
@pytest.mark.parametrize(
    "value", [0, 7, 1.5, uuid.UUID(int=7), "'; DROP TABLE checkpoints; --", "a\0b", "\udc80", "%", "x" * 10_000]
)
def test_text_numbers_and_uuids_are_ids_as_they_are(name: str, value: Any) -> None:
    parsed = parse_config({"configurable": {name: value}})
    assert getattr(parsed, name) == str(value)


def test_an_empty_checkpoint_id_means_the_newest() -> None:
    for empty in ("", None):
        assert parse_config({"configurable": {"checkpoint_id": empty}}).checkpoint_id is None


def test_an_empty_thread_id_is_refused() -> None:
    with pytest.raises(ConfigError, match="thread_id is empty"):
        parse_config({"configurable": {"thread_id": ""}})


def test_the_config_of_a_checkpoint_addresses_it() -> None:
    parsed = parse_config(checkpoint_config("t", "ns", "c"))
    assert (parsed.thread_id, parsed.checkpoint_ns, parsed.checkpoint_id) == ("t", "ns", "c")


def test_a_run_id_is_text() -> None:
    assert parse_config({"run_id": uuid.UUID(int=1)}).run_id == str(uuid.UUID(int=1))


# ---- what checkpoints keep -------------------------------------------------------------------------------------------


class Colour(enum.StrEnum):
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 3


class Name(str, enum.Enum):  # noqa: UP042 - the form whose str() is not its value
    BOB = "bob"


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        ("text", "text"),
        ("nul\0bytes\0", "nulbytes"),
        ("ünï", "ünï"),
        (3, 3),
        (True, True),
        (0.5, 0.5),
        (Colour.RED, "red"),
        (Name.BOB, "bob"),
        (Level.HIGH, 3),
        (np.float64(0.5), 0.5),
        (2**64 - 1, 2**64 - 1),
        (-(2**63), -(2**63)),
    ],
)
def test_scalars_are_kept_as_plain_values(value: Any, kept: Any) -> None:
    stored = parse_config({"configurable": {"mine": value}}).stored
    assert stored == {"mine": kept}
    assert type(stored["mine"]) in (str, int, bool, float)


@pytest.mark.parametrize(
    "value", [None, [1], {"a": 1}, object, 1j, 2**64, -(2**63) - 1, float("nan"), float("inf")], ids=repr
)
def test_other_settings_stay_with_the_program(value: Any) -> None:
    parsed = parse_config({"configurable": {"mine": value}, "metadata": {"fact": value}})
    assert parsed.stored == {}
    assert parsed.configurable == {"mine": value}


@pytest.mark.parametrize(
    "key", ["thread_id", "checkpoint_id", "checkpoint_ns", "checkpoint_map", "langgraph_step", "__mine", 7]
)
def test_addresses_and_private_settings_are_not_metadata(key: Any) -> None:
    assert parse_config({"configurable": {key: "1"}, "metadata": {key: "1"}}).stored == {}


def test_metadata_wins_over_configurable() -> None:
    assert parse_config({"configurable": {"k": 1}, "metadata": {"k": 2}}).stored == {"k": 2}


def test_text_that_cannot_be_stored_is_refused_before_anything_runs() -> None:
    with pytest.raises(ConfigError, match="The setting 'user' must be valid Unicode"):
        parse_config({"metadata": {"user": "\udc80"}})
