"""SqliteCache: opening, sharing a file with a saver, outliving the process, damage."""

from __future__ import annotations

import logging
import sqlite3
import warnings
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import pytest

from persistence.errors import (
    BackendError,
    BackendOpenError,
    PersistenceClosedError,
    PersistenceError,
    SaverLoopError,
    SchemaVersionError,
    TransientBackendError,
)
from persistence.sqlite import SqliteCache, SqliteSaver, cached, layout
from persistence.writer.bridge import BRIDGE
from tests.persistence.writer.samples import config, put

pytestmark = pytest.mark.anyio

KEY = (("g", "n"), "k")
OTHER = (("g", "n"), "other")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "cache.sqlite"


def rows(path: Path, sql: str) -> list[Any]:
    with closing(sqlite3.connect(path)) as raw:
        return raw.execute(sql).fetchall()


def change(path: Path, sql: str, *values: object) -> None:
    with closing(sqlite3.connect(path)) as raw:
        raw.execute(sql, values)
        raw.commit()


async def test_values_outlive_the_process(path: Path) -> None:
    async with SqliteCache(path) as cache:
        await cache.aset({KEY: ([1], None)})
    async with SqliteCache(str(path)) as cache:
        assert await cache.aget([KEY]) == {KEY: [1]}
    async with SqliteCache(f"file:{path}") as cache:
        assert await cache.aget([KEY]) == {KEY: [1]}


async def test_a_new_file_gets_the_tables_of_a_cache_and_no_others(path: Path) -> None:
    async with SqliteCache(path):
        pass
    tables = {name for (name,) in rows(path, "SELECT name FROM sqlite_schema WHERE type = 'table'")}
    assert tables == set(cached.TABLES)
    assert rows(path, "SELECT v FROM cache_migrations") == [(1,)]
    assert not path.with_name(path.name + "-wal").exists()


@pytest.mark.parametrize("saver_first", [True, False])
async def test_a_saver_and_a_cache_share_a_file(path: Path, saver_first: bool) -> None:
    saver, cache = SqliteSaver(path), SqliteCache(path)
    first, second = (saver, cache) if saver_first else (cache, saver)
    async with first, second:
        for number in range(3):
            await put(saver, f"{number}", {"a": [number]})
            await cache.aset({(("g",), str(number)): (number, None)})
        assert len(await cache.aget([(("g",), str(number)) for number in range(3)])) == 3
        assert await saver.aget_tuple(config()) is not None
        await cache.aclear()
        await saver.adelete_thread("t")


async def test_two_caches_share_a_file(path: Path) -> None:
    async with SqliteCache(path) as one, SqliteCache(path) as two:
        await one.aset({KEY: (1, None)})
        assert await two.aget([KEY]) == {KEY: 1}
        await two.aclear([("g",)])
        assert await one.aget([KEY]) == {}


async def test_a_cache_in_memory_lives_as_long_as_it_is_open() -> None:
    cache = SqliteCache(":memory:")
    async with cache:
        await cache.aset({KEY: (1, None)})
        assert await cache.aget([KEY]) == {KEY: 1}
    async with cache:
        assert await cache.aget([KEY]) == {}


async def test_what_has_expired_is_deleted_when_something_is_kept(path: Path) -> None:
    now = [0.0]
    async with SqliteCache(path, clock=lambda: now[0]) as cache:
        await cache.aset({KEY: (1, 10), OTHER: (2, None)})
        now[0] = 10.0
        await cache.aset({(("g",), "new"): (3, 5)})
    assert rows(path, "SELECT count(*) FROM cache_entries") == [(2,)]


@pytest.mark.parametrize(
    ("column", "value"),
    [("value", b"\x00" * 30), ("value", b""), ("type", "pickle"), ("type", "null"), ("type", "msgpack+aes")],
)
async def test_a_damaged_value_is_a_miss(
    path: Path, caplog: pytest.LogCaptureFixture, column: str, value: object
) -> None:
    async with SqliteCache(path) as cache:
        await cache.aset({KEY: ([1], None), OTHER: ([2], None)})
        change(path, f"UPDATE cache_entries SET {column} = ? WHERE key = ?", value, b"k")
        with caplog.at_level(logging.WARNING, "actorgraph"):
            assert await cache.aget([KEY, OTHER]) == {OTHER: [2]}
        assert "is not used" in caplog.text
        await cache.aset({KEY: ([3], None)})
        assert await cache.aget([KEY]) == {KEY: [3]}


async def test_a_failing_database_is_an_error(path: Path) -> None:
    async with SqliteCache(path) as cache:
        change(path, "DROP TABLE cache_entries")
        with pytest.raises(BackendError, match="no such table"):
            await cache.aget([KEY])
        with pytest.raises(BackendError, match="nothing was saved"):
            await cache.aset({KEY: (1, None)})
        with pytest.raises(BackendError):
            await cache.aclear()


async def test_a_lock_that_stays_is_a_passing_fault(path: Path) -> None:
    async with SqliteCache(path, busy_timeout=0.01) as cache:
        with closing(sqlite3.connect(path, isolation_level=None)) as raw:
            raw.execute("BEGIN IMMEDIATE")
            with pytest.raises(TransientBackendError, match="locked"):
                await cache.aset({KEY: (1, None)})
            assert await cache.aget([KEY]) == {}
        await cache.aset({KEY: (1, None)})
        assert await cache.aget([KEY]) == {KEY: 1}


