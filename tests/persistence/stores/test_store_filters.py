"""Filters: one rule on every store; nothing that they hold means more than it says."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.store.memory import InMemoryStore as PeerStore

from persistence.stores.filters import DEEPEST, OPERATORS, compiled
from persistence.stores.managed import ManagedStore
from runtime.store import PutOp

pytestmark = pytest.mark.anyio

VALUE: dict[str, Any] = {
    "n": 3,
    "half": 0.5,
    "text": "honey",
    "ten": "10",
    "none": None,
    "yes": True,
    "deep": {"a": {"b": [1, 2]}, "c": 1},
    "list": [1, {"x": 2, "y": 3}],
    "pair": (1, 2),
    "price": Decimal("1.5"),
    "array": np.array([1, 2]),
    "$eq": 1,
    "a.b": "dotted",
    "%": "percent",
}


def passes(conditions: Any) -> bool:
    test = compiled(conditions)
    return test is None or test(VALUE)


@pytest.mark.parametrize(
    "conditions",
    [
        None,
        {},
        {"n": 3},
        {"n": 3.0},
        {"n": 3, "text": "honey"},
        {"none": None},
        {"missing": None},
        {"deep": {}},
        {"deep": {"c": 1}},
        {"deep": {"a": {"b": [1, 2]}}},
        {"deep": {"a": {"b": [1, {"$gt": 1}]}, "missing": None}},
        {"deep": {"$eq": {"a": {"b": [1, 2]}, "c": 1}}},
        {"list": [1, {"x": 2}]},
        {"pair": [1, 2]},
        {"pair": (1, 2)},
        {"$eq": 1},
        {"a.b": "dotted"},
        {"%": "percent"},
        {"n": {"$eq": 3}},
        {"n": {"$ne": 4}},
        {"missing": {"$ne": 4}},
        {"n": {"$gt": 2, "$lt": 4}},
        {"n": {"$gte": 3, "$lte": 3}},
        {"n": {"$gt": "2.5"}},
        {"ten": {"$gt": 9}},
        {"ten": {"$lte": "1e1"}},
        {"half": {"$lt": 1}},
        {"yes": {"$gt": 0}},
        {"price": {"$gt": 1, "$lt": Decimal("1.6")}},
        {"n": {"$lt": math.inf}},
        {"array": {"$ne": 1}},
    ],
    ids=repr,
)
def test_passes(conditions: Any) -> None:
    assert passes(conditions)


@pytest.mark.parametrize(
    "conditions",
    [
        {"n": 4},
        {"n": "3"},
        {"n": 3, "text": "wasp"},
        {"missing": 0},
        {"n": {}},
        {"deep": {"$eq": {"c": 1}}},
        {"deep": {"c": 2}},
        {"list": [1]},
        {"list": [1, {"x": 2}, None]},
        {"list": 1},
        {"n": {"$ne": 3}},
        {"n": {"$gt": 3}},
        {"n": {"$gt": 2, "$lt": 3}},
        {"missing": {"$gt": 0}},
        {"missing": {"$lt": 0}},
        {"none": {"$lte": 0}},
        {"text": {"$gt": 0}},
        {"deep": {"$gt": 0}},
        {"n": {"$lt": math.nan}},
        {"array": 1},
        {"array": np.array([1, 2])},
        {"a": {"b": "dotted"}},
    ],
    ids=repr,
)
def test_does_not_pass(conditions: Any) -> None:
    assert not passes(conditions)


@pytest.mark.parametrize(
    ("conditions", "error"),
    [
        ({"n": {"$foo": 1}}, ValueError),
        ({"n": {"$in": [3]}}, ValueError),
        ({"n": {"$GT": 3}}, ValueError),
        ({"n": {"$": 3}}, ValueError),
        ({"n": {"$gt": 1, "a": 2}}, ValueError),
        ({"n": {"$gt": 1, 5: 2}}, ValueError),
        ({"missing": {"$or": []}}, ValueError),
        ({"n": {"$gt": "wasp"}}, ValueError),
        ({"n": {"$gt": None}}, TypeError),
        ({"n": {"$lt": [1]}}, TypeError),
        ({"n": {"$lt": {"$gt": 1}}}, TypeError),
        ({"n": {"$lt": datetime(2026, 1, 1, tzinfo=UTC)}}, TypeError),
        ([("n", 3)], TypeError),
        ("n", TypeError),
        (5, TypeError),
    ],
    ids=repr,
)
async def test_what_cannot_be_meant_is_refused_even_by_an_empty_store(
    store: ManagedStore, conditions: Any, error: type[Exception]
) -> None:
    with pytest.raises(error, match=r"operator|numbers|dict of conditions"):
        await store.asearch((), filter=conditions)


def test_a_filter_has_a_floor() -> None:
    conditions: dict[str, Any] = {}
    for _ in range(DEEPEST + 2):
        conditions = {"a": conditions}
    with pytest.raises(ValueError, match="levels deep"):
        compiled(conditions)


HOSTILE = [
    "role') = 'x' OR 1=1 --",
    "role' OR '1'='1",
    'role") OR 1=1 --',
    "$.role",
    "$",
    "role.x",
    "role[0]",
    "'; DROP TABLE store; --",
    "%",
    "_",
    "*",
    "\\",
    "\0",
    "{}@:()*|",
    "",
    "__class__",
]


@pytest.mark.parametrize("operator", ["", *OPERATORS])
async def test_keys_and_values_are_data(store: ManagedStore, operator: str) -> None:
    """A key that looks like SQL, a path or an operator is a key."""
    await store.aput(("bystander",), "k", {})
    for text in HOSTILE:
        await store.abatch([PutOp(("n",), "same", {text: 1, "role": text}), PutOp(("n",), "other", {"role": "x"})])
        expected = {"$ne": ["other"], "$gt": [], "$lt": []}.get(operator, ["same"])
        found = await store.asearch(("n",), filter={text: {operator: 1} if operator else 1})
        assert [item.key for item in found] == expected, text
        if operator in {"", "$eq"}:
            found = await store.asearch(("n",), filter={"role": {operator: text} if operator else text})
            assert [item.key for item in found] == ["same"], text
        assert len(await store.asearch(())) == 3


async def test_filters_and_prefixes_and_pages_go_together(store: ManagedStore) -> None:
    await store.abatch([PutOp((("a", "b")[number % 2],), f"{number}", {"n": number}) for number in range(20)])
    found = await store.asearch(("a",), filter={"n": {"$gte": 6}}, limit=2, offset=1)
    assert [item.key for item in found] == ["8", "10"]


scalars = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["a", "b", ""])
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("xyz"), inner, max_size=3)
)
operators = st.dictionaries(st.sampled_from(["$eq", "$ne"]), values, min_size=1) | st.dictionaries(
    st.sampled_from(["$gt", "$gte", "$lt", "$lte"]), st.integers(-3, 3), min_size=1
)
conditions = st.dictionaries(
    st.sampled_from("xyz"),
    st.recursive(
        scalars | operators,
        lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("xyz"), inner, max_size=2),
    ),
    max_size=3,
)


@given(st.dictionaries(st.sampled_from("xyz"), values, max_size=3), conditions)
def test_filters_agree_with_the_peer_wherever_it_answers(value: dict[str, Any], filters: dict[str, Any]) -> None:
    """It raises where a value to be ordered is no number; such a value does not match here."""
    peer = PeerStore()
    peer.put(("n",), "k", value)
    test = compiled(filters)
    found = test is None or test(value)
    try:
        expected = bool(peer.search(("n",), filter=filters))
    except (TypeError, ValueError):
        return
    assert found == expected
