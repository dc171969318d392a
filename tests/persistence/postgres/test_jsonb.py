"""JSON keeps its meaning through jsonb, whatever it holds; the server itself is asked."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from persistence.postgres import jsonb

if TYPE_CHECKING:
    from tests.persistence.postgres.server import Server

texts = st.text(alphabet=st.one_of(st.characters(exclude_categories=["Cs"]), st.sampled_from('\0\ue00001"\\u,:[-e')))
numbers = st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False)
scalars = st.none() | st.booleans() | numbers | texts
values = st.recursive(scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4))
HOSTILE = ["\0", "\ue000", "\ue0000", "\\u0000", '\\"\0', ",-0.0", "[1e16", "{}", "$1", "'); DROP TABLE x; --", "\\"]


@pytest.fixture(scope="module")
def through(postgres: Server) -> Callable[[list[str]], list[str]]:
    """Return what sends JSON texts to the server, and back, in one go."""

    def send(given: list[str]) -> list[str]:
        rows = postgres.rows("SELECT value::jsonb::text FROM unnest($1::text[]) AS t (value)", given)
        return [row[0] for row in rows]

    return send


def exactly(value: Any) -> str:
    """Return a text that tells types and signs apart."""
    return json.dumps(value, sort_keys=True)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.dictionaries(texts, values, max_size=4), min_size=1, max_size=8))
@example([{name: [name, {name: 0.0}]} for name in HOSTILE])
@example([{"channel_values": {"a": 1e16}, "channel_versions": {"a": "1"}}])
@example([{"a": [1e16, -1e16, 1e300, 1e22, 5e-324, -0.0, 0.0, 1.0, -1.5, 2**63, 1e15, 123456789012345680.0]}])
def test_everything_comes_back(through: Callable[[list[str]], list[str]], items: list[Any]) -> None:
    sent = [msgspec.json.encode(value).decode() for value in items]
    returned = [jsonb.restored(text) for text in through([jsonb.stored(text) for text in sent])]
    for value, text, again in zip(items, sent, returned, strict=True):
        assert exactly(msgspec.json.decode(again)) == exactly(value)
        assert again == jsonb.canonical(text)


@settings(max_examples=50, deadline=None)
@given(st.dictionaries(texts, values, max_size=4), texts, values)
def test_a_checksum_is_of_the_meaning(value: dict[str, Any], key: str, other: Any) -> None:
    _, kind = jsonb.sealed(msgspec.json.encode(value).decode())
    turned = dict(reversed(value.items()))
    assert jsonb.sealed(msgspec.json.encode(turned).decode())[1] == kind
    changed = {**value, key: other}
    assert (jsonb.sealed(msgspec.json.encode(changed).decode())[1] == kind) == (exactly(changed) == exactly(value))


def test_floats_are_found_where_checkpoints_hold_them() -> None:
    for body in (
        {"channel_values": {"a": 1e16}, "channel_versions": {"a": "1"}},
        {"channel_values": {"a": 1}, "channel_versions": {"a": 1e16}},
        {"channel_values": {"a": [1e16]}, "channel_versions": {}},
        {"channel_values": [1e16]},
        [1e16],
    ):
        text, _ = jsonb.sealed(msgspec.json.encode(body).decode())
        assert "10000000000000000.0" in text


def test_plain_json_is_sent_as_it_is() -> None:
    for text in ('{"a":1}', '{"a":"1e16"}', '{"a":0.5,"b":"x\\\\u0000"}', '{"id":"1e5f-e7"}'):
        assert jsonb.stored(text) == text


def test_damaged_text_is_left_to_its_reader() -> None:
    assert jsonb.restored("{") == "{"
    assert math.copysign(1, msgspec.json.decode(jsonb.restored('{"a":-1e-400}'))["a"]) == -1
