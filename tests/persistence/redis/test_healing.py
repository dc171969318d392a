"""Connections cut or silent, servers killed, full, or replicas: tried again, or told in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread
import pytest

from persistence.errors import BackendError, BackendOpenError, TransientBackendError
from persistence.redis import RedisSaver
from persistence.writer.limits import Limits
from tests.persistence.writer.samples import config, put, unit

if TYPE_CHECKING:
    from tests.persistence.postgres.proxy import Wire
    from tests.persistence.redis.server import RedisServer, StartedRedis

pytestmark = pytest.mark.anyio
QUICK = Limits(attempts=8, first_delay=0.001, longest_delay=0.05)


async def ids(saver: RedisSaver) -> list[str]:
    return [one.checkpoint["id"] async for one in saver.alist(config())]


async def fill(saver: RedisSaver) -> None:
    """Have several connections open."""
    async with anyio.create_task_group() as nursery:
        for _ in range(4):
            nursery.start_soon(saver.aget_tuple, config())


async def test_connections_that_were_ended_are_replaced(redis_server: RedisServer, redis_keys: str) -> None:
    async with RedisSaver(redis_server.url, prefix=redis_keys, limits=QUICK) as saver:
        for number in range(8):
            await put(saver, f"{number}", {"a": [number]})
            await fill(saver)
            redis_server.client.client_kill_filter(_type="normal", skipme=True)
            if number % 2:
                assert (await ids(saver))[0] == f"{number}"
        await put(saver, "8", {"a": [8]})
        assert await ids(saver) == [f"{number}" for number in range(8, -1, -1)]
        assert saver.statistics().failures == 0


async def test_a_wire_that_is_cut_in_the_middle_of_commits(wired: tuple[Wire, str], redis_keys: str) -> None:
    wire, url = wired
    async with RedisSaver(url, prefix=redis_keys, limits=QUICK) as saver:

        async def cut() -> None:
            for _ in range(10):
                await anyio.to_thread.run_sync(wire.sever)

        async with anyio.create_task_group() as nursery:
            nursery.start_soon(cut)
            for number in range(40):
                await put(saver, f"{number:02}", {"a": [number]}, parent=f"{number - 1:02}" if number else None)
        assert await ids(saver) == [f"{number:02}" for number in range(39, -1, -1)]
        assert saver.statistics().failures == 0


async def test_a_wire_that_falls_silent_is_given_up(wired: tuple[Wire, str], redis_keys: str) -> None:
    wire, url = wired
    async with RedisSaver(url, prefix=redis_keys, limits=QUICK, command_timeout=0.2) as saver:
        await put(saver, "1", {"a": [1]})
        await fill(saver)
        await anyio.to_thread.run_sync(wire.silence)
        await put(saver, "2", {"a": [2]})
        await anyio.to_thread.run_sync(wire.silence)
        assert await ids(saver) == ["2", "1"]


async def test_a_server_that_cannot_be_reached_is_a_passing_fault_in_words(
    wired: tuple[Wire, str], redis_keys: str
) -> None:
    wire, url = wired
    limits = Limits(attempts=2, first_delay=0.001)
    async with RedisSaver(url, prefix=redis_keys, limits=limits, connect_timeout=1) as saver:
        await put(saver, "1", {"a": [1]})
        wire.refuse(True)
        await anyio.to_thread.run_sync(wire.sever)
        with pytest.raises(TransientBackendError, match="sock could not answer, the outcome may be unknown"):
            await put(saver, "2", {"a": [2]})
        with pytest.raises(TransientBackendError, match="sock cannot be read"):
            await saver.aget_tuple(config())
        wire.refuse(False)
        await put(saver, "2", {"a": [2]})
        assert await ids(saver) == ["2", "1"]
        wire.refuse(True)
        with pytest.raises(BackendOpenError, match="sock cannot be opened: "):
            await RedisSaver(url, limits=limits).__aenter__()


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


@pytest.mark.slow
@pytest.mark.services
async def test_a_server_that_is_killed_and_comes_back(started: StartedRedis, redis_keys: str) -> None:
    """What was acknowledged is there, once, and nothing fails: faults last less long than commits are tried."""
    acknowledged: set[str] = set()
    receipts: list[tuple[str, Any]] = []
    limits = Limits(attempts=200, first_delay=0.005, longest_delay=0.05)
    async with RedisSaver(started.url, prefix=redis_keys, limits=limits) as saver:

        async def restart() -> None:
            for _ in range(3):
                await anyio.to_thread.run_sync(started.kill)
                await anyio.to_thread.run_sync(started.start)

        async with anyio.create_task_group() as nursery:
            nursery.start_soon(restart)
            for number in range(60):
                name = f"{number:03}"
                parent = f"{number - 1:03}" if number else None
                receipt = await saver.send(saver.encode(unit("t", name, parent=parent, value=[number])))
                receipts.append((name, receipt))
                if number % 3 == 0:
                    await receipt.wait()
                    acknowledged.add(name)
                    stored = await saver.aget_tuple(config("t", name))
                    assert stored is not None
        for name, receipt in receipts:
            await receipt.wait()
            acknowledged.add(name)
        found = await ids(saver)
        assert sorted(found) == sorted(acknowledged)
        assert len(found) == 60
