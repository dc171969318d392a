"""What every store promises about items, batches, copies and doors."""

from __future__ import annotations

import re
from collections import OrderedDict, deque
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import Path
from types import MappingProxyType
from typing import Any
from uuid import UUID

import anyio
import pytest
from anyio import to_thread

from persistence.errors import (
    DecryptionError,
    PersistenceError,
    SaverLoopError,
    SerializationError,
    UnsupportedOperationError,
)
from persistence.memory import InMemoryStore
from persistence.serde import EncryptedSerializer, Serializer
from persistence.sqlite import AsyncSqliteStore, SqliteStore
from persistence.stores.managed import ManagedStore
from runtime.store import (
    NOT_GIVEN,
    BaseStore,
    GetOp,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
)
from tests.persistence.stores.clocks import START, Clock
from tests.persistence.stores.conftest import OpenStore

pytestmark = pytest.mark.anyio

NS = ("users", "Alice")


async def keys(store: BaseStore, prefix: tuple[str, ...] = (), **options: Any) -> list[str]:
    return [item.key for item in await store.asearch(prefix, **options)]


async def test_what_is_put_is_got(store: ManagedStore) -> None:
    await store.aput(NS, "food", {"likes": ["酸奶", 1, None]})
    item = await store.aget(NS, "food")
    assert item is not None
    assert (item.namespace, item.key, item.value) == (NS, "food", {"likes": ["酸奶", 1, None]})
    assert item.created_at == item.updated_at == datetime.fromtimestamp(START, UTC)
    assert await store.aget(NS, "drink") is None
    assert await store.aget(("users",), "food") is None
    assert await store.aget((), "food") is None


async def test_a_later_put_replaces_the_value_and_keeps_the_creation_time(store: ManagedStore, clock: Clock) -> None:
    await store.aput(NS, "food", {"a": 1, "b": 2})
    clock.advance(minutes=1)
    await store.aput(NS, "food", {"a": 3})
    item = await store.aget(NS, "food")
    assert item is not None
    assert item.value == {"a": 3}
    assert item.updated_at - item.created_at == timedelta(minutes=1)
    assert item.created_at == datetime.fromtimestamp(START, UTC)


async def test_a_deleted_item_is_gone_and_can_come_back_as_new(store: ManagedStore, clock: Clock) -> None:
    await store.aput(NS, "food", {"a": 1})
    await store.adelete(NS, "food")
    await store.adelete(NS, "food")
    await store.adelete(("nowhere", "at", "all"), "food")
    assert await store.aget(NS, "food") is None
    assert await keys(store) == []
    assert await store.alist_namespaces() == []
    clock.advance(minutes=1)
    await store.aput(NS, "food", {"a": 2})
    item = await store.aget(NS, "food")
    assert item is not None
    assert item.created_at == item.updated_at > datetime.fromtimestamp(START, UTC)


async def test_keys_are_text(store: ManagedStore) -> None:
    key: Any = 5
    await store.aput(NS, key, {"a": 1})
    item = await store.aget(NS, "5")
    assert item is not None
    assert item.key == "5"
    await store.abatch([PutOp(NS, key, {"a": 2})])
    assert (await store.abatch([GetOp(NS, key)]))[0] == await store.aget(NS, "5")
    for odd in ("", " ", "a.b", "%", "'; DROP TABLE store; --", "\n", "键", "😀"):
        await store.aput(NS, odd, {"key": odd})
    for odd in ("", " ", "a.b", "%", "'; DROP TABLE store; --", "\n", "键", "😀"):
        found = await store.aget(NS, odd)
        assert found is not None
        assert (found.key, found.value) == (odd, {"key": odd})
    for refused in ("a\0b", "\ud800"):
        with pytest.raises(ValueError, match="NUL or a lone surrogate"):
            await store.aput(NS, refused, {})
        with pytest.raises(ValueError, match="NUL or a lone surrogate"):
            await store.aget(NS, refused)


