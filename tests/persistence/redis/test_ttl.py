"""Threads that expire: every key of them at once, later after each write and read, and nothing is left of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import pytest

from persistence.redis import RedisSaver
from tests.persistence.writer.samples import config, put, unit

if TYPE_CHECKING:
    from tests.persistence.redis.server import RedisServer

pytestmark = pytest.mark.anyio
HOUR: Any = {"default_ttl": 60}
MS = 3_600_000
INSTANT: Any = {"default_ttl": 0.0005}  # 30 ms


async def fill(saver: RedisSaver, thread_id: str = "t") -> None:
    where = await put(saver, "1", {"a": [1]}, thread_id=thread_id)
    await saver.aput_writes(where, [("a", [1]), ("__resume__", 1)], "task")
    await put(saver, "2", {"a": [2]}, thread_id=thread_id, ns="child")


async def everything(saver: RedisSaver, where: Any, **options: Any) -> list[Any]:
    return [one async for one in saver.alist(where, **options)]


def lifetimes(server: RedisServer, prefix: str) -> dict[str, int]:
    """Return the milliseconds that each key lives, -1 for ever, by what it holds."""
    keys = server.keys(prefix)
    return {key.decode().removeprefix(f"{prefix}:"): server.client.pttl(key) for key in keys}


def shorten(server: RedisServer, prefix: str) -> None:
    """Let some time pass."""
    for key in server.keys(prefix):
        server.client.pexpire(key, MS // 2)


async def test_every_key_of_a_thread_expires_with_it(redis_server: RedisServer, redis_keys: str) -> None:
    async with RedisSaver(redis_server.url, prefix=redis_keys, ttl=HOUR) as saver:
        await fill(saver)
        await saver.acopy_thread("t", "u")
        left = lifetimes(redis_server, redis_keys)
    assert len(left) == 13
    assert all(MS - 60_000 < milliseconds <= MS for milliseconds in left.values())


async def test_writing_and_reading_start_it_again(redis_server: RedisServer, redis_keys: str) -> None:
    async with RedisSaver(redis_server.url, prefix=redis_keys, ttl=HOUR) as saver:
        await fill(saver)
        shorten(redis_server, redis_keys)
        await saver.aput_writes(config("t", "1"), [("b", 1)], "other task")
        assert min(lifetimes(redis_server, redis_keys).values()) > MS - 60_000
        for read in (
            lambda: saver.aget_tuple(config()),
            lambda: saver.aget_tuple(config("t", "1")),
            lambda: everything(saver, None),
            lambda: everything(saver, config(), filter={"source": "loop"}),
        ):
            shorten(redis_server, redis_keys)
            assert await read()
            assert min(lifetimes(redis_server, redis_keys).values()) > MS - 60_000
        shorten(redis_server, redis_keys)
        assert await saver.aget_tuple(config("u")) is None
        assert await saver.aget_tuple(config("t", "9")) is None
        assert max(lifetimes(redis_server, redis_keys).values()) <= MS // 2


async def test_reading_need_not(redis_server: RedisServer, redis_keys: str) -> None:
    ttl: Any = {"default_ttl": 60, "refresh_on_read": False}
    async with RedisSaver(redis_server.url, prefix=redis_keys, ttl=ttl) as saver:
        await fill(saver)
        shorten(redis_server, redis_keys)
        assert await saver.aget_tuple(config()) is not None
        assert [one.checkpoint["id"] async for one in saver.alist(None)] == ["2", "1"]
        assert max(lifetimes(redis_server, redis_keys).values()) <= MS // 2


async def test_a_shorter_time_does_not_cut_a_longer_one(redis_server: RedisServer, redis_keys: str) -> None:
    minute: Any = {"default_ttl": 1}
    async with (
        RedisSaver(redis_server.url, prefix=redis_keys, ttl=HOUR) as long,
        RedisSaver(redis_server.url, prefix=redis_keys, ttl=minute) as short,
    ):
        await fill(long)
        await short.aget_tuple(config())
        assert min(lifetimes(redis_server, redis_keys).values()) > MS - 60_000
        await fill(short, "u")
        left = lifetimes(redis_server, redis_keys)
    assert left.pop("index") > MS - 60_000
    assert {key for key, milliseconds in left.items() if milliseconds <= 60_000} == {
        key for key in left if key[-1] == "u"
    }


async def test_the_last_writer_decides(redis_server: RedisServer, redis_keys: str) -> None:
    async with (
        RedisSaver(redis_server.url, prefix=redis_keys, ttl=HOUR) as passing,
        RedisSaver(redis_server.url, prefix=redis_keys) as staying,
    ):
        await fill(passing)
        await staying.aget_tuple(config())
        assert min(lifetimes(redis_server, redis_keys).values()) > MS - 60_000
        await staying.aput_writes(config("t", "1"), [("b", 1)], "other task")
        assert set(lifetimes(redis_server, redis_keys).values()) == {-1}
        await passing.aget_tuple(config())
        assert set(lifetimes(redis_server, redis_keys).values()) == {-1}
        await fill(passing)
        left = lifetimes(redis_server, redis_keys)
    assert left.pop("index") == -1
    assert min(left.values()) > MS - 60_000


async def test_nothing_is_left_of_threads_that_expired(redis_server: RedisServer, redis_keys: str) -> None:
    async with RedisSaver(redis_server.url, prefix=redis_keys, ttl=INSTANT) as saver:
        await fill(saver)
        while redis_server.keys(redis_keys):
            await anyio.sleep(0.005)
        assert await saver.aget_tuple(config()) is None
        assert [one async for one in saver.alist(None)] == []


async def test_entries_of_threads_that_expired_are_passed_over_and_removed(
    redis_server: RedisServer, redis_keys: str
) -> None:
    index = f"{redis_keys}:index"
    async with RedisSaver(redis_server.url, prefix=redis_keys, ttl=HOUR) as saver:
        for number in range(40):
            await fill(saver, f"{number}")
        for key in redis_server.keys(redis_keys):
            if not key.endswith((b":7", b":index")):
                redis_server.client.delete(key)
        assert redis_server.client.zcard(index) == 80
        for number in range(100):
            await saver._backend.commit([saver.encode(unit("7", f"{number:03}", value=[1]))])
        assert redis_server.client.zcard(index) < 115  # of 40 that are stale, hardly any is left
        found = [one async for one in saver.alist(None)]
        assert len(found) == 102
        assert redis_server.client.zcard(index) == 102


async def test_a_thread_that_comes_again_is_a_new_one(redis_server: RedisServer, redis_keys: str) -> None:
    async with RedisSaver(redis_server.url, prefix=redis_keys, ttl=HOUR) as saver:
        await fill(saver)
        for key in redis_server.keys(redis_keys):
            if not key.endswith(b":index"):
                redis_server.client.delete(key)
        await put(saver, "3", {"a": [3]})
        assert [one.checkpoint["id"] async for one in saver.alist(None)] == ["3"]
        assert redis_server.client.zcard(f"{redis_keys}:index") == 1


@pytest.mark.parametrize("ttl", [{"default_ttl": 0}, {"default_ttl": -1}, {"minutes": 1}, {"default_ttl": "1"}])
def test_impossible_times_are_refused(ttl: Any) -> None:
    with pytest.raises((ValueError, TypeError), match="ttl|TTL"):
        RedisSaver("redis://localhost", ttl=ttl)
