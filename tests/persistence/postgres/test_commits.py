"""Commits to PostgreSQL: one round trip each, never half done, fenced between processes, cancelled without a trace."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import asyncpg
import pytest

from persistence.errors import BackendError, CorruptDataError
from persistence.postgres import PostgresSaver
from persistence.writer.limits import Limits
from tests.persistence.writer.samples import config, put, unit

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.persistence.postgres.proxy import Wire
    from tests.persistence.postgres.server import Server

pytestmark = pytest.mark.anyio
TABLES = ("checkpoints", "checkpoint_writes", "checkpoint_blobs")


@pytest.fixture
async def saver(postgres_url: str) -> AsyncIterator[PostgresSaver]:
    async with PostgresSaver(postgres_url, limits=Limits(attempts=3, first_delay=0.001)) as opened:
        yield opened


def counts(postgres: Server, url: str) -> list[int]:
    return [postgres.rows(f"SELECT count(*) FROM {table}", url=url)[0][0] for table in TABLES]


async def test_a_batch_is_one_round_trip_and_so_is_a_read(wired: tuple[Wire, str]) -> None:
    wire, url = wired
    async with PostgresSaver(url) as saver:
        await put(saver, "0", {"a": [0], "b": 1})
        await saver.aget_tuple(config())
        connections = wire.accepted
        for number in range(1, 6):
            before = wire.answers
            one = replace(unit("t", f"{number}", parent=f"{number - 1}", value=[number]), expected_head=f"{number - 1}")
            one.writes += unit(writes_to=f"{number - 1}", value=[number]).writes
            await saver.send_nowait(saver.encode(one)).wait()
            assert wire.answers == before + 1
        before = wire.answers
        receipts = [saver.send_nowait(saver.encode(unit(f"t{number}", "1", value=[1]))) for number in range(100)]
        for receipt in receipts:
            await receipt.wait()
        assert wire.answers == before + saver.statistics().batches - 6
        assert wire.answers <= before + 2
        before = wire.answers
        stored = await saver.aget_tuple(config())
        assert stored is not None
        assert stored.checkpoint["id"] == "5"
        assert wire.answers == before + 1
        assert wire.accepted == connections


async def test_heads_cannot_be_compared_where_they_would_be_stale(postgres_url: str, postgres: Server) -> None:
    """A pool of one's own may start its sessions in another isolation level."""
    settings = {"default_transaction_isolation": "repeatable read"}
    async with PostgresSaver(postgres_url, connect_arguments={"server_settings": settings}) as saver:
        await put(saver, "1", {"a": 1})
        with pytest.raises(BackendError, match="heads cannot be compared in REPEATABLE READ: use READ COMMITTED"):
            await saver._backend.commit([saver.encode(replace(unit("t", "2"), expected_head="1"))])


async def test_a_unit_is_stored_whole_or_not_at_all(saver: PostgresSaver, postgres: Server, postgres_url: str) -> None:
    """The last row of the transaction is the one that fails."""
    refuse = "ALTER TABLE checkpoint_writes ADD CONSTRAINT not_this_one CHECK (channel <> 'refused')"
    postgres.rows(refuse, url=postgres_url)
    good = saver.send_nowait(saver.encode(unit("a", "1", writes_to="0", value=["x"])))
    bad_unit = unit("b", "1", writes_to="0", value=["x"])
    bad_unit.writes[0].writes[:] = [("refused", 1)]
    bad = saver.send_nowait(saver.encode(bad_unit))
    other = saver.send_nowait(saver.encode(unit("c", "1", writes_to="0", value=["x"])))
    await good.wait()
    await other.wait()
    with pytest.raises(BackendError, match=r"nothing was saved.*not_this_one"):
        await bad.wait()
    assert counts(postgres, postgres_url) == [2, 2, 2]


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        ('UPDATE checkpoints SET checkpoint = checkpoint || \'{"ts": "1999"}\'', "checksum"),
        ("UPDATE checkpoints SET checkpoint = '[]'", "checksum"),
        ('UPDATE checkpoints SET checkpoint = checkpoint || \'{"rows": 1, "lineage": 2}\'', "checksum"),
        ("UPDATE checkpoints SET type = NULL", "checksum"),
        ("UPDATE checkpoint_blobs SET blob = substr(blob, 1, length(blob) - 1)", "channel 'a' cannot be read"),
        ("UPDATE checkpoint_blobs SET blob = ''", "channel 'a' cannot be read"),
        ("DELETE FROM checkpoint_blobs", "channel 'a' has no stored value"),
        ("UPDATE checkpoint_writes SET blob = '\\x00000000c0'", "write of task job to channel 'a' cannot be read"),
    ],
)
async def test_damage_is_named_and_confined(
    saver: PostgresSaver, postgres: Server, postgres_url: str, damage: str, words: str
) -> None:
    for number in range(1, 4):
        where = await put(saver, f"{number}", {"a": [number]})
        await saver.aput_writes(where, [("a", [number])], "job")
    key = "version LIKE '2.%'" if "blobs" in damage else "checkpoint_id = '2'"
    postgres.rows(f"{damage} WHERE {key}", url=postgres_url)
    with pytest.raises(CorruptDataError, match=f"Checkpoint 2 of thread 't', namespace ''.*{words}"):
        await saver.aget_tuple(config("t", "2"))
    for good in ("1", "3"):
        stored = await saver.aget_tuple(config("t", good))
        assert stored is not None
        assert stored.checkpoint["channel_values"] == {"a": [int(good)]}
    reached: list[str] = []
    with pytest.raises(CorruptDataError):
        async for one in saver.alist(config(), filter={"source": "loop"}):
            reached.append(one.checkpoint["id"])
    assert reached == ["3"]


