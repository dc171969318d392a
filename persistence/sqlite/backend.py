"""The SQLite backend: a connection that writes, a connection that reads, and the bridge where the loop is trio's."""

from __future__ import annotations

import sqlite3
import warnings
import weakref
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import anyio

from persistence.errors import BackendOpenError, PersistenceClosedError
from persistence.sqlite import opening, reading, writing
from persistence.sqlite.connection import Connection
from persistence.sqlite.faults import described, primary_code, read_fault, write_fault
from persistence.sqlite.opening import Synchronous
from persistence.writer.batching import segments
from persistence.writer.bridge import BRIDGE, on_trio

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence

    from persistence.contracts.backend import Page, Query, Request
    from persistence.contracts.lease import LeaseRow

T = TypeVar("T")


class SqliteBackend:
    """One database file.

    Reads have a connection of their own, so that a slow one does not hold up commits; a database in memory exists in
    one connection only, which then does both.
    """

    leasing: Literal[True] = True

    def __init__(self, path: str, *, synchronous: Synchronous, busy_timeout: float) -> None:
        """Describe a database; nothing is opened yet."""
        self._path = path
        self._synchronous: Synchronous = synchronous
        self._patience = busy_timeout
        self._writer: Connection | None = None
        self._reader: Connection | None = None
        self._failed = False
        """Whether the disk failed under the writing connection."""
        self._bridged = False
        self._finalizer: weakref.finalize[..., SqliteBackend] | None = None

    async def open(self) -> None:
        """Open the file and bring its tables up to date.

        Raises:
            BackendOpenError: It cannot be opened or is not ours; it was not changed.
        """
        opening.require_sqlite()
        if on_trio():
            BRIDGE.acquire()
            self._bridged = True
        # Shielded, because half an opening cannot be closed: it takes no longer than the patience for locks.
        with anyio.CancelScope(shield=True):
            await self._cross(self._connect)
        # Also runs when the interpreter exits, which __del__ may not.
        self._finalizer = weakref.finalize(self, _forgotten, repr(self))

    async def close(self) -> None:
        """Close both connections and wait for their threads; safe to call again."""
        if self._finalizer is not None:
            self._finalizer.detach()
        await self._cross(self._disconnect)
        if self._bridged:
            self._bridged = False
            BRIDGE.release()

    async def setup(self) -> None:
        """Bring the tables up to date."""
        await self._write(partial(opening.migrate, path=self._path))

    async def commit(self, batch: Sequence[Request]) -> None:
        """Apply the requests in one transaction, in one hop to the connection's thread."""
        await self._write(partial(writing.commit, segments=segments(batch)))

    async def load(self, thread_id: str, checkpoint_ns: str, checkpoint_id: str | None) -> Page:
        """Return the addressed checkpoint, or the newest one."""
        return await self._read(
            partial(reading.load, thread_id=thread_id, checkpoint_ns=checkpoint_ns, checkpoint_id=checkpoint_id)
        )

    async def load_leased(self, thread_id: str, checkpoint_ns: str, checkpoint_id: str | None) -> Page:
        """Return likewise, with the thread's lease."""
        return await self._read(
            partial(
                reading.load,
                thread_id=thread_id,
                checkpoint_ns=checkpoint_ns,
                checkpoint_id=checkpoint_id,
                leased=True,
            )
        )

    async def page(self, query: Query) -> Page:
        """Return a page of matching checkpoints."""
        return await self._read(partial(reading.page, query=query))

    async def lease(self, thread_id: str) -> LeaseRow | None:
        """Return a thread's lease."""
        return await self._read(partial(reading.lease, thread_id=thread_id))

    async def held_leases(self) -> list[LeaseRow]:
        """Return every lease that is held."""
        return await self._read(reading.held_leases)

    async def free_leases(self, graph: str, after: str, limit: int) -> list[LeaseRow]:
        """Return leases of a graph's threads that are not held, from behind a thread id on."""
        return await self._read(partial(reading.free_leases, graph=graph, after=after, limit=limit))

    async def _write(self, work: Callable[[sqlite3.Connection], T]) -> T:
        if self._failed:
            with anyio.CancelScope(shield=True):
                await self._cross(self._reconnect)
        if self._writer is None:
            raise self._closed()
        try:
            return await self._cross(self._writer.write, work)
        except sqlite3.Error as error:
            self._failed = primary_code(error) == sqlite3.SQLITE_IOERR
            raise write_fault(error, self._path) from error

    async def _read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        reader = self._reader or self._writer
        if reader is None:
            raise self._closed()
        try:
            return await self._cross(reader.run, work)
        except sqlite3.Error as error:
            raise read_fault(error, self._path) from error

    async def _cross(self, function: Callable[..., Coroutine[Any, Any, T]], *args: object) -> T:
        """Run an asyncio coroutine: here on asyncio, over the bridge on trio."""
        return await (BRIDGE.call(function, *args) if self._bridged else function(*args))

    async def _connect(self) -> None:
        try:
            in_memory = await self._open_writer()
            if not in_memory:
                self._reader = await Connection.open(self._path, self._patience)
                await self._reader.run(opening.prepare_reader)
        except sqlite3.Error as error:
            message = f"{self._path} cannot be opened: {described(error)}"
            raise BackendOpenError(message) from error

    async def _open_writer(self) -> bool:
        """Open the writing connection; return whether the database lives in memory only."""
        self._writer = await Connection.open(self._path, self._patience)
        prepare = partial(
            opening.prepare_writer, path=self._path, synchronous=self._synchronous, patience=self._patience
        )
        in_memory = await self._writer.run(prepare)
        await self._writer.anchor()
        return in_memory

    async def _reconnect(self) -> None:
        """Open the writing connection anew: a sync that failed is not to be tried again on what it leaves behind."""
        if self._writer is not None:
            self._writer.check_file()  # else a new one would be made in its place
        writer, self._writer = self._writer, None
        try:
            if writer is not None:
                await writer.close()
            await self._open_writer()
        except sqlite3.Error as error:
            message = f"{self._path} cannot be opened again after the disk had failed: {described(error)}"
            raise BackendOpenError(message) from error
        self._failed = False

    async def _disconnect(self) -> None:
        # The reader first: the last connection to close folds the write-ahead log into the file.
        if self._reader is not None:
            await self._reader.close()
            self._reader = None
        if self._writer is not None:
            await self._writer.close()
            self._writer = None

    def _closed(self) -> PersistenceClosedError:
        return PersistenceClosedError(f"{self!r} is not open.")

    def __repr__(self) -> str:
        """Name the file."""
        return f"<SqliteBackend {self._path}>"


def _forgotten(what: str) -> None:
    warnings.warn(
        f"{what} was not closed: leave its saver's 'async with'. What was committed is safe.",
        ResourceWarning,
        stacklevel=2,
    )
