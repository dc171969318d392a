"""Expiry: minutes on the store's clock, the same rules on every store."""

from __future__ import annotations

import logging
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from trio.testing import MockClock

from persistence.errors import PersistenceClosedError, TransientBackendError
from persistence.memory import InMemoryStore
from persistence.mongo import MongoDBStore
from persistence.postgres import PostgresStore
from persistence.postgres.sessions import Session
from persistence.redis import RedisStore
from persistence.redis.scripts import FIND_ITEMS
from persistence.redis.server import unpacked
from persistence.sqlite import SqliteStore
from persistence.stores.managed import ManagedStore
from persistence.stores.sweeping import Sweeper
from runtime.store import GetOp, PutOp, SearchOp
from tests.persistence.stores.clocks import Clock
from tests.persistence.stores.conftest import OpenStore

pytestmark = pytest.mark.anyio

NS = ("a", "b")


async def held(store: ManagedStore) -> set[str]:
    """Return which items there are, by every way to look, without making them live longer."""
    found = {item.key for item in await store.asearch((), refresh_ttl=False)}
    assert found == {item.key for item in await store.asearch(NS, filter={"x": 1}, refresh_ttl=False)}
    assert found == {key for key in "abcd" if await store.aget(NS, key, refresh_ttl=False) is not None}
    assert await store.alist_namespaces() == ([NS] if found else [])
    assert await store.alist_namespaces(prefix=("a",)) == ([NS] if found else [])
    return found


async def test_what_has_expired_is_never_seen_again(store: ManagedStore, clock: Clock) -> None:
    await store.aput(NS, "a", {"x": 1}, ttl=5)
    await store.aput(NS, "b", {"x": 1}, ttl=0.5)
    await store.aput(NS, "c", {"x": 1})
    await store.aput(NS, "d", {"x": 1}, ttl=None)
    assert await held(store) == set("abcd")
    clock.advance(minutes=0.5)
    assert await held(store) == set("acd")
    clock.advance(minutes=4.4)
    assert await held(store) == set("acd")
    clock.advance(minutes=0.2)
    assert await held(store) == set("cd")
    assert await store.asweep_ttl() == 2
    assert await store.asweep_ttl() == 0
    assert await held(store) == set("cd")


async def test_nothing_is_left_of_a_namespace_of_expired_items(store: ManagedStore, clock: Clock) -> None:
    await store.aput(NS, "a", {"x": 1}, ttl=5)
    clock.advance(minutes=5)
    assert await held(store) == set()


@pytest.mark.parametrize(
    ("config", "asked", "prolongs"),
    [
        (None, None, True),
        (None, True, True),
        (None, False, False),
        ({"refresh_on_read": True}, None, True),
        ({"refresh_on_read": True}, False, False),
        ({"refresh_on_read": False}, None, False),
        ({"refresh_on_read": False}, True, True),
    ],
)
async def test_reading_starts_the_time_to_live_again_if_the_call_or_else_the_config_says_so(
    open_store: OpenStore, clock: Clock, config: Any, asked: Any, prolongs: bool
) -> None:
    store = await open_store(ttl=config)
    reads: list[Any] = [
        GetOp(NS, "a", asked),
        SearchOp(("a",), refresh_ttl=asked),
        SearchOp(NS, {"x": 1}, 1, 0, "", asked),
    ]
    for read in reads:
        for others in ([], [PutOp(("more",), "k", {})]):
            await store.aput(NS, "a", {"x": 1}, ttl=5)
            await store.aput(("other",), "k", {"x": 1}, ttl=5)
            clock.advance(minutes=4)
            assert (await store.abatch([read, *others]))[0]
            clock.advance(minutes=4)
            assert (await store.aget(NS, "a", refresh_ttl=False) is not None) == prolongs
            clock.advance(minutes=1)
            assert await store.aget(NS, "a", refresh_ttl=False) is None
            assert await store.aget(("other",), "k") is None