async def test_tables_that_were_dropped_under_it_are_named_and_made_anew(
    saver: PostgresSaver, postgres: Server, postgres_url: str
) -> None:
    for table in (*TABLES, "checkpoint_migrations"):
        postgres.rows(f"DROP TABLE {table}", url=postgres_url)
    with pytest.raises(BackendError, match=r'cannot be read: relation "checkpoints" does not exist.*asetup\(\)'):
        await saver.aget_tuple(config())
    with pytest.raises(BackendError, match=r"nothing was saved: .*does not exist.*asetup\(\)"):
        await put(saver, "2", {"a": [1]})


async def test_names_that_are_too_long_for_an_index_are_refused_alone(saver: PostgresSaver) -> None:
    name = "".join(chr(0x4E00 + number * 7 % 20000) for number in range(3000))
    with pytest.raises(BackendError, match=r"nothing was saved.*shorten it"):
        await put(saver, "1", {"a": [1]}, thread_id=name)
    await put(saver, "1", {"a": [1]})


async def test_the_tables_can_be_asked_as_they_are_documented(saver: PostgresSaver, postgres_url: str) -> None:
    """The queries that explain LangGraph's tables answer here too."""
    where = await put(saver, "1", {"messages": ["hello"], "n": 1})
    await put(saver, "2", {"messages": ["hello"], "n": 2}, parent="1", step=1)
    await saver.aput_writes(where, [("messages", ["hello"])], "task")

    async def ask(sql: str) -> list[tuple[Any, ...]]:
        connection = await asyncpg.connect(postgres_url)
        try:
            return [tuple(row) for row in await connection.fetch(sql)]
        finally:
            await connection.close()

    backend: Any = saver._backend
    call = backend._database._crossing.call
    counted = "SELECT thread_id, count(*) FROM checkpoints WHERE thread_id = 't' GROUP BY thread_id"
    assert await call(ask, counted) == [("t", 2)]
    listed = """SELECT checkpoint_id, parent_checkpoint_id, checkpoint_ns, metadata ->> 'step' FROM checkpoints
        WHERE thread_id = 't' ORDER BY metadata"""
    assert await call(ask, listed) == [("1", None, "", "0"), ("2", "1", "", "1")]
    joined = """SELECT c.checkpoint_id, c.checkpoint_ns, cw.channel, cw.task_id, cw.type
        FROM checkpoints c JOIN checkpoint_writes cw ON c.thread_id = cw.thread_id
        AND c.checkpoint_ns = cw.checkpoint_ns AND c.checkpoint_id = cw.checkpoint_id
        WHERE c.thread_id = 't' AND cw.channel = 'messages' ORDER BY cw.idx"""
    assert [row[:4] for row in await call(ask, joined)] == [("1", "", "messages", "task")]
    newest = """SELECT checkpoint_id, checkpoint -> 'channel_values' ->> 'n' FROM checkpoints
        WHERE thread_id = 't' ORDER BY metadata DESC LIMIT 1"""
    assert await call(ask, newest) == [("2", "2")]


DOCUMENTED = {
    "checkpoints": """
        thread_id text NO | checkpoint_ns text NO ''::text | checkpoint_id text NO | parent_checkpoint_id text YES
        | type text YES | checkpoint jsonb NO | metadata jsonb NO '{}'::jsonb
        KEY thread_id | checkpoint_ns | checkpoint_id""",
    "checkpoint_writes": """
        thread_id text NO | checkpoint_ns text NO ''::text | checkpoint_id text NO | task_id text NO | idx integer NO
        | channel text NO | type text YES | blob bytea NO | task_path text NO ''::text
        KEY thread_id | checkpoint_ns | checkpoint_id | task_id | idx""",
    "checkpoint_blobs": """
        thread_id text NO | checkpoint_ns text NO ''::text | channel text NO | version text NO | type text NO
        | blob bytea YES
        KEY thread_id | checkpoint_ns | channel | version""",
    "checkpoint_migrations": "v integer NO KEY v",
}
COLUMNS = """SELECT concat_ws(' ', column_name, data_type, is_nullable, column_default) FROM information_schema.columns
    WHERE table_schema = current_schema() AND table_name = $1 ORDER BY ordinal_position"""
KEY = """SELECT a.attname::text FROM pg_index AS i
    CROSS JOIN LATERAL unnest(i.indkey) WITH ORDINALITY AS k (number, place)
    JOIN pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = k.number
    WHERE i.indrelid = $1::text::regclass AND i.indisprimary ORDER BY k.place"""


@pytest.mark.parametrize("table", DOCUMENTED)
async def test_the_tables_have_the_columns_and_keys_that_are_documented(
    saver: PostgresSaver, postgres: Server, postgres_url: str, table: str
) -> None:
    """So that what is written about LangGraph's tables holds for these."""
    found = [" | ".join(row[0] for row in postgres.rows(sql, table, url=postgres_url)) for sql in (COLUMNS, KEY)]
    assert " KEY ".join(found) == " ".join(DOCUMENTED[table].split())
