"""Looking into a database without a graph and without a saver, in sessions that cannot write."""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from persistence.contracts.listing import (
    CheckpointSummary,
    TaskSummary,
    ThreadSummary,
    outcome,
    outcomes,
    summary,
)
from persistence.errors import BackendOpenError
from persistence.postgres import jsonb, reading
from persistence.postgres.backend import LAYOUT, Database
from persistence.postgres.options import Options
from persistence.postgres.sessions import Session
from persistence.postgres.statements import queries
from persistence.writer.limits import DEFAULT_LIMITS
from persistence.writer.looking import RemoteListing, there

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from persistence.contracts.backend import CheckpointRow, Page

_SQL: Final = queries("listing_queries.sql")
_SESSION: Final = {"server_settings": {"default_transaction_read_only": "on"}}


class Listing(RemoteListing[Session]):
    """Reads one database; made by ``look_into``."""

    def threads(self, limit: int | None = None) -> list[ThreadSummary]:
        """Return threads, the last active first."""
        rows = self._rows("threads") if limit is None else self._rows("newest_threads", limit)
        return [ThreadSummary(row[0], row[1], row[2], _summary(row[3:8]), outcomes(row[8])) for row in rows]

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

    async def _load(self, session: Session, *, thread_id: str, checkpoint_ns: str, checkpoint_id: str | None) -> Page:
        return await reading.load(session, thread_id, checkpoint_ns, checkpoint_id)

    def _summary(self, row: CheckpointRow) -> CheckpointSummary:
        return _summary(row[1:4] + row[5:])

    def _rows(self, query: str, *values: object) -> Sequence[Any]:
        async def ask(session: Session) -> Sequence[Any]:
            return await session.rows(_SQL[query], *values)

        return self._read(ask)


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
        there(partial(database.open, check))
        yield Listing(database)
    finally:
        there(database.close)


def _summary(row: Sequence[Any]) -> CheckpointSummary:
    ns, checkpoint_id, parent, checkpoint, metadata = row
    return summary((ns, checkpoint_id, parent, _json(checkpoint), _json(metadata)))


def _json(text: str) -> bytes:
    return jsonb.restored(text).encode("utf-8", "surrogatepass")
