"""Items come over with the times that they were created, changed and will expire at; each once."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from persistence.migration.items import Clock, ItemMover
from persistence.migration.moving import Tally
from persistence.postgres import PostgresStore
from persistence.sqlite import SqliteStore
from tests.persistence.migration.peer import Peer, sqlite_peer

Make = Callable[[Any], Any]


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Make]:
    """Make a store of ours that goes by a clock."""
    if request.param == "sqlite":
        yield lambda clock: SqliteStore(tmp_path / "ours.db", clock=clock)
    else:
        with request.getfixturevalue("postgres").schema() as url:
            yield lambda clock: PostgresStore(url, clock=clock)


def fill(peer: Peer) -> dict[tuple[tuple[str, ...], str], Any]:
    """Put items into LangGraph's store and return them all."""
    with peer.store() as theirs:
        theirs.put(("users", "é"), "a", {"n": 1, "deep": [{"x": None}], "text": "é"})
        theirs.put(("users", "b"), "a", {"n": 1.5})
        theirs.put(("users",), "with ttl", {"n": 2}, ttl=90)
        theirs.put(("users",), "b", {})
        theirs.put(("users",), "b", {"n": 3})
        theirs.put(("gone",), "b", {"n": 3})
        theirs.delete(("gone",), "b")
        return {(item.namespace, item.key): item for item in theirs.search(("users",), limit=100)}


async def carry(peer: Peer, make: Make | None) -> Tally:
    clock, tally = Clock(), Tally()
    told: list[int] = []
    async with peer.source() as source:
        count = await source.item_count()
        if make is None:
            await ItemMover(source, None, clock, tally).move(lambda: told.append(1))
        else:
            async with make(clock) as ours:
                await ItemMover(source, ours, clock, tally).move(lambda: told.append(1))
    assert len(told) == count
    return tally


async def test_items_come_over_with_their_times(peer: Peer, store: Make) -> None:
    theirs = fill(peer)
    tally = await carry(peer, store)
    assert (tally.items, tally.present, tally.problems) == (4, 0, [])
    async with store(time.time) as ours:
        found = {(item.namespace, item.key): item for item in await ours.asearch((), limit=100)}
        assert found.keys() == theirs.keys()
        for key, item in found.items():
            assert item.value == theirs[key].value
            assert _seconds(item.created_at) == pytest.approx(_seconds(theirs[key].created_at), abs=1e-3)
            assert _seconds(item.updated_at) == pytest.approx(_seconds(theirs[key].updated_at), abs=1e-3)


def _seconds(moment: Any) -> float:
    return float(moment.timestamp())


async def test_again_there_is_nothing_to_do_but_what_changed(peer: Peer, store: Make) -> None:
    fill(peer)
    await carry(peer, store)
    with peer.store() as theirs:
        theirs.put(("users",), "new", {"n": 9})
    tally = await carry(peer, store)
    assert (tally.items, tally.present) == (1, 4)


async def test_what_was_changed_here_stays(peer: Peer, store: Make) -> None:
    fill(peer)
    await carry(peer, store)
    async with store(time.time) as ours:
        await ours.aput(("users",), "b", {"mine": True})
    await carry(peer, store)
    async with store(time.time) as ours:
        assert (await ours.aget(("users",), "b")).value == {"mine": True}


async def test_items_expire_when_they_would_have(peer: Peer, store: Make) -> None:
    fill(peer)
    await carry(peer, store)
    for minutes, there in ((89, True), (91, False)):
        async with store(lambda minutes=minutes: time.time() + minutes * 60) as ours:
            found = await ours.aget(("users",), "with ttl", refresh_ttl=False)
            assert (found is not None) is there


async def test_expiry_that_reading_had_put_off_stays_put_off(tmp_path: Path, store: Make) -> None:
    peer = sqlite_peer(tmp_path)
    fill(peer)
    with closing(sqlite3.connect(peer.url)) as connection:
        connection.execute("UPDATE store SET created_at = datetime('now', '-2 hours'), updated_at = created_at")
        connection.execute("UPDATE store SET updated_at = datetime('now', '-80 minutes')")
        connection.commit()
    await carry(peer, store)
    async with store(lambda: time.time() + 85 * 60) as ours:
        assert await ours.aget(("users",), "with ttl", refresh_ttl=False)


async def test_what_has_expired_is_gone(tmp_path: Path, store: Make) -> None:
    peer = sqlite_peer(tmp_path)
    fill(peer)
    with closing(sqlite3.connect(peer.url)) as connection:
        connection.execute("UPDATE store SET expires_at = datetime('now', '-1 minutes') WHERE key = 'with ttl'")
        connection.commit()
    tally = await carry(peer, store)
    assert (tally.items, tally.problems) == (3, [])


async def test_what_cannot_be_carried_is_told_and_the_rest_comes(tmp_path: Path, store: Make) -> None:
    peer = sqlite_peer(tmp_path)
    fill(peer)
    with closing(sqlite3.connect(peer.url)) as connection:
        for prefix, key, value in (("a..b", "k", "{}"), ("a", "nul\0", "{}"), ("a", "list", "[]"), ("a", "bad", "{")):
            connection.execute("INSERT INTO store (prefix, key, value) VALUES (?, ?, ?)", (prefix, key, value))
        connection.commit()
    looked, carried = await carry(peer, None), await carry(peer, store)
    assert looked.problems == carried.problems
    assert looked.items == carried.items == 4
    assert {problem.where for problem in carried.problems} == {
        "item 'k'",
        r"item 'nul\x00'",
        "item 'list'",
        "item 'bad'",
    }


async def test_files_from_before_items_expired(tmp_path: Path, store: Make) -> None:
    peer = sqlite_peer(tmp_path)
    with closing(sqlite3.connect(peer.url)) as connection:
        connection.execute(
            "CREATE TABLE store (prefix text, key text, value text, created_at timestamp, updated_at timestamp)"
        )
        times = ("2024-01-02 03:04:05", "2024-01-02 03:04:06")
        connection.execute("INSERT INTO store VALUES ('a.b', 'k', '{\"n\": 1}', ?, ?)", times)
        connection.commit()
    assert (await carry(peer, store)).items == 1
    async with store(time.time) as ours:
        item = await ours.aget(("a", "b"), "k")
        assert (item.value, item.created_at.isoformat()) == ({"n": 1}, "2024-01-02T03:04:05+00:00")
        assert item.updated_at.isoformat() == "2024-01-02T03:04:06+00:00"


async def test_vectors_are_told_of(tmp_path: Path) -> None:
    peer = sqlite_peer(tmp_path)
    fill(peer)
    async with peer.source() as source:
        assert not await source.has_vectors()
    with closing(sqlite3.connect(peer.url)) as connection:
        connection.execute("CREATE TABLE store_vectors (prefix text, key text)")
        connection.execute("INSERT INTO store_vectors VALUES ('users', 'b')")
        connection.commit()
    async with peer.source() as source:
        assert await source.has_vectors()
