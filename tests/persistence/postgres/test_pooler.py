"""Behind a pooler that hands every transaction to another server connection: the switch for it, and what it is for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import anyio
import pytest

from persistence.conformance import SAVER_CHECKS, STORE_CHECKS, Check
from persistence.errors import PersistenceError
from persistence.postgres import PostgresSaver, PostgresStore
from persistence.writer.limits import Limits
from tests.persistence.backends.graphs import chain, thread
from tests.persistence.postgres.pooler import Pooler, pooling
from tests.persistence.writer.samples import config, put

if TYPE_CHECKING:
    from tests.persistence.postgres.server import Server, StartedServer

pytestmark = pytest.mark.anyio

INDEX: Any = {"dims": 2, "embed": lambda texts: [[float(len(text)), 1.0] for text in texts]}
NOTHING_LEFT = """DO $$ BEGIN
    IF EXISTS (SELECT FROM pg_prepared_statements WHERE name <> '') THEN RAISE 'a statement is named'; END IF;
    IF EXISTS (SELECT FROM pg_settings WHERE source = 'session')
        THEN RAISE 'changed: %', (SELECT string_agg(name, ', ') FROM pg_settings WHERE source = 'session'); END IF;
END $$"""


class Pooled(NamedTuple):
    """A pooler and the URL of an empty schema through it."""

    pooler: Pooler
    url: str


@pytest.fixture
def pooled(started: StartedServer, postgres_url: str) -> Iterator[Pooled]:
    with pooling(started.socket_folder) as (pooler, folder):
        yield Pooled(pooler, postgres_url.replace(str(started.socket_folder), str(folder)))


@pytest.mark.slow
@pytest.mark.parametrize("check", SAVER_CHECKS, ids=lambda check: check.title)
async def test_a_saver_keeps_every_promise(pooled: Pooled, check: Check) -> None:
    async with PostgresSaver(pooled.url, transaction_pooler=True) as saver:
        await check(saver)
    assert pooled.pooler.moves > 0


@pytest.mark.slow
@pytest.mark.parametrize("check", STORE_CHECKS, ids=lambda check: check.title)
async def test_a_store_keeps_every_promise(pooled: Pooled, check: Check) -> None:
    async with PostgresStore(pooled.url, transaction_pooler=True) as store:
        await check(store)
    assert pooled.pooler.moves > 0


async def test_a_search_by_meaning(pooled: Pooled) -> None:
    async with PostgresStore(pooled.url, transaction_pooler=True, index=INDEX) as store:
        await store.aput(("a",), "k", {"text": "one"})
        await store.aput(("a",), "l", {"text": "three hundred"})
        found = await store.asearch(("a",), query="two", filter={"text": "one"})
        assert [item.key for item in found] == ["k"]


async def test_many_open_it_at_once_and_run(pooled: Pooled, postgres: Server) -> None:
    """Whoever migrates holds a lock, which must not stay behind in a session that others get."""

    async def run(name: str) -> None:
        async with PostgresSaver(pooled.url, transaction_pooler=True) as saver:
            done = await chain(saver, 5).ainvoke({"trail": []}, thread(name), durability="sync")
            assert done["trail"] == list(range(5))

    async with anyio.create_task_group() as nursery:
        for number in range(6):
            nursery.start_soon(run, f"{number}")
    held = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"
    assert postgres.rows(held) == [(0,)]


async def test_nothing_is_left_in_the_sessions(pooled: Pooled) -> None:
    """No named statement, and no setting that the next client of the session would meet."""
    async with (
        PostgresSaver(pooled.url, transaction_pooler=True) as saver,
        PostgresStore(pooled.url, transaction_pooler=True, index=INDEX, ttl={"default_ttl": 5}) as store,
    ):
        await store.aput(("a",), "k", {"text": "one"})
        assert len(await store.asearch(("a",), query="two", filter={"text": "one"})) == 1
        assert len(await store.alist_namespaces()) == 1
        await store.asweep_ttl()
        for number in range(20):
            where = await put(saver, f"{number:02}", {"a": [number]})
            await saver.aput_writes(where, [("a", [number])], "task")
        await saver.aprune(["t"])
        backend: Any = saver._backend

        async def require_nothing(session: Any) -> None:
            await session.script(NOTHING_LEFT)  # in no transaction, so each time in another session

        for _ in range(8):
            await backend._database.read(require_nothing)
        assert [one.checkpoint["id"] async for one in saver.alist(config())] == ["19"]


async def test_without_the_switch_it_does_not_work(pooled: Pooled) -> None:
    """As the sessions are not what a driver that prepares statements thinks they are: so the tests above can fail."""
    with pytest.raises(PersistenceError, match="set transaction_pooler=True"):
        async with PostgresSaver(pooled.url, limits=Limits(attempts=2, first_delay=0.001)) as saver:
            for number in range(20):
                await put(saver, f"{number:02}", {"a": [number]})
                await saver.aget_tuple(config())
