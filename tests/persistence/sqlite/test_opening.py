"""Opening an SQLite file: what is refused is refused in words, and keeps every byte."""

from __future__ import annotations

import asyncio
import os
import resource
import shutil
import sqlite3
import subprocess
import threading
from contextlib import closing, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from persistence.errors import BackendError, BackendOpenError, PersistenceError, SchemaVersionError
from persistence.sqlite import AsyncSqliteSaver, SqliteCache, SqliteSaver, SqliteStore, opening
from persistence.sqlite.connection import Connection
from persistence.sqlite.listing import look_into
from persistence.sqlite.statements import MIGRATIONS
from tests.persistence.writer.samples import config, put

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.anyio


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "threads.sqlite"


async def pragma(saver: SqliteSaver, name: str, *, reader: bool = False) -> Any:
    backend: Any = saver._backend
    connection = backend._reader if reader else backend._writer
    return await backend._cross(connection.run, lambda raw: raw.execute(f"PRAGMA {name}").fetchone()[0])


async def test_a_new_file_gets_tables_and_durable_settings(path: Path) -> None:
    async with SqliteSaver(path, busy_timeout=1.5) as saver:
        assert await pragma(saver, "journal_mode") == "wal"
        assert await pragma(saver, "synchronous") == 2
        assert await pragma(saver, "busy_timeout") == 1500
        assert await pragma(saver, "query_only", reader=True) == 1
        await saver.asetup()
    with sqlite3.connect(path) as raw:
        assert [row[0] for row in raw.execute("SELECT v FROM checkpoint_migrations")] == sorted(MIGRATIONS)
        tables = {row[0] for row in raw.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    raw.close()
    assert tables == set(opening.TABLES)
    assert not path.with_name("threads.sqlite-wal").exists()


@pytest.mark.parametrize("kind", [SqliteSaver, SqliteStore, SqliteCache])
def test_a_path_is_wanted_and_no_connection(kind: Any) -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        for wrong in (connection, b"x.db", 7):
            with pytest.raises(TypeError, match=f"path of a file is wanted.* not {type(wrong).__name__}:"):
                kind(wrong)


@pytest.mark.parametrize(("level", "number"), [("NORMAL", 1), ("FULL", 2), ("EXTRA", 3)])
async def test_how_durable_is_a_choice(path: Path, level: Any, number: int) -> None:
    async with SqliteSaver(path, synchronous=level) as saver:
        assert await pragma(saver, "synchronous") == number


def test_less_than_durable_is_no_choice() -> None:
    with pytest.raises(ValueError, match="synchronous must be"):
        SqliteSaver("x", synchronous="OFF")  # type: ignore[arg-type]


async def test_connection_strings_and_names_of_other_runtimes(path: Path) -> None:
    assert issubclass(AsyncSqliteSaver, SqliteSaver)
    async with SqliteSaver.from_conn_string(str(path)) as saver:
        await put(saver, "1", {"a": 1})
    async with SqliteSaver.from_conn_string(f"file:{path}") as saver:
        assert await saver.aget_tuple(config()) is not None
    assert str(path) in repr(saver)


@pytest.fixture
def no_room() -> Iterator[Callable[[], None]]:
    """Let no file of this process grow beyond a few pages; call what is given to end that."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (256 * 1024, hard))
    yield lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


async def test_a_disk_without_room_is_opened_and_says_so_when_something_is_saved(
    path: Path, no_room: Callable[[], None]
) -> None:
    async with SqliteSaver(path) as saver:
        await put(saver, "1", {"a": 1})
        with pytest.raises(BackendError, match="nothing was saved"):
            await put(saver, "2", {"a": "x" * 1_000_000})
        assert [one.checkpoint["id"] async for one in saver.alist(None)] == ["1"]
        no_room()
        await put(saver, "3", {"a": "x" * 1_000_000})
        assert len([one async for one in saver.alist(None)]) == 2


async def test_what_was_stored_is_there_after_reopening(path: Path) -> None:
    saver = SqliteSaver(path)
    for number in range(3):
        async with saver:
            assert len([one async for one in saver.alist(None)]) == number
            await put(saver, f"{number}", {"a": [number]})


async def test_a_database_in_memory_lives_as_long_as_it_is_open() -> None:
    saver = SqliteSaver(":memory:")
    async with saver:
        await put(saver, "1", {"a": [1]})
        assert await saver.aget_tuple(config()) is not None
    async with saver:
        assert await saver.aget_tuple(config()) is None


async def test_other_tables_in_the_file_are_none_of_its_business(path: Path) -> None:
    with sqlite3.connect(path) as raw:
        raw.execute("CREATE TABLE invoices (id)")
    raw.close()
    async with SqliteSaver(path) as saver:
        await put(saver, "1", {"a": [1]})


def garbage(path: Path) -> None:
    path.write_bytes(b"This is no database, it is a letter to my aunt. " * 100)


def torn(path: Path) -> None:
    with sqlite3.connect(path) as raw:
        raw.execute("CREATE TABLE checkpoints (x)")
        raw.executemany("INSERT INTO checkpoints VALUES (?)", [("x" * 500,)] * 100)
    raw.close()
    data = bytearray(path.read_bytes())
    data[100:1100] = b"\xff" * 1000
    path.write_bytes(data)


def foreign(path: Path) -> None:
    with sqlite3.connect(path) as raw:
        raw.execute("CREATE TABLE checkpoints (id INTEGER PRIMARY KEY, state TEXT)")
    raw.close()


def other_saver(path: Path) -> None:
    with sqlite3.connect(path) as raw:
        raw.execute(
            "CREATE TABLE checkpoints (thread_id TEXT NOT NULL, checkpoint_ns TEXT NOT NULL DEFAULT '', "
            "checkpoint_id TEXT NOT NULL, parent_checkpoint_id TEXT, type TEXT, checkpoint BLOB, metadata BLOB, "
            "PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id))"
        )
        raw.execute("CREATE TABLE writes (thread_id TEXT)")
    raw.close()


def half_of_it(path: Path) -> None:
    with sqlite3.connect(path) as raw:
        raw.execute("CREATE TABLE checkpoint_migrations (v INTEGER PRIMARY KEY)")
        raw.execute("INSERT INTO checkpoint_migrations VALUES (1)")
    raw.close()


def newer(path: Path) -> None:
    with sqlite3.connect(path) as raw:
        raw.execute("PRAGMA journal_mode = WAL")
        opening.prepare_writer(raw, str(path), "FULL", 1)
        raw.execute("INSERT INTO checkpoint_migrations VALUES (99)")
    raw.close()


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (garbage, BackendOpenError, "not a database"),
        (torn, BackendOpenError, "malformed"),
        (foreign, BackendOpenError, "belongs to another program: checkpoints exist"),
        (other_saver, BackendOpenError, "belongs to another program.*Use another file.*actorgraph migrate"),
        (half_of_it, BackendOpenError, "checkpoint_blobs, checkpoint_writes, checkpoints are not as"),
        (newer, SchemaVersionError, "newer version of this library .migration 99, this one knows 3.*upgrade"),
    ],
)
async def test_a_file_that_is_not_ours_is_refused_untouched(
    path: Path, make: Callable[[Path], None], error: type[PersistenceError], words: str
) -> None:
    make(path)
    before = path.read_bytes()
    saver = SqliteSaver(path)
    with pytest.raises(error, match=words):
        await saver.__aenter__()
    assert path.read_bytes() == before
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]
    assert "closed" in repr(saver)


async def test_a_missing_directory_is_named(tmp_path: Path) -> None:
    with pytest.raises(BackendOpenError, match=r"nowhere.*check that its directory exists"):
        await SqliteSaver(tmp_path / "nowhere" / "x.sqlite").__aenter__()
    with pytest.raises(BackendOpenError, match="cannot be opened"):
        await SqliteSaver(tmp_path).__aenter__()


@pytest.mark.parametrize("existing", ["plain", "ours"])
async def test_a_file_that_cannot_be_written_is_refused(path: Path, existing: str) -> None:
    if existing == "ours":
        async with SqliteSaver(path) as saver:
            await put(saver, "1", {})
    else:
        with sqlite3.connect(path) as raw:
            raw.execute("CREATE TABLE t (x)")
        raw.close()
    before = path.read_bytes()
    with pytest.raises(BackendOpenError, match=r"readonly database.*check its permissions"):
        await SqliteSaver(f"file:{path}?mode=ro").__aenter__()
    assert path.read_bytes() == before


@contextmanager
def unwritable(path: Path) -> Iterator[None]:
    """Let nobody write the file; whoever may write everything is kept out by the file system."""
    if os.geteuid():
        path.chmod(0o400)
        yield
        path.chmod(0o600)
        return
    chattr = shutil.which("chattr")
    if chattr is None or subprocess.run([chattr, "+i", path], check=False, capture_output=True).returncode:
        pytest.skip("this file system has no files that root cannot write")
    try:
        yield
    finally:
        subprocess.run([chattr, "-i", path], check=True)


@pytest.mark.parametrize("kind", [SqliteSaver, SqliteStore, SqliteCache])
@pytest.mark.parametrize("how", ["kept out", "?mode=ro", "?cache=private&immutable=1"])
async def test_a_file_that_is_refused_has_nothing_left_beside_it(kind: Any, how: str, path: Path) -> None:
    async with kind(path):
        pass
    before = path.read_bytes()
    with nullcontext() if how.startswith("?") else unwritable(path):
        with pytest.raises(BackendOpenError, match=r"check its permissions.*It was not changed"):
            await kind(f"file:{path}{how}" if how.startswith("?") else path).__aenter__()
        assert [file.name for file in path.parent.iterdir()] == [path.name]
    assert path.read_bytes() == before
    async with kind(path):
        pass


async def test_a_silent_refusal_of_write_ahead_mode_is_heard(path: Path) -> None:
    """Without shared memory SQLite stays in its old mode and says so only in the pragma's answer."""
    with pytest.raises(BackendOpenError, match="stays in 'delete' mode"):
        await SqliteSaver(f"file:{path}?vfs=unix-none").__aenter__()


async def test_an_sqlite_that_is_too_old_is_named(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 31, 1))
    with pytest.raises(BackendOpenError, match="SQLite 3.37.0 or newer"):
        await SqliteSaver(path).__aenter__()
    assert not path.exists()


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("kind", [SqliteSaver, SqliteStore, SqliteCache])
async def test_an_opening_that_is_cancelled_again_and_again_leaves_no_thread(
    path: Path, kind: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``Task.cancel`` pierces shields, once a call; meanwhile the connection's thread waits for a lock."""
    asked, ask = asyncio.Event(), Connection.run

    async def run(connection: Connection, work: Any) -> Any:
        asked.set()
        return await ask(connection, work)

    async with kind(path):
        pass
    monkeypatch.setattr(Connection, "run", run)
    before = set(threading.enumerate())
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        task = asyncio.create_task(kind(path, busy_timeout=0.1).__aenter__())
        await asked.wait()
        while not task.done():
            task.cancel()
            await asyncio.sleep(0)
        with pytest.raises(asyncio.CancelledError):
            await task
        assert set(threading.enumerate()) == before


async def test_a_file_locked_for_too_long_cannot_be_opened(path: Path) -> None:
    async with SqliteSaver(path):
        pass
    raw = sqlite3.connect(path, isolation_level=None)
    raw.execute("BEGIN IMMEDIATE")
    try:
        with pytest.raises(BackendOpenError, match="locked"):
            await SqliteSaver(path, busy_timeout=0.05).__aenter__()
    finally:
        raw.close()


def test_a_mode_switch_waits_for_a_lock_that_passes(path: Path) -> None:
    """SQLite's busy handler is not asked there, so the wait is ours."""
    blocker = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    blocker.execute("CREATE TABLE t (x)")
    blocker.execute("BEGIN EXCLUSIVE")
    released = threading.Timer(0.05, blocker.execute, ["ROLLBACK"])
    released.start()
    raw = sqlite3.connect(path, isolation_level=None, timeout=0)
    assert opening._patiently(lambda: raw.execute("PRAGMA journal_mode = WAL").fetchone()[0], 5) == "wal"
    released.join()
    blocker.close()
    raw.close()


async def test_a_failed_migration_changes_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = {**MIGRATIONS, 9: ("CREATE TABLE extra (x)", "CREATE TABLE extra (x)")}
    monkeypatch.setattr(opening, "MIGRATIONS", broken)
    with pytest.raises(BackendOpenError, match="extra"):
        await SqliteSaver(path).__aenter__()
    monkeypatch.undo()
    async with SqliteSaver(path) as saver:
        await put(saver, "1", {})


async def test_a_later_migration_is_applied_once(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with SqliteSaver(path) as saver:
        await put(saver, "1", {"a": [1]})
    monkeypatch.setattr(opening, "MIGRATIONS", {**MIGRATIONS, 9: ("CREATE TABLE extra (x)",)})
    for _ in range(2):
        async with SqliteSaver(path) as saver:
            assert await saver.aget_tuple(config()) is not None
    with sqlite3.connect(path) as raw:
        assert [row[0] for row in raw.execute("SELECT v FROM checkpoint_migrations")] == [*MIGRATIONS, 9]
    raw.close()


async def test_a_file_of_the_first_layout_is_brought_up_to_date(path: Path) -> None:
    """It was written before threads had leases."""
    with closing(sqlite3.connect(path)) as raw, raw:
        for statement in MIGRATIONS[1]:
            raw.execute(statement)
        raw.execute("INSERT INTO checkpoint_migrations VALUES (1)")
    async with SqliteSaver(path) as saver:
        assert await saver.alease("t") is None
    with closing(sqlite3.connect(path)) as raw:
        assert [row[0] for row in raw.execute("SELECT v FROM checkpoint_migrations")] == sorted(MIGRATIONS)


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("kind", [SqliteSaver, SqliteStore, SqliteCache])
async def test_a_cancel_that_was_caught_while_it_was_open_does_not_come_back_at_its_end(
    kind: Any, tmp_path: Path
) -> None:
    """Task groups of asyncio, too, leave one behind when a task of theirs fails, in Python before 3.13."""

    async def use() -> str:
        async with kind(tmp_path / "file.sqlite") as opened:
            if kind is SqliteStore:
                await opened.astart_ttl_sweeper()
            is_open.set()
            with suppress(asyncio.CancelledError):
                await asyncio.Event().wait()
        return "closed"

    is_open = asyncio.Event()
    task = asyncio.create_task(use())
    await is_open.wait()
    task.cancel()
    assert await task == "closed"
    assert task.cancelling() == 1


@pytest.mark.parametrize("fate", ["removed", "moved", "replaced"])
@pytest.mark.parametrize("kind", [SqliteSaver, SqliteStore])
async def test_nothing_is_written_to_a_file_that_is_not_in_its_place(kind: Any, fate: str, path: Path) -> None:
    """SQLite itself would go on, and all of it would be lost."""
    async with kind(path) as opened:

        async def write() -> None:
            await (put(opened, "1", {"a": 1}) if kind is SqliteSaver else opened.aput(("a",), "k", {"a": 1}))

        await write()
        path.rename(path.with_suffix(".old"))
        if fate == "removed":
            path.with_suffix(".old").unlink()
        elif fate == "replaced":
            shutil.copy(path.with_suffix(".old"), path)
        for _ in range(2):
            with pytest.raises(BackendError, match=r"threads\.sqlite is not the file that was opened"):
                await write()
        if fate == "moved":
            path.with_suffix(".old").rename(path)
            await write()


@pytest.mark.parametrize("kind", [SqliteSaver, SqliteStore])
async def test_nothing_is_written_to_a_log_that_is_not_in_its_place(kind: Any, path: Path) -> None:
    """Who opens the file then begins another log, and each overwrites what the other commits."""
    async with kind(path) as opened:

        async def write() -> None:
            await (put(opened, "1", {"a": 1}) if kind is SqliteSaver else opened.aput(("a",), "k", {"a": 1}))

        await write()
        log, aside = path.with_name(f"{path.name}-wal"), path.with_name("aside")
        log.rename(aside)
        with pytest.raises(BackendError, match=r"threads\.sqlite-wal is not the file that was opened"):
            await write()
        aside.rename(log)
        await write()


async def test_who_may_not_look_at_the_file_any_more_goes_on_with_it(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program that drops its privileges has the files open."""
    async with SqliteSaver(path) as saver:

        def refuse(file: Any) -> Any:
            raise PermissionError(file)

        monkeypatch.setattr("persistence.sqlite.connection.os.stat", refuse)
        await put(saver, "1", {"a": 1})
        monkeypatch.undo()
        assert await saver.aget_tuple(config()) is not None


async def test_a_failed_disk_does_not_let_a_new_file_take_the_place_of_one_that_is_gone(path: Path) -> None:
    async with SqliteSaver(path) as saver:
        await put(saver, "1", {"a": 1})
        backend: Any = saver._backend
        backend._failed = True
        path.unlink()
        with pytest.raises(BackendError, match="not the file that was opened"):
            await put(saver, "1", {"a": 2})
    assert not path.exists()


@pytest.fixture
def odd(tmp_path: Path) -> str:
    """A file name that is no text: not UTF-8, as older systems made them."""
    name = os.fsdecode(os.fsencode(tmp_path) + b"/thre\xe4ds.db")
    try:
        Path(name).touch()
    except OSError:
        pytest.skip("this file system takes text only")
    Path(name).unlink()
    return name


async def test_a_file_may_have_a_name_that_is_no_text(odd: str, tmp_path: Path) -> None:
    async with SqliteSaver(odd) as saver:
        await put(saver, "1", {"a": 1})
        assert await saver.aget_tuple(config("t")) is not None
        assert Path(odd).is_file()
    with look_into(odd) as listing:
        assert listing.thread_count() == 1
    async with SqliteSaver(Path(odd)) as saver:
        assert await saver.aget_tuple(config("t")) is not None
        Path(odd).rename(tmp_path / "elsewhere.db")
        with pytest.raises(BackendError, match="is not the file that was opened"):
            await put(saver, "2", {"a": 2})


@pytest.mark.parametrize("kind", [SqliteStore, SqliteCache])
async def test_stores_and_caches_may_lie_in_such_a_file(odd: str, kind: Any) -> None:
    async with kind(odd):
        assert Path(odd).is_file()
