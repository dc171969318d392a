"""Ways to name a server: a URL, a client of one's own, a function; refused in words where it could not work."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from pymongo import AsyncMongoClient, MongoClient

from persistence.errors import BackendOpenError, PersistenceError, SchemaVersionError
from persistence.mongo import AsyncMongoDBSaver, AsyncMongoDBStore, MongoDBSaver, MongoDBStore, Options
from tests.persistence.writer.samples import checkpoint, config, put

if TYPE_CHECKING:
    from tests.persistence.mongo.server import MongoServer

pytestmark = pytest.mark.anyio


async def test_names_of_other_runtimes(mongo: dict[str, Any]) -> None:
    assert (AsyncMongoDBSaver, AsyncMongoDBStore) == (MongoDBSaver, MongoDBStore)
    url, name, prefix = mongo["source"], mongo["database"], mongo["prefix"]
    async with MongoDBSaver.from_conn_string(url, db_name=name, prefix=prefix, pool_size=2) as saver:
        await saver.asetup()
        await put(saver, "1", {"a": [1]})
        assert await saver.aget_tuple(config()) is not None
        assert "127.0.0.1" not in url or "127.0.0.1" in repr(saver)
    async with MongoDBStore.from_conn_string(url, name, prefix=prefix, ttl={"default_ttl": 1}) as store:
        await store.asetup()
        await store.aput(("a",), "k", {})


def test_the_blocking_door(mongo: dict[str, Any]) -> None:
    MongoDBSaver(**mongo).setup()
    with MongoDBSaver(**mongo) as saver:
        saver.setup()
        where = saver.put(config(), checkpoint("1", {}), {}, {})
        saver.put_writes(where, [("a", 1)], "task")
        (found,) = saver.list(None)
        assert saver.get_tuple(config()) == found
        saver.delete_thread("t")
        assert saver.get(config()) is None
    MongoDBStore(**mongo).setup()
    with MongoDBStore(**mongo) as store:
        store.setup()
        store.put(("a",), "k", {"n": 1}, ttl=1)
        assert store.get(("a",), "k") is not None
        assert store.sweep_ttl() == 0


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_client_of_ones_own_is_used_and_left_open(mongo: dict[str, Any]) -> None:
    client: AsyncMongoClient[Any] = AsyncMongoClient(mongo.pop("source"), w=0)
    async with MongoDBSaver(client, **mongo) as saver:
        await put(saver, "1", {"a": [b"\xff"]})
        stored = await saver.aget_tuple(config())
        assert stored is not None
        assert stored.checkpoint["channel_values"] == {"a": [b"\xff"]}
        assert "the server of the given client" in repr(saver)
    assert await client.admin.command("ping")
    await client.close()


async def test_a_function_makes_a_client_where_it_will_be_used(mongo: dict[str, Any]) -> None:
    url = mongo.pop("source")
    made: list[Any] = []

    def make() -> Any:
        made.append(AsyncMongoClient(url))
        return made[-1]

    async def make_later() -> Any:
        return make()

    for function in (make, make_later):
        async with MongoDBSaver(function, **mongo) as saver:
            await put(saver, "1", {"a": [1]})
        assert made[-1]._closed
    with pytest.raises(PersistenceError, match="made a str, not a pymongo.AsyncMongoClient"):
        await MongoDBSaver(lambda: "mongodb://").__aenter__()


@pytest.mark.parametrize("anyio_backend", ["trio"])
async def test_a_client_has_no_place_on_trio(mongo_server: MongoServer) -> None:
    client: AsyncMongoClient[Any] = AsyncMongoClient(mongo_server.url, connect=False)
    with pytest.raises(PersistenceError, match="pass a URL, or a function"):
        await MongoDBSaver(client).__aenter__()


def test_what_is_no_server_is_refused_at_once() -> None:
    for url in ("localhost:27017", "http://localhost", ""):
        with pytest.raises(ValueError, match="Not a MongoDB URL"):
            MongoDBSaver(url)
    blocking: Any = MongoClient("mongodb://localhost", connect=False)
    given: list[Any] = [blocking, None, 7]
    for source in given:
        with pytest.raises(TypeError, match="it would block the event loop"):
            MongoDBStore(source)
    blocking.close()


def test_impossible_settings_are_refused() -> None:
    for settings in (
        {"pool_size": 0},
        {"connect_timeout": -1},
        {"command_timeout": 0},
        {"prefix": ""},
        {"prefix": "$"},
    ):
        given: Any = settings
        with pytest.raises(ValueError, match=f"{next(iter(settings))} must"):
            MongoDBSaver("mongodb://localhost", **given)
    with pytest.raises(TypeError, match="pool"):
        MongoDBSaver("mongodb://localhost", pool=3)
    with pytest.raises(TypeError, match="not both"):
        MongoDBSaver("mongodb://localhost", options=Options(), pool_size=3)


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize(
    ("named", "database", "used"),
    [("", None, "actorgraph"), ("admin", None, "actorgraph"), ("shop", None, "shop"), ("shop", "other", "other")],
)
async def test_which_database_is_used(named: str, database: str | None, used: str) -> None:
    options = Options(database=database)
    client = options.client(f"mongodb://localhost:1/{named}")
    assert options.database_of(client) == used
    await client.close()


async def test_a_url_that_leads_nowhere() -> None:
    with pytest.raises(BackendOpenError, match=r"localhost:1/db cannot be opened") as caught:
        await MongoDBSaver("mongodb://user:secret@localhost:1/db", connect_timeout=0.05).__aenter__()
    assert "secret" not in str(caught.value)
    for wrong in ("mongodb://localhost/?replicaSet=", "mongodb://u:p:q@localhost/", "mongodb:///"):
        with pytest.raises(BackendOpenError, match="cannot be opened"):
            await MongoDBSaver(wrong, connect_timeout=0.05).__aenter__()


async def test_a_newer_format_is_left_alone(mongo: dict[str, Any], mongo_server: MongoServer) -> None:
    formats = mongo_server.database[f"{mongo['prefix']}_formats"]
    formats.insert_one({"_id": "threads", "format": 2})
    formats.insert_one({"_id": "items", "format": "another program's"})
    with pytest.raises(SchemaVersionError, match="format 2, this one knows 1"):
        await MongoDBSaver(**mongo).__aenter__()
    with pytest.raises(BackendOpenError, match="is not ours"):
        await MongoDBStore(**mongo).__aenter__()
    assert mongo_server.collections(mongo["prefix"]) == [f"{mongo['prefix']}_formats"]


async def test_many_may_open_at_once(mongo: dict[str, Any]) -> None:
    async def use(number: int) -> None:
        async with MongoDBSaver(**mongo) as saver:
            await saver.asetup()
            await put(saver, f"{number}", {"a": [number]})

    async with anyio.create_task_group() as nursery:
        for number in range(4):
            nursery.start_soon(use, number)
    async with MongoDBSaver(**mongo) as saver:
        assert len([one async for one in saver.alist(None)]) == 4


async def test_a_saver_that_was_not_closed_warns(mongo: dict[str, Any]) -> None:
    saver = MongoDBSaver(**mongo)
    await saver._backend.open()
    backend: Any = saver._backend
    del saver
    with pytest.warns(ResourceWarning, match="was not closed"):
        backend._server._finalizer()
    await backend.close()
    gc.collect()
