"""MongoDBStore beyond what every store must do: many writers, large items, what vanishes by itself, damage."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from persistence.errors import BackendError, CorruptDataError, StoredDataError
from persistence.mongo import MongoDBSaver, MongoDBStore
from persistence.serde.encrypted import EncryptedSerializer
from runtime.store import GetOp, PutOp
from tests.persistence.mongo.test_commits import Commands
from tests.persistence.stores.test_store_model import agree, chosen, histories
from tests.persistence.writer.samples import config, put

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.persistence.mongo.server import MongoServer

pytestmark = pytest.mark.anyio
NS = ("users", "Ada")
MIB = 2**20


def embed(texts: list[str]) -> list[list[float]]:
    return [[float(part) for part in text.split(",")] for text in texts]


INDEX: Any = {"dims": 3, "embed": embed, "fields": ["at"]}


@pytest.fixture
async def store(mongo: dict[str, Any]) -> AsyncIterator[MongoDBStore]:
    async with MongoDBStore(**mongo) as opened:
        yield opened


async def test_it_stands_beside_a_saver(mongo: dict[str, Any]) -> None:
    async with MongoDBSaver(**mongo) as saver, MongoDBStore(**mongo, pool_size=2) as store:
        await put(saver, "1", {"a": [1]})
        await store.aput(NS, "k", {"text": "a\0b\ue000"})
        assert await saver.aget_tuple(config()) is not None
        assert [item.key for item in await store.asearch(("users",), filter={"text": "a\0b\ue000"})] == ["k"]


async def test_a_batch_of_puts_is_three_commands_and_gets_are_one(
    mongo: dict[str, Any], mongo_server: MongoServer
) -> None:
    commands = Commands()
    async with MongoDBStore(**mongo, connect_arguments={"event_listeners": [commands]}) as store:
        commands.taken()
        await store.abatch([PutOp(NS, f"{number}", {"n": number}) for number in range(50)])
        transactions = mongo_server.settings.get("transactions") is None
        end = ["commitTransaction"] * transactions
        assert commands.taken() == ["findAndModify", "delete", "update", "delete", *end]
        found = await store.abatch([GetOp(NS, f"{number}") for number in range(50)])
        assert commands.taken() == ["find"]
        assert [item.value for item in found] == [{"n": number} for number in range(50)]  # type: ignore[union-attr]


async def test_many_writers_lose_nothing(mongo: dict[str, Any], mongo_server: MongoServer) -> None:
    async with MongoDBStore(**mongo) as first, MongoDBStore(**mongo) as second:
        async with anyio.create_task_group() as nursery:
            for number in range(20):
                for store in (first, second):
                    ops = [PutOp(NS, f"{number % 7}", {"n": number}), PutOp(NS, f"{number % 5 + 2}", {"n": number})]
                    nursery.start_soon(store.abatch, ops)
        found = await first.asearch(NS, limit=20)
        assert {item.key for item in found} == {f"{number}" for number in range(7)}
        assert mongo_server.kinds(mongo["prefix"], "items") == {"item": 7}


async def test_what_is_refused_fails_alone_and_changes_nothing(store: MongoDBStore) -> None:
    outcomes: dict[int, str] = {}

    async def write(number: int) -> None:
        key = "x" * 5 * MIB if number == 3 else f"{number}"
        try:
            await store.abatch([PutOp(NS, "before", {"n": number}), PutOp(NS, key, {"n": number})])
            outcomes[number] = "stored"
        except BackendError as error:
            outcomes[number] = "refused" if "nothing was saved" in str(error) else "?"

    async with anyio.create_task_group() as nursery:
        for number in range(6):
            nursery.start_soon(write, number)
    assert outcomes == {number: "refused" if number == 3 else "stored" for number in range(6)}
    assert len(await store.asearch(NS)) == 6


async def test_cancelled_puts_are_done_or_not(store: MongoDBStore) -> None:
    for number in range(20):
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as nursery:
                nursery.start_soon(store.aput, NS, f"{number}", {"n": number})
                nursery.start_soon(store.aget, NS, "0")
                for _ in range(number % 10):
                    await anyio.lowlevel.checkpoint()
                scope.cancel()
    await store.aput(NS, "last", {})
    found = await store.asearch(NS, limit=100)
    assert all(item.value.get("n") == int(item.key) for item in found if item.key != "last")


@pytest.mark.slow
async def test_large_items_are_in_pieces_and_leave_none_behind(
    mongo: dict[str, Any], mongo_server: MongoServer
) -> None:
    large = bytes(range(256)) * (MIB // 256) * 9
    async with MongoDBStore(**mongo, index=INDEX) as store:
        await store.abatch([PutOp(NS, key, {"large": large, "at": "1,2,3"}, ttl=60) for key in ("a", "b")])
        assert mongo_server.kinds(mongo["prefix"], "items") == {"item": 2, "chunk": 4}
        found = await store.asearch(NS, query="1,2,3", filter={"large": large}, refresh_ttl=True)
        assert [item.value["large"] == large for item in found] == [True, True]
        await store.aput(NS, "a", {"large": large[::-1]})
        item = await store.aget(NS, "a")
        assert item is not None
        assert item.value["large"] == large[::-1]
        assert mongo_server.kinds(mongo["prefix"], "items") == {"item": 2, "chunk": 4}
        mongo_server.database[f"{mongo['prefix']}_items"].delete_one({"kind": "chunk"})
        with pytest.raises(CorruptDataError):
            await store.asearch(NS)
        await store.aput(NS, "a", {"small": 1})
        await store.adelete(NS, "b")
        assert mongo_server.kinds(mongo["prefix"], "items") == {"item": 1}


async def test_the_server_is_told_when_items_may_vanish(mongo: dict[str, Any], mongo_server: MongoServer) -> None:
    """By its own clock, whatever the store's says; what stays is never touched."""
    async with MongoDBStore(**mongo, clock=lambda: 1000.0) as store:
        before = datetime.now(UTC)
        for key, minutes in (("hour", 60), ("aeon", 1e12), ("always", None)):
            await store.aput(NS, key, {}, ttl=minutes)
    items = mongo_server.database[f"{mongo['prefix']}_items"]
    told = {each["key"]: each.get("vanishes_at") for each in items.find({"kind": "item"})}
    assert told["aeon"] is told["always"] is None
    assert 3600 <= (told["hour"].replace(tzinfo=UTC) - before).total_seconds() <= 3800
    assert items.index_information()["vanishing"]["expireAfterSeconds"] == 0


