"""MongoDBCache beyond what every cache must do: large values, hostile names, damage, a graph that uses it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from persistence.errors import PersistenceClosedError, PersistenceError
from persistence.mongo import MongoDBCache
from runtime.types import CachePolicy
from tests.persistence.caches import Doubling

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.persistence.mongo.server import MongoServer

pytestmark = pytest.mark.anyio
KEY = (("graph", "node"), "k")


@pytest.fixture
async def cache(mongo: dict[str, Any]) -> AsyncIterator[MongoDBCache]:
    async with MongoDBCache(**mongo) as opened:
        yield opened


async def test_a_node_of_another_process_need_not_run_again(mongo: dict[str, Any]) -> None:
    doubling = Doubling()
    for _ in range(2):
        async with MongoDBCache(**mongo) as cache:
            assert await doubling.compiled(cache, CachePolicy(ttl=60)).ainvoke({"n": 4}) == {"n": 8}
    assert doubling.ran == [4]


@pytest.mark.slow
async def test_large_values_are_in_pieces_and_leave_none_behind(
    cache: MongoDBCache, mongo: dict[str, Any], mongo_server: MongoServer
) -> None:
    large, other = b"x" * 9 * 2**20, b"y" * 17 * 2**20
    await cache.aset({KEY: (large, 60), (("a",), "b"): (1, None)})
    assert await cache.aget([KEY]) == {KEY: large}
    assert mongo_server.kinds(mongo["prefix"], "cache") == {"entry": 2, "chunk": 2}
    await cache.aset({KEY: (other, None)})
    assert await cache.aget([KEY]) == {KEY: other}
    assert mongo_server.kinds(mongo["prefix"], "cache") == {"entry": 2, "chunk": 3}
    documents = mongo_server.database[f"{mongo['prefix']}_cache"]
    documents.delete_one({"kind": "chunk"})
    assert await cache.aget([KEY]) == {}
    await cache.aclear([KEY[0]])
    assert mongo_server.kinds(mongo["prefix"], "cache") == {"entry": 1}
    await cache.aclear()
    assert mongo_server.kinds(mongo["prefix"], "cache") == {}


async def test_names_that_look_like_operators_or_ends(cache: MongoDBCache) -> None:
    labels = ["*", "a", "a:", "a\x01", "$gt", "%3A", "é", "\ud800", "\0", "", "a;", ".", "{$ne: 1}"]
    keys: list[Any] = [((one, two), three) for one in labels for two in labels for three in labels[:3]]
    await cache.aset({key: (place, None) for place, key in enumerate(keys)})
    assert await cache.aget(keys) == {key: place for place, key in enumerate(keys)}
    for label in labels[::4]:
        await cache.aclear([(label, label)])
        keys = [key for key in keys if key[0] != (label, label)]
        assert set(await cache.aget(keys)) == set(keys)
        await cache.aclear([(label,)])
        keys = [key for key in keys if key[0][0] != label]
        assert set(await cache.aget(keys)) == set(keys)


async def test_damage_is_a_miss(cache: MongoDBCache, mongo: dict[str, Any], mongo_server: MongoServer) -> None:
    await cache.aset({KEY: (1, None)})
    documents = mongo_server.database[f"{mongo['prefix']}_cache"]
    whole: Any = documents.find_one({"kind": "entry"})
    for field, value in (("type", 1), ("type", "x"), ("value", 7), ("value", b"x"), ("expires_at", "soon")):
        documents.replace_one({"_id": whole["_id"]}, {**whole, field: value})
        assert await cache.aget([KEY]) == {}
    documents.replace_one({"_id": whole["_id"]}, whole)
    assert await cache.aget([KEY]) == {KEY: 1}


async def test_it_must_be_open_and_once(cache: MongoDBCache, mongo: dict[str, Any]) -> None:
    with pytest.raises(PersistenceError, match="open already"):
        await cache.__aenter__()
    closed = MongoDBCache(**mongo)
    with pytest.raises(PersistenceClosedError, match="is not open"):
        await closed.aget([KEY])
    assert repr(closed).endswith("closed>")


def test_the_blocking_door(mongo: dict[str, Any]) -> None:
    with MongoDBCache(**mongo) as cache:
        cache.set({KEY: ([1], None)})
        assert cache.get([KEY]) == {KEY: [1]}
        cache.clear([KEY[0]])
        assert cache.get([KEY]) == {}
