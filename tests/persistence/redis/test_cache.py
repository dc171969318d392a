"""RedisCache beyond what every cache must do: what it leaves behind, hostile names, a graph that uses it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import pytest

from persistence.errors import BackendOpenError, PersistenceClosedError, PersistenceError
from persistence.redis import RedisCache
from runtime.types import CachePolicy
from tests.persistence.caches import Doubling

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.persistence.redis.server import RedisServer

pytestmark = pytest.mark.anyio
KEY = (("graph", "node"), "k")


@pytest.fixture
async def cache(redis_server: RedisServer, redis_keys: str) -> AsyncIterator[RedisCache]:
    async with RedisCache(redis_server.url, prefix=redis_keys) as opened:
        yield opened


async def test_a_node_of_another_process_need_not_run_again(redis_server: RedisServer, redis_keys: str) -> None:
    doubling = Doubling()
    for _ in range(2):
        async with RedisCache(redis_server.url, prefix=redis_keys) as cache:
            assert await doubling.compiled(cache, CachePolicy(ttl=60)).ainvoke({"n": 4}) == {"n": 8}
    assert doubling.ran == [4]
    assert all(0 < redis_server.client.pttl(key) <= 60_000 for key in redis_server.keys(redis_keys))


async def test_values_and_their_names_vanish(cache: RedisCache, redis_server: RedisServer, redis_keys: str) -> None:
    await cache.aset({KEY: (1, 0.03)})
    while redis_server.keys(redis_keys):
        await anyio.sleep(0.005)
    await cache.aset({(("g",), f"{number}"): (number, 0.03) for number in range(10)})
    await cache.aset({KEY: (1, None)})
    while len(redis_server.keys(redis_keys)) > 3:
        await anyio.sleep(0.005)
    await cache.aset({KEY: (2, None)})
    assert redis_server.client.zcard(f"{redis_keys}:names") == 1
    assert {redis_server.client.pttl(key) for key in redis_server.keys(redis_keys)} == {-1}
    await cache.aclear()
    assert redis_server.keys(redis_keys) == []


async def test_more_than_one_call_clears(cache: RedisCache, redis_server: RedisServer, redis_keys: str) -> None:
    await cache.aset({(("g", f"{number % 2}"), f"{number}"): (number, 60) for number in range(2500)})
    await cache.aclear([("g", "0")])
    assert redis_server.client.zcard(f"{redis_keys}:names") == 1250
    await cache.aclear([("g",)])
    assert redis_server.keys(redis_keys) == []


async def test_names_that_look_like_patterns(cache: RedisCache) -> None:
    labels = [
        "*",
        "a*",
        "a",
        "a:",
        "{a}",
        "[a]",
        "a\x01",
        "%3A",
        "%",
        "é",
        "\ud800",
        "\0",
        "",
        "a;",
        "a9",
        "'; FLUSHALL",
    ]
    keys: list[Any] = [((one, two), three) for one in labels for two in labels for three in labels[:4]]
    await cache.aset({key: (place, None) for place, key in enumerate(keys)})
    assert await cache.aget(keys) == {key: place for place, key in enumerate(keys)}
    for label in labels:
        await cache.aclear([(label, label)])
        keys = [key for key in keys if key[0] != (label, label)]
        assert set(await cache.aget(keys)) == set(keys)
        await cache.aclear([(label,)])
        keys = [key for key in keys if key[0][0] != label]
        assert set(await cache.aget(keys)) == set(keys)


async def test_damage_is_a_miss(cache: RedisCache, redis_server: RedisServer, redis_keys: str) -> None:
    await cache.aset({KEY: (1, None)})
    (key,) = [key for key in redis_server.keys(redis_keys) if b":cached:" in key]
    whole = redis_server.client.get(key)
    for data in (b"", b"x", whole[:9], whole[:-1], whole[:8] + b"\xff\0"):
        redis_server.client.set(key, data)
        assert await cache.aget([KEY]) == {}
    redis_server.client.set(key, whole)
    assert await cache.aget([KEY]) == {KEY: 1}


async def test_it_must_be_open_and_once(cache: RedisCache, redis_server: RedisServer) -> None:
    with pytest.raises(PersistenceError, match="open already"):
        await cache.__aenter__()
    closed = RedisCache(redis_server.url)
    with pytest.raises(PersistenceClosedError, match="is not open"):
        await closed.aget([KEY])
    with pytest.raises(BackendOpenError):
        await RedisCache("unix:///nowhere").__aenter__()
    assert repr(closed).endswith("closed>")


def test_the_blocking_door(redis_server: RedisServer, redis_keys: str) -> None:
    with RedisCache(redis_server.url, prefix=redis_keys) as cache:
        cache.set({KEY: ([1], None)})
        assert cache.get([KEY]) == {KEY: [1]}
        cache.clear([KEY[0]])
        assert cache.get([KEY]) == {}
