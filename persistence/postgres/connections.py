"""Where connections come from: a small pool of one's own, or a pool that the caller brings.

asyncpg's own pool resets each connection that comes back, which costs a round trip and a task; connections here carry
no state from one use to the next, so there is nothing to reset.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any, Protocol

import asyncpg

from persistence.errors import PersistenceClosedError

if TYPE_CHECKING:
    from collections.abc import Callable

    from persistence.postgres.options import Options


class Lender(Protocol):
    """Lends connections."""

    async def borrow(self) -> asyncpg.Connection:
        """Return a connection that nobody else has. Raises an error of the driver if there is none to be had."""
        ...

    async def give_back(self, connection: asyncpg.Connection, *, lost: bool) -> None:
        """Take a connection back; one that is lost is closed, and another takes its place."""
        ...

    async def close(self) -> None:
        """Wait for what is lent, then close it; safe to call again."""
        ...


class OwnConnections:
    """Up to a number of connections, made when they are needed; the one used last is lent first."""

    def __init__(self, url: str, options: Options, *, now: Callable[[], float] = time.monotonic) -> None:
        """Lend connections to a database; none is made yet."""
        self._url = url
        self._options = options
        self._now = now
        self._idle: list[tuple[asyncpg.Connection, float]] = []
        self._room = asyncio.Semaphore(options.pool_size)
        self._closed = False

    @property
    def idle(self) -> int:
        """How many connections wait to be lent."""
        return len(self._idle)

    async def borrow(self) -> asyncpg.Connection:
        """Return an idle connection or a new one; waits while as many as may be are lent.

        Raises:
            PersistenceClosedError: It was closed meanwhile.
            TimeoutError: None came back in time.
        """
        if self._room.locked():
            async with asyncio.timeout(self._options.acquire_timeout):
                await self._room.acquire()
        else:
            await self._room.acquire()
        if self._closed:
            self._room.release()
            message = "The connections were closed."
            raise PersistenceClosedError(message)
        try:
            return self._reused() or await self._options.connect(self._url)
        except BaseException:
            self._room.release()
            raise

    async def give_back(self, connection: asyncpg.Connection, *, lost: bool) -> None:
        """Keep a connection for whoever comes next.

        If it is lost, the idle ones are not trusted either: what ended one, a restart for instance, ended them all.
        """
        if lost or connection.is_closed():
            connection.terminate()
            self._drop_idle()
        elif self._closed:
            connection.terminate()
        else:
            self._idle.append((connection, self._now()))
        self._room.release()

    async def close(self) -> None:
        """Wait for what is lent, then say goodbye to the server on every connection."""
        if self._closed:
            return
        self._closed = True
        for _ in range(self._options.pool_size):
            await self._room.acquire()
        while self._idle:
            connection, _ = self._idle.pop()
            await _farewell(connection, self._options.connect_timeout)
        for _ in range(self._options.pool_size):
            self._room.release()

    def _reused(self) -> asyncpg.Connection | None:
        stale = self._now() - self._options.idle_timeout
        while self._idle and self._idle[0][1] < stale:
            self._idle.pop(0)[0].terminate()
        while self._idle:
            connection, _ = self._idle.pop()
            if not connection.is_closed():
                return connection
        return None

    def _drop_idle(self) -> None:
        while self._idle:
            self._idle.pop()[0].terminate()


class BroughtConnections:
    """A pool that the caller made; closed here only if it was made for this one user."""

    def __init__(self, pool: Any, options: Options, *, owned: bool) -> None:
        """Lend out of a pool."""
        self._pool = pool
        self._options = options
        self._owned = owned

    async def borrow(self) -> asyncpg.Connection:
        """Return a connection of the pool."""
        return await self._pool.acquire(timeout=self._options.acquire_timeout)

    async def give_back(self, connection: asyncpg.Connection, *, lost: bool) -> None:
        """Hand a connection to its pool."""
        if lost:
            connection.terminate()
        await self._pool.release(connection, timeout=self._options.command_timeout)

    async def close(self) -> None:
        """Close the pool if it was made for this user."""
        if self._owned:
            await self._pool.close()


def lives_here(pool: object) -> bool:
    """Whether a pool can be used on the running event loop."""
    # It has no public name for its loop; what is no pool of asyncpg's is believed.
    return getattr(pool, "_loop", None) in {None, asyncio.get_running_loop()}


async def _farewell(connection: asyncpg.Connection, seconds: float) -> None:
    try:
        await connection.close(timeout=seconds)
    except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
        connection.terminate()