class Colour(Enum):
    RED = "red"


@dataclass
class Point:
    x: int
    y: int


VALUES: list[dict[Any, Any]] = [
    {},
    {
        "tuple": (1, (2,)),
        "set": {1, 2},
        "frozen": frozenset("a"),
        "bytes": b"\0\xff",
        "big": 2**90,
        "deque": deque([1]),
    },
    {"when": datetime(2026, 6, 12, 9, 54, tzinfo=UTC), "day": date(2026, 6, 12), "for": timedelta(hours=1)},
    {"id": UUID(int=7), "price": Decimal("1.50"), "path": Path("/tmp"), "colour": Colour.RED, "point": Point(1, 2)},  # noqa: S108
    {1: "int key", (1, 2): "tuple key", None: "no key"},
    {"nested": {"a": [{"b": {"c": ()}}]}, "true": True, "one": 1, "float": 1.0, "text": "\ud800"},
    OrderedDict(b=1, a=2),
]


def exact(value: Any) -> Any:
    """Return a value with the types of everything in it."""
    if isinstance(value, dict):
        return type(value), [(exact(key), exact(inner)) for key, inner in value.items()]
    if isinstance(value, list | tuple | deque):
        return type(value), [exact(inner) for inner in value]
    return type(value), value


@pytest.mark.parametrize("value", VALUES, ids=repr)
async def test_what_goes_in_comes_out_exactly(open_store: OpenStore, value: dict[Any, Any]) -> None:
    store = await open_store()
    store.register_types([Colour, Point])
    await store.aput(NS, "k", value)
    item = await store.aget(NS, "k")
    (found,) = await store.asearch(NS)
    assert item is not None
    assert exact(item.value) == exact(found.value) == exact(value)


async def test_values_are_copied_on_the_way_in_and_out(store: ManagedStore) -> None:
    value: dict[str, Any] = {"list": [1]}
    await store.aput(NS, "k", value)
    value["list"].append(2)
    first = await store.aget(NS, "k")
    assert first is not None
    assert first.value == {"list": [1]}
    first.value["list"].append(3)
    (second,) = await store.asearch(NS)
    assert second.value == {"list": [1]}


async def test_what_cannot_be_stored_is_refused_and_nothing_happens(store: ManagedStore) -> None:
    await store.aput(NS, "k", {"a": 1})

    class Unregistered:
        pass

    unstorable: list[dict[str, Any]] = [{"a": Unregistered()}, {"a": lambda: None}, {"f": iter([])}]
    for value in unstorable:
        with pytest.raises(SerializationError, match=f"The item .l. of {re.escape(repr(NS))} cannot be stored: "):
            await store.abatch([PutOp(NS, "k", {"a": 2}), PutOp(NS, "l", value)])
    for wrong in ("text", [1, 2], 5, Point(1, 2)):
        with pytest.raises(TypeError, match="must be a dict"):
            await store.aput(NS, "k", wrong)  # type: ignore[arg-type]
    assert [item.value for item in await store.asearch(())] == [{"a": 1}]


async def test_any_mapping_is_a_value(store: ManagedStore) -> None:
    await store.aput(NS, "k", MappingProxyType({"a": 1}))
    item = await store.aget(NS, "k")
    assert item is not None
    assert exact(item.value) == exact({"a": 1})


