"""Looking into a server without a graph and without a saver: nothing is written, and no time to live starts again."""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote_to_bytes

from persistence.contracts.backend import Query
from persistence.contracts.listing import CheckpointSummary, TaskSummary, ThreadSummary, outcome
from persistence.redis import reading
from persistence.redis.options import Options
from persistence.redis.rows import checkpoint, parted
from persistence.redis.scripts import LIST_THREADS, NEWEST_THREADS, SUM_UP
from persistence.redis.server import Server, Session
from persistence.writer.limits import DEFAULT_LIMITS
from persistence.writer.looking import RemoteListing, summary_of, tasks_of, there

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from persistence.contracts.backend import Page

LOOKED: Final = 1000
"""Keys looked at, or threads summed up, by one call: so that others get their turn."""

ALL: Final = 2**31 - 1


class Listing(RemoteListing[Session]):
    """Reads one server; made by ``look_into``."""

    def threads(self, limit: int | None = None) -> list[ThreadSummary]:
        """Return threads, the last active first; without a limit it looks at every key of the server."""
        active = self._read(_all if limit is None else partial(_newest, limit=limit))
        found: list[ThreadSummary] = []
        for start in range(0, len(active), LOOKED):
            names = active[start : start + LOOKED]
            told = self._read(partial(_summed_up, thread_ids=names))
            found += [_thread(*each) for each in zip(names, told, strict=True) if each[1]]
        return found

    def thread_count(self) -> int:
        """Return how many threads there are; looks at every key of the server."""
        return len(self._read(_all))

    def checkpoint_count(self, thread_id: str) -> int:
        """Return how many checkpoints a thread has, in all its namespaces."""
        told = self._read(partial(_summed_up, thread_ids=[thread_id]))[0]
        return int(told[1]) if told else 0

    def thread_bytes(self, thread_id: str) -> int:
        """Return the bytes that a thread takes in the server's memory."""
        told = self._read(partial(_summed_up, thread_ids=[thread_id], weighs=True))[0]
        return int(told[5]) if told else 0

    def checkpoints(self, thread_id: str, limit: int | None = None) -> list[CheckpointSummary]:
        """Return a thread's checkpoints, newest first."""
        query = Query(thread_id=thread_id, limit=ALL if limit is None else limit)
        return [summary_of(row) for row in self._read(partial(reading.records, query=query))]

    def tasks(self, thread_id: str, checkpoint_ns: str, checkpoint_id: str) -> list[TaskSummary]:
        """Return the tasks that wrote against a checkpoint."""
        return tasks_of(
            self._read(
                partial(reading.writes, thread_id=thread_id, checkpoint_ns=checkpoint_ns, checkpoint_id=checkpoint_id)
            )
        )

    async def _load(self, session: Session, *, thread_id: str, checkpoint_ns: str, checkpoint_id: str | None) -> Page:
        return await reading.load(session, thread_id, checkpoint_ns, checkpoint_id, 0)


async def _newest(session: Session, *, limit: int) -> list[str]:
    """Return the threads that were active last, by one call if they have not too many checkpoints."""
    found: list[str] = []
    high = "+"
    while high and len(found) < limit:
        told, threads = await session.run(NEWEST_THREADS, (high, limit - len(found), found))
        found += [name.decode() for name in threads]
        high = told and "(" + told.decode()
    return found


async def _all(session: Session) -> list[str]:
    """Return every thread, the last active first."""
    found: dict[str, str] = {}
    cursor = "0"
    while True:
        told, threads = await session.run(LIST_THREADS, (cursor, LOOKED))
        for name, newest in zip(threads[::2], threads[1::2], strict=True):
            found[unquote_to_bytes(name).decode()] = parted(newest)[0]
        cursor = told.decode()
        if cursor == "0":
            return sorted(found, key=lambda name: (found[name], name), reverse=True)


async def _summed_up(session: Session, *, thread_ids: Sequence[str], weighs: bool = False) -> Sequence[Any]:
    told: Sequence[Any] = await session.run(SUM_UP, (thread_ids, weighs))
    return told


def _thread(thread_id: str, told: Sequence[Any]) -> ThreadSummary:
    spaces, count, ns, checkpoint_id, record, _, written = told
    row = checkpoint(thread_id, ns.decode(), checkpoint_id.decode(), record)
    tasks: dict[str, list[int]] = {}
    for _, _, task_id, index in map(parted, written):
        tasks.setdefault(task_id, []).append(int(index))
    return ThreadSummary(thread_id, spaces, count, summary_of(row), [*map(outcome, tasks.values())])


@contextmanager
def look_into(url: str, **settings: Any) -> Iterator[Listing]:
    """Open a server for reading; for callers that block. One that holds no threads is as good as any.

    Raises:
        BackendOpenError: It cannot be reached.
    """
    server = Server(url, Options(pool_size=1, **settings), DEFAULT_LIMITS)
    try:
        there(server.open)
        yield Listing(server)
    finally:
        there(server.close)
