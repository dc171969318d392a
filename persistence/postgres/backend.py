"""The PostgreSQL backend: statements on borrowed connections, tried again where a fault may pass."""

from __future__ import annotations

from functools import partial
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, TypeVar
from urllib.parse import urlsplit

from persistence.errors import PersistenceError
from persistence.postgres import reading, writing
from persistence.postgres.connections import BroughtConnections, Lender, OwnConnections, lives_here
from persistence.postgres.faults import DRIVER_ERRORS, described, is_lost, read_fault, write_fault
from persistence.postgres.layout import Layout
from persistence.postgres.sessions import Session
from persistence.postgres.statements import MIGRATIONS
from persistence.writer.batching import segments
from persistence.writer.remote import Faults, Remote

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Sequence

    import asyncpg

    from persistence.contracts.backend import Page, Query, Request
    from persistence.contracts.lease import LeaseRow
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
        "checkpoint_leases": ("thread_id", "epoch", "owner", "graph", "held"),
        "checkpoint_owners": ("owner", "expires_at", "seconds"),
    },
    MIGRATIONS,
    "checkpoint_migrations",
    "v",
    {"checkpoint_leases": 2, "checkpoint_owners": 2},
)


class Database(Remote[Session]):
    """One database: where connections come from, and how work on them is tried."""

    faults = Faults(DRIVER_ERRORS, described, write_fault, read_fault)
    kept = "What was committed is safe."

    def __init__(self, source: Source, options: Options, limits: Limits) -> None:
        """Describe a database; nothing is opened yet."""
        super().__init__(_name(source), limits)
        self._source = source
        self._options = options
        self._lender: Lender | None = None

    async def open(self, prepare: Callable[[Session], Awaitable[None]]) -> None:
        """Connect once and prepare the tables.

        Raises:
            BackendOpenError: It cannot be reached, or its tables are not ours; nothing was changed.
        """
        await self._enter(self._start, prepare)

    def _connected(self) -> bool:
        return self._lender is not None

    def _let_go(self) -> Callable[[], Coroutine[Any, Any, None]] | None:
        lender, self._lender = self._lender, None
        return None if lender is None else lender.close

    async def _start(self, prepare: Callable[[Session], Awaitable[None]]) -> None:
        self._lender = await self._made()
        await self._at_work(prepare)

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

    async def _at_work(self, work: Callable[[Session], Awaitable[T]]) -> T:
        lender = self._lender
        if lender is None:
            raise self._closed()
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

    leasing: Literal[True] = True

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

    async def load_leased(self, thread_id: str, checkpoint_ns: str, checkpoint_id: str | None) -> Page:
        """Return likewise, with the thread's lease, in one round trip."""
        find = partial(
            reading.load_leased, thread_id=thread_id, checkpoint_ns=checkpoint_ns, checkpoint_id=checkpoint_id
        )
        return await self._database.read(find)

    async def lease(self, thread_id: str) -> LeaseRow | None:
        """Return a thread's lease."""
        return await self._database.read(partial(reading.lease, thread_id=thread_id))

    async def held_leases(self) -> list[LeaseRow]:
        """Return every lease that is held."""
        return await self._database.read(reading.held_leases)

    async def free_leases(self, graph: str, after: str, limit: int) -> list[LeaseRow]:
        """Return leases of a graph's threads that are not held, from behind a thread id on."""
        return await self._database.read(partial(reading.free_leases, graph=graph, after=after, limit=limit))

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