async def test_a_search_without_a_query_follows_the_order_of_creation(store: ManagedStore, clock: Clock) -> None:
    places = [(("b", "x"), "1"), (("a",), "2"), (("b",), "3"), (("b", "x"), "0"), (("c",), "4")]
    for namespace, key in places:
        await store.aput(namespace, key, {})
        clock.advance(minutes=1)
    await store.aput(("b", "x"), "1", {"changed": True})
    assert await keys(store) == ["1", "2", "3", "0", "4"]
    assert await keys(store, ("b",)) == ["1", "3", "0"]
    assert await keys(store, ("b", "x")) == ["1", "0"]
    assert await keys(store, ("b", "x", "y")) == []
    assert await keys(store, limit=2) == ["1", "2"]
    assert await keys(store, limit=2, offset=1) == ["2", "3"]
    assert await keys(store, limit=9, offset=4) == ["4"]
    assert await keys(store, offset=5) == await keys(store, ("b",), offset=2**70, limit=2**70) == []
    assert await keys(store, ("b",), limit=2**70) == ["1", "3", "0"]
    assert await keys(store, limit=0) == []
    await store.adelete(("b", "x"), "1")
    await store.aput(("b", "x"), "1", {})
    assert await keys(store) == ["2", "3", "0", "4", "1"]


async def test_a_page_holds_ten_items_unless_said_otherwise(store: ManagedStore) -> None:
    await store.abatch([PutOp(("n",), f"{number}", {"even": number % 2 == 0}) for number in range(25)])
    assert await keys(store) == [f"{number}" for number in range(10)]
    assert await keys(store, offset=20) == ["20", "21", "22", "23", "24"]
    assert await keys(store, filter={"even": True}, limit=3, offset=2) == ["4", "6", "8"]
    assert await keys(store, filter={"even": True}, limit=100, offset=12) == ["24"]


@pytest.mark.parametrize("wrong", [-1, 1.5, "3", None, True])
async def test_limits_and_offsets_are_whole_numbers(store: ManagedStore, wrong: Any) -> None:
    for options in ({"limit": wrong}, {"offset": wrong}):
        with pytest.raises(ValueError, match="whole number"):
            await store.asearch((), **options)
        with pytest.raises(ValueError, match="whole number"):
            await store.alist_namespaces(**options)
    if wrong is not None:
        with pytest.raises(ValueError, match="whole number"):
            await store.alist_namespaces(max_depth=wrong)


async def test_reads_of_a_batch_see_the_store_before_its_puts(store: ManagedStore) -> None:
    await store.aput(NS, "k", {"n": 1})
    results = await store.abatch(
        [
            PutOp(NS, "k", {"n": 2}),
            GetOp(NS, "k"),
            PutOp(("new",), "l", {"n": 3}),
            GetOp(("new",), "l"),
            SearchOp(()),
            ListNamespacesOp(),
            PutOp(NS, "k", {"n": 4}),
            ListNamespacesOp((MatchCondition("prefix", ("new",)),)),
        ]
    )
    got: Any = results[1]
    found: Any = results[4]
    assert got.value == {"n": 1}
    assert results[:1] + results[2:4] + results[5:] == [None, None, None, [NS], None, []]
    assert [item.value for item in found] == [{"n": 1}]
    assert [item.value for item in await store.asearch(())] == [{"n": 4}, {"n": 3}]


async def test_of_several_puts_to_a_key_the_last_wins(store: ManagedStore) -> None:
    await store.aput(NS, "b", {"n": 0})
    await store.abatch([PutOp(NS, "a", {"n": 1}), PutOp(NS, "a", None), PutOp(NS, "b", None), PutOp(NS, "b", {"n": 2})])
    assert [(item.key, item.value) for item in await store.asearch(())] == [("b", {"n": 2})]
    assert await store.abatch([]) == []
    assert await store.abatch(iter([GetOp(NS, "a")])) == [None]


@pytest.mark.parametrize(
    "wrong",
    [1, None, ("users", "k"), SearchOp((), {"a": {"$regex": "x"}}), PutOp((), "k", {}), PutOp(NS, "k", {}, None, 0)],
)
async def test_a_batch_with_an_impossible_operation_does_nothing(store: ManagedStore, wrong: Any) -> None:
    with pytest.raises(ValueError, match="."):
        await store.abatch([PutOp(NS, "k", {"n": 1}), wrong])
    assert await keys(store) == []


