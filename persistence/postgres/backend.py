"""The PostgreSQL backend: statements on borrowed connections, tried again where a fault may pass."""

from __future__ import annotations

import warnings
import weakref
from functools import partial
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar
from urllib.parse import urlsplit

import anyio

from persistence.errors import BackendOpenError, PersistenceClosedError, PersistenceError, TransientBackendError
from persistence.outlasting import outlast
from persistence.postgres import reading, writing
from persistence.postgres.connections import BroughtConnections, Lender, OwnConnections, lives_here
from persistence.postgres.faults import DRIVER_ERRORS, described, is_lost, read_fault, write_fault
from persistence.postgres.layout import Layout
from persistence.postgres.sessions import Session
from persistence.postgres.statements import MIGRATIONS
from persistence.writer.batching import segments
from persistence.writer.crossing import Crossing
from persistence.writer.failing import delay

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    import asyncpg

    from persistence.contracts.backend import Page, Query, Request
    from persistence.postgres.options import Options
    from persistence.writer.limits import Limits

T = TypeVar("T")

Source: TypeAlias = "str | asyncpg.Pool | Callable[[], Any]"
"""A URL, a pool, or a function that makes a pool on the event loop it will be used on."""

LAYOUT: Final = Layout(
    {
        "checkpoints": (
            "thread_id",
            "checkpoint_ns",
            "checkpoint_id",
            "parent_checkpoint_id",
            "type",
            "checkpoint",
            "metadata",
        ),
        "checkpoint_writes": (
            "thread_id",
            "checkpoint_ns",
            "checkpoint_id",
            "task_id",
            "idx",
            "channel",
            "type",
            "blob",
            "task_path",
        ),
        "checkpoint_blobs": ("thread_id", "checkpoint_ns", "channel", "version", "type", "blob"),
    },
    MIGRATIONS,
    "checkpoint_migrations",
    "v",
)


class Database:
    """One database: where connections come from, and how work on them is tried."""

    def __init__(self, source: Source, options: Options, limits: Limits) -> None:
        """Describe a database; nothing is opened yet."""
        self._source = source
        self._options = options
        self._limits = limits
        self._crossing = Crossing()
        self._lender: Lender | None = None
        self._finalizer: weakref.finalize[..., Database] | None = None
        self.name = _name(source)

    async def open(self, prepare: Callable[[Session], Awaitable[None]]) -> None:
        """Connect once and prepare the tables.

        Raises:
            BackendOpenError: It cannot be reached, or its tables are not ours; nothing was changed.
        """
        self._crossing.open()
        # Also runs when the interpreter exits, which __del__ may not.
        self._finalizer = weakref.finalize(self, _forgotten, repr(self))
        try:
            await self._crossing.call(self._start, prepare)
        except DRIVER_ERRORS as error:
            message = f"{self.name} cannot be opened: {described(error)}"
            raise BackendOpenError(message) from error

    async def close(self) -> None:
        """Close every connection; safe to call again."""
        if self._finalizer is not None:
            self._finalizer.detach()
        if self._lender is not None:
            await outlast(partial(self._crossing.call, self._lender.close))
            self._lender = None
        self._crossing.close()

    async def write(self, work: Callable[[Session], Awaitable[T]]) -> T:
        """Do something that may be done twice; a fault that may pass is left to the caller to try again.

        Raises:
            TransientBackendError, BackendError: what ``write_fault`` makes of it.
        """
        self._check()
        try:
            # Under the shield of whoever writes; a deadline that passes there costs the connection, as it should.
            return await self._crossing.pass_on(self._borrowed, work)
        except DRIVER_ERRORS as error:
            raise write_fault(error, self.name) from error

    async def read(self, work: Callable[[Session], Awaitable[T]]) -> T:
        """Look something up, again while a fault may pass: as long as commits are tried."""
        return await self._tried(work, read_fault)

    async def persist(self, work: Callable[[Session], Awaitable[T]]) -> T:
        """Do something that may be done twice, again while a fault may pass."""
        return await self._tried(work, write_fault)

    async def _tried(
        self, work: Callable[[Session], Awaitable[T]], told: Callable[[BaseException, str], PersistenceError]
    ) -> T:
        attempt = 0
        while True:
            attempt += 1
            self._check()
            try:
                return await self._crossing.call(self._borrowed, work)
            except DRIVER_ERRORS as error:
                fault = told(error, self.name)
                if not isinstance(fault, TransientBackendError) or attempt == self._limits.attempts:
                    raise fault from error
            await anyio.sleep(delay(attempt, self._limits))

    def _check(self) -> None:
        if self._lender is None:
            message = f"{self!r} is not open."
            raise PersistenceClosedError(message)

    async def _start(self, prepare: Callable[[Session], Awaitable[None]]) -> None:
        self._lender = await self._made()
        await self._borrowed(prepare)

    async def _made(self) -> Lender:
        if isinstance(self._source, str):
            return OwnConnections(self._source, self._options)
        if not callable(self._source):
            if self._crossing.bridged or not lives_here(self._source):
                message = (
                    "This pool belongs to another event loop: on trio, and for blocking calls, the driver has one of "
                    "its own. Pass a URL, or a function that makes the pool there (lambda: asyncpg.create_pool(...))."
                )
                raise PersistenceError(message)
            return BroughtConnections(self._source, self._options, owned=False)
        pool: Any = self._source()
        if isawaitable(pool):
            pool = await pool
        return BroughtConnections(pool, self._options, owned=True)

    async def _borrowed(self, work: Callable[[Session], Awaitable[T]]) -> T:
        lender = self._lender
        assert lender is not None  # noqa: S101 - closing waits for whoever got here
        connection = await lender.borrow()
        lost = True
        try:
            session = Session(connection, self._options.command_timeout, pooler=self._options.transaction_pooler)
            result = await work(session)
            lost = False
        except Exception as error:
            lost = is_lost(error)
            raise
        finally:
            await lender.give_back(connection, lost=lost)
        return result

    def __repr__(self) -> str:
        """Name the database, without its password."""
        return f"<PostgreSQL {self.name}>"


