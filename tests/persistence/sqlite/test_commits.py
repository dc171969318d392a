"""Commits to SQLite: cancelled, locked, full, shared; never half done, never acknowledged too early."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest

from persistence.errors import (
    BackendError,
    CorruptDataError,
    PersistenceClosedError,
    TransientBackendError,
)
from persistence.sqlite import SqliteSaver, opening, writing
from persistence.sqlite.faults import described, read_fault, write_fault
from persistence.writer.bridge import BRIDGE
from persistence.writer.limits import Limits
from tests.persistence.writer.samples import config, put, unit

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

pytestmark = pytest.mark.anyio
TABLES = ("checkpoints", "checkpoint_writes", "checkpoint_blobs")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "threads.sqlite"


@pytest.fixture
async def saver(path: Path) -> AsyncIterator[SqliteSaver]:
    async with SqliteSaver(path, busy_timeout=0.2, limits=Limits(attempts=2, first_delay=0.001)) as opened:
        yield opened


async def on_writer(saver: SqliteSaver, work: Any) -> Any:
    backend: Any = saver._backend
    return await backend._cross(backend._writer.run, work)


def count(path: Path, table: str) -> int:
    raw = sqlite3.connect(path)
    try:
        return int(raw.execute(f"SELECT count(*) FROM {table}").fetchone()[0])
    finally:
        raw.close()


def write_from_outside(path: Path) -> None:
    """Take the write lock from a second connection, at once."""
    raw = sqlite3.connect(path, timeout=0.5, isolation_level=None)
    try:
        raw.execute("BEGIN IMMEDIATE")
        raw.execute("ROLLBACK")
    finally:
        raw.close()


async def test_cancelled_puts_never_leave_a_transaction_open(saver: SqliteSaver, path: Path) -> None:
    for number in range(48):
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as nursery:
                nursery.start_soon(_put_many, saver, number)
                for _ in range(number % 8):
                    await anyio.lowlevel.checkpoint()
                scope.cancel()
        assert not await on_writer(saver, lambda raw: raw.in_transaction)
        await anyio.to_thread.run_sync(write_from_outside, path)
    stored = [one async for one in saver.alist(config())]
    assert all(one.checkpoint["channel_values"]["a"] == [one.checkpoint["id"]] * 50 for one in stored)
    assert len(stored) == count(path, "checkpoints") == count(path, "checkpoint_blobs")


async def _put_many(saver: SqliteSaver, number: int) -> None:
    for part in range(3):
        checkpoint_id = f"{number:03}-{part}"
        await put(saver, checkpoint_id, {"a": [checkpoint_id] * 50})


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_asyncio_tasks_cancelled_at_any_tick(saver: SqliteSaver, path: Path) -> None:
    for number in range(48):
        task = asyncio.get_running_loop().create_task(put(saver, f"{number:03}", {"a": [number]}))
        for _ in range(number % 8):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        assert not await on_writer(saver, lambda raw: raw.in_transaction)
    await anyio.to_thread.run_sync(write_from_outside, path)


async def test_a_cancelled_read_leaves_no_transaction_open(saver: SqliteSaver) -> None:
    await put(saver, "1", {"a": [1]})
    backend: Any = saver._backend
    for number in range(20):
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as nursery:
                nursery.start_soon(saver.aget_tuple, config())
                for _ in range(number % 4):
                    await anyio.lowlevel.checkpoint()
                scope.cancel()
    assert not await backend._cross(backend._reader.run, lambda raw: raw.in_transaction)
    assert await saver.aget_tuple(config()) is not None


async def test_a_lock_held_elsewhere_is_waited_for(saver: SqliteSaver, path: Path) -> None:
    raw = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    raw.execute("BEGIN IMMEDIATE")
    receipt = saver.send_nowait(saver.encode(unit("t", "1")))
    assert not receipt.done
    raw.execute("COMMIT")
    raw.close()
    await receipt.wait()


async def test_a_lock_held_too_long_fails_the_unit_and_nothing_else(saver: SqliteSaver, path: Path) -> None:
    raw = sqlite3.connect(path, isolation_level=None)
    raw.execute("BEGIN IMMEDIATE")
    with pytest.raises(TransientBackendError, match="locked by another connection"):
        await put(saver, "1", {"a": [1]})
    raw.execute("ROLLBACK")
    raw.close()
    assert saver.statistics().retries == 1
    await put(saver, "2", {"a": [2]})
    assert [one.checkpoint["id"] async for one in saver.alist(None)] == ["2"]


async def test_a_full_disk_is_never_acknowledged(saver: SqliteSaver, path: Path) -> None:
    await put(saver, "1", {"a": ["small"]})
    pages = await on_writer(saver, lambda raw: raw.execute("PRAGMA page_count").fetchone()[0])
    await on_writer(saver, lambda raw: raw.execute(f"PRAGMA max_page_count = {pages + 2}").fetchone())
    with pytest.raises(BackendError, match=r"nothing was saved.*disk is full: free space"):
        await put(saver, "2", {"a": ["x" * 100_000]}, parent="1")
    assert not await on_writer(saver, lambda raw: raw.in_transaction)
    await on_writer(saver, lambda raw: raw.execute("PRAGMA max_page_count = 1000000").fetchone())
    assert [one.checkpoint["id"] async for one in saver.alist(None)] == ["1"]
    await put(saver, "2", {"a": ["x" * 100_000]}, parent="1")
    assert count(path, "checkpoints") == 2


async def test_a_unit_is_stored_whole_or_not_at_all(saver: SqliteSaver, path: Path) -> None:
    """The last row of the transaction is the one that fails."""
    await on_writer(
        saver,
        lambda raw: raw.execute(
            "CREATE TRIGGER refuse BEFORE INSERT ON checkpoint_writes WHEN new.channel = 'refused' "
            "BEGIN SELECT RAISE(ABORT, 'not this one'); END"
        ),
    )
    good = saver.send_nowait(saver.encode(unit("a", "1", writes_to="0", value=["x"])))
    bad_unit = unit("b", "1", writes_to="0", value=["x"])
    bad_unit.writes[0].writes[:] = [("refused", 1)]
    bad = saver.send_nowait(saver.encode(bad_unit))
    other = saver.send_nowait(saver.encode(unit("c", "1", writes_to="0", value=["x"])))
    await good.wait()
    await other.wait()
    with pytest.raises(BackendError, match="not this one"):
        await bad.wait()
    assert [count(path, table) for table in TABLES] == [2, 2, 2]


async def test_many_savers_and_tasks_on_one_file(path: Path) -> None:
    """Two savers of one process, a hundred puts each, none refused."""
    async with SqliteSaver(path) as first, SqliteSaver(path) as second:
        async with anyio.create_task_group() as nursery:
            for number in range(100):
                for name, saver in (("a", first), ("b", second)):
                    nursery.start_soon(_put_one, saver, f"{name}{number}")
        assert first.statistics().failures == second.statistics().failures == 0
        assert len([one async for one in first.alist(None)]) == 200


async def _put_one(saver: SqliteSaver, thread_id: str) -> None:
    await put(saver, "1", {"a": [thread_id]}, thread_id=thread_id)


async def test_a_damaged_checkpoint_spares_its_blobs_when_others_are_deleted(saver: SqliteSaver, path: Path) -> None:
    for number in range(3):
        await put(saver, f"{number}", {"a": [number]}, run_id=f"{number}")
    await on_writer(saver, lambda raw: raw.execute("UPDATE checkpoints SET checkpoint = '{' WHERE checkpoint_id = '1'"))
    await saver.adelete_for_runs(["0"])
    assert [count(path, table) for table in TABLES] == [2, 0, 3]


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        ("UPDATE checkpoints SET checkpoint = 'x' || checkpoint", "checksum"),
        ("UPDATE checkpoints SET checkpoint = CAST(x'ff7b7d' AS TEXT)", "checksum"),
        ("UPDATE checkpoints SET checkpoint = ''", "checksum"),
        ("UPDATE checkpoints SET metadata = CAST(x'ff' AS TEXT)", "checksum"),
        ("UPDATE checkpoints SET type = 'json'", "checksum"),
        ("UPDATE checkpoint_blobs SET blob = substr(blob, 1, length(blob) - 1)", "channel 'a' cannot be read"),
        ("UPDATE checkpoint_blobs SET blob = x''", "channel 'a' cannot be read"),
        ("DELETE FROM checkpoint_blobs", "channel 'a' has no stored value"),
        ("UPDATE checkpoint_writes SET blob = x'00000000c0'", "write of task job to channel 'a' cannot be read"),
    ],
)
async def test_damage_is_named_and_confined(saver: SqliteSaver, damage: str, words: str) -> None:
    for number in range(1, 4):
        where = await put(saver, f"{number}", {"a": [number]})
        await saver.aput_writes(where, [("a", [number])], "job")
    key = "version LIKE '2.%'" if "blobs" in damage else "checkpoint_id = '2'"
    await on_writer(saver, lambda raw: raw.execute(f"{damage} WHERE {key}"))
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


async def test_a_table_that_was_dropped_under_it_is_named(saver: SqliteSaver) -> None:
    await on_writer(saver, lambda raw: raw.execute("DROP TABLE checkpoint_blobs"))
    await put(saver, "1", {"a": 1})  # small values need no row
    with pytest.raises(BackendError, match=r"threads.sqlite cannot be read: no such table: checkpoint_blobs"):
        await saver.aget_tuple(config())
    with pytest.raises(BackendError, match="nothing was saved: no such table"):
        await put(saver, "2", {"a": [1]})


async def test_a_backend_that_was_closed_under_it_answers(saver: SqliteSaver) -> None:
    await saver._backend.close()
    await saver._backend.close()
    with pytest.raises(PersistenceClosedError):
        await saver.aget_tuple(config())
    with pytest.raises(PersistenceClosedError):
        await put(saver, "1", {})
    with pytest.raises(PersistenceClosedError):
        await saver.asetup()


async def test_closing_waits_for_every_thread(path: Path) -> None:
    before = set(threading.enumerate())  # idle ones of earlier tests may end meanwhile
    users = BRIDGE.users
    async with SqliteSaver(path) as saver:
        await put(saver, "1", {})
        assert set(threading.enumerate()) - before
    assert set(threading.enumerate()) <= before
    assert BRIDGE.users == users


def test_sqlite_errors_are_told_apart() -> None:
    def error(code: int | None) -> sqlite3.Error:
        found = sqlite3.OperationalError("words")
        if code is not None:
            found.sqlite_errorcode = code
            found.sqlite_errorname = "SQLITE_NAME"
        return found

    assert isinstance(write_fault(error(sqlite3.SQLITE_BUSY | (2 << 8)), "f"), TransientBackendError)
    assert type(write_fault(error(sqlite3.SQLITE_IOERR), "f")) is BackendError
    assert "disk failed" in described(error(sqlite3.SQLITE_IOERR | (4 << 8)))
    assert described(error(None)) == "words (OperationalError)"
    assert isinstance(read_fault(error(sqlite3.SQLITE_LOCKED), "f"), TransientBackendError)
    assert isinstance(read_fault(error(sqlite3.SQLITE_CORRUPT), "f"), CorruptDataError)
    assert type(read_fault(error(None), "f")) is BackendError


async def test_after_the_disk_has_failed_the_writing_connection_is_a_new_one(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However often it fails again while it is opened."""
    failing: list[sqlite3.Connection] = []
    opened, prepare, commit = 0, opening.prepare_writer, writing.commit

    def fail(connection: sqlite3.Connection) -> bool:
        error = sqlite3.OperationalError("disk I/O error")
        error.sqlite_errorcode, error.sqlite_errorname = sqlite3.SQLITE_IOERR | (4 << 8), "SQLITE_IOERR_FSYNC"
        failing.append(connection)
        raise error

    def prepared(connection: sqlite3.Connection, **options: Any) -> bool:
        nonlocal opened
        opened += 1
        return fail(connection) if opened == 2 else prepare(connection, **options)

    def committed(connection: sqlite3.Connection, segments: Any) -> None:
        if not failing:
            fail(connection)
        commit(connection, segments)

    monkeypatch.setattr(opening, "prepare_writer", prepared)
    monkeypatch.setattr(writing, "commit", committed)
    before = set(threading.enumerate())
    async with SqliteSaver(path) as saver:
        at_work = len(threading.enumerate())
        for _ in range(2):
            with pytest.raises(BackendError, match="disk"):
                await put(saver, "1", {})
        await put(saver, "1", {})
        assert opened == 3
        assert failing[0] is not failing[1]
        assert len(threading.enumerate()) == at_work
        assert len([one async for one in saver.alist(None)]) == 1
    assert set(threading.enumerate()) <= before