async def test_blocking_methods_work_from_worker_threads(store: ManagedStore) -> None:
    def work() -> list[Any]:
        store.put(NS, "k", {"n": 1})
        store.put(NS, "l", {"n": 2}, ttl=5)
        store.delete(NS, "l")
        return [
            store.get(NS, "k"),
            store.search(NS, filter={"n": 1}),
            store.list_namespaces(prefix=("users",)),
            store.batch([GetOp(NS, "k"), PutOp(NS, "m", {})]),
            store.sweep_ttl(),
        ]

    got, found, namespaces, batch, swept = await to_thread.run_sync(work)
    assert got == await store.aget(NS, "k")
    assert (found, namespaces, batch, swept) == ([got], [NS], [got, None], 0)


async def test_blocking_in_the_loops_own_thread_is_refused_at_once_or_works(store: ManagedStore) -> None:
    doors = {
        "aget": lambda: store.get(NS, "k"),
        "asearch": lambda: store.search(NS),
        "aput": lambda: store.put(NS, "k", {}),
        "adelete": lambda: store.delete(NS, "k"),
        "alist_namespaces": store.list_namespaces,
        "abatch": lambda: store.batch([]),
    }
    for name, door in doors.items():
        if isinstance(store, InMemoryStore):
            door()
        else:
            with pytest.raises(SaverLoopError, match=rf"Await {name}\(\)"):
                door()
    assert await keys(store) == []


def test_a_store_is_opened_by_with(path: Path) -> None:
    store: ManagedStore
    for store in (SqliteStore.from_conn_string(str(path)), InMemoryStore()):
        with store as opened:
            assert opened is store
            store.put(NS, "k", {"n": 1})
            item = store.get(NS, "k")
            assert item is not None
            assert item.value == {"n": 1}
            with pytest.raises(PersistenceError, match="open already"):
                store.__enter__()
        assert not repr(store).endswith("open>")
    assert issubclass(AsyncSqliteStore, SqliteStore)


async def test_a_store_is_open_once(store: ManagedStore) -> None:
    with pytest.raises(PersistenceError, match="open already"):
        await store.__aenter__()


async def test_closing_what_is_closed_does_nothing(path: Path) -> None:
    for store in (SqliteStore(path), InMemoryStore()):
        await store.__aexit__(None, None, None)
    assert not path.exists()


async def test_a_store_in_memory_needs_no_opening() -> None:
    store = InMemoryStore()
    await store.aput(NS, "k", {})
    assert store.get(NS, "k") is not None
    assert repr(store) == "<InMemoryStore: 1 items>"
    async with store:
        pass
    async with store:
        assert await keys(store) == ["k"]


async def test_many_tasks_at_once(store: ManagedStore) -> None:
    async def work(number: int) -> None:
        await store.aput(("n", f"{number % 3}"), f"{number}", {"n": number})
        item = await store.aget(("n", f"{number % 3}"), f"{number}")
        assert item is not None
        assert item.value == {"n": number}

    async with anyio.create_task_group() as nursery:
        for number in range(50):
            nursery.start_soon(work, number)
    assert len(await keys(store, limit=100)) == 50


async def test_an_encrypting_serializer_hides_and_binds(open_store: OpenStore) -> None:
    serde = EncryptedSerializer(b"k" * 16)
    store = await open_store(serde=serde, index={"dims": 2, "embed": lambda texts: [[1.0, 2.0]] * len(texts)})
    await store.aput(NS, "k", {"secret": "honey"})
    await store.aput(NS, "l", {"secret": "wasp"}, index=False)
    (found, tail) = await store.asearch(NS, query="sweet", filter={"secret": {"$ne": "ant"}})
    assert (found.value, found.score, tail.score) == ({"secret": "honey"}, 1.0, None)
    if isinstance(store, SqliteStore):
        files = b"".join(file.read_bytes() for file in Path(store._path).parent.iterdir())
        assert b"honey" not in files
        async with SqliteStore(store._path, serde=Serializer()) as other:
            with pytest.raises(DecryptionError):
                await other.aget(NS, "k")


