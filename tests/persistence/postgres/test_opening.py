"""Opening a database: many at once, somebody else's, newer, through a pool or a pooler; refused in words."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import asyncpg
import pytest
from langgraph.checkpoint.postgres import PostgresSaver as PeerSaver
from langgraph.store.postgres import PostgresStore as PeerStore

from persistence.errors import BackendOpenError, PersistenceError, SchemaVersionError
from persistence.postgres import AsyncPostgresSaver, Options, PostgresSaver, PostgresStore
from tests.persistence.writer.samples import config, put

if TYPE_CHECKING:
    from tests.persistence.postgres.proxy import Wire
    from tests.persistence.postgres.server import Server

pytestmark = pytest.mark.anyio
ROOT = Path(__file__).parents[3]
SETUP = """
import anyio, sys
from persistence.postgres import PostgresSaver

async def main():
    async def one():
        async with PostgresSaver(sys.argv[1]) as saver:
            await saver.asetup()

    async with anyio.create_task_group() as nursery:
        for _ in range(4):
            nursery.start_soon(one)

anyio.run(main)
"""


async def test_names_of_other_runtimes(postgres_url: str) -> None:
    assert issubclass(AsyncPostgresSaver, PostgresSaver)
    async with PostgresSaver.from_conn_string(postgres_url, pipeline=True, pool_size=2) as saver:
        await saver.asetup()
        await put(saver, "1", {"a": 1})


def test_the_blocking_door(postgres_url: str) -> None:
    PostgresSaver(postgres_url).setup()
    with PostgresSaver.from_conn_string(postgres_url) as saver:
        saver.setup()
        where = saver.put(config(), {**_checkpoint(), "id": "1"}, {}, {})  # type: ignore[typeddict-item]
        saver.put_writes(where, [("a", 1)], "task")
        (found,) = saver.list(None)
        assert saver.get_tuple(config()) == found
        saver.delete_thread("t")
        assert saver.get(config()) is None


def _checkpoint() -> dict[str, Any]:
    return {"v": 4, "ts": "", "channel_values": {}, "channel_versions": {}, "versions_seen": {}, "updated_channels": []}


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_many_set_up_an_empty_schema_at_once(postgres: Server, postgres_url: str) -> None:
    command = [sys.executable, "-c", SETUP, postgres_url]
    processes = [await anyio.open_process(command, cwd=ROOT, stderr=None) for _ in range(2)]

    async def one() -> None:
        async with PostgresSaver(postgres_url):
            pass

    async with anyio.create_task_group() as nursery:
        for _ in range(8):
            nursery.start_soon(one)
    for process in processes:
        assert await process.wait() == 0
    assert postgres.rows("SELECT v FROM checkpoint_migrations ORDER BY v", url=postgres_url) == [(1,), (2,), (3,)]


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_setup_that_dies_half_way_leaves_nothing(wired: tuple[Wire, str]) -> None:
    wire, url = wired

    async def cut() -> None:
        while not wire.accepted:
            await anyio.lowlevel.checkpoint()
        await anyio.to_thread.run_sync(wire.sever)

    for _ in range(8):
        try:
            async with anyio.create_task_group() as nursery:
                nursery.start_soon(cut)
                nursery.start_soon(anyio.to_thread.run_sync, PostgresSaver(url).setup)
        except* BackendOpenError:
            pass
        wire.accepted = 0
    async with PostgresSaver(url) as saver:
        await put(saver, "1", {"a": [1]})


async def test_opening_what_is_up_to_date_needs_one_look(wired: tuple[Wire, str]) -> None:
    wire, url = wired
    async with PostgresSaver(url):
        pass
    before = wire.answers
    async with PostgresSaver(url):
        assert wire.answers - before <= 8  # the start of the session, and two prepared queries


async def test_a_role_that_may_not_create_can_open_what_is_there(postgres: Server, postgres_url: str) -> None:
    schema = postgres_url.partition("search_path=")[2].partition(",")[0]
    async with PostgresSaver(postgres_url):
        pass
    postgres.rows("DROP ROLE IF EXISTS reader")
    postgres.rows("CREATE ROLE reader LOGIN")
    postgres.rows(f"GRANT USAGE ON SCHEMA {schema} TO reader")
    tables = f"ALL TABLES IN SCHEMA {schema}"
    postgres.rows(f"GRANT SELECT, INSERT, UPDATE, DELETE ON {tables} TO reader")
    try:
        own = postgres_url.replace("postgresql://postgres:@", "postgresql://reader:@")
        if own == postgres_url:
            pytest.skip("the environment names the server, and who may enter it")
        async with PostgresSaver(own) as saver:
            await put(saver, "1", {"a": [1]})
            assert await saver.aget_tuple(config()) is not None
    finally:
        postgres.rows("DROP OWNED BY reader")
        postgres.rows("DROP ROLE reader")


@pytest.mark.parametrize(
    ("change", "kind", "words"),
    [
        (
            "INSERT INTO checkpoint_migrations VALUES (99)",
            SchemaVersionError,
            r"newer version.*\(migration 99, .* knows",
        ),
        ("INSERT INTO checkpoint_migrations VALUES (0)", BackendOpenError, r"LangGraph's tables.*search_path="),
        (
            "ALTER TABLE checkpoints ADD COLUMN extra text",
            BackendOpenError,
            r"another program: .*, but checkpoints are",
        ),
        ("DROP TABLE checkpoint_blobs", BackendOpenError, "but checkpoint_blobs are not"),
    ],
)
async def test_tables_of_others_are_refused_and_left_alone(
    postgres: Server, postgres_url: str, change: str, kind: type[BackendOpenError], words: str
) -> None:
    async with PostgresSaver(postgres_url):
        pass
    postgres.rows(change, url=postgres_url)
    listed = "SELECT v FROM checkpoint_migrations"
    before = postgres.rows(listed, url=postgres_url)
    with pytest.raises(kind, match=words):
        await PostgresSaver(postgres_url).__aenter__()
    assert postgres.rows(listed, url=postgres_url) == before


async def test_langgraphs_own_tables_are_left_alone(postgres: Server, postgres_url: str) -> None:
    # Its driver takes the schema as an option of the session.
    theirs = postgres_url.replace("search_path=", "options=-csearch_path%3D").replace(":@", "@")
    with PeerSaver.from_conn_string(theirs) as saver:
        saver.setup()
    with PeerStore.from_conn_string(theirs) as store:
        store.setup()
    listed = "SELECT v FROM checkpoint_migrations ORDER BY v"
    before = postgres.rows(listed, url=postgres_url)
    with pytest.raises(BackendOpenError, match=r"holds LangGraph's tables checkpoint_blobs, .*search_path=NAME"):
        await PostgresSaver(postgres_url).__aenter__()
    with pytest.raises(BackendOpenError, match="belongs to another program: store"):
        await PostgresStore(postgres_url).__aenter__()
    assert postgres.rows(listed, url=postgres_url) == before


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://u:geheim@localhost:1/db",
        "postgresql://u:geheim@/db?host=/nowhere",
        "postgres://u:geheim@x.invalid/db",
    ],
)
async def test_who_cannot_be_reached_is_named_without_the_password(url: str) -> None:
    saver = PostgresSaver(url)
    assert "geheim" not in repr(saver)
    with pytest.raises(BackendOpenError, match=r"/db cannot be opened: ") as failure:
        await saver.__aenter__()
    assert "geheim" not in str(failure.value)


def test_what_is_no_url_or_no_setting_is_refused_at_once() -> None:
    with pytest.raises(ValueError, match="Not a PostgreSQL URL: write it as postgresql://"):
        PostgresSaver("host=localhost dbname=x")
    with pytest.raises(ValueError, match="pool_size must be positive, it is 0"):
        PostgresSaver("postgresql://x", pool_size=0)
    with pytest.raises(TypeError, match="pol_size"):
        PostgresSaver("postgresql://x", pol_size=1)
    with pytest.raises(TypeError, match="Pass options=, or pool_size by name, not both"):
        PostgresSaver("postgresql://x", options=Options(), pool_size=1)


async def test_a_pool_made_where_it_is_used(postgres_url: str) -> None:
    made: list[Any] = []

    def make() -> Any:
        made.append(asyncpg.create_pool(postgres_url, min_size=0, max_size=2))
        return made[-1]

    async with PostgresSaver(make) as saver:
        assert "the given pool" in repr(saver)
        await put(saver, "1", {"a": [1]})
        assert await saver.aget_tuple(config()) is not None
    assert made[0].is_closing()


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_pool_of_ones_own_is_shared_and_left_open(postgres_url: str, postgres: Server) -> None:
    async with asyncpg.create_pool(postgres_url, min_size=1, max_size=1) as pool:
        async with PostgresSaver(pool) as saver:
            for number in range(5):
                await put(saver, f"{number}", {"a": [number]})
                await pool.fetchval("SELECT 1")
                postgres.rows("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")
            assert len([one async for one in saver.alist(None)]) == 5
        assert await pool.fetchval("SELECT count(*) FROM checkpoints") == 5


@pytest.mark.parametrize("anyio_backend", ["trio"])
async def test_a_pool_of_another_loop_is_refused(postgres_url: str) -> None:
    with pytest.raises(PersistenceError, match="another event loop.*Pass a URL, or a function that makes"):
        await PostgresSaver(object()).__aenter__()


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_pool_of_another_asyncio_loop_is_refused_by_the_blocking_door(postgres_url: str) -> None:
    async with asyncpg.create_pool(postgres_url, min_size=0, max_size=1) as pool:
        with pytest.raises(PersistenceError, match="belongs to another event loop"):
            await anyio.to_thread.run_sync(PostgresSaver(pool).setup)


def test_the_blocking_door_makes_its_pool_where_it_works(postgres_url: str) -> None:
    with PostgresSaver(lambda: asyncpg.create_pool(postgres_url, min_size=0, max_size=1)) as saver:
        assert list(saver.list(None)) == []


async def test_behind_a_transaction_pooler_no_statement_is_named(postgres_url: str) -> None:
    """All prepared statements vanish between calls, as they do when another server connection answers."""
    async with PostgresSaver(postgres_url, transaction_pooler=True, pool_size=1) as saver:
        backend: Any = saver._backend

        async def named(session: Any) -> list[Any]:
            found = await session.rows("SELECT name FROM pg_prepared_statements WHERE name <> ''")
            await session.script("DEALLOCATE ALL")
            return list(found)

        for number in range(3):
            where = await put(saver, f"{number}", {"a": [number]})
            await saver.aput_writes(where, [("a", [number])], "task")
            assert await backend._database.read(named) == []
            assert await saver.aget_tuple(config()) is not None
        await saver.aprune(["t"])
        await saver.acopy_thread("t", "u")
        assert await backend._database.read(named) == []
        assert [one.checkpoint["id"] async for one in saver.alist(None)] == ["2", "2"]
