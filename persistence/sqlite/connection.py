"""One SQLite connection in a thread of its own, through aiosqlite.

A whole piece of work is one hop to that thread: a function that runs there from BEGIN to COMMIT. So nothing can be
cancelled between two statements, and a batch costs one hop instead of one per statement.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar

import aiosqlite

from persistence.errors import BackendError

if TYPE_CHECKING:
    from threading import Thread

T = TypeVar("T")
Work = Callable[[sqlite3.Connection], T]
Identity = tuple[int, int]
"""Device and inode of a file."""

_GONE: Final[Identity] = (0, 0)


class Connection:
    """An open connection; used from one asyncio loop."""

    __slots__ = ("_closing", "_driver", "_files", "_raw")

    def __init__(self, driver: aiosqlite.Connection, raw: sqlite3.Connection) -> None:
        """Wrap a connection that aiosqlite has opened."""
        self._driver = driver
        self._raw = raw
        self._closing: asyncio.Task[None] | None = None
        self._files: dict[str, Identity] = {}
        """The database and its write-ahead log, once they are there; none for one that lives in memory only."""

    @classmethod
    async def open(cls, path: str, patience: float) -> Connection:
        """Open a file, waiting up to ``patience`` seconds for locks. Raises sqlite3.Error."""
        driver = aiosqlite.connect(
            path, timeout=patience, isolation_level=None, uri=path.startswith("file:"), cached_statements=64
        )
        # Before it starts: a thread that is no daemon keeps a program alive that forgot to close its saver. What was
        # committed is safe whenever the thread dies.
        thread = _thread(driver)
        thread.daemon = True
        try:
            await driver  # type: ignore[unused-awaitable]  # it returns itself
        except BaseException:
            thread.join()  # it ends by itself, and must before its loop does
            raise
        return cls(driver, driver._conn)  # noqa: SLF001 - see run

    async def run(self, work: Work[T]) -> T:
        """Run a function in the connection's thread. A cancel gives up the wait; the function still runs to its end."""
        # _execute is aiosqlite's one door to its thread; its public methods each make a hop per statement. The
        # project pins aiosqlite's minor version because of this line.
        result: T = await self._driver._execute(work, self._raw)  # type: ignore[no-untyped-call]  # noqa: SLF001
        return result

    async def anchor(self) -> None:
        """Note which files are open, now that they exist; ``write`` then holds the database to them."""
        file = await self.run(file_of)
        found = {path: _identity(path) for path in (file, f"{file}-wal") if file}
        self._files = {path: identity for path, identity in found.items() if identity is not None and identity != _GONE}

    async def write(self, work: Work[T]) -> T:
        """Run a function that writes. Raises BackendError, without running it, if a file is not in its place."""

        def held(raw: sqlite3.Connection) -> T:
            self.check_file()
            return work(raw)

        return await self.run(held)

    def check_file(self) -> None:
        """Raise BackendError if the file or its log was removed, moved or replaced.

        SQLite in write-ahead mode goes on with them, and all that it commits then is gone with the last connection.
        """
        for path, identity in self._files.items():
            found = _identity(path)
            if found is not None and found != identity:
                message = (
                    f"{path} is not the file that was opened: it was removed, moved or replaced. Nothing was saved. "
                    "Close what has it open, see what became of the file, and open it again."
                )
                raise BackendError(message)

    async def close(self) -> None:
        """Close the connection and wait for its thread; safe to call again.

        A cancel gives up the wait, not the work, which is behind what the thread is still at. Whoever calls again waits
        for the same end: the driver does not stand being asked twice.
        """
        if self._closing is None:
            self._closing = asyncio.get_running_loop().create_task(self._driver.close())
        if not self._closing.done():  # else nothing to cancel: who is cancelled again and again still comes to an end
            await asyncio.wait((self._closing,))
        _thread(self._driver).join()
        self._closing.result()


def file_of(raw: sqlite3.Connection) -> str:
    """Return the file that a connection has open; an empty text for a database that lives in memory only.

    The operating system's names need not be text: what is none in them is kept as lone surrogates, as in ``os``.
    """
    usual = raw.text_factory
    raw.text_factory = os.fsdecode
    try:
        file: str = raw.execute("PRAGMA database_list").fetchone()[2]
    finally:
        raw.text_factory = usual
    return file


def _identity(file: str) -> Identity | None:
    """Return what tells a file from another one; None where that cannot be told, as for who may not look."""
    try:
        found = os.stat(file)  # noqa: PTH116 - before every commit, and a Path costs as much as the look
    except (FileNotFoundError, NotADirectoryError):
        return _GONE
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _thread(driver: aiosqlite.Connection) -> Thread:
    """Return a connection's thread; up to aiosqlite 0.21 it is the connection itself."""
    own: Any = driver
    thread: Thread = getattr(own, "_thread", own)
    return thread
