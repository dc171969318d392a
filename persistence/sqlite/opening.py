"""Opening a database: look first, touch later.

Every check that can refuse a file runs before anything is written, so a refused file keeps every byte. Functions here
run in the connection's thread.
"""

from __future__ import annotations

import os
import re
import sqlite3
import time
from typing import TYPE_CHECKING, Final, Literal, TypeVar

from persistence.errors import BackendOpenError
from persistence.sqlite.connection import file_of
from persistence.sqlite.faults import described, primary_code
from persistence.sqlite.layout import Layout
from persistence.sqlite.statements import MIGRATIONS, QUERIES
from persistence.writer.filtering import metadata_matches, metadata_run_id

if TYPE_CHECKING:
    from collections.abc import Callable

Synchronous = Literal["NORMAL", "FULL", "EXTRA"]
T = TypeVar("T")

OLDEST_SQLITE: Final = (3, 37, 0)
"""The first with STRICT tables."""

WAL_PAGES: Final = 1000
"""Log size, 16 MiB, at which a commit also copies the log into the file. SQLite's own 1000 is one busy batch."""

GROWN_LOG: Final = 4 * 1024 * 1024
"""Bytes the log is given at once when a database is opened: some 15 ms, and room for a thousand single commits."""

_SPILLING: Final = 20
"""Pages of cache while the log grows; few, so that its pages are written instead of kept."""

_SPILLED_BLOB: Final = 1024 * 1024

CACHE_KIB: Final = 16 * 1024
"""Pages kept per connection: the tops of the indexes, which every insert of another thread touches."""

_LEVELS: Final = {"NORMAL": 1, "FULL": 2, "EXTRA": 3}

TABLES: Final = {
    "checkpoints": (
        ("thread_id", 1),
        ("checkpoint_ns", 2),
        ("checkpoint_id", 3),
        ("parent_checkpoint_id", 0),
        ("type", 0),
        ("checkpoint", 0),
        ("metadata", 0),
    ),
    "checkpoint_writes": (
        ("thread_id", 1),
        ("checkpoint_ns", 2),
        ("checkpoint_id", 3),
        ("task_id", 4),
        ("idx", 5),
        ("channel", 0),
        ("type", 0),
        ("blob", 0),
        ("task_path", 0),
    ),
    "checkpoint_blobs": (
        ("thread_id", 1),
        ("checkpoint_ns", 2),
        ("channel", 3),
        ("version", 4),
        ("type", 0),
        ("blob", 0),
    ),
    "checkpoint_leases": (("thread_id", 1), ("epoch", 0), ("owner", 0), ("graph", 0), ("held", 0)),
    "checkpoint_owners": (("owner", 1), ("expires_at", 0), ("seconds", 0)),
    "checkpoint_migrations": (("v", 1),),
}
"""Columns of each table, with their place in the primary key."""

SINCE: Final = {"checkpoint_leases": 3, "checkpoint_owners": 3}
"""The migrations that made those tables which the first did not."""

_READ_ONLY: Final = re.compile(r"file:[^?]*\?(.*&)?(mode=ro|immutable=(1|on|true|yes))(&|#|$)")
"""URIs of databases that are only read."""

_NO_ROOM = frozenset({sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR})
"""How a full disk, or a limit on file sizes, shows."""


def path_of(given: object) -> str:
    """Return the path of a database. Raises TypeError for anything else, such as an open connection."""
    if isinstance(given, str | os.PathLike):
        path = os.fspath(given)
        if isinstance(path, str):
            return path
    message = (
        f"The path of a file is wanted, or ':memory:', not {type(given).__name__}: the connection is opened here, in "
        "a thread of its own."
    )
    raise TypeError(message)


def require_sqlite() -> None:
    """Raise BackendOpenError if this Python's SQLite is too old."""
    if sqlite3.sqlite_version_info < OLDEST_SQLITE:
        oldest = ".".join(map(str, OLDEST_SQLITE))
        message = f"SQLite {oldest} or newer is needed, this is {sqlite3.sqlite_version}."
        raise BackendOpenError(message)


