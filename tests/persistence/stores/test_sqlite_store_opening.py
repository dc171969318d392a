"""Opening a store in a file: its own, a saver's, one that is not ours."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio import to_thread
from langgraph.store.sqlite import SqliteStore as PeerStore

from persistence.errors import BackendOpenError, PersistenceClosedError, PersistenceError, SchemaVersionError
from persistence.sqlite import SqliteCache, SqliteSaver, SqliteStore, shelved
from runtime.store import GetOp, PutOp
from tests.persistence.stores.files import ask, change
from tests.persistence.writer.samples import config, put

pytestmark = pytest.mark.anyio

NS = ("a", "b")


async def test_a_new_file_gets_tables_and_durable_settings(path: Path) -> None:
    async with SqliteStore(path, busy_timeout=1.5) as store:
        assert store._writer is not None
        assert store._reader is not None
        for name, expected in (
            ("journal_mode", "wal"),
            ("synchronous", 2),
            ("busy_timeout", 1500),
            ("foreign_keys", 1),
        ):
            found = await store._cross(
                store._writer.run, lambda raw, name=name: raw.execute(f"PRAGMA {name}").fetchone()
            )
            assert found == (expected,)
        query_only = await store._cross(store._reader.run, lambda raw: raw.execute("PRAGMA query_only").fetchone())
        assert query_only == (1,)
        await store.asetup()
    assert ask(path, "SELECT number FROM store_migrations") == [(1,)]
    assert {name for (name,) in ask(path, "SELECT name FROM sqlite_schema WHERE type = 'table'")} == set(shelved.TABLES)
    assert not path.with_name(path.name + "-wal").exists()


@pytest.mark.parametrize(("level", "number"), [("NORMAL", 1), ("FULL", 2), ("EXTRA", 3)])
async def test_how_durable_is_a_choice(path: Path, level: Any, number: int) -> None:
    async with SqliteStore(path, synchronous=level) as store:
        assert store._writer is not None
        found = await store._cross(store._writer.run, lambda raw: raw.execute("PRAGMA synchronous").fetchone())
        assert found == (number,)


def test_less_than_durable_is_no_choice(path: Path) -> None:
    with pytest.raises(ValueError, match="synchronous must be"):
        SqliteStore(path, synchronous="OFF")  # type: ignore[arg-type]


async def test_what_was_put_is_there_after_reopening(path: Path) -> None:
    store = SqliteStore(path)
    for number in range(3):
        async with store:
            assert [item.value["n"] for item in await store.asearch(())] == list(range(number))
            await store.aput(NS, f"{number}", {"n": number})


async def test_two_stores_on_one_file_see_each_other(path: Path) -> None:
    async with SqliteStore(path) as one, SqliteStore.from_conn_string(f"file:{path}") as other:
        await one.aput(NS, "k", {"n": 1})
        assert await other.aget(NS, "k") == await one.aget(NS, "k")
        await other.adelete(NS, "k")
        assert await one.aget(NS, "k") is None


async def test_a_database_in_memory_lives_as_long_as_it_is_open() -> None:
    store = SqliteStore(":memory:")
    async with store:
        await store.aput(NS, "k", {"n": 1})
        assert await store.abatch([GetOp(NS, "k"), PutOp(NS, "l", {})])
        assert len(await store.asearch(())) == 2
    async with store:
        assert await store.asearch(()) == []


async def test_a_saver_a_cache_and_a_store_share_a_file(path: Path) -> None:
    async with SqliteSaver(path) as saver, SqliteStore(path) as store, SqliteCache(path) as cache:

        async def save(number: int) -> None:
            await put(saver, f"{number:02}", {"a": [number]})
            await store.aput(NS, f"{number}", {"n": number})
            await cache.aset({(("n",), f"{number}"): (number, None)})

        async with anyio.create_task_group() as nursery:
            for number in range(20):
                nursery.start_soon(save, number)
        assert len(await store.asearch((), limit=100)) == 20
        assert len([found async for found in saver.alist(config())]) == 20
        assert await cache.aget([(("n",), "7")]) == {(("n",), "7"): 7}
        await saver.adelete_thread("t")
        assert len(await store.asearch((), limit=100)) == 20


async def test_a_store_joins_a_file_that_a_saver_made_and_the_other_way_round(path: Path) -> None:
    async with SqliteSaver(path) as saver:
        await put(saver, "1", {"a": [1]})
    async with SqliteStore(path) as store:
        await store.aput(NS, "k", {})
    async with SqliteSaver(path) as saver:
        assert await saver.aget_tuple(config()) is not None
    path.unlink()
    async with SqliteStore(path) as store:
        await store.aput(NS, "k", {})
    async with SqliteSaver(path) as saver:
        await put(saver, "1", {"a": [1]})
    async with SqliteStore(path) as store:
        assert await store.aget(NS, "k") is not None


def test_setup_makes_the_tables_of_a_closed_store(path: Path) -> None:
    store = SqliteStore(path)
    store.setup()
    store.setup()
    assert ask(path, "SELECT count(*) FROM store") == [(0,)]
    with store:
        store.setup()


def garbage(path: Path) -> None:
    path.write_bytes(b"This is no database, it is a letter to my aunt. " * 100)


def foreign(path: Path) -> None:
    change(path, "CREATE TABLE store (id INTEGER PRIMARY KEY, address TEXT)")


def of_the_peer(path: Path) -> None:
    with PeerStore.from_conn_string(str(path)) as store:
        store.setup()
        store.put(NS, "k", {})
    change(path, "PRAGMA wal_checkpoint(TRUNCATE)")


def newer(path: Path) -> None:
    SqliteStore(path).setup()
    change(path, "INSERT INTO store_migrations VALUES (99)")
    change(path, "PRAGMA wal_checkpoint(TRUNCATE)")


def half_of_it(path: Path) -> None:
    SqliteStore(path).setup()
    change(path, "DROP TABLE store_vectors")
    change(path, "PRAGMA wal_checkpoint(TRUNCATE)")


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (garbage, BackendOpenError, "not a database"),
        (foreign, BackendOpenError, "belongs to another program: store exist"),
        (of_the_peer, BackendOpenError, "belongs to another program.*Use another file"),
        (half_of_it, BackendOpenError, "store_vectors are not as"),
        (newer, SchemaVersionError, "newer version of this library .migration 99, this one knows 1.*upgrade"),
    ],
)
async def test_a_file_that_is_not_ours_is_refused_untouched(
    path: Path, make: Callable[[Path], None], error: type[PersistenceError], words: str
) -> None:
    await to_thread.run_sync(make, path)
    before = path.read_bytes()
    store = SqliteStore(path)
    with pytest.raises(error, match=words):
        await store.__aenter__()
    assert path.read_bytes() == before
    assert repr(store).endswith("closed>")
    with pytest.raises(PersistenceClosedError):
        await store.aget(NS, "k")


async def test_a_directory_that_is_not_there(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "no" / "where.sqlite")
    with pytest.raises(BackendOpenError, match="unable to open"):
        await store.__aenter__()


async def test_prefixes_hold_in_a_file_of_another_text_encoding(path: Path) -> None:
    """In UTF-16 the bytes of "a" + U+012E lie between the bounds of what is below "a"."""
    change(path, "PRAGMA encoding = 'UTF-16le'", "CREATE TABLE anything (x)")
    async with SqliteStore(path) as store:
        for namespace in (("a",), ("a\u012e",), ("a\u012e", "b"), ("a", "b")):
            await store.aput(namespace, "k", {})
        assert [item.namespace for item in await store.asearch(("a",))] == [("a",), ("a", "b")]
        assert await store.alist_namespaces(prefix=("a",)) == [("a",), ("a", "b")]
        assert [item.namespace for item in await store.asearch(("a\u012e",))] == [("a\u012e",), ("a\u012e", "b")]
