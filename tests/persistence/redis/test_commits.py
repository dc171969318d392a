"""Commits to Redis: one call each, never half done, fenced between processes, cancelled without a trace."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from persistence.errors import (
    BackendError,
    SchemaVersionError,
    StoredDataError,
)
from persistence.redis import RedisSaver, writing
from tests.persistence.writer.samples import config, put, unit

if TYPE_CHECKING:
    from tests.persistence.redis.server import RedisServer

pytestmark = pytest.mark.anyio
RUNLESS = b'\0{"source":"loop"}\0'
"""How the value of a checkpoint begins that belongs to no run."""


def calls(server: RedisServer) -> int:
    """Return how many scripts were called."""
    told = server.client.info("commandstats")
    return sum(told.get(f"cmdstat_{name}", {}).get("calls", 0) for name in ("eval", "evalsha"))


def counts(server: RedisServer, prefix: str) -> list[int]:
    """Return how many checkpoints, writes and blobs there are; the sets must say the same."""
    client = server.client
    sizes = dict.fromkeys(("checkpoints", "writes", "blobs", "spaces", "order", "tasks"), 0)
    for key in server.keys(prefix):
        kind = key.decode().removeprefix(f"{prefix}:").partition(":")[0]
        if kind not in {"index", "runs"}:
            sizes[kind] += client.hlen(key) if client.type(key) == b"hash" else client.zcard(key)
    assert sizes["checkpoints"] == sizes["spaces"] == sizes["order"] == client.zcard(f"{prefix}:index")
    assert sizes["writes"] == sizes["tasks"]
    return [sizes["checkpoints"], sizes["writes"], sizes["blobs"]]


async def test_a_batch_is_one_call_and_so_is_a_read(saver: RedisSaver, redis_server: RedisServer) -> None:
    await put(saver, "0", {"a": [0], "b": 1})
    await saver.aget_tuple(config())
    for number in range(1, 6):
        before = calls(redis_server)
        one = replace(unit("t", f"{number}", parent=f"{number - 1}", value=[number]), expected_head=f"{number - 1}")
        one.writes += unit(writes_to=f"{number - 1}", value=[number]).writes
        await saver.send_nowait(saver.encode(one)).wait()
        assert calls(redis_server) == before + 1
    before = calls(redis_server)
    receipts = [saver.send_nowait(saver.encode(unit(f"t{number}", "1", value=[1]))) for number in range(100)]
    for receipt in receipts:
        await receipt.wait()
    assert calls(redis_server) == before + saver.statistics().batches - 6 <= before + 2
    before = calls(redis_server)
    stored = await saver.aget_tuple(config())
    assert stored is not None
    assert stored.checkpoint["id"] == "5"
    assert len([one async for one in saver.alist(None, limit=50)]) == 50
    assert calls(redis_server) == before + 2


async def test_scripts_that_the_server_forgot_are_sent_again(saver: RedisSaver, redis_server: RedisServer) -> None:
    await put(saver, "1", {"a": [1]})
    redis_server.client.script_flush()
    await put(saver, "2", {"a": [2]})
    redis_server.client.script_flush()
    assert [one.checkpoint["id"] async for one in saver.alist(config())] == ["2", "1"]
    assert saver.statistics().retries == 0


@pytest.mark.parametrize("kind", ["checkpoints", "blobs", "writes", "spaces", "order", "tasks"])
async def test_a_unit_is_stored_whole_or_not_at_all(
    saver: RedisSaver, redis_server: RedisServer, redis_keys: str, kind: str
) -> None:
    """Nothing is undone when a script fails, so it must fail before it has done anything."""
    redis_server.client.set(f"{redis_keys}:{kind}:b", "another program's")
    good = saver.send_nowait(saver.encode(unit("a", "1", writes_to="0", value=["x"])))
    bad = saver.send_nowait(saver.encode(unit("b", "1", writes_to="0", value=["x"])))
    other = saver.send_nowait(saver.encode(unit("c", "1", writes_to="0", value=["x"])))
    await good.wait()
    await other.wait()
    with pytest.raises(BackendError, match=r"nothing was saved.*WRONGTYPE.*another program uses a key of ours"):
        await bad.wait()
    redis_server.client.delete(f"{redis_keys}:{kind}:b")
    assert counts(redis_server, redis_keys) == [2, 2, 2]


async def test_runs_are_found_wherever_they_were(saver: RedisSaver, redis_server: RedisServer, redis_keys: str) -> None:
    for name in ("r", "r\x01", "s"):
        for thread_id in ("t", "u"):
            await put(saver, f"{name}1", {"a": [1]}, thread_id=thread_id, run_id=name)
            await put(saver, f"{name}2", {"a": [2]}, thread_id=thread_id, ns="child", run_id=name)
    await put(saver, "none", {}, run_id=None)
    await put(saver, "number", {}, run_id=7)
    await put(saver, "nobody's", {}, run_id="a\0b")
    await put(saver, "s1", {"a": [1]}, run_id="another")
    await saver.acopy_thread("t", "v")
    await saver.adelete_for_runs(["nobody"])  # the server learns the script
    before = calls(redis_server)
    await saver.adelete_for_runs(["r", "s", "unknown"])
    assert calls(redis_server) == before + 1
    left = [(one.checkpoint["id"], one.config["configurable"]["thread_id"]) async for one in saver.alist(None)]
    assert left == [
        *(("s1", thread_id) for thread_id in "vt"),
        *((f"r\x01{number}", thread_id) for number in (2, 1) for thread_id in "vut"),
        *((name, thread_id) for name in ("number", "none", "nobody's") for thread_id in "vt"),
    ]
    await saver.aprune(["t", "u", "v"])
    await saver.adelete_for_runs(["r\x01", "another"])
    await saver.aprune(["t", "u", "v"], strategy="delete")
    assert redis_server.keys(redis_keys) == []


@pytest.mark.parametrize(
    ("kind", "field", "data", "words"),
    [
        ("checkpoints", "\0" + "2", b"", "checksum"),
        ("checkpoints", "\0" + "2", b"\xc1", "checksum"),
        ("checkpoints", "\0" + "2", b"r\0\0\x93\x01\x02\x03", "checksum"),
        ("checkpoints", "\0" + "2", b'r\0{"source":"loop"}\0\x95\x01\xc0\xa1a\xa2\xff\xfe\x90', "checksum"),
        ("checkpoints", "\0" + "2", RUNLESS + msgspec.msgpack.encode((1, None, "", "{}", [])), "checksum"),
        ("blobs", "\0a\0" + "2.a", None, "channel 'a' has no stored value"),
        ("blobs", "\0a\0" + "2.a", b"", "channel 'a' cannot be read"),
        ("writes", "\0" + "2\0job\0" + "0", b"a\0x\0\0\0\0\0\0\xc0", "write of task job to channel 'a' cannot be read"),
        ("writes", "\0" + "2\0job\0" + "0", b"a", "write of task job to channel 'a' cannot be read"),
    ],
)
async def test_damage_is_named_and_confined(
    saver: RedisSaver,
    redis_server: RedisServer,
    redis_keys: str,
    kind: str,
    field: str,
    data: bytes | None,
    words: str,
) -> None:
    for number in range(1, 4):
        where = await put(saver, f"{number}", {"a": [number]})
        await saver.aput_writes(where, [("a", [number])], "job")
    key = f"{redis_keys}:{kind}:t"
    assert redis_server.client.hexists(key, field)
    redis_server.client.hdel(key, field)
    if data is not None:
        redis_server.client.hset(key, field, data)
    with pytest.raises(StoredDataError, match=f"Checkpoint 2 of thread 't', namespace ''.*{words}"):
        await saver.aget_tuple(config("t", "2"))
    for good in ("1", "3"):
        stored = await saver.aget_tuple(config("t", good))
        assert stored is not None
        assert stored.checkpoint["channel_values"] == {"a": [int(good)]}
    reached: list[str] = []
    with pytest.raises(StoredDataError):
        async for one in saver.alist(config(), filter={"source": "loop"}):
            reached.append(one.checkpoint["id"])
    assert reached == ["3"]
    await saver.aprune(["t"])
    assert await saver.aget_tuple(config()) is not None


async def test_a_thread_too_large_for_one_call_is_copied_in_parts(
    saver: RedisSaver, redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(5):
        where = await put(saver, f"{number}", {"a": ["x" * 1000]})
        await saver.aput_writes(where, [("a", "y" * 1000)], "task")
    monkeypatch.setattr(writing, "PART", 2000)
    before = calls(redis_server)
    await saver.acopy_thread("t", "u")
    assert calls(redis_server) >= before + 5
    for one, other in zip(
        [one async for one in saver.alist(config("t"))], [one async for one in saver.alist(config("u"))], strict=True
    ):
        assert (one.checkpoint, one.pending_writes) == (other.checkpoint, other.pending_writes)


@pytest.mark.slow
async def test_a_thread_of_many_rows_is_copied(saver: RedisSaver, redis_server: RedisServer, redis_keys: str) -> None:
    """More than short lengths of msgpack can count, and a checkpoint longer than they can tell."""
    where = await put(saver, "1", {f"channel {number}": number for number in range(2000)})
    await saver.aput_writes(where, [("a", None)] * 66_000, "task")
    await saver.acopy_thread("t", "u")
    assert counts(redis_server, redis_keys) == [2, 132_000, 0]
    await saver.aprune(["u"])
    assert counts(redis_server, redis_keys) == [2, 132_000, 0]
    await saver.aprune(["t"], strategy="delete")
    assert counts(redis_server, redis_keys) == [1, 66_000, 0]


async def test_deleting_does_not_make_damage_worse(
    saver: RedisSaver, redis_server: RedisServer, redis_keys: str
) -> None:
    for number in range(3):
        await put(saver, f"{number}", {"a": [number]}, run_id=f"{number}")
    redis_server.client.hset(f"{redis_keys}:checkpoints:t", "\0" + "1", b"damaged")
    await saver.adelete_for_runs(["0"])
    assert redis_server.client.hlen(f"{redis_keys}:blobs:t") == 3


async def test_what_a_newer_version_wrote_is_refused(
    saver: RedisSaver, redis_server: RedisServer, redis_keys: str
) -> None:
    await put(saver, "1", {"a": 1})
    redis_server.client.hset(
        f"{redis_keys}:checkpoints:t", "\0" + "1", RUNLESS + msgspec.msgpack.encode((2, {"all": "new"}))
    )
    with pytest.raises(SchemaVersionError, match=r"newer version.*format 2, this one knows 1"):
        await saver.aget_tuple(config())


async def test_more_checkpoints_than_a_call_looks_at(saver: RedisSaver) -> None:
    """One namespace among many that come before it: the script answers in parts, so that others get their turn."""
    ids = [f"{number:05}" for number in range(5000)]
    await put(saver, ids[0], {"a": 1}, ns="rare", run_id="r")
    for start in range(1, 5000, 200):
        batch = [saver.encode(unit(f"t{one[-1]}", one, ns="common")) for one in ids[start : start + 200]]
        await saver._backend.commit(batch)
    rare: Any = {"configurable": {"checkpoint_ns": "rare"}}
    assert [one.checkpoint["id"] async for one in saver.alist(rare)] == [ids[0]]
    assert [one.checkpoint["id"] async for one in saver.alist(None, filter={"run_id": "r"})] == [ids[0]]
    assert [one.checkpoint["id"] async for one in saver.alist(None, limit=3000)] == ids[:1999:-1]
    await saver.adelete_for_runs(["r"])
    assert [one async for one in saver.alist(rare)] == []
