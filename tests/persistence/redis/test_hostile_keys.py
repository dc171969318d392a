"""Ids that look like patterns, parts of keys, hash tags or programs: each is only ever itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from persistence.redis import RedisSaver
from persistence.redis.rows import joined, parted
from tests.persistence.writer.samples import config, put

if TYPE_CHECKING:
    from tests.persistence.redis.server import RedisServer

pytestmark = pytest.mark.anyio

HOSTILE = (
    "*",
    "?",
    "[a-z]",
    "t",
    "t:",
    ":t",
    "t:checkpoints:t",
    "{t}",
    "{}",
    "a b",
    "a\nb\r\n",
    "'; redis.call('FLUSHALL') --",
    "]] .. redis.call('FLUSHALL') .. [[",
    "%2A",
    "%",
    "t%",
    "\\",
    '"',
    "\x01",
    "t\x01",
    "\x7f",
    "é",
    "e\u0301",
    "\U0001f600",
    "\uffff",
    "-",
    "+",
    "(t",
    "[t",
    "T",
    "x" * 5000,
)


async def test_every_id_is_only_itself(saver: RedisSaver, redis_server: RedisServer, redis_keys: str) -> None:
    for name in HOSTILE:
        where = await put(saver, name, {name: [name]}, thread_id=name, ns=name, run_id=name)
        await saver.aput_writes(where, [(name, name)], name, name)
    listed = [one.config["configurable"]["thread_id"] async for one in saver.alist(None)]
    assert listed == sorted(HOSTILE, reverse=True)
    for name in HOSTILE:
        stored = await saver.aget_tuple(config(name, None, name))
        assert stored is not None
        assert stored.config == config(name, name, name)
        assert stored.checkpoint["channel_values"] == {name: [name]}
        assert stored.pending_writes == [(name, name, name)]
        assert stored == await saver.aget_tuple(config(name, name, name))
        assert [one async for one in saver.alist({"configurable": {"thread_id": name}})] == [stored]
        assert [one async for one in saver.alist(None, filter={"run_id": name})] == [stored]
        below = [one.checkpoint["id"] async for one in saver.alist(None, before=config(name, name))]
        assert below == [other for other in listed if other < name]
    for name in HOSTILE[::2]:
        await saver.adelete_thread(name)
    for name in HOSTILE[1::4]:
        await saver.adelete_for_runs([name])
    await saver.aprune(HOSTILE)
    left = [one.config["configurable"]["thread_id"] async for one in saver.alist(None)]
    assert left == sorted(HOSTILE[3::4], reverse=True)
    await saver.aprune(HOSTILE, strategy="delete")
    assert redis_server.keys(redis_keys) == []


async def test_many_ids_and_namespaces_in_one_thread(saver: RedisSaver) -> None:
    """In whichever order: by id, then by namespace."""
    for ns in HOSTILE[:16]:
        for name in HOSTILE[:16]:
            await put(saver, name, {"a": [ns]}, ns=ns)
    places = sorted(((name, ns) for ns in HOSTILE[:16] for name in HOSTILE[:16]), reverse=True)
    listed = [one.config["configurable"] async for one in saver.alist({"configurable": {"thread_id": "t"}})]
    assert [(one["checkpoint_id"], one["checkpoint_ns"]) for one in listed] == places
    newest = max(HOSTILE[:16])
    for ns in HOSTILE[:16]:
        stored = await saver.aget_tuple(config("t", None, ns))
        assert stored is not None
        assert (stored.checkpoint["id"], stored.checkpoint["channel_values"]) == (newest, {"a": [ns]})
        assert [one.checkpoint["id"] async for one in saver.alist(config("t", None, ns))] == sorted(
            HOSTILE[:16], reverse=True
        )
    await saver.aprune(["t"])
    assert len([one async for one in saver.alist(None)]) == 16


async def test_prefixes_do_not_see_each_other(redis_server: RedisServer, redis_keys: str) -> None:
    prefixes = [redis_keys, f"{redis_keys}:checkpoints", f"{redis_keys}:{{a}}", f"{redis_keys}:*"]
    for prefix in prefixes:
        async with RedisSaver(redis_server.url, prefix=prefix) as saver:
            for name in ("checkpoints:t", "t", ":t"):
                await put(saver, "1", {"a": [prefix]}, thread_id=name)
    for prefix in prefixes:
        async with RedisSaver(redis_server.url, prefix=prefix) as saver:
            found = [one.checkpoint["channel_values"]["a"] async for one in saver.alist(None)]
            assert found == [[prefix]] * 3
            await saver.aprune(["checkpoints:t", "t", ":t"], strategy="delete")
    assert redis_server.keys(redis_keys) == []


names = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=4)


@given(one=st.tuples(names, names, names), other=st.tuples(names, names, names))
def test_members_sort_like_their_parts(one: tuple[str, ...], other: tuple[str, ...]) -> None:
    assert (joined(*one).encode() < joined(*other).encode()) == (one < other)
    assert tuple(parted(joined(*one).encode())) == one
