"""Many threads: what is asked of them takes two queries at most, and no more work than among few.

Work is counted, not timed: steps of SQLite's virtual machine, pages that PostgreSQL looks at.
"""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any, NamedTuple

import anyio
import pytest

from persistence.contracts.backend import Query
from persistence.postgres import PostgresSaver, reading
from persistence.postgres.listing import look_into as look_into_postgres
from persistence.postgres.statements import queries
from persistence.redis import RedisSaver
from persistence.redis.listing import look_into as look_into_redis
from persistence.sqlite import SqliteSaver
from persistence.sqlite.listing import look_into as look_into_sqlite
from tests.persistence.backends.crowds import crowd, name
from tests.persistence.postgres.proxy import SOCKET, wire
from tests.persistence.postgres.server import StartedServer
from tests.persistence.writer.samples import config

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator
    from pathlib import Path

    from persistence.writer.saver import GroupCommitSaver
    from tests.persistence.postgres.proxy import Wire
    from tests.persistence.postgres.server import Server
    from tests.persistence.redis.server import RedisServer

pytestmark = pytest.mark.anyio
FEW, MANY, STEPS = 20, 400, 5
PAGE = 10
LONG = 100


async def newest(saver: GroupCommitSaver) -> None:
    """The latest state of a thread."""
    found = await saver.aget_tuple(config(name(7)))
    assert found is not None
    assert found.checkpoint["channel_values"]["count"] == STEPS - 1


async def history(saver: GroupCommitSaver) -> None:
    """A page of its history."""
    assert len([one async for one in saver.alist(config(name(7)), limit=3)]) == 3


async def whole_thread(saver: GroupCommitSaver) -> None:
    """The same in all its namespaces."""
    thread = {"configurable": {"thread_id": name(7)}}
    assert len([one async for one in saver.alist(thread, before=config(name(7), "9"), limit=3)]) == 3


async def everybody(saver: GroupCommitSaver) -> None:
    """The newest checkpoints of all threads."""
    assert len([one async for one in saver.alist(None, limit=PAGE)]) == PAGE


QUESTIONS = [newest, history, whole_thread, everybody]


async def long_page(saver: GroupCommitSaver) -> None:
    """A page that is as long as the history of many runs."""
    assert len([one async for one in saver.alist(config(name(0)), limit=LONG)]) == LONG


async def fill_one(saver: GroupCommitSaver) -> None:
    """Give one thread a long history."""
    await crowd(saver, 1, LONG + 2)


# ---- SQLite ----------------------------------------------------------------------------------------------------------


class Meter:
    """Counts the queries of a connection and the steps that they take."""

    def __init__(self) -> None:
        self.queries: list[str] = []
        self.steps = 0

    def attach(self, raw: sqlite3.Connection) -> None:
        """Count from now on."""
        raw.set_trace_callback(self._query)
        raw.set_progress_handler(self._step, 10)

    def _query(self, sql: str) -> None:
        if sql not in {"BEGIN", "ROLLBACK"}:
            self.queries.append(sql)

    def _step(self) -> int:
        self.steps += 10
        return 0


