"""SqliteStore: long-term memory in one file on this machine, which may be a saver's."""

from __future__ import annotations

import os
import sqlite3
import time
import warnings
import weakref
from collections.abc import Callable, Coroutine, Iterable, Sequence
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import anyio

from persistence.blocking import BlockingSetup
from persistence.errors import BackendOpenError, PersistenceError
from persistence.outlasting import outlast
from persistence.sqlite import comparing, shelved
from persistence.sqlite.connection import Connection
from persistence.sqlite.faults import described, read_fault, write_fault
from persistence.sqlite.opening import path_of, require_sqlite
from persistence.sqlite.shelved import StoreTable, Work
from persistence.stores.carrying_out import Reader, Reading, Refresh, write
from persistence.stores.lanes import Failed, Lane
from persistence.stores.managed import ManagedStore
from persistence.writer.bridge import BRIDGE, on_trio

if TYPE_CHECKING:
    from typing import Self

    from persistence.contracts.store import IndexConfig, Op, Result, TTLConfig
    from persistence.serde.serializer import Serializer
    from persistence.sqlite.opening import Synchronous
    from persistence.stores.planning import Plan

T = TypeVar("T")


class SqliteStore(BlockingSetup, ManagedStore):
    """Keeps items in an SQLite file in write-ahead mode; other processes may use the file too.

    Open it with ``async with store`` (or ``with store``); that creates or migrates its tables, which stand beside those
    of a saver if the file has them. A batch is one transaction and one hop to the driver's thread. What many tasks ask
    for at once shares both, without sharing each other's failures.

    What was acknowledged survives the loss of power with ``synchronous="FULL"``, the default; ``"NORMAL"`` survives a
    crash of the process only and saves an fsync per commit. Filters decode every item of the namespace, and searches
    by meaning compare every vector of it: choose namespaces so that one holds what is searched together. Where
    sqlite-vec is installed and this Python can load it, vectors that are not encrypted are compared inside SQLite,
    unless there is a filter; ``compares_inside`` tells.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        index: IndexConfig | None = None,
        ttl: TTLConfig | None = None,
        serde: Serializer | None = None,
        synchronous: Synchronous = "FULL",
        busy_timeout: float = 5.0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Describe a store; nothing is opened yet.

        ``path`` is a file, ``:memory:`` or a ``file:`` URI. ``index`` says how to search by meaning, ``ttl`` when items
        expire. ``serde`` turns values into bytes, with the safe defaults if it is None. ``busy_timeout`` is how many
        seconds a write waits for another connection that holds the file's lock. ``clock`` tells the seconds by which
        items expire; processes that share a file must agree on it.
        """
        super().__init__(index=index, ttl=ttl, serde=serde, clock=clock)
        if synchronous not in {"NORMAL", "FULL", "EXTRA"}:
            message = f"synchronous must be 'NORMAL', 'FULL' or 'EXTRA', not {synchronous!r}."
            raise ValueError(message)
        self._path = path_of(path)
        self._synchronous: Synchronous = synchronous
        self._patience = busy_timeout
        self._writer: Connection | None = None
        self._reader: Connection | None = None
        self._bridged = False
        self._extended = False
        self._finalizer: weakref.finalize[..., SqliteStore] | None = None

    @classmethod
    def from_conn_string(
        cls, conn_string: str, *, index: IndexConfig | None = None, ttl: TTLConfig | None = None
    ) -> Self:
        """Return a store for a path; open it with ``async with`` or ``with``."""
        return cls(conn_string, index=index, ttl=ttl)

    @property
    def compares_inside(self) -> bool:
        """Whether sqlite-vec compares the vectors; known once the store is open."""
        return self._extended

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Carry out operations together, in one transaction; returns one result each, None for puts.

        Cancelled once the puts are on their way, they are done all the same, and the cancel arrives after that; before
        that, nothing is.

        Raises:
            PersistenceClosedError: The store is not open.
            SaverLoopError: It is open on another event loop.
            TransientBackendError: Another connection held the file's lock for too long; nothing was written.
            BackendError: The database refused; nothing was written.
        """
        reads, writes = self._opened()
        plan = await self._planned(ops)
        if not plan.size:
            return []
        now = self._clock()
        if plan.puts:
            reading: Reading = await writes.order(partial(self._carry_out, plan=plan, now=now))
        else:
            reading = await reads.ask(partial(self._look, plan=plan, now=now))
            if reading.refreshes:
                await writes.order(partial(_refresh, refreshes=reading.refreshes, now=now))
        return reading.results

    async def asetup(self) -> None:
        """Create or migrate the tables; opening the store does it already."""
        self._opened()
        await self._at_work(self._writer, partial(shelved.LAYOUT.migrate, path=self._path), write_fault)

    async def asweep_ttl(self) -> int:
        """Delete what has expired; return how many items that were."""
        _, writes = self._opened()
        now, swept = self._clock(), 0
        while True:
            found: int = await writes.order(partial(shelved.sweep, now=now))
            swept += found
            if found < shelved.SWEPT:
                return swept

    def _look(self, connection: sqlite3.Connection, plan: Plan, now: float) -> Reading:
        with closing(StoreTable(connection)) as table:
            nearest = table.nearest if self._extended else None
            return Reader(table, self._codec, self._dims, now, nearest).read(plan)

    def _carry_out(self, connection: sqlite3.Connection, plan: Plan, now: float) -> Reading:
        reading = self._look(connection, plan, now)
        write(StoreTable(connection), reading.refreshes, plan.puts, self._dims, now)
        return reading

    async def _open(self) -> None:
        require_sqlite()
        if on_trio():
            BRIDGE.acquire()
            self._bridged = True
        # Shielded, because half an opening cannot be closed: it takes no longer than the patience for locks.
        with anyio.CancelScope(shield=True):
            await self._cross(self._connect)
        # Also runs when the interpreter exits, which __del__ may not.
        self._finalizer = weakref.finalize(self, _forgotten, repr(self))

    def _lanes_made(self) -> tuple[Lane[Any], ...]:
        return Lane(self._read, "reads"), Lane(self._write, "writes")

    async def _close(self) -> None:
        if self._finalizer is not None:
            self._finalizer.detach()
        await outlast(self._disconnect)

    async def _read(self, works: Sequence[Work]) -> Sequence[Any]:
        connection = self._reader or self._writer
        return await self._transact(connection, works, "BEGIN", read_fault)

    async def _write(self, works: Sequence[Work]) -> Sequence[Any]:
        # IMMEDIATE takes the write lock at once: a lock that is upgraded half way fails without waiting its turn.
        return await self._transact(self._writer, works, "BEGIN IMMEDIATE", write_fault)

    async def _transact(
        self,
        connection: Connection | None,
        works: Sequence[Work],
        begin: str,
        fault: Callable[[sqlite3.Error, str], PersistenceError],
    ) -> Sequence[Any]:
        work = partial(shelved.in_transaction, works=works, begin=begin)
        outcomes: Sequence[Any] = await self._at_work(connection, work, fault)
        for outcome in outcomes:
            if isinstance(outcome, Failed) and isinstance(outcome.error, sqlite3.Error):
                outcome.error = fault(outcome.error, self._path)
        return outcomes

    async def _at_work(
        self,
        connection: Connection | None,
        work: Callable[[sqlite3.Connection], T],
        fault: Callable[[sqlite3.Error, str], PersistenceError],
    ) -> T:
        """Run a function in a connection's thread, in one hop."""
        assert connection is not None  # noqa: S101 - there is one while the store is open
        try:
            return await self._cross(connection.write if fault is write_fault else connection.run, work)
        except sqlite3.Error as error:
            raise fault(error, self._path) from error

    async def _cross(self, function: Callable[..., Coroutine[Any, Any, T]], *args: object) -> T:
        """Run an asyncio coroutine: here on asyncio, over the bridge on trio."""
        return await (BRIDGE.call(function, *args) if self._bridged else function(*args))

    async def _connect(self) -> None:
        try:
            self._writer = await Connection.open(self._path, self._patience)
            prepare = partial(
                shelved.prepare_writer, path=self._path, synchronous=self._synchronous, patience=self._patience
            )
            in_memory = await self._writer.run(prepare)
            await self._writer.anchor()
            if not in_memory:
                # Reads have a connection of their own, so that a slow one does not hold up commits.
                self._reader = await Connection.open(self._path, self._patience)
                await self._reader.run(shelved.prepare_reader)
            self._extended = self._index is not None and await self._load_extension()
        except sqlite3.Error as error:
            message = f"{self._path} cannot be opened: {described(error)}"
            raise BackendOpenError(message) from error

    async def _load_extension(self) -> bool:
        connections = (self._writer, self._reader)
        return all([await each.run(comparing.load) for each in connections if each is not None])

    async def _disconnect(self) -> None:
        # The reader first: the last connection to close folds the write-ahead log into the file.
        if self._reader is not None:
            await self._cross(self._reader.close)
            self._reader = None
        if self._writer is not None:
            await self._cross(self._writer.close)
            self._writer = None
        if self._bridged:
            self._bridged = False
            BRIDGE.release()

    def __repr__(self) -> str:
        """Name the file, and tell whether it is open."""
        return f"<{type(self).__name__} {self._path}, {'closed' if self._home is None else 'open'}>"


def _refresh(connection: sqlite3.Connection, refreshes: Sequence[Refresh], now: float) -> None:
    write(StoreTable(connection), refreshes, (), 0, now)


def _forgotten(what: str) -> None:
    warnings.warn(
        f"{what} was not closed: leave its 'async with'. What was written is safe.", ResourceWarning, stacklevel=2
    )
