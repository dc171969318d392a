"""Ids, keys, values and filters that look like operators, paths or parts of ids: each is only ever itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from bson.objectid import ObjectId
from bson.regex import Regex
from hypothesis import given
from hypothesis import strategies as st

from persistence.errors import BackendError
from persistence.mongo import MongoDBSaver, MongoDBStore, chunks
from persistence.mongo.chunks import joined
from tests.persistence.writer.samples import config, put

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.persistence.mongo.server import MongoServer

pytestmark = pytest.mark.anyio

HOSTILE = (
    "$where",
    "$gt",
    "$$ROOT",
    "$a",
    "$",
    "a.b",
    "a.$",
    ".",
    "0",
    "-1",
    "_id",
    "rows.0",
    "__proto__",
    '{"$gt": ""}',
    "'; return true; //",
    "/.*/",
    ".*",
    "checkpoint",
    "t\x01",
    "T",
    "t",
    "é",
    "e\u0301",
    "\U0001f600",
    "\uffff",
    "x" * 5000,
)
OPERATORS: tuple[Any, ...] = ({"$gt": ""}, {"$ne": None}, ["t"], Regex("."), b"t", ObjectId("0" * 24), 7, None)


@pytest.mark.slow
async def test_every_id_is_only_itself(saver: MongoDBSaver, mongo: dict[str, Any], mongo_server: MongoServer) -> None:
    for name in HOSTILE:
        where = await put(saver, name, {name: [name]}, thread_id=name, ns=name, run_id=name, **{name: name})
        await saver.aput_writes(where, [(name, name)], name, name)
    listed = [one.config["configurable"]["thread_id"] async for one in saver.alist(None)]
    assert listed == sorted(HOSTILE, reverse=True)
    for name in HOSTILE:
        stored = await saver.aget_tuple(config(name, None, name))
        assert stored is not None
        assert stored.config == config(name, name, name)
        assert stored.checkpoint["channel_values"] == {name: [name]}
        assert stored.pending_writes == [(name, name, name)]
        assert stored == await saver.aget_tuple(config(name, name, name))
        assert [one async for one in saver.alist({"configurable": {"thread_id": name}})] == [stored]
        assert [one async for one in saver.alist(None, filter={"run_id": name, name: name})] == [stored]
        below = [one.checkpoint["id"] async for one in saver.alist(None, before=config(name, name))]
        assert below == [other for other in listed if other < name]
    for name in HOSTILE[::2]:
        await saver.adelete_thread(name)
    for name in HOSTILE[1::4]:
        await saver.adelete_for_runs([name])
    await saver.aprune(HOSTILE)
    left = [one.config["configurable"]["thread_id"] async for one in saver.alist(None)]
    assert left == sorted(HOSTILE[3::4], reverse=True)
    await saver.aprune(HOSTILE, strategy="delete")
    assert mongo_server.kinds(mongo["prefix"]) == {}


@pytest.mark.slow
async def test_pages_of_one_thread_and_of_all_follow_one_order(saver: MongoDBSaver) -> None:
    names = HOSTILE[:8]
    for thread_id in ("t", "u"):
        for ns in names[:4]:
            for name in names:
                await put(saver, name, {"a": [ns]}, ns=ns, thread_id=thread_id)
    places = sorted(((name, ns) for ns in names[:4] for name in names), reverse=True)
    listed = [one.config["configurable"] async for one in saver.alist({"configurable": {"thread_id": "t"}})]
    assert [(one["checkpoint_id"], one["checkpoint_ns"]) for one in listed] == places
    everywhere = [one.config["configurable"] async for one in saver.alist(None)]
    found = [(one["checkpoint_id"], one["thread_id"], one["checkpoint_ns"]) for one in everywhere]
    assert found == sorted(((name, thread, ns) for name, ns in places for thread in ("t", "u")), reverse=True)
    for ns in names[:4]:
        assert [one.checkpoint["id"] async for one in saver.alist(config("t", None, ns))] == sorted(names, reverse=True)
        for_all = [one async for one in saver.alist({"configurable": {"checkpoint_ns": ns}}, limit=10)]
        assert len(for_all) == 10


@pytest.mark.parametrize("operator", OPERATORS, ids=repr)
async def test_what_is_no_text_is_no_id(saver: MongoDBSaver, operator: Any) -> None:
    await put(saver, "1", {"a": [1]}, run_id="r")
    refusals = (TypeError, ValueError)
    if operator is not None:
        for part in ("thread_id", "checkpoint_ns", "checkpoint_id"):
            where = {"configurable": {"thread_id": "t", "checkpoint_ns": "", part: operator}}
            with pytest.raises(refusals):
                await saver.aget_tuple(where)
            with pytest.raises(refusals):
                [one async for one in saver.alist(where)]
        with pytest.raises(refusals):
            await saver.aput_writes(config("t", "1"), [(operator, 1)], "task")
    for call in (
        saver.adelete_thread,
        lambda one: saver.acopy_thread(one, "u"),
        lambda one: saver.acopy_thread("t", one),
        lambda one: saver.aprune([one], strategy="delete"),
        lambda one: saver.adelete_for_runs([one]),
        lambda one: saver.aput_writes(config("t", "1"), [("a", 1)], one),
    ):
        with pytest.raises(refusals):
            await call(operator)
    assert [one.pending_writes async for one in saver.alist(None)] == [[]]


async def test_filters_compare_values_and_know_no_operator(saver: MongoDBSaver) -> None:
    dotted: dict[str, Any] = {"a.b": 1}
    await put(saver, "1", {}, word="x", nested={"$gt": ""}, **dotted)
    await put(saver, "2", {}, word="y", nested={"$gt": "z"}, a={"b": 1})

    async def found(**wanted: Any) -> list[str]:
        return [one.checkpoint["id"] async for one in saver.alist(None, filter=wanted)]

    assert await found(word={"$gt": ""}) == await found(word={"$ne": "x"}) == []
    assert await found(**{"$where": "true"}) == await found(**{"$or": [{}]}) == await found(word={"$regex": "."}) == []
    assert await found(nested={"$gt": ""}) == ["1"]
    assert await found(**{"a.b": 1}) == ["1"]
    assert await found(a={"b": 1}) == ["2"]
    assert await found(**{"nested.$gt": ""}) == []


@pytest.fixture
async def store(mongo: dict[str, Any]) -> AsyncIterator[MongoDBStore]:
    async with MongoDBStore(**mongo) as opened:
        yield opened


@pytest.mark.slow
async def test_items_of_hostile_names(store: MongoDBStore) -> None:
    labels = [name for name in HOSTILE if "." not in name]
    for name in HOSTILE:
        await store.aput(("names", labels[0]), name, {name: {name: name}})
    for label in labels:
        await store.aput(("labels", label), "k", {"label": label})
    for name in HOSTILE:
        item = await store.aget(("names", labels[0]), name)
        assert item is not None
        assert (item.key, item.value) == (name, {name: {name: name}})
        found = await store.asearch(("names",), filter={name: {"$eq": {name: name}}}, limit=99)
        assert [item.key for item in found] == [name]
    for label in labels:
        assert [item.value for item in await store.asearch(("labels", label))] == [{"label": label}]
    assert await store.alist_namespaces(prefix=("labels",)) == sorted(("labels", label) for label in labels)
    with pytest.raises(ValueError, match="Unsupported operator"):
        await store.asearch(("labels",), filter={"label": {"$where": "true"}})
    with pytest.raises(BackendError, match="bytes of names"):
        await store.aput(("labels",), "x" * 5 * 2**20, {})


names = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=4)


@given(one=st.tuples(names, names, names), other=st.tuples(names, names, names))
def test_ids_sort_like_their_parts(one: tuple[str, ...], other: tuple[str, ...]) -> None:
    assert (joined(*one).encode() < joined(*other).encode()) == (one < other)
    assert tuple(joined(*one).split("\0")) == one


@given(given=st.lists(st.text(max_size=5), max_size=30), room=st.integers(1, 200))
def test_names_go_out_in_parts_that_fit(given: list[str], room: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chunks, "PART", room)
        parts = list(chunks.in_parts(given))
    assert [name for part in parts for name in part] == given
    assert all(len(part) == 1 or sum(len(name.encode("utf-8", "surrogatepass")) + 16 for name in part) <= room
               for part in parts)  # fmt: skip
    assert all(parts)


async def test_more_names_than_a_command_holds(saver: MongoDBSaver) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chunks, "PART", 100)
        where = await put(saver, "1", {f"channel {number}": [number] for number in range(20)}, run_id="r" * 20)
        await saver.aput_writes(where, [("a", [b"x" * 1000])], "task")
        for number in range(2, 9):
            await put(saver, f"{number}", {"a": [number], "large": b"x" * 1000}, run_id=f"{number}" * 20)
        found = [one async for one in saver.alist(None, filter={"step": 0})]
        assert [one.checkpoint["id"] for one in found] == [f"{number}" for number in range(8, 0, -1)]
        assert found[-1].checkpoint["channel_values"] == {f"channel {number}": [number] for number in range(20)}
        await saver.adelete_for_runs([f"{number}" * 20 for number in range(9)])
        await saver.aprune([f"thread {number}" * 10 for number in range(5)], strategy="delete")
        assert [one async for one in saver.alist(None)] == found[-1:]
