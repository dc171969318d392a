"""SqliteCache: results that outlive the process, in a file of their own or in a saver's."""

from __future__ import annotations

import os
import sqlite3
import time
import warnings
import weakref
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import anyio

from persistence.errors import BackendOpenError, PersistenceError
from persistence.sqlite import cached
from persistence.sqlite.connection import Connection
from persistence.sqlite.faults import described, read_fault, write_fault
from persistence.sqlite.opening import path_of, require_sqlite
from persistence.stores.caching import ManagedCache
from persistence.writer.bridge import BRIDGE, on_trio

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping, Sequence

    from persistence.contracts.cache import FullKey, Namespace
    from persistence.serde.serializer import Serializer

T = TypeVar("T")


class SqliteCache(ManagedCache):
    """Keeps values in an SQLite file in write-ahead mode; other processes may use the file too.

    Open it with ``async with cache`` (or ``with cache``). The file may be a saver's: the tables are other ones, and so
    are the migrations. Values stay until they expire or are cleared; expired ones are deleted when others are kept.

    Keys are digests of inputs. A serializer that encrypts hides the values, not which inputs were equal.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        serde: Serializer | None = None,
        busy_timeout: float = 5.0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Describe a cache; nothing is opened yet.

        ``path`` is a file, ``:memory:`` or a ``file:`` URI. ``serde`` turns values into bytes, with the safe defaults
        if it is None. ``busy_timeout`` is how many seconds a write waits for another connection that holds the file's
        lock. ``clock`` tells the seconds by which values expire; processes that share a file must agree on it.
        """
        super().__init__(serde)
        self._path = path_of(path)
        self._patience = busy_timeout
        self._clock = clock
        self._connection: Connection | None = None
        self._bridged = False
        self._finalizer: weakref.finalize[..., SqliteCache] | None = None

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

    async def _close(self) -> None:
        if self._finalizer is not None:
            self._finalizer.detach()
        if self._connection is not None:
            await self._cross(self._connection.close)
            self._connection = None
        if self._bridged:
            self._bridged = False
            BRIDGE.release()

    async def aget(self, keys: Sequence[FullKey]) -> dict[FullKey, Any]:
        """Return what is there of these keys.

        Raises:
            PersistenceError: The cache is not open, or the database cannot be read.
        """
        work = partial(cached.find, keys=keys, now=self._clock())
        return self._values.load(await self._run(work, read_fault))

    async def aset(self, pairs: Mapping[FullKey, tuple[Any, float | None]]) -> None:
        """Keep values, each with the seconds that it stays; stored when this returns.

        Raises:
            PersistenceError: The cache is not open, a value cannot be stored, or the database refused. Nothing was
                kept then.
        """
        entries = self._values.dump(pairs)
        await self._run(partial(cached.put, entries=entries, now=self._clock()), write_fault)

    async def aclear(self, namespaces: Sequence[Namespace] | None = None) -> None:
        """Forget what is in these namespaces and in those that begin with them; None: everything.

        Raises:
            PersistenceError: The cache is not open, or the database refused.
        """
        await self._run(partial(cached.clear, namespaces=namespaces), write_fault)

    async def _run(
        self, work: Callable[[sqlite3.Connection], T], fault: Callable[[sqlite3.Error, str], PersistenceError]
    ) -> T:
        """Run a function in the connection's thread. A cancel gives up the wait; the function runs to its end."""
        self._check()
        connection = self._connection
        assert connection is not None  # noqa: S101 - there is one while the cache is open
        try:
            return await self._cross(connection.run, work)
        except sqlite3.Error as error:
            raise fault(error, self._path) from error

    async def _cross(self, function: Callable[..., Coroutine[Any, Any, T]], *args: object) -> T:
        """Run an asyncio coroutine: here on asyncio, over the bridge on trio."""
        return await (BRIDGE.call(function, *args) if self._bridged else function(*args))

    async def _connect(self) -> None:
        try:
            self._connection = await Connection.open(self._path, self._patience)
            await self._connection.run(partial(cached.prepare, path=self._path, patience=self._patience))
        except sqlite3.Error as error:
            message = f"{self._path} cannot be opened: {described(error)}"
            raise BackendOpenError(message) from error

    def __repr__(self) -> str:
        """Name the file, and tell whether it is open."""
        return f"<SqliteCache {self._path}, {'closed' if self._home is None else 'open'}>"


def _forgotten(what: str) -> None:
    warnings.warn(f"{what} was not closed: leave its 'async with'.", ResourceWarning, stacklevel=2)