def test_items_look_like_their_fields() -> None:
    when = "2026-06-12T09:54:50.593300+00:00"
    item = Item(namespace=NS, key="k", value={"a": 1}, created_at=when, updated_at=when)  # type: ignore[arg-type]
    assert item.created_at == datetime.fromisoformat(when)
    text = f"namespace=['users', 'Alice'], key='k', value={{'a': 1}}, created_at='{when}', updated_at='{when}'"
    assert repr(item) == f"Item({text})"
    found = SearchItem(NS, "k", {"a": 1}, item.created_at, item.updated_at)
    assert repr(found) == f"Item({text}, score=None)"
    assert found.dict() == {**item.dict(), "score": None}
    assert Item(**item.dict()) == item == found
    assert SearchItem(**found.dict()) == found
    assert hash(item) == hash(found)
    assert item != SearchItem(NS, "k", {"a": 2}, item.created_at, item.updated_at)
    assert item != "k"


async def test_items_can_be_kept_themselves(store: ManagedStore) -> None:
    await store.aput(NS, "k", {"a": 1})
    (found,) = await store.asearch(NS)
    await store.aput(NS, "l", {"found": [found, await store.aget(NS, "k")]})
    item = await store.aget(NS, "l")
    assert item is not None
    assert item.value == {"found": [found, found]}
    assert type(item.value["found"][0]) is SearchItem


class Recorder(BaseStore):
    """A third party's store: two methods."""

    def __init__(self) -> None:
        self.ops: list[Op] = []

    def batch(self, ops: Any) -> list[Result]:
        self.ops.extend(ops)
        return [None] * len(self.ops)

    async def abatch(self, ops: Any) -> list[Result]:
        return self.batch(ops)


async def test_a_third_partys_store_needs_two_methods() -> None:
    store = Recorder()
    await store.aput(NS, "k", {}, ["a"])
    await store.adelete(NS, "k")
    await store.aget(NS, "k", refresh_ttl=False)
    await store.asearch(NS, query="q", filter={"a": 1}, limit=1, offset=2, refresh_ttl=True)
    await store.alist_namespaces(prefix=("a",), suffix=("*",), max_depth=2, limit=3, offset=4)
    asynchronous, store.ops = store.ops, []
    store.put(NS, "k", {}, ["a"])
    store.delete(NS, "k")
    store.get(NS, "k", refresh_ttl=False)
    store.search(NS, query="q", filter={"a": 1}, limit=1, offset=2, refresh_ttl=True)
    store.list_namespaces(prefix=("a",), suffix=("*",), max_depth=2, limit=3, offset=4)
    assert store.ops == asynchronous == [
        PutOp(NS, "k", {}, ["a"], None),
        PutOp(NS, "k", None),
        GetOp(NS, "k", False),
        SearchOp(NS, {"a": 1}, 1, 2, "q", True),
        ListNamespacesOp((MatchCondition("prefix", ("a",)), MatchCondition("suffix", ("*",))), 2, 3, 4),
    ]  # fmt: skip
    with pytest.raises(NotImplementedError, match="Recorder does not know expiry"):
        await store.aput(NS, "k", {}, ttl=5)
    with pytest.raises(UnsupportedOperationError):
        store.put(NS, "k", {}, ttl=5)
    assert not NOT_GIVEN
    assert repr(NOT_GIVEN) == "NOT_GIVEN"


async def test_a_store_tells_how_busy_it_is(open_store: OpenStore) -> None:
    store = await open_store()
    await store.aput(("a",), "k", {})
    lanes = {lane.name: (lane.works, lane.depth, lane.waiting_callers) for lane in store.statistics()}
    assert lanes.get("writes") == (None if isinstance(store, InMemoryStore) else (1, 0, 0))
    await store.__aexit__(None, None, None)
    assert store.statistics() == ()
