"""Namespaces match label by label, on every store, whatever the labels hold."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.store.memory import InMemoryStore as PeerStore

from persistence.errors import InvalidNamespaceError
from persistence.stores.managed import ManagedStore
from persistence.stores.namespaces import begins, below, checked, column, from_column, listed
from runtime.store import GetOp, ListNamespacesOp, MatchCondition, PutOp, SearchOp

pytestmark = pytest.mark.anyio

HOSTILE = [
    ("foo",),
    ("foobar",),
    ("foo", "bar"),
    ("foo bar",),
    ("Foo",),
    ("users", "john-doe"),
    ("users", "john_doe"),
    ("users", "johnXdoe"),
    ("a%",),
    ("a%", "b"),
    ("ab", "b"),
    ("a_",),
    ("a*",),
    ("*",),
    ("a\\",),
    ("a\\", "b"),
    ("a/",),
    ("a-",),
    ("a!",),
    ("a", "b"),
    ("a'; DROP TABLE store; --",),
    ("用户", "小黄"),
    ("用户小",),
    ("é",),
    ("e\u0301",),
    ("a\u012eb",),
    ("😀", "x"),
    ("\uffff",),
    ('{}@:()*|"',),
    (" ",),
    ("\n",),
]


async def fill(store: ManagedStore) -> None:
    await store.abatch([PutOp(namespace, "k", {"at": list(namespace)}) for namespace in HOSTILE])


async def test_a_search_finds_what_begins_with_the_same_labels(store: ManagedStore) -> None:
    await fill(store)
    for prefix in [*HOSTILE, ("users",), ("a",), ("fo",), ("用户",), ("a", "b", "c")]:
        expected = [namespace for namespace in HOSTILE if namespace[: len(prefix)] == prefix]
        found = await store.asearch(prefix, limit=100)
        assert [item.namespace for item in found] == expected
        assert [item.value["at"] for item in found] == list(map(list, expected))
        if "*" not in prefix:
            assert await store.alist_namespaces(prefix=prefix) == sorted(expected)
        item = await store.aget(prefix, "k")
        assert (item is not None) == (prefix in HOSTILE)


async def test_the_empty_prefix_means_everything(store: ManagedStore) -> None:
    await fill(store)
    assert [item.namespace for item in await store.asearch((), limit=100)] == HOSTILE
    assert await store.alist_namespaces() == sorted(HOSTILE)


INVALID: list[Any] = ["foo", "", None, 5, ("",), ("a", ""), ("a.b",), ("a\0",), (1,), ("a", None), ("\ud800",), {"a"}]


@pytest.mark.parametrize("namespace", INVALID, ids=repr)
async def test_what_is_no_namespace_is_refused_by_every_operation(store: ManagedStore, namespace: Any) -> None:
    for op in (
        PutOp(namespace, "k", {}),
        PutOp(namespace, "k", None),
        GetOp(namespace, "k"),
        SearchOp(namespace),
        ListNamespacesOp((MatchCondition("prefix", namespace),)),
    ):
        with pytest.raises(InvalidNamespaceError, match="label"):
            await store.abatch([op])
    with pytest.raises(ValueError, match="label"):
        await store.aput(namespace, "k", {})
    assert await store.alist_namespaces() == []


async def test_a_put_needs_a_namespace_that_is_not_reserved(store: ManagedStore) -> None:
    with pytest.raises(InvalidNamespaceError, match="at least one label"):
        await store.aput((), "k", {})
    with pytest.raises(InvalidNamespaceError, match="reserved"):
        await store.aput(("langgraph", "x"), "k", {})
    await store.aput(("x", "langgraph"), "k", {})
    await store.adelete(("langgraph",), "k")
    await store.adelete((), "k")
    assert await store.asearch(("langgraph",)) == []


async def test_lists_are_namespaces_too(store: ManagedStore) -> None:
    labels: Any = ["a", "b"]
    await store.aput(labels, "k", {})
    item = await store.aget(labels, "k")
    assert item is not None
    assert item.namespace == ("a", "b")
    assert await store.alist_namespaces(prefix=labels) == [("a", "b")]


async def test_listing(store: ManagedStore) -> None:
    for namespace in [("a", "b", "c"), ("a", "b", "d"), ("a", "x"), ("q", "b", "c"), ("a",)]:
        await store.aput(namespace, "k", {})
    assert await store.alist_namespaces(prefix=("a",)) == [("a",), ("a", "b", "c"), ("a", "b", "d"), ("a", "x")]
    assert await store.alist_namespaces(prefix=("*", "b")) == [("a", "b", "c"), ("a", "b", "d"), ("q", "b", "c")]
    assert await store.alist_namespaces(suffix=("c",)) == [("a", "b", "c"), ("q", "b", "c")]
    assert await store.alist_namespaces(prefix=("a",), suffix=("*", "c")) == [("a", "b", "c")]
    assert await store.alist_namespaces(max_depth=2) == [("a",), ("a", "b"), ("a", "x"), ("q", "b")]
    assert await store.alist_namespaces(max_depth=1, offset=1) == [("q",)]
    assert await store.alist_namespaces(limit=2, offset=1) == [("a", "b", "c"), ("a", "b", "d")]
    assert await store.alist_namespaces(prefix=("a", "b", "c", "d")) == []
    with pytest.raises(ValueError, match="'infix'"):
        await store.abatch([ListNamespacesOp((MatchCondition("infix", ("a",)),))])  # type: ignore[arg-type]


labels = st.text(min_size=1, max_size=3).filter(lambda text: "." not in text and "\0" not in text)
namespaces = st.lists(st.sampled_from("abé*%") | labels, min_size=1, max_size=4).map(tuple)


@given(namespaces, namespaces)
def test_the_bounds_of_a_prefix_hold_exactly_what_lies_below(
    prefix: tuple[str, ...], namespace: tuple[str, ...]
) -> None:
    first, after = (bound.encode() for bound in below(prefix))
    text = column(namespace)
    assert (text == column(prefix) or first <= text.encode() < after) == begins(namespace, prefix)
    assert from_column(text) == namespace == checked(namespace)


paths = st.lists(st.sampled_from("ab*"), max_size=3).map(tuple)


@given(
    st.lists(st.lists(st.sampled_from("abc"), min_size=1, max_size=4).map(tuple), max_size=8),
    paths,
    paths,
    st.none() | st.integers(1, 4),
)
def test_listing_agrees_with_the_peer(
    held: list[tuple[str, ...]], prefix: tuple[str, ...], suffix: tuple[str, ...], max_depth: int | None
) -> None:
    peer = PeerStore()
    for namespace in held:
        peer.put(namespace, "k", {})
    conditions = [MatchCondition("prefix", prefix), MatchCondition("suffix", suffix)]
    expected = peer.list_namespaces(prefix=prefix, suffix=suffix, max_depth=max_depth)
    assert listed(held, conditions, max_depth) == expected
