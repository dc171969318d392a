"""PostgresStore beyond what every store must do: many writers, its index, its narrowing, its refusals, its healing."""

from __future__ import annotations

import decimal
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from persistence.errors import BackendError, BackendOpenError, PersistenceClosedError
from persistence.postgres import AsyncPostgresStore, PostgresSaver, PostgresStore
from persistence.postgres.narrowing import Values, narrowed, projection
from persistence.stores.filters import compiled
from runtime.store import GetOp, PutOp
from tests.persistence.backends.places import END_ALL
from tests.persistence.writer.samples import config, put

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.persistence.postgres.proxy import Wire
    from tests.persistence.postgres.server import Server

pytestmark = pytest.mark.anyio
NS = ("users", "Ada")


def embed(texts: list[str]) -> list[list[float]]:
    return [[float(part) for part in text.split(",")] for text in texts]


INDEX: Any = {"dims": 3, "embed": embed, "fields": ["at"]}


async def test_it_stands_beside_a_saver(postgres_url: str) -> None:
    assert issubclass(AsyncPostgresStore, PostgresStore)
    async with (
        PostgresSaver.from_conn_string(postgres_url) as saver,
        PostgresStore.from_conn_string(postgres_url, pool_size=2) as store,
    ):
        await store.asetup()
        await put(saver, "1", {"a": [1]})
        await store.aput(NS, "k", {"text": "a\0b\ue000"})
        assert await saver.aget_tuple(config()) is not None
        assert [item.key for item in await store.asearch(("users",), filter={"text": "a\0b\ue000"})] == ["k"]
        assert await store.asearch(("users",), filter={"text": "ab"}) == []


def test_the_blocking_door(postgres_url: str) -> None:
    PostgresStore(postgres_url).setup()
    with PostgresStore(postgres_url) as store:
        store.setup()
        store.put(NS, "k", {"n": 1}, ttl=1)
        assert store.get(NS, "k") is not None
        assert store.sweep_ttl() == 0
    with pytest.raises(PersistenceClosedError):
        store.get(NS, "k")


async def test_many_writers_lose_nothing(postgres_url: str) -> None:
    async with PostgresStore(postgres_url) as first, PostgresStore(postgres_url) as second:
        async with anyio.create_task_group() as nursery:
            for number in range(40):
                for store in (first, second):
                    ops = [PutOp(NS, f"{number % 7}", {"n": number}), PutOp(NS, f"{number % 5 + 2}", {"n": number})]
                    nursery.start_soon(store.abatch, ops)
        assert {item.key for item in await first.asearch(NS, limit=20)} == {f"{number}" for number in range(7)}


async def test_what_is_refused_fails_alone(postgres: Server, postgres_url: str) -> None:
    outcomes: dict[int, str] = {}
    async with PostgresStore(postgres_url) as store:
        postgres.rows("ALTER TABLE store ADD CONSTRAINT not_this CHECK (key <> '3')", url=postgres_url)

        async def write(number: int) -> None:
            try:
                await store.aput(NS, f"{number}", {"n": number})
                outcomes[number] = "stored"
            except BackendError as error:
                outcomes[number] = "not_this" if "not_this" in str(error) else "?"

        async with anyio.create_task_group() as nursery:
            for number in range(6):
                nursery.start_soon(write, number)
        assert outcomes == {number: "not_this" if number == 3 else "stored" for number in range(6)}
        assert len(await store.asearch(NS)) == 5


async def test_cancelled_puts_are_done_or_not_and_leave_nothing(postgres: Server, postgres_url: str) -> None:
    async with PostgresStore(postgres_url, pool_size=2) as store:
        for number in range(40):
            with anyio.CancelScope() as scope:
                async with anyio.create_task_group() as nursery:
                    nursery.start_soon(store.aput, NS, f"{number}", {"n": number})
                    nursery.start_soon(store.aget, NS, "0")
                    for _ in range(number % 10):
                        await anyio.lowlevel.checkpoint()
                    scope.cancel()
        assert await store.abatch([GetOp(NS, "none"), PutOp(NS, "last", {})]) == [None, None]
        left = "SELECT count(*) FROM pg_stat_activity WHERE state LIKE 'idle in transaction%'"
        assert postgres.rows(left) == [(0,)]


async def test_sessions_that_were_ended_are_replaced(postgres: Server, postgres_url: str) -> None:
    async with PostgresStore(postgres_url) as store:
        for number in range(5):
            await store.aput(NS, f"{number}", {"n": number})
            await anyio.to_thread.run_sync(postgres.rows, END_ALL)
            if number % 2:
                assert len(await store.asearch(NS)) == number + 1
        assert len(await store.asearch(NS)) == 5


async def test_a_batch_of_puts_is_one_round_trip(wired: tuple[Wire, str]) -> None:
    wire, url = wired
    async with PostgresStore(url) as store:
        await store.abatch([PutOp(NS, "k", {"n": 0})])
        await store.abatch([GetOp(NS, "k")])
        before = wire.answers
        await store.abatch([PutOp(NS, f"{number}", {"n": number}) for number in range(100)])
        assert wire.answers == before + 1
        found = await store.abatch([GetOp(NS, f"{number}") for number in range(100)])
        assert wire.answers == before + 2
        assert [item.value for item in found] == [{"n": number} for number in range(100)]  # type: ignore[union-attr]


async def test_behind_a_transaction_pooler(postgres_url: str) -> None:
    async with PostgresStore(postgres_url, transaction_pooler=True, index=INDEX) as store:
        await store.aput(NS, "k", {"at": "1,0,0"})
        found = await store.asearch(NS, query="1,0,0", filter={"at": "1,0,0"})
        assert [(item.key, item.score) for item in found] == [("k", 1.0)]