async def test_damage_is_named(store: MongoDBStore, mongo: dict[str, Any], mongo_server: MongoServer) -> None:
    items = mongo_server.database[f"{mongo['prefix']}_items"]
    for field in ("created_at", "value", "type", "expires_at", "number"):
        await store.aput(NS, "k", {"n": 1})
        items.update_one({"key": "k"}, {"$set": {field: "what it was not"}})
        with pytest.raises(StoredDataError):
            await store.aget(NS, "k")
        await store.adelete(NS, "k")
    assert await store.aget(NS, "k") is None


@pytest.mark.slow
async def test_a_search_by_meaning_looks_at_all(mongo: dict[str, Any]) -> None:
    async with MongoDBStore(**mongo, index=INDEX) as store:
        ops = [PutOp(("many", f"{n % 3}"), f"{n}", {"at": f"{n % 97},{n % 89},{n}", "odd": n % 2}) for n in range(600)]
        await store.abatch(ops)
        await store.aput(("many", "1"), "unseen", {"odd": 1}, index=False)
        found = await store.asearch(("many",), query="0,0,1", limit=5)
        assert [item.score for item in found] == sorted([item.score for item in found], reverse=True)  # type: ignore[type-var]
        inside = await store.asearch(("many", "1"), query="1,1,1", limit=1000, filter={"odd": 1})
        assert len(inside) == 101
        assert (inside[-1].key, inside[-1].score) == ("unseen", None)
    wider: Any = {"dims": 2, "embed": embed, "fields": ["at"]}
    async with MongoDBStore(**mongo, index=wider) as store:
        assert {item.score for item in await store.asearch(("many",), query="0,1", limit=20)} == {None}


@pytest.mark.slow
@settings(max_examples=10)
@given(history=histories, sealed=st.booleans())
async def test_it_agrees_with_a_dict(mongo_server: MongoServer, history: Any, sealed: bool) -> None:
    options = chosen()
    if sealed:
        options["serde"] = EncryptedSerializer(b"0123456789abcdef")
    with mongo_server.prefix() as prefix:
        async with MongoDBStore(mongo_server.url, prefix=prefix, **mongo_server.settings, **options) as store:
            await agree([store], options["clock"], history)
            options["clock"].advance(minutes=1e6)
            await store.asweep_ttl()
            await store.abatch([PutOp(item.namespace, item.key, None) for item in await store.asearch((), limit=1000)])
        assert mongo_server.kinds(prefix, "items") == {}
