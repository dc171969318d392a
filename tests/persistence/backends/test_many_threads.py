"""Many threads: what is asked of them takes two queries at most, and no more work than among few.

Work is counted, not timed: steps of SQLite's virtual machine, pages that PostgreSQL looks at.
"""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from persistence.contracts.backend import Query
from persistence.postgres import PostgresSaver, reading
from persistence.postgres.listing import look_into as look_into_postgres
from persistence.postgres.statements import queries
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

pytestmark = pytest.mark.anyio
FEW, MANY, STEPS = 20, 400, 5
PAGE = 10


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