@pytest.mark.slow
async def test_a_large_store_is_searched_in_its_index(postgres: Server, postgres_url: str) -> None:
    """The nearest of thousands, also within a small namespace, and the plan says how."""
    async with PostgresStore(postgres_url, index=INDEX) as store:
        for start in range(0, 4000, 500):
            await store.abatch(
                [
                    PutOp(("many", f"{number % 1000}"), f"{number}", {"at": f"{number % 97},{number % 89},{number}"})
                    for number in range(start, start + 500)
                ]
            )
        postgres.rows("ANALYZE store_vectors", url=postgres_url)
        postgres.rows("ANALYZE store", url=postgres_url)
        found = await store.asearch(("many",), query="0,0,1", limit=5)
        assert len(found) == 5
        assert all(item.score is not None and item.score > 0.999 for item in found)
        inside = await store.asearch(("many", "7"), query="1,1,1", limit=10)
        assert {item.key for item in inside} == {"7", "1007", "2007", "3007"}
        filtered = await store.asearch(("many",), query="1,1,1", limit=2, filter={"at": "7,7,7"})
        assert [item.key for item in filtered] == ["7"]
        plan = """EXPLAIN SELECT item FROM store_vectors WHERE dims = 3
            ORDER BY embedding::vector(3) <#> '[1,0,0]'::vector(3) LIMIT 5"""
        assert any("store_vectors_3" in row[0] for row in postgres.rows(plan, url=postgres_url))


async def test_more_dimensions_than_an_index_takes(postgres_url: str) -> None:
    def wide(texts: list[str]) -> list[list[float]]:
        return [[float(len(text)), *[1.0] * 2999] for text in texts]

    async with PostgresStore(postgres_url, index={"dims": 3000, "embed": wide, "fields": ["text"]}) as store:
        await store.aput(NS, "k", {"text": "x"})
        assert (await store.asearch(NS, query="x"))[0].score == pytest.approx(1, abs=1e-4)


@pytest.mark.parametrize("table", ["store", "store_migrations", "store_vectors"])
async def test_tables_of_others_are_refused(postgres: Server, postgres_url: str, table: str) -> None:
    postgres.rows(f"CREATE TABLE {table} (prefix text)", url=postgres_url)
    with pytest.raises(BackendOpenError, match="belongs to another program"):
        await PostgresStore(postgres_url, index=INDEX).__aenter__()


keys = st.sampled_from(["a", "b", "\0", "\ue000", "$x", "1"])
numbers = st.sampled_from([0, 1, -1, 2, 2**53, 2**53 + 1, 10**16, 0.5, -0.0, 1.0, 1e16, 1e300, float("inf")])
plain = st.none() | st.booleans() | numbers | st.sampled_from(["", "1", "0", "x", "1e16", "\0", "\ue000"])
others = st.sampled_from([decimal.Decimal(1), [1], (1,), {"a": 1}, b"x", {}])
documents = st.dictionaries(keys, plain | others, max_size=4)
operands = st.sampled_from([0, 1, 0.5, -1, 2**53, 1e16, "1", "0.5", True])
conditions = st.dictionaries(
    keys,
    plain
    | others
    | st.dictionaries(st.sampled_from(["$gt", "$gte", "$lt", "$lte"]), operands, min_size=1, max_size=2)
    | st.dictionaries(st.sampled_from(["$eq", "$ne"]), plain | others, min_size=1),
    max_size=2,
)


@pytest.fixture(scope="module")
def schema(postgres: Server) -> Iterator[str]:
    with postgres.schema() as url:
        yield url


@settings(max_examples=60, deadline=None)
@given(stored=st.lists(documents, min_size=1, max_size=20), wanted=conditions)
def test_narrowing_leaves_out_nothing_that_passes(
    postgres: Server, stored: list[dict[str, Any]], wanted: dict[str, Any]
) -> None:
    test = compiled(wanted) or (lambda _: True)
    seen = [projection(document) for document in stored]
    values = Values([plain for plain, _ in seen], [opaque for _, opaque in seen])
    where = " AND ".join(narrowed(wanted, values)) or "true"
    sql = f"""SELECT s.position::integer FROM (SELECT position, p::jsonb AS plain, o::jsonb AS opaque
        FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS u (p, o, position)) AS s WHERE {where}"""
    passed = {position - 1 for (position,) in postgres.rows(sql, *values.held)}
    assert passed >= {place for place, document in enumerate(stored) if test(document)}


async def test_narrowing_does_narrow(postgres: Server) -> None:
    documents = [{"n": number, "s": f"{number}", "none": None} for number in range(10)]
    seen = [projection(document) for document in documents]
    for wanted, count in (
        ({"n": 3}, 1),
        ({"s": "3"}, 1),
        ({"n": {"$gte": 7}}, 3),
        ({"n": {"$eq": 1}}, 1),
        ({"none": None, "n": 0}, 1),
        ({"absent": None}, 10),
        ({"absent": 1}, 0),
        ({"none": 1}, 0),
    ):
        values = Values([plain for plain, _ in seen], [opaque for _, opaque in seen])
        where = " AND ".join(narrowed(wanted, values))
        sql = f"""SELECT count(*) FROM (SELECT p::jsonb AS plain, o::jsonb AS opaque
            FROM unnest($1::text[], $2::text[]) AS u (p, o)) AS s WHERE {where}"""
        assert postgres.rows(sql, *values.held) == [(count,)], wanted