async def metered(saver: SqliteSaver, ask: Callable[[GroupCommitSaver], Awaitable[None]]) -> Meter:
    """Ask, and return what that took."""
    meter = Meter()
    backend: Any = saver._backend
    await ask(saver)
    await backend._cross(backend._reader.run, meter.attach)
    await ask(saver)
    return meter


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A file with few threads, and one with many."""
    few, many = (tmp_path_factory.mktemp("crowds") / f"{size}.db" for size in ("few", "many"))

    async def fill(path: Path, threads: int) -> None:
        async with SqliteSaver(path) as saver:
            await crowd(saver, threads, STEPS)

    anyio.run(fill, few, FEW)
    anyio.run(fill, many, MANY)
    return few, many


@pytest.mark.parametrize("ask", QUESTIONS, ids=lambda ask: ask.__name__)
async def test_sqlite(files: tuple[Path, Path], ask: Any) -> None:
    meters = []
    for path in files:
        async with SqliteSaver(path) as saver:
            meters.append(await metered(saver, ask))
    few, many = meters
    assert len(many.queries) <= 2
    assert many.steps < 2 * few.steps


async def test_a_long_page_of_a_file_is_two_queries_too(tmp_path: Path) -> None:
    async with SqliteSaver(tmp_path / "long.db") as saver:
        await fill_one(saver)
        assert len((await metered(saver, long_page)).queries) == 2


def test_threads_of_a_file(files: tuple[Path, Path]) -> None:
    meters = []
    for path in files:
        with look_into_sqlite(path) as listing:
            meter = Meter()
            meter.attach(listing._connection)
            assert len(listing.threads(PAGE)) == PAGE
            meters.append(meter)
    few, many = meters
    assert len(many.queries) == 2
    assert many.steps < 2 * few.steps


def test_all_threads_of_a_file_in_order(files: tuple[Path, Path]) -> None:
    with look_into_sqlite(files[1]) as listing:
        found = [thread.thread_id for thread in listing.threads()]
        assert found == [name(number) for number in reversed(range(MANY))]
        assert [thread.thread_id for thread in listing.threads(PAGE)] == found[:PAGE]
        assert listing.thread_count() == MANY


def test_an_older_file_is_listed_too(files: tuple[Path, Path], tmp_path: Path) -> None:
    """Who looks does not migrate."""
    path = tmp_path / "older.db"
    path.write_bytes(files[0].read_bytes())
    with closing(sqlite3.connect(path)) as raw:
        raw.execute("DROP INDEX checkpoints_checkpoint_id_idx")
        raw.execute("DELETE FROM checkpoint_migrations WHERE v = 2")
        raw.commit()
    with look_into_sqlite(path) as listing:
        assert len(listing.threads(PAGE)) == PAGE


# ---- PostgreSQL ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def schemas(postgres: Server) -> Iterator[tuple[str, str]]:
    """A schema with few threads, and one with many; the planner knows which is which."""

    async def fill(url: str, threads: int) -> None:
        async with PostgresSaver(url) as saver:
            await crowd(saver, threads, STEPS)

    with postgres.schema() as few, postgres.schema() as many:
        for url, threads in ((few, FEW), (many, MANY)):
            anyio.run(fill, url, threads)
            for table in ("checkpoints", "checkpoint_writes", "checkpoint_blobs"):
                postgres.rows(f"ANALYZE {table}", url=url)
        yield few, many


@pytest.fixture
def wire_to_postgres(postgres: Server, postgres_url: str) -> Iterator[tuple[Wire, str]]:
    """A wire that counts, and the URL of an empty schema through it."""
    if not isinstance(postgres, StartedServer):
        pytest.skip("the environment names the server")
    folder = postgres.socket_folder
    with wire(folder / SOCKET, SOCKET) as (made, path):
        yield made, postgres_url.replace(str(folder), str(path.parent))


@pytest.mark.parametrize("ask", QUESTIONS, ids=lambda ask: ask.__name__)
async def test_postgres(wire_to_postgres: tuple[Wire, str], ask: Any) -> None:
    """Round trips are counted on the wire; one query each, however many threads there are."""
    counting, url = wire_to_postgres
    async with PostgresSaver(url) as saver:
        await crowd(saver, FEW, STEPS)
        await ask(saver)
        before = counting.answers
        await ask(saver)
        assert counting.answers == before + 1


async def test_a_long_page_on_postgres_is_one_round_trip_too(wire_to_postgres: tuple[Wire, str]) -> None:
    counting, url = wire_to_postgres
    async with PostgresSaver(url) as saver:
        await fill_one(saver)
        await long_page(saver)
        before = counting.answers
        await long_page(saver)
        assert counting.answers == before + 1


def looked_at(postgres: Server, url: str, sql: str, values: list[Any]) -> int:
    """Return how many pages the server looks at to answer a query."""
    (told,) = postgres.rows(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {sql}", *values, url=url)
    plan = json.loads(told[0])[0]["Plan"]
    return int(plan["Shared Hit Blocks"]) + int(plan["Shared Read Blocks"])


LOOKS = {
    "newest": Query(thread_id=name(7), checkpoint_ns=""),
    "history": Query(thread_id=name(7), checkpoint_ns="", limit=3),
    "whole thread": Query(thread_id=name(7), before="9", limit=3),
    "everybody": Query(limit=PAGE),
}


@pytest.mark.parametrize("look", LOOKS)
def test_pages_that_postgres_looks_at(postgres: Server, schemas: tuple[str, str], look: str) -> None:
    sql, values = reading._statement(LOOKS[look])
    few, many = (looked_at(postgres, url, sql, values) for url in schemas)
    assert many < 2 * few


def test_threads_on_postgres(postgres: Server, schemas: tuple[str, str]) -> None:
    sql = queries("listing_queries.sql")["newest_threads"]
    few, many = (looked_at(postgres, url, sql, [PAGE]) for url in schemas)
    assert many < 2 * few
    with look_into_postgres(schemas[1]) as listing:
        found = [thread.thread_id for thread in listing.threads(PAGE)]
    assert found == [name(MANY - 1 - number) for number in range(PAGE)]


# ---- Redis -----------------------------------------------------------------------------------------------------------


class Told(NamedTuple):
    """What a server says of its work so far."""

    scripts: int
    commands: int
    """With those that scripts give."""


def told(server: RedisServer) -> Told:
    """Return what a server has done."""
    calls = {name.removeprefix("cmdstat_"): one["calls"] for name, one in server.client.info("commandstats").items()}
    scripts = sum(calls.pop(name, 0) for name in ("eval", "evalsha"))
    return Told(scripts, scripts + sum(calls.values()) - calls.get("info", 0))


@pytest.fixture(scope="module")
def prefixes(redis_server: RedisServer) -> Iterator[tuple[str, str]]:
    """A prefix with few threads, and one with many."""

    async def fill(prefix: str, threads: int) -> None:
        async with RedisSaver(redis_server.url, prefix=prefix) as saver:
            await crowd(saver, threads, STEPS)

    with redis_server.prefix() as few, redis_server.prefix() as many:
        anyio.run(fill, few, FEW)
        anyio.run(fill, many, MANY)
        yield few, many


@pytest.mark.parametrize("ask", QUESTIONS, ids=lambda ask: ask.__name__)
async def test_redis(redis_server: RedisServer, prefixes: tuple[str, str], ask: Any) -> None:
    """One script each, which does no more among many."""
    found = []
    for prefix in prefixes:
        async with RedisSaver(redis_server.url, prefix=prefix) as saver:
            await ask(saver)
            before = told(redis_server)
            await ask(saver)
            after = told(redis_server)
            assert after.scripts == before.scripts + 1
            found.append(after.commands - before.commands)
    few, many = found
    assert many < 2 * few


async def test_a_long_page_on_redis_is_one_call_too(redis_server: RedisServer, redis_keys: str) -> None:
    async with RedisSaver(redis_server.url, prefix=redis_keys) as saver:
        await fill_one(saver)
        await long_page(saver)
        before = told(redis_server)
        await long_page(saver)
        assert told(redis_server).scripts == before.scripts + 1


def test_threads_on_redis(redis_server: RedisServer, prefixes: tuple[str, str]) -> None:
    found = []
    for prefix, threads in zip(prefixes, (FEW, MANY), strict=True):
        with look_into_redis(redis_server.url, prefix=prefix) as listing:
            newest = [name(threads - 1 - number) for number in range(PAGE)]
            assert [thread.thread_id for thread in listing.threads(PAGE)] == newest
            assert [thread.thread_id for thread in listing.threads()][:PAGE] == newest
            before = told(redis_server)
            assert [thread.checkpoints for thread in listing.threads(PAGE)] == [STEPS] * PAGE
            after = told(redis_server)
        assert after.scripts == before.scripts + 2
        found.append(after.commands - before.commands)
    few, many = found
    assert many < 2 * few


def test_threads_that_expired_are_passed_over(redis_server: RedisServer, redis_keys: str) -> None:
    async def fill() -> None:
        async with RedisSaver(redis_server.url, prefix=redis_keys) as saver:
            await crowd(saver, FEW, STEPS)

    anyio.run(fill)
    for key in redis_server.keys(redis_keys):
        if not key.endswith((b"3", b"7", b":index")):
            redis_server.client.delete(key)
    left = [name(number) for number in (17, 13, 7, 3)]
    with look_into_redis(redis_server.url, prefix=redis_keys) as listing:
        for limit in (1, 3, 4, 9, None):
            assert [thread.thread_id for thread in listing.threads(limit)] == left[:limit]


def test_a_thread_of_more_checkpoints_than_a_call_looks_at(redis_server: RedisServer, redis_keys: str) -> None:
    """The walk back goes on where it stopped, so that others get their turn."""

    async def fill() -> None:
        async with RedisSaver(redis_server.url, prefix=redis_keys) as saver:
            await crowd(saver, 3, STEPS)

    anyio.run(fill)
    later = {f"9{number:05}\0{name(1)}\0": 0 for number in range(17_000)}
    redis_server.client.zadd(f"{redis_keys}:index", later)
    with look_into_redis(redis_server.url, prefix=redis_keys) as listing:
        for limit in (1, 2, 3, 4):
            assert [thread.thread_id for thread in listing.threads(limit)] == [name(1), name(2), name(0)][:limit]
