"""RedisStore beyond what every store must do: many writers, what vanishes by itself, hostile names, healing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from persistence.errors import BackendError, CorruptDataError, PersistenceClosedError
from persistence.redis import AsyncRedisStore, RedisSaver, RedisStore
from persistence.redis.shelved import address
from persistence.serde.encrypted import EncryptedSerializer
from runtime.store import GetOp, PutOp, SearchOp
from tests.persistence.redis.test_commits import calls
from tests.persistence.stores.test_store_model import agree, chosen, histories
from tests.persistence.writer.samples import config, put

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.persistence.redis.server import RedisServer

pytestmark = pytest.mark.anyio
NS = ("users", "Ada")


def embed(texts: list[str]) -> list[list[float]]:
    return [[float(part) for part in text.split(",")] for text in texts]


INDEX: Any = {"dims": 3, "embed": embed, "fields": ["at"]}


@pytest.fixture
async def store(redis_server: RedisServer, redis_keys: str) -> AsyncIterator[RedisStore]:
    async with RedisStore(redis_server.url, prefix=redis_keys) as opened:
        yield opened


async def test_it_stands_beside_a_saver(redis_server: RedisServer, redis_keys: str) -> None:
    assert issubclass(AsyncRedisStore, RedisStore)
    async with (
        RedisSaver.from_conn_string(redis_server.url, prefix=redis_keys) as saver,
        RedisStore.from_conn_string(redis_server.url, prefix=redis_keys, pool_size=2) as store,
    ):
        await store.asetup()
        await put(saver, "1", {"a": [1]})
        await store.aput(NS, "k", {"text": "a\0b\ue000"})
        assert await saver.aget_tuple(config()) is not None
        assert [item.key for item in await store.asearch(("users",), filter={"text": "a\0b\ue000"})] == ["k"]
        assert await store.asearch(("users",), filter={"text": "ab"}) == []
        await saver.adelete_thread("t")
        await store.adelete(NS, "k")
    assert redis_server.keys(redis_keys) == []


def test_the_blocking_door(redis_server: RedisServer, redis_keys: str) -> None:
    RedisStore(redis_server.url, prefix=redis_keys).setup()
    with RedisStore(redis_server.url, prefix=redis_keys) as store:
        store.setup()
        store.put(NS, "k", {"n": 1}, ttl=1)
        assert store.get(NS, "k") is not None
        assert store.sweep_ttl() == 0
    with pytest.raises(PersistenceClosedError):
        store.get(NS, "k")


async def test_many_writers_lose_nothing(redis_server: RedisServer, redis_keys: str) -> None:
    async with (
        RedisStore(redis_server.url, prefix=redis_keys) as first,
        RedisStore(redis_server.url, prefix=redis_keys) as second,
    ):
        async with anyio.create_task_group() as nursery:
            for number in range(40):
                for store in (first, second):
                    ops = [PutOp(NS, f"{number % 7}", {"n": number}), PutOp(NS, f"{number % 5 + 2}", {"n": number})]
                    nursery.start_soon(store.abatch, ops)
        assert {item.key for item in await first.asearch(NS, limit=20)} == {f"{number}" for number in range(7)}
        assert redis_server.client.zcard(f"{redis_keys}:items") == 7


async def test_what_is_refused_fails_alone_and_changes_nothing(
    store: RedisStore, redis_server: RedisServer, redis_keys: str
) -> None:
    outcomes: dict[int, str] = {}
    await store.aput(NS, "before", {"n": 0})
    blocked = f"{redis_keys}:item:users.Ada%003"
    redis_server.client.set(blocked, "another program's")

    async def write(number: int) -> None:
        try:
            await store.abatch([PutOp(NS, "before", {"n": number}), PutOp(NS, f"{number}", {"n": number})])
            outcomes[number] = "stored"
        except BackendError as error:
            outcomes[number] = "refused" if "another program uses a key of ours" in str(error) else "?"

    for number in range(2, 4):
        await write(number)
    item = await store.aget(NS, "before")
    assert item is not None
    assert item.value == {"n": 2}
    async with anyio.create_task_group() as nursery:
        for number in range(6):
            nursery.start_soon(write, number)
    assert outcomes == {number: "refused" if number == 3 else "stored" for number in range(6)}
    redis_server.client.delete(blocked)
    assert len(await store.asearch(NS)) == 6


async def test_cancelled_puts_are_done_or_not(store: RedisStore) -> None:
    for number in range(40):
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as nursery:
                nursery.start_soon(store.aput, NS, f"{number}", {"n": number})
                nursery.start_soon(store.aget, NS, "0")
                for _ in range(number % 10):
                    await anyio.lowlevel.checkpoint()
                scope.cancel()
    assert await store.abatch([GetOp(NS, "none"), PutOp(NS, "last", {})]) == [None, None]
    found = await store.asearch(NS, limit=100)
    assert all(item.value.get("n") == int(item.key) for item in found if item.key != "last")


async def test_connections_that_were_ended_are_replaced(store: RedisStore, redis_server: RedisServer) -> None:
    for number in range(5):
        await store.aput(NS, f"{number}", {"n": number})
        redis_server.client.client_kill_filter(_type="normal", skipme=True)
        if number % 2:
            assert len(await store.asearch(NS)) == number + 1
    assert len(await store.asearch(NS)) == 5


async def test_a_batch_of_puts_is_one_call_and_so_are_gets(store: RedisStore, redis_server: RedisServer) -> None:
    await store.abatch([PutOp(NS, "k", {"n": 0})])
    await store.abatch([GetOp(NS, "k")])
    before = calls(redis_server)
    await store.abatch([PutOp(NS, f"{number}", {"n": number}) for number in range(100)])
    assert calls(redis_server) == before + 1
    found = await store.abatch([GetOp(NS, f"{number}") for number in range(100)])
    assert calls(redis_server) == before + 2
    assert [item.value for item in found] == [{"n": number} for number in range(100)]  # type: ignore[union-attr]
    await store.abatch([SearchOp(NS, limit=50)])
    assert calls(redis_server) == before + 4


async def test_items_vanish_from_the_server_by_themselves(redis_server: RedisServer, redis_keys: str) -> None:
    async with RedisStore(redis_server.url, prefix=redis_keys) as store:
        await store.aput(NS, "soon", {}, ttl=0.0005)
        await store.aput(("other",), "soon", {}, ttl=0.0005)
        while redis_server.keys(redis_keys):
            await anyio.sleep(0.005)
        assert await store.asearch(()) == []
        await store.aput(NS, "soon", {}, ttl=0.0005)
        await store.aput(NS, "later", {}, ttl=60)
        await store.aput(NS, "always", {})
        left = {key: redis_server.client.pttl(key) for key in redis_server.keys(redis_keys)}
        shared = [left[f"{redis_keys}:{name}".encode()] for name in ("items", "numbers")]
        assert shared == [-1, -1]
        assert 3_500_000 < left[f"{redis_keys}:item:users.Ada%00later".encode()] <= 3_600_000
        while len(redis_server.keys(redis_keys)) == len(left):
            await anyio.sleep(0.005)
        assert {item.key for item in await store.asearch(NS)} == {"later", "always"}
        await store.aput(NS, "always", {"n": 1})
        assert redis_server.client.zcard(f"{redis_keys}:items") == 2
        await store.abatch([PutOp(NS, key, None) for key in ("later", "always", "none")])
        assert redis_server.keys(redis_keys) == []


async def test_names_that_look_like_patterns(store: RedisStore, redis_server: RedisServer, redis_keys: str) -> None:
    labels = ["*", "a*", "a", "a:", "{a}", "[a]", "a\x01", "%2A", "é", "a b", "'; FLUSHALL", "a/b", "a-", "a+"]
    for label in labels:
        for key in (label, f"{label}:x"):
            await store.aput((label,), key, {"is": [label, key]})
            await store.aput((label, label), key, {"is": [label, label, key]})
    for label in labels:
        found = await store.asearch((label,), limit=100)
        assert [item.namespace for item in found] == [(label,), (label, label)] * 2
        for key in (label, f"{label}:x"):
            item = await store.aget((label, label), key)
            assert item is not None
            assert item.value == {"is": [label, label, key]}
        if label != "*":  # the wildcard of listings
            assert await store.alist_namespaces(prefix=(label,)) == sorted([(label,), (label, label)])
    everything = await store.asearch((), limit=1000)
    await store.abatch([PutOp(item.namespace, item.key, None) for item in everything])
    assert redis_server.keys(redis_keys) == []


@pytest.mark.slow
async def test_a_search_by_meaning_looks_at_all(redis_server: RedisServer, redis_keys: str) -> None:
    async with RedisStore(redis_server.url, prefix=redis_keys, index=INDEX) as store:
        ops = [
            PutOp(("many", f"{n % 10}"), f"{n}", {"at": f"{n % 97},{n % 89},{n}", "odd": n % 2}) for n in range(2500)
        ]
        await store.abatch(ops)
        await store.aput(("many", "7"), "unseen", {"odd": 1}, index=False)
        found = await store.asearch(("many",), query="0,0,1", limit=5)
        assert [item.score for item in found] == sorted([item.score for item in found], reverse=True)  # type: ignore[type-var]
        assert all(item.score is not None and item.score > 0.999 for item in found)
        inside = await store.asearch(("many", "7"), query="1,1,1", limit=1000, filter={"odd": 1})
        assert len(inside) == 251
        assert (inside[-1].key, inside[-1].score) == ("unseen", None)
        assert (await store.asearch(("many",), query="1,1,1", limit=1, filter={"at": "7,7,7"}))[0].key == "7"
    wider: Any = {"dims": 2, "embed": embed, "fields": ["at"]}
    async with RedisStore(redis_server.url, prefix=redis_keys, index=wider) as store:
        assert {item.score for item in await store.asearch(("many",), query="0,1", limit=20)} == {None}


async def test_damage_is_named(store: RedisStore, redis_server: RedisServer, redis_keys: str) -> None:
    key = f"{redis_keys}:item:users.Ada%00k"
    for field, words in (("created_at", "is damaged"), ("value", "checksum|damaged|cannot"), ("expires_at", "damaged")):
        await store.aput(NS, "k", {"n": 1})
        redis_server.client.hset(key, field, b"\xff")
        with pytest.raises(CorruptDataError, match=words):
            await store.aget(NS, "k")
        await store.adelete(NS, "k")


def test_addresses_are_told_apart() -> None:
    assert (
        len({address(("a", "b"), "c"), address(("a",), "b.c"), address(("a",), "b\x01c"), address(("ab",), "c")}) == 4
    )


@pytest.mark.slow
@settings(max_examples=30)
@given(history=histories, sealed=st.booleans())
async def test_it_agrees_with_a_dict(redis_server: RedisServer, history: Any, sealed: bool) -> None:
    options = chosen()
    if sealed:
        options["serde"] = EncryptedSerializer(b"0123456789abcdef")
    with redis_server.prefix() as prefix:
        async with RedisStore(redis_server.url, prefix=prefix, **options) as store:
            await agree([store], options["clock"], history)
            options["clock"].advance(minutes=1e6)
            await store.asweep_ttl()
            await store.abatch([PutOp(item.namespace, item.key, None) for item in await store.asearch((), limit=1000)])
        assert redis_server.keys(prefix) == []
