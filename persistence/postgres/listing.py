"""Looking into a database without a graph and without a saver, in sessions that cannot write."""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from persistence import portal
from persistence.contracts.listing import (
    CheckpointSummary,
    StoredCheckpoint,
    TaskSummary,
    ThreadSummary,
    outcome,
    summary,
)
from persistence.errors import BackendOpenError, StoredDataError
from persistence.postgres import jsonb, reading
from persistence.postgres.backend import LAYOUT, Database
from persistence.postgres.options import Options
from persistence.postgres.statements import queries
from persistence.writer.decoding import Decoder
from persistence.writer.limits import DEFAULT_LIMITS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Sequence

    from persistence.postgres.sessions import Session
    from persistence.serde.serializer import Serializer

T = TypeVar("T")

_SQL: Final = queries("listing_queries.sql")
_SESSION: Final = {"server_settings": {"default_transaction_read_only": "on"}}


class Listing:
    """Reads one database; made by ``look_into``. Every method blocks, and raises PersistenceError."""

    def __init__(self, database: Database) -> None:
        """Wrap a database that is open on the process's portal."""
        self._database = database

    def threads(self, limit: int | None = None) -> list[ThreadSummary]:
        """Return threads, the last active first."""
        rows = self._rows("threads") if limit is None else self._rows("newest_threads", limit)
        return [ThreadSummary(row[0], row[1], row[2], _summary(row[3:])) for row in rows]

    def thread_count(self) -> int:
        """Return how many threads there are."""
        count: int = self._rows("count_threads")[0][0]
        return count

    def checkpoint_count(self, thread_id: str) -> int:
        """Return how many checkpoints a thread has, in all its namespaces."""
        count: int = self._rows("count_checkpoints", thread_id)[0][0]
        return count

    def thread_bytes(self, thread_id: str) -> int:
        """Return the bytes that a thread's rows hold; reads all of them."""
        return int(self._rows("thread_bytes", thread_id)[0][0])

    def checkpoints(self, thread_id: str, limit: int | None = None) -> list[CheckpointSummary]:
        """Return a thread's checkpoints, newest first."""
        return [_summary(row) for row in self._rows("checkpoints", thread_id, limit)]

    def tasks(self, thread_id: str, checkpoint_ns: str, checkpoint_id: str) -> list[TaskSummary]:
        """Return the tasks that wrote against a checkpoint."""
        rows = self._rows("tasks", thread_id, checkpoint_ns, checkpoint_id)
        return [TaskSummary(task_id, path, outcome(indices)) for task_id, path, indices in rows]

    def checkpoint(
        self, thread_id: str, checkpoint_ns: str, checkpoint_id: str | None, serializer: Serializer
    ) -> StoredCheckpoint | None:
        """Return one checkpoint with its values, or the newest one; None if there is none."""
        find = partial(reading.load, thread_id=thread_id, checkpoint_ns=checkpoint_ns, checkpoint_id=checkpoint_id)
        page = self._read(find)
        if not page.checkpoints:
            return None
        row = page.checkpoints[0]
        found, damage = None, None
        try:
            found = Decoder(serializer).decode(row, page)
        except StoredDataError as error:
            damage = str(error)
        return StoredCheckpoint(_summary(row[1:4] + row[5:]), found, damage, self.tasks(*row[:3]))

    def _rows(self, query: str, *values: object) -> Sequence[Any]:
        async def ask(session: Session) -> Sequence[Any]:
            return await session.rows(_SQL[query], *values)

        return self._read(ask)

    def _read(self, work: Callable[[Session], Awaitable[T]]) -> T:
        return _there(partial(self._database.read, work))


@contextmanager
def look_into(url: str) -> Iterator[Listing]:
    """Open a database for reading; for callers that block.

    Raises:
        BackendOpenError: It cannot be reached, or holds no threads of this library.
        SchemaVersionError: A newer version of this library wrote it.
    """
    options = Options(pool_size=1, connect_arguments=_SESSION)
    database = Database(url, options, DEFAULT_LIMITS)

    async def check(session: Session) -> None:
        if not await LAYOUT.is_there(session, database.name):
            message = f"{database.name} holds no threads: no saver of this library has written it."
            raise BackendOpenError(message)

    try:
        _there(partial(database.open, check))
        yield Listing(database)
    finally:
        _there(database.close)


def _there(work: Callable[[], Awaitable[T]]) -> T:
    """Do something on the portal's loop, where the database is open."""
    return portal.call(work, at=None, thread=None, instead="Listing")


def _summary(row: Sequence[Any]) -> CheckpointSummary:
    ns, checkpoint_id, parent, checkpoint, metadata = row
    return summary((ns, checkpoint_id, parent, _json(checkpoint), _json(metadata)))


def _json(text: str) -> bytes:
    return jsonb.restored(text).encode("utf-8", "surrogatepass")