class PostgresBackend:
    """The saver's tables in one database."""

    def __init__(self, database: Database) -> None:
        """Keep checkpoints in a database; nothing is opened yet."""
        self._database = database

    async def open(self) -> None:
        """Connect and bring the tables up to date.

        Raises:
            BackendOpenError: It cannot be reached, or its tables are not ours; nothing was changed.
        """
        await self._database.open(partial(LAYOUT.migrate, name=self._database.name))

    async def close(self) -> None:
        """Close every connection; safe to call again."""
        await self._database.close()

    async def setup(self) -> None:
        """Bring the tables up to date; safe from many processes at once."""
        await self._database.write(partial(LAYOUT.migrate, name=self._database.name))

    async def commit(self, batch: Sequence[Request]) -> None:
        """Apply the requests in one transaction; a batch of units is one round trip."""
        await self._database.write(partial(writing.commit, segments=segments(batch)))

    async def load(self, thread_id: str, checkpoint_ns: str, checkpoint_id: str | None) -> Page:
        """Return the addressed checkpoint, or the newest one."""
        find = partial(reading.load, thread_id=thread_id, checkpoint_ns=checkpoint_ns, checkpoint_id=checkpoint_id)
        return await self._database.read(find)

    async def page(self, query: Query) -> Page:
        """Return a page of matching checkpoints."""
        return await self._database.read(partial(reading.page, query=query))

    def __repr__(self) -> str:
        """Name the database, without its password."""
        return repr(self._database)


def _name(source: Source) -> str:
    """Return what to call a database in messages: host and name, never a password."""
    if not isinstance(source, str):
        return "the database of the given pool"
    parts = urlsplit(source)
    host = parts.netloc.rpartition("@")[2]
    return f"{host or 'local socket'}{parts.path}"


def _forgotten(what: str) -> None:
    warnings.warn(
        f"{what} was not closed: leave its 'async with'. What was committed is safe.", ResourceWarning, stacklevel=2
    )
