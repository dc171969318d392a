"""Ways to name a server: a URL, a client of one's own, a function; refused in words where it could not work."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING, Any

import pytest
import redis
from redis.asyncio import Redis

from persistence.errors import BackendOpenError, PersistenceError
from persistence.redis import AsyncRedisSaver, Options, RedisSaver
from tests.persistence.writer.samples import checkpoint, config, put

if TYPE_CHECKING:
    from tests.persistence.redis.server import RedisServer

pytestmark = pytest.mark.anyio


async def test_names_of_other_runtimes(redis_server: RedisServer, redis_keys: str) -> None:
    assert issubclass(AsyncRedisSaver, RedisSaver)
    arguments: Any = {"client_name": "actorgraph", "decode_responses": True}
    async with RedisSaver.from_conn_string(
        redis_server.url, connection_args=arguments, ttl={"default_ttl": 60}, prefix=redis_keys, pool_size=2
    ) as saver:
        await saver.asetup()
        await put(saver, "1", {"a": [1]})
        assert await saver.aget_tuple(config()) is not None
        assert "actorgraph" in {client["name"] for client in redis_server.client.client_list()}


def test_the_blocking_door(redis_server: RedisServer, redis_keys: str) -> None:
    RedisSaver(redis_server.url, prefix=redis_keys).setup()
    with RedisSaver.from_conn_string(redis_server.url, prefix=redis_keys) as saver:
        saver.setup()
        where = saver.put(config(), checkpoint("1", {}), {}, {})
        saver.put_writes(where, [("a", 1)], "task")
        (found,) = saver.list(None)
        assert saver.get_tuple(config()) == found
        saver.delete_thread("t")
        assert saver.get(config()) is None


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("decodes", [False, True])
async def test_a_client_of_ones_own_is_used_and_left_open(
    redis_server: RedisServer, redis_keys: str, decodes: bool
) -> None:
    client = Redis.from_url(redis_server.url, decode_responses=decodes)
    async with RedisSaver.from_conn_string(redis_client=client, prefix=redis_keys) as saver:
        await put(saver, "1", {"a": [b"\xff"]})
        stored = await saver.aget_tuple(config())
        assert stored is not None
        assert stored.checkpoint["channel_values"] == {"a": [b"\xff"]}
        assert "the server of the given client" in repr(saver)
    assert await client.ping()
    await client.aclose()


async def test_a_function_makes_a_client_where_it_will_be_used(redis_server: RedisServer, redis_keys: str) -> None:
    made: list[Redis] = []

    def make() -> Redis:
        made.append(Redis.from_url(redis_server.url))
        return made[-1]

    async def make_later() -> Redis:
        return make()

    for function in (make, make_later):
        async with RedisSaver(function, prefix=redis_keys) as saver:
            await put(saver, "1", {"a": [1]})
        pool: Any = made[-1].connection_pool
        assert not any(connection.is_connected for connection in pool._available_connections)
    with pytest.raises(PersistenceError, match="made a str, not a client"):
        await RedisSaver(lambda: "redis://", prefix=redis_keys).__aenter__()


@pytest.mark.parametrize("anyio_backend", ["trio"])
async def test_a_client_has_no_place_on_trio(redis_server: RedisServer) -> None:
    with pytest.raises(PersistenceError, match="pass a URL, or a function"):
        await RedisSaver(Redis.from_url(redis_server.url)).__aenter__()


def test_what_is_no_server_is_refused_at_once() -> None:
    for url in ("localhost:6379", "http://localhost", ""):
        with pytest.raises(ValueError, match="Not a Redis URL"):
            RedisSaver(url)
    given: list[Any] = [redis.Redis(), None, 7]
    for source in given:
        with pytest.raises(TypeError, match="would hold up the event loop"):
            RedisSaver(source)
    with pytest.raises(TypeError, match="one of both"):
        RedisSaver.from_conn_string()
    with pytest.raises(TypeError, match="one of both"):
        RedisSaver.from_conn_string("redis://localhost", redis_client=Redis())


def test_impossible_settings_are_refused() -> None:
    for settings in ({"pool_size": 0}, {"connect_timeout": -1}, {"command_timeout": 0}, {"prefix": ""}):
        given: Any = settings
        with pytest.raises(ValueError, match=f"{next(iter(settings))} must"):
            RedisSaver("redis://localhost", **given)
    with pytest.raises(TypeError, match="pool"):
        RedisSaver("redis://localhost", pool=3)
    with pytest.raises(TypeError, match="not both"):
        RedisSaver("redis://localhost", options=Options(), pool_size=3)


async def test_a_url_that_leads_nowhere() -> None:
    with pytest.raises(BackendOpenError, match=r"localhost:1/0 cannot be opened"):
        await RedisSaver("redis://user:secret@localhost:1/0").__aenter__()
    with pytest.raises((BackendOpenError, ValueError)):
        await RedisSaver("redis://localhost/0?socket_timeout=soon").__aenter__()


async def test_a_saver_that_was_not_closed_warns(redis_server: RedisServer) -> None:
    saver = RedisSaver(redis_server.url)
    await saver._backend.open()
    backend = saver._backend
    del saver
    with pytest.warns(ResourceWarning, match="was not closed"):
        backend._server._finalizer()  # type: ignore[attr-defined]
    await backend.close()
    gc.collect()