def require_writable(connection: sqlite3.Connection, path: str) -> None:
    """Raise BackendOpenError for a file that cannot be written.

    Asked before anything is read: reading a file in write-ahead mode makes two more beside it, and a connection that
    cannot write leaves them there.
    """
    file = file_of(connection)
    effective = os.access in os.supports_effective_ids
    kept_out = os.access(file, os.F_OK) and not os.access(file, os.W_OK, effective_ids=effective)
    if kept_out or _READ_ONLY.match(path):
        message = (
            f"{path} cannot be opened: it is a readonly database, the file cannot be written: check its permissions "
            "and those of its directory. It was not changed."
        )
        raise BackendOpenError(message)


def prepare_writer(connection: sqlite3.Connection, path: str, synchronous: Synchronous, patience: float) -> bool:
    """Check the database, switch it to WAL and bring its tables up to date; return whether it lives in memory only.

    Raises:
        BackendOpenError: It is no database, damaged, another program's, or cannot be written. It was not changed.
        SchemaVersionError: A newer version of this library wrote it. It was not changed.
    """
    try:
        require_writable(connection, path)
        _layout().check(connection, path)
        in_memory = not file_of(connection)
        switch_to_wal(connection, path, patience, in_memory=in_memory)
        connection.execute(f"PRAGMA synchronous = {_LEVELS[synchronous]}")
        connection.execute(f"PRAGMA wal_autocheckpoint = {WAL_PAGES}")
        connection.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
        migrate(connection, path)
        if not in_memory:
            _patiently(lambda: _grow_log(connection), patience)
    except sqlite3.Error as error:
        message = f"{path} cannot be opened: {described(error)}"
        raise BackendOpenError(message) from error
    _add_functions(connection)
    return in_memory


def _grow_log(connection: sqlite3.Connection) -> None:
    """Let the write-ahead log have its working size before anyone waits for a commit.

    A commit that makes the log file longer has the file system write its own journal too, which nearly doubles its
    time (measured on ext4: 540 against 315 us). Pages that a transaction spills into the log and then takes back leave
    the file long and the database as it was. The log keeps that length until the last connection closes.

    A disk without room for that is no reason not to open: reading and deleting may be all that is wanted.
    """
    connection.execute(f"PRAGMA cache_size = {_SPILLING}")
    connection.execute("BEGIN IMMEDIATE")
    try:
        connection.execute(QUERIES["grow_log_table"])
        for _ in range(GROWN_LOG // _SPILLED_BLOB):
            connection.execute(QUERIES["grow_log"], (_SPILLED_BLOB,))
    except sqlite3.OperationalError as error:
        if primary_code(error) not in _NO_ROOM:
            raise
    finally:
        if connection.in_transaction:  # a full disk has taken it back already
            connection.execute("ROLLBACK")
        connection.execute(f"PRAGMA cache_size = -{CACHE_KIB}")


def prepare_reader(connection: sqlite3.Connection) -> None:
    """Make a connection that cannot write."""
    connection.execute("PRAGMA query_only = ON")
    _add_functions(connection)


def migrate(connection: sqlite3.Connection, path: str) -> None:
    """Apply the migrations that the database has not seen, all or none; safe with several processes at once."""
    _layout().migrate(connection, path)


def _layout() -> Layout:
    return Layout(
        TABLES, MIGRATIONS, "checkpoint_migrations", QUERIES["applied_migrations"], QUERIES["note_migration"], SINCE
    )


def switch_to_wal(connection: sqlite3.Connection, path: str, patience: float, *, in_memory: bool) -> None:
    """Let readers and one writer work side by side. Raises BackendOpenError where the disk does not allow it."""
    # The pragma reports failure by answering with the old mode, not by an error.
    mode = _patiently(lambda: connection.execute("PRAGMA journal_mode = WAL").fetchone()[0], patience)
    if mode != ("memory" if in_memory else "wal"):
        message = (
            f"{path} cannot be switched to write-ahead logging, it stays in {mode!r} mode: "
            "put it on a local disk that SQLite can lock and map."
        )
        raise BackendOpenError(message)


def _patiently(action: Callable[[], T], patience: float) -> T:
    """Retry while another process has the file locked: SQLite's own busy handler is not asked for a mode switch."""
    deadline = time.monotonic() + patience
    while True:
        try:
            return action()
        except sqlite3.OperationalError as error:
            if primary_code(error) != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
        time.sleep(0.005)


def _add_functions(connection: sqlite3.Connection) -> None:
    connection.create_function("metadata_matches", 2, metadata_matches, deterministic=True)
    connection.create_function("metadata_run_id", 1, metadata_run_id, deterministic=True)
