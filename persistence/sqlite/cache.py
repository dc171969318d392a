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

from persistence.blocking import BlockingCache
from persistence.contracts.cache import BaseCache
from persistence.errors import BackendOpenError, PersistenceClosedError, PersistenceError
from persistence.outlasting import outlast
from persistence.serde.caching import CachedValues
from persistence.sqlite import cached
from persistence.sqlite.connection import Connection
from persistence.sqlite.faults import described, read_fault, write_fault
from persistence.sqlite.opening import path_of, require_sqlite
from persistence.writer.bridge import BRIDGE, on_trio
from persistence.writer.home import Home

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
    from types import TracebackType
    from typing import Self

    from anyio.lowlevel import EventLoopToken

    from persistence.contracts.cache import FullKey, Namespace
    from persistence.serde.serializer import Serializer

T = TypeVar("T")


class SqliteCache(BlockingCache, BaseCache):
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
        self._path = path_of(path)
        self._values = CachedValues(serde)
        self._patience = busy_timeout
        self._clock = clock
        self._home: Home | None = None
        self._connection: Connection | None = None
        self._bridged = False
        self._finalizer: weakref.finalize[..., SqliteCache] | None = None

    @property
    def home_token(self) -> EventLoopToken | None:
        """The event loop the cache is open on; None while closed."""
        return None if self._home is None else self._home.token

    @property
    def home_thread(self) -> int | None:
        """The thread the cache is open on; None while closed."""
        return None if self._home is None else self._home.thread

    async def __aenter__(self) -> Self:
        """Open the file and bring its tables up to date.

        Raises:
            BackendOpenError: It cannot be opened or is not ours; it was not changed.
            PersistenceError: The cache is open already.
        """
        require_sqlite()
        if self._home is not None:
            message = f"{self!r} is open already: share it, or make a second cache."
            raise PersistenceError(message)
        self._home = Home()
        if on_trio():
            BRIDGE.acquire()
            self._bridged = True
        try:
            # Shielded, because half an opening cannot be closed: it takes no longer than the patience for locks.
            with anyio.CancelScope(shield=True):
                await self._cross(self._connect)
        except BaseException:
            with anyio.CancelScope(shield=True):
                await self._disconnect()
            raise
        # Also runs when the interpreter exits, which __del__ may not.
        self._finalizer = weakref.finalize(self, _forgotten, repr(self))
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close the file. Cancelling the scope around does not cut this short."""
        if self._finalizer is not None:
            self._finalizer.detach()
        await outlast(self._disconnect)

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

    def key_of(self, value: object) -> str:
        """Return a digest of the value's stored form. Raises SerializationError."""
        return self._values.key_of(value)

    def register_types(self, types: Iterable[type]) -> None:
        """Allow values of these types to be kept and rebuilt."""
        self._values.serde.register_types(types)

    async def _run(
        self, work: Callable[[sqlite3.Connection], T], fault: Callable[[sqlite3.Error, str], PersistenceError]
    ) -> T:
        """Run a function in the connection's thread. A cancel gives up the wait; the function runs to its end."""
        if self._connection is None or self._home is None:
            message = f"{self!r} is not open: use it inside 'async with cache:' (or 'with cache:')."
            raise PersistenceClosedError(message)
        self._home.check(self)
        try:
            return await self._cross(self._connection.run, work)
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

    async def _disconnect(self) -> None:
        """Close whatever is open; safe to call again."""
        if self._connection is not None:
            await self._cross(self._connection.close)
            self._connection = None
        if self._bridged:
            self._bridged = False
            BRIDGE.release()
        self._home = None

    def __repr__(self) -> str:
        """Name the file, and tell whether it is open."""
        return f"<SqliteCache {self._path}, {'closed' if self._home is None else 'open'}>"


def _forgotten(what: str) -> None:
    warnings.warn(f"{what} was not closed: leave its 'async with'.", ResourceWarning, stacklevel=2)
