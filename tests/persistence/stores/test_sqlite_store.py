"""What only a store in a file can get wrong: opening, sharing, transactions, faults."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio import from_thread, to_thread

from persistence.errors import (
    BackendError,
    CorruptDataError,
    PersistenceClosedError,
    PersistenceError,
    SaverLoopError,
    TransientBackendError,
)
from persistence.sqlite import SqliteStore
from runtime.store import PutOp, SearchOp
from tests.persistence.stores.clocks import Clock
from tests.persistence.stores.files import ask, change, locked

pytestmark = pytest.mark.anyio

NS = ("a", "b")


async def in_transaction(store: SqliteStore) -> bool:
    writer = store._writer
    assert writer is not None
    return await store._cross(writer.run, lambda raw: raw.in_transaction)


async def test_a_batch_that_the_database_refuses_leaves_nothing(path: Path) -> None:
    async with SqliteStore(path) as store:
        await store.aput(NS, "old", {"n": 1})
        change(
            path,
            "CREATE TRIGGER guard BEFORE INSERT ON store WHEN NEW.key = 'bad' "
            "BEGIN SELECT RAISE(ABORT, 'not this one'); END",
        )
        batch = [PutOp(NS, "old", {"n": 2}), PutOp(NS, "gone", None), PutOp(NS, "new", {}), PutOp(NS, "bad", {})]
        with pytest.raises(BackendError, match="nothing was saved.*not this one"):
            await store.abatch(batch)
        assert [(item.key, item.value) for item in await store.asearch(())] == [("old", {"n": 1})]
        assert not await in_transaction(store)
        await store.abatch(batch[:-1])
        assert [(item.key, item.value) for item in await store.asearch(())] == [("old", {"n": 2}), ("new", {})]


async def test_those_who_share_a_transaction_do_not_share_their_failures(path: Path) -> None:
    async with SqliteStore(path) as store:
        change(
            path,
            "CREATE TRIGGER guard BEFORE INSERT ON store WHEN NEW.key = 'bad' "
            "BEGIN SELECT RAISE(ABORT, 'not this one'); END",
        )
        failed: list[tuple[int, bool]] = []

        async def work(number: int) -> None:
            bad = number % 5 == 0
            try:
                await store.abatch([PutOp(NS, f"{number}", {}), PutOp(NS, "bad" if bad else f"more {number}", {})])
            except BackendError as error:
                failed.append((number, "not this one" in str(error)))

        async with anyio.create_task_group() as nursery:
            for number in range(20):
                nursery.start_soon(work, number)
        assert store.statistics()[1].groups < 20
        assert sorted(failed) == [(number, True) for number in (0, 5, 10, 15)]
        assert len(await store.asearch((), limit=100)) == 32


async def test_what_undoes_a_transaction_fails_all_who_share_it(path: Path) -> None:
    async with SqliteStore(path) as store:
        change(
            path,
            "CREATE TRIGGER guard BEFORE INSERT ON store WHEN NEW.key = '5' "
            "BEGIN SELECT RAISE(ROLLBACK, 'everything is off'); END",
        )
        failed: list[BackendError] = []

        async def work(number: int) -> None:
            try:
                await store.aput(NS, f"{number}", {})
            except BackendError as error:
                failed.append(error)

        async with anyio.create_task_group() as nursery:
            with locked(path):
                for number in range(10):
                    nursery.start_soon(work, number)
                await anyio.wait_all_tasks_blocked()
        assert {str(error).partition(" (")[0] for error in failed} == {f"{path}: nothing was saved: everything is off"}
        assert len(set(map(id, failed))) == len(failed)
        assert len(await store.asearch((), limit=100)) == 10 - len(failed)
        assert not await in_transaction(store)


async def test_a_full_disk(path: Path) -> None:
    async with SqliteStore(path) as store:
        await store.aput(NS, "small", {"n": 1})
        writer = store._writer
        assert writer is not None
        await store._cross(writer.run, lambda raw: raw.execute("PRAGMA max_page_count = 12").fetchone())
        with pytest.raises(BackendError, match="disk is full: free space"):
            await store.abatch([PutOp(NS, "other", {}), PutOp(NS, "large", {"data": b"x" * 500_000})])
        assert [item.key for item in await store.asearch(())] == ["small"]
        assert not await in_transaction(store)


async def test_a_file_that_another_program_has_locked(path: Path) -> None:
    async with SqliteStore(path, busy_timeout=0.02) as store:
        await store.aput(NS, "k", {"n": 1})
        with locked(path):
            with pytest.raises(TransientBackendError, match="locked by another connection"):
                await store.aput(NS, "k", {"n": 2})
            item = await store.aget(NS, "k")
            assert item is not None
            assert item.value == {"n": 1}
        await store.aput(NS, "k", {"n": 3})


async def test_a_cancelled_put_is_done_and_leaves_no_open_transaction(path: Path) -> None:
    async with SqliteStore(path) as store:
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as nursery:
                with locked(path):
                    nursery.start_soon(store.aput, NS, "k", {"n": 1})
                    await anyio.wait_all_tasks_blocked()
                    scope.cancel()
        assert not await in_transaction(store)
        assert await store.aget(NS, "k") is not None


async def test_a_put_that_is_cancelled_while_it_is_embedded_is_not_done(path: Path) -> None:
    async def embed(texts: list[str]) -> list[list[float]]:
        await anyio.sleep_forever()
        raise AssertionError

    async with SqliteStore(path, index={"dims": 2, "embed": embed}) as store:
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as nursery:
                nursery.start_soon(store.aput, NS, "k", {"n": 1})
                await anyio.wait_all_tasks_blocked()
                scope.cancel()
        assert await store.asearch(()) == []
        assert not await in_transaction(store)


async def test_a_cancelled_read_harms_nobody(path: Path) -> None:
    async with SqliteStore(path) as store:
        await store.aput(NS, "k", {"n": 1})
        for _ in range(5):
            with anyio.CancelScope() as scope:
                async with anyio.create_task_group() as nursery:
                    for _ in range(3):
                        nursery.start_soon(store.aget, NS, "k")
                    scope.cancel()
            assert await store.aget(NS, "k") is not None


async def test_closing_waits_for_what_was_asked(path: Path) -> None:
    async with anyio.create_task_group() as nursery:
        async with SqliteStore(path) as store:
            for number in range(10):
                nursery.start_soon(store.aput, NS, f"{number}", {})
            await anyio.wait_all_tasks_blocked()
        with pytest.raises(PersistenceClosedError, match="not open"):
            await store.aget(NS, "1")
    assert ask(path, "SELECT count(*) FROM store") == [(10,)]


async def test_a_cancelled_program_still_closes(path: Path) -> None:
    with anyio.CancelScope() as scope:
        async with SqliteStore(path) as store:
            await store.aput(NS, "k", {})
            await store.astart_ttl_sweeper(60)
            scope.cancel()
            await anyio.sleep_forever()
    assert repr(store).endswith("closed>")
    assert not path.with_name(path.name + "-wal").exists()


async def test_an_error_inside_the_with_comes_out_as_it_is(path: Path) -> None:
    with pytest.raises(KeyError):
        async with SqliteStore(path) as store:
            await store.aput(NS, "k", {})
            raise KeyError
    assert ask(path, "SELECT count(*) FROM store") == [(1,)]


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE store SET value = x'00' WHERE key = 'bad'",
        "UPDATE store SET type = 'pickle' WHERE key = 'bad'",
        "UPDATE store SET created_at = 'yesterday' WHERE key = 'bad'",
    ],
)
async def test_a_damaged_item_is_an_error_to_those_who_read_it(path: Path, damage: str) -> None:
    async with SqliteStore(path) as store:
        for key in ("good", "bad", "fine"):
            await store.aput(NS, key, {"n": 1})
        change(path, damage)
        ends: dict[str, Any] = {}

        async def read(key: str) -> None:
            try:
                ends[key] = await store.aget(NS, key)
            except PersistenceError as error:
                ends[key] = error

        async with anyio.create_task_group() as nursery:
            for key in ("good", "bad", "fine"):
                nursery.start_soon(read, key)
        assert isinstance(ends["bad"], PersistenceError)
        assert ends["good"].value == ends["fine"].value == {"n": 1}
        with pytest.raises(PersistenceError):
            await store.abatch([SearchOp(()), PutOp(NS, "good", {"n": 2})])
        item = await store.aget(NS, "good")
        assert item is not None
        assert item.value == {"n": 1}
        await store.adelete(NS, "bad")
        await store.aput(NS, "bad", {"n": 2})
        assert [item.key for item in await store.asearch(())] == ["good", "fine", "bad"]


async def test_damaged_vectors_and_values_that_are_no_dicts(path: Path) -> None:
    index: Any = {"dims": 2, "embed": lambda texts: [[1.0, 2.0]] * len(texts)}
    async with SqliteStore(path, index=index) as store:
        await store.aput(NS, "k", {})
        change(path, "UPDATE store_vectors SET vectors = x'0011'")
        with pytest.raises(CorruptDataError, match="2 bytes long: damaged"):
            await store.asearch((), query="q")
        change(path, "UPDATE store_vectors SET type = 'f16'")
        with pytest.raises(CorruptDataError, match="stored as 'f16'"):
            await store.asearch((), query="q")
        change(path, "UPDATE store SET type = 'null', value = x''")
        with pytest.raises(CorruptDataError, match="holds a NoneType, not a dict"):
            await store.aget(NS, "k")


async def test_a_search_that_failed_half_way_does_not_keep_later_reads_in_the_past(path: Path) -> None:
    index: Any = {"dims": 1, "embed": lambda texts: [[1.0]] * len(texts)}
    async with SqliteStore(path, index=index) as store:
        for number in range(5):
            await store.aput(NS, f"{number}", {"n": number})
        change(path, "UPDATE store SET value = x'00' WHERE key = '1'")
        for query in ("", "q"):
            with pytest.raises(CorruptDataError) as held:
                await store.asearch(NS, query=query, filter={"n": 9})
            await store.aput(NS, f"after {query}", {"n": 9})
            assert await store.aget(NS, f"after {query}") is not None
            assert held.value.__traceback__ is not None


async def test_vectors_go_with_their_item(path: Path, clock: Clock) -> None:
    index: Any = {"dims": 2, "embed": lambda texts: [[1.0, 2.0]] * len(texts)}
    async with SqliteStore(path, index=index, clock=clock) as store:
        await store.aput(NS, "deleted", {})
        await store.aput(NS, "expired", {}, ttl=1)
        await store.aput(NS, "anew", {}, ttl=1)
        await store.aput(NS, "kept", {})
        clock.advance(minutes=1)
        await store.adelete(NS, "deleted")
        await store.aput(NS, "anew", {}, index=False)
        await store.asweep_ttl()
        assert ask(path, "SELECT key FROM store JOIN store_vectors ON item = id") == [("kept",)]
        assert ask(path, "SELECT count(*) FROM store_vectors") == [(1,)]


async def test_many_at_once_share_transactions(path: Path) -> None:
    async with SqliteStore(path) as store:
        async with anyio.create_task_group() as nursery:
            for number in range(200):
                nursery.start_soon(store.aput, NS, f"{number}", {})
        async with anyio.create_task_group() as nursery:
            for number in range(200):
                nursery.start_soon(store.aget, NS, f"{number}")
        assert [(lane.name, lane.works, lane.groups < 20) for lane in store.statistics()] == [
            ("reads", 200, True),
            ("writes", 200, True),
        ]
        assert len(await store.asearch((), limit=1000)) == 200


async def test_a_store_belongs_to_the_loop_that_opened_it(path: Path) -> None:
    async with SqliteStore(path) as store:

        def elsewhere() -> None:
            with from_thread.start_blocking_portal() as portal:
                portal.call(store.aget, NS, "k")

        with pytest.raises(SaverLoopError, match="open on another thread"):
            await to_thread.run_sync(elsewhere)


async def test_a_closed_store_says_so(path: Path) -> None:
    store = SqliteStore(path)
    for ask_it in (store.aget(NS, "k"), store.asweep_ttl(), store.asetup(), store.astart_ttl_sweeper()):
        with pytest.raises(PersistenceClosedError, match="not open: use it inside 'async with store:'"):
            await ask_it
    with pytest.raises(PersistenceClosedError, match="not open"):
        await to_thread.run_sync(store.get, NS, "k")
    assert not path.exists()


async def test_a_forgotten_store_says_so(path: Path) -> None:
    store = SqliteStore(path)
    await store.__aenter__()
    finalizer: Any = store._finalizer
    with pytest.warns(ResourceWarning, match="memory.sqlite, open> was not closed"):
        finalizer()
    await store.__aexit__(None, None, None)