async def test_a_search_makes_only_what_it_returns_live_longer(store: ManagedStore, clock: Clock) -> None:
    for key in "abcd":
        await store.aput(NS, key, {"x": 1}, ttl=5)
    clock.advance(minutes=4)
    assert [item.key for item in await store.asearch((), limit=2, offset=1)] == ["b", "c"]
    clock.advance(minutes=4)
    assert await held(store) == set("bc")


async def test_an_expired_item_that_is_put_again_is_new(store: ManagedStore, clock: Clock) -> None:
    await store.aput(NS, "a", {"x": 1}, ttl=5)
    await store.aput(NS, "b", {"x": 1})
    clock.advance(minutes=6)
    await store.aput(NS, "a", {"x": 1})
    item = await store.aget(NS, "a")
    assert item is not None
    assert item.created_at == item.updated_at == datetime.fromtimestamp(clock.now, UTC)
    assert [found.key for found in await store.asearch(())] == ["b", "a"]


async def test_a_put_says_anew_how_long_an_item_lives(store: ManagedStore, clock: Clock) -> None:
    await store.aput(NS, "a", {"x": 1}, ttl=5)
    await store.aput(NS, "b", {"x": 1}, ttl=5)
    await store.aput(NS, "c", {"x": 1})
    clock.advance(minutes=4)
    await store.abatch([GetOp(NS, "a"), PutOp(NS, "a", {"x": 1}, ttl=2), GetOp(NS, "b"), PutOp(NS, "b", {"x": 1})])
    await store.aput(NS, "c", {"x": 1}, ttl=1)
    clock.advance(minutes=3)
    assert await held(store) == {"b"}


async def test_the_default_time_to_live_is_for_puts_that_do_not_say(open_store: OpenStore, clock: Clock) -> None:
    store = await open_store(ttl={"default_ttl": 5})
    await store.aput(NS, "a", {"x": 1})
    await store.aput(NS, "b", {"x": 1}, ttl=None)
    await store.aput(NS, "c", {"x": 1}, ttl=10)
    await store.abatch([PutOp(NS, "d", {"x": 1})])
    clock.advance(minutes=6)
    assert await held(store) == set("bcd")


@pytest.mark.parametrize(
    ("ttl", "error"),
    [
        (0, ValueError),
        (-1, ValueError),
        (float("nan"), ValueError),
        (float("inf"), ValueError),
        ("5", TypeError),
        (True, TypeError),
    ],
)
async def test_impossible_times_to_live_are_refused(store: ManagedStore, ttl: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="ttl"):
        await store.aput(NS, "a", {}, ttl=ttl)
    with pytest.raises(error, match="ttl"):
        InMemoryStore(ttl={"default_ttl": ttl})
    assert await store.asearch(()) == []


async def test_a_very_long_time_to_live_is_one(store: ManagedStore) -> None:
    await store.aput(NS, "a", {"x": 1}, ttl=1e300)
    assert await store.aget(NS, "a") is not None


def test_configs_are_checked() -> None:
    with pytest.raises(ValueError, match="default_tll"):
        InMemoryStore(ttl={"default_tll": 5})  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="ttl must be"):
        InMemoryStore(ttl={"sweep_interval_minutes": 0})
    store = InMemoryStore(ttl={"omit_expired": True})
    assert store.supports_ttl
    assert store.ttl_config == {"omit_expired": True}


