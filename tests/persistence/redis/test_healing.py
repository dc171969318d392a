"""Connections cut or silent, servers killed, full, or replicas: tried again, or told in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from persistence.errors import BackendError, BackendOpenError, TransientBackendError
from persistence.redis import RedisSaver
from persistence.writer.limits import Limits
from tests.persistence.writer.samples import config, put

if TYPE_CHECKING:
    from tests.persistence.redis.server import StartedRedis

pytestmark = pytest.mark.anyio
QUICK = Limits(attempts=8, first_delay=0.001, longest_delay=0.05)


async def ids(saver: RedisSaver) -> list[str]:
    return [one.checkpoint["id"] async for one in saver.alist(config())]


async def test_a_server_without_memory_says_so(started: StartedRedis, redis_keys: str) -> None:
    client = started.client
    async with RedisSaver(started.url, prefix=redis_keys, limits=QUICK) as saver:
        await put(saver, "1", {"a": [1]})
        client.config_set("maxmemory", 1)
        try:
            with pytest.raises(BackendError, match=r"nothing was saved.*no memory left \(maxmemory\)") as caught:
                await put(saver, "2", {"a": [2]})
            assert not isinstance(caught.value, TransientBackendError)
            assert saver.statistics().retries == 0
            assert await ids(saver) == ["1"]
            await saver.aprune(["t"])
            await saver.adelete_thread("u")  # which is how there may be room again
        finally:
            client.config_set("maxmemory", 0)
        await put(saver, "2", {"a": [2]})
        assert await ids(saver) == ["2", "1"]


async def test_a_server_that_evicts_is_warned_of(
    started: StartedRedis, redis_keys: str, caplog: pytest.LogCaptureFixture
) -> None:
    client = started.client
    client.config_set("maxmemory", 2**40)
    client.config_set("maxmemory-policy", "allkeys-lru")
    try:
        async with RedisSaver(started.url, prefix=redis_keys):
            pass
        assert "evicts keys when its memory is full (maxmemory-policy allkeys-lru)" in caplog.text
    finally:
        client.config_set("maxmemory-policy", "noeviction")
        client.config_set("maxmemory", 0)


async def test_a_replica_is_waited_for_until_it_is_primary(started: StartedRedis, redis_keys: str) -> None:
    """As after a failover: the address stays, the role changes."""
    client = started.client
    async with RedisSaver(started.url, prefix=redis_keys, limits=Limits(attempts=2, first_delay=0.001)) as saver:
        await put(saver, "1", {"a": [1]})
        client.replicaof("127.0.0.1", "1")
        try:
            with pytest.raises(TransientBackendError, match=r"it is a replica.*connect to the primary"):
                await put(saver, "2", {"a": [2]})
            assert await ids(saver) == ["1"]
        finally:
            client.replicaof("NO", "ONE")
        await put(saver, "2", {"a": [2]})
        assert await ids(saver) == ["2", "1"]


async def test_a_user_without_rights_is_told_which(started: StartedRedis, redis_keys: str) -> None:
    client = started.client
    client.execute_command("ACL", "SETUSER", "limited", "on", ">secret", f"~{redis_keys}:*", "+@all", "-info")
    url = started.url.replace("unix://", "unix://limited:secret@")
    try:
        async with RedisSaver(url, prefix=redis_keys) as saver:
            await put(saver, "1", {"a": [1]})
        async with RedisSaver(url, prefix="other", limits=QUICK) as saver:
            with pytest.raises(BackendError, match=r"nothing was saved.*grant the user"):
                await put(saver, "1", {"a": [1]})
            assert saver.statistics().retries == 0
        with pytest.raises(BackendOpenError, match="check user and password"):
            await RedisSaver(url.replace("secret", "wrong")).__aenter__()
        assert "secret" not in repr(RedisSaver(url))
    finally:
        client.execute_command("ACL", "DELUSER", "limited")