async def test_another_programs_tables_are_left_alone(path: Path) -> None:
    change(path, "CREATE TABLE cache_entries (x)")
    before = path.read_bytes()
    with pytest.raises(BackendOpenError, match="belongs to another program"):
        async with SqliteCache(path):
            pass
    assert path.read_bytes() == before


async def test_a_newer_versions_tables_are_left_alone(path: Path) -> None:
    async with SqliteCache(path):
        pass
    change(path, "INSERT INTO cache_migrations VALUES (99)")
    with pytest.raises(SchemaVersionError, match="migration 99"):
        async with SqliteCache(path):
            pass


async def test_what_is_no_database_is_refused(path: Path) -> None:
    path.write_bytes(b"no database " * 100)
    with pytest.raises(BackendOpenError, match="cannot be opened"):
        async with SqliteCache(path):
            pass
    cache = SqliteCache(path.parent / "nowhere" / "cache.sqlite")
    with pytest.raises(BackendOpenError, match="directory exists"):
        async with cache:
            pass
    assert "closed" in repr(cache)


async def test_it_must_be_open(path: Path) -> None:
    cache = SqliteCache(path)
    for call in (cache.aget([KEY]), cache.aset({KEY: (1, None)}), cache.aclear()):
        with pytest.raises(PersistenceClosedError, match="async with"):
            await call
    async with cache:
        assert "open" in repr(cache)
        assert cache.home_token is not None
        with pytest.raises(PersistenceError, match="open already"):
            async with cache:
                pass
        assert await cache.aget([KEY]) == {}
    left: Any = cache
    assert (left.home_token, left.home_thread) == (None, None)
    await cache.__aexit__(None, None, None)
    with pytest.raises(PersistenceClosedError):
        await cache.aget([KEY])


async def test_it_belongs_to_the_loop_it_was_opened_on(path: Path) -> None:
    async with SqliteCache(path) as cache:

        def elsewhere() -> None:
            anyio.run(cache.aget, [KEY])

        with pytest.raises(SaverLoopError, match="another thread"):
            await anyio.to_thread.run_sync(elsewhere)
        assert await anyio.to_thread.run_sync(cache.get, [KEY]) == {}
        with pytest.raises(SaverLoopError, match="aget"):
            cache.get([KEY])


async def test_the_bridge_is_used_on_trio_alone_and_given_back(path: Path, anyio_backend_name: str) -> None:
    before = BRIDGE.users
    async with SqliteCache(path):
        assert BRIDGE.users - before == (anyio_backend_name == "trio")
    path.write_bytes(b"no database " * 100)
    with pytest.raises(BackendOpenError):
        async with SqliteCache(path):
            pass
    assert BRIDGE.users == before


async def test_a_cancel_does_not_cut_closing_short(path: Path) -> None:
    cache = SqliteCache(path)
    with anyio.CancelScope() as scope:
        async with cache:
            await cache.aset({KEY: (1, None)})
            scope.cancel()
    assert cache.home_token is None
    assert not path.with_name(path.name + "-wal").exists()


async def test_a_cancelled_write_is_whole_or_absent(path: Path) -> None:
    async with SqliteCache(path) as cache:
        with anyio.CancelScope() as scope:
            scope.cancel()
            await cache.aset({KEY: (1, None), OTHER: (2, None)})
        assert len(await cache.aget([KEY, OTHER])) in {0, 2}


async def test_many_runs_use_one_cache_at_once(path: Path) -> None:
    async with SqliteCache(path) as cache:

        async def use(name: str) -> None:
            for number in range(10):
                await cache.aset({((name,), str(number)): ([name, number], None)})
                assert await cache.aget([((name,), str(number))]) == {((name,), str(number)): [name, number]}

        async with anyio.create_task_group() as nursery:
            for name in "abcd":
                nursery.start_soon(use, name)
    assert rows(path, "SELECT count(*) FROM cache_entries") == [(40,)]


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_forgotten_cache_says_so(path: Path, anyio_backend: object) -> None:
    cache = SqliteCache(path)
    await cache.__aenter__()
    finalizer: Any = cache._finalizer
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        finalizer()
    assert [one.category for one in caught] == [ResourceWarning]
    assert "cache.sqlite" in str(caught[0].message)
    await cache.__aexit__(None, None, None)


def test_a_migration_is_applied_whole_or_not_at_all(path: Path) -> None:
    broken = cached._LAYOUT._replace(
        migrations={**cached._LAYOUT.migrations, 2: ("CREATE TABLE extra (x)", "CREATE TABLE extra (x)")}
    )
    assert isinstance(broken, layout.Layout)
    with closing(sqlite3.connect(path, isolation_level=None)) as raw:
        with pytest.raises(sqlite3.OperationalError, match="already exists"):
            broken.migrate(raw, str(path))
        assert raw.execute("SELECT count(*) FROM sqlite_schema").fetchone() == (0,)
        cached._LAYOUT.migrate(raw, str(path))
        broken._replace(migrations={**broken.migrations, 2: ("CREATE TABLE extra (x)",)}).migrate(raw, str(path))
        assert raw.execute("SELECT v FROM cache_migrations").fetchall() == [(1,), (2,)]