async def test_sweeping_many(store: ManagedStore, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("persistence.sqlite.shelved.SWEPT", 10)
    await store.abatch([PutOp(NS, f"{number}", {"x": 1}, None, 5) for number in range(35)])
    await store.aput(NS, "a", {"x": 1})
    clock.advance(minutes=5)
    assert await store.asweep_ttl() == 35
    assert await held(store) == {"a"}


VIRTUAL = pytest.mark.parametrize(
    "anyio_backend", [pytest.param(("trio", {"clock": MockClock(autojump_threshold=0)}), id="trio")]
)


@VIRTUAL
async def test_a_sweeper_sweeps_every_so_many_minutes_until_it_is_stopped() -> None:
    swept: list[float] = []

    async def sweep() -> int:
        swept.append(anyio.current_time() - begun)
        return 0

    sweeper = Sweeper(sweep)
    async with anyio.create_task_group() as nursery:
        begun = anyio.current_time()
        sweeper.start(nursery, 5)
        sweeper.start(nursery, 1)
        await anyio.sleep(601)
        assert sweeper.running
        assert await sweeper.stop(None)
        assert not sweeper.running
        await anyio.sleep(1000)
        sweeper.start(nursery, 1)
        await anyio.sleep(61)
        sweeper.cancel()
    assert swept == [300, 600, 1661]


@VIRTUAL
async def test_a_sweep_that_fails_is_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    faults: list[Exception | None] = [TransientBackendError("locked"), None, PersistenceClosedError("closed")]

    async def sweep() -> int:
        fault = faults.pop(0)
        if fault is not None:
            raise fault
        return 0

    async with anyio.create_task_group() as nursery:
        with caplog.at_level(logging.WARNING, "actorgraph"):
            Sweeper(sweep).start(nursery, 1)
    assert faults == []
    assert "could not be swept, trying again in 1 minutes: locked" in caplog.text


@VIRTUAL
async def test_stopping_waits_no_longer_than_it_is_told() -> None:
    entered, release = anyio.Event(), anyio.Event()

    async def sweep() -> int:
        with anyio.CancelScope(shield=True):
            entered.set()
            await release.wait()
        return 0

    sweeper = Sweeper(sweep)
    assert await sweeper.stop(None)
    async with anyio.create_task_group() as nursery:
        sweeper.start(nursery, 1)
        await entered.wait()
        assert not await sweeper.stop(0.5)
        release.set()
        assert await sweeper.stop(None)


async def rows(store: ManagedStore) -> int:
    """Return how many items there are, expired ones included."""
    if isinstance(store, InMemoryStore):
        return len(store._shelves)
    if isinstance(store, PostgresStore):

        async def counting(session: Session) -> int:
            counted: int = (await session.rows("SELECT count(*) FROM store"))[0][0]
            return counted

        return await store._database.read(counting)
    if isinstance(store, RedisStore):
        found = await store._server.read(lambda server: server.run(FIND_ITEMS, ("0", [("-", "+")])))
        return len(unpacked(*found))
    if isinstance(store, MongoDBStore):
        return len(await store._server.read(lambda session: session.find({"kind": "item"})))
    assert isinstance(store, SqliteStore)
    with closing(sqlite3.connect(store._path)) as raw:
        count: int = raw.execute("SELECT count(*) FROM store").fetchone()[0]
        return count


async def test_the_sweeper_of_an_open_store_deletes(open_store: OpenStore, clock: Clock) -> None:
    store = await open_store(ttl={"sweep_interval_minutes": 0.0001})
    await store.aput(NS, "a", {"x": 1}, ttl=1)
    await store.aput(NS, "b", {"x": 1})
    clock.advance(minutes=1)
    assert await rows(store) == 2
    await store.astart_ttl_sweeper()
    while await rows(store) == 2:
        await anyio.sleep(0.001)
    assert await rows(store) == 1
    assert await store.astop_ttl_sweeper()
    assert not store._sweeper.running
    await store.astart_ttl_sweeper(60)
    assert store._sweeper.running


async def test_a_closing_store_stops_its_sweeper(store: ManagedStore) -> None:
    await store.astart_ttl_sweeper(0.001)
    assert store._sweeper.running
    await anyio.lowlevel.checkpoint()


async def test_a_closed_store_has_no_sweeper(path: Any) -> None:
    store = InMemoryStore()
    with pytest.raises(PersistenceClosedError, match="not open"):
        await store.astart_ttl_sweeper()
    assert await store.astop_ttl_sweeper()


def test_the_sweeper_has_a_blocking_door() -> None:
    store = InMemoryStore()
    with store:
        store.start_ttl_sweeper(60)
        assert store._sweeper.running
        assert store.stop_ttl_sweeper()
        assert not store._sweeper.running
        store.start_ttl_sweeper()
    assert not store._sweeper.running
    with pytest.raises(PersistenceClosedError, match="not open"):
        store.start_ttl_sweeper()
