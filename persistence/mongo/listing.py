"""Looking into a database without a graph and without a saver: nothing is written or created."""

from __future__ import annotations

from contextlib import aclosing, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import bson

from persistence.contracts.backend import Query
from persistence.contracts.checkpoint import WRITES_IDX_MAP
from persistence.contracts.listing import CheckpointSummary, TaskSummary, ThreadSummary, outcome
from persistence.mongo import reading
from persistence.mongo.backend import THREADS
from persistence.mongo.chunks import in_parts
from persistence.mongo.options import Options
from persistence.mongo.rows import checkpoint_id, checkpoint_row, write_rows
from persistence.mongo.server import Server, Session
from persistence.writer.limits import DEFAULT_LIMITS
from persistence.writer.looking import RemoteListing, summary_of, tasks_of, there

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from persistence.contracts.backend import CheckpointRow, Page, WriteRow
    from persistence.mongo.rows import Document

CHECKPOINTS: Final = {"kind": "checkpoint"}

OUTCOME: Final = (
    *("kind", "thread_id", "checkpoint_ns", "checkpoint_id", "task_id"),
    *(f"rows.{index}.channel" for index in (0, *WRITES_IDX_MAP.values())),
)
"""What tells what became of a task: whether it wrote, and the special channels; not what they hold."""

WALKED: Final = 5000
"""Checkpoints whose thread is fetched at once: those of fifty threads of a hundred."""


class Listing(RemoteListing[Session]):
    """Reads one database; made by ``look_into``."""

    def threads(self, limit: int | None = None) -> list[ThreadSummary]:
        """Return threads, the last active first; without a limit it looks at an index entry of every checkpoint."""
        return self._read(partial(_threads, limit=limit))

    def thread_count(self) -> int:
        """Return how many threads there are; looks at an index entry of every checkpoint."""
        return len(self._read(partial(_grouped, key="$thread_id")))

    def checkpoint_count(self, thread_id: str) -> int:
        """Return how many checkpoints a thread has, in all its namespaces."""
        found = self._read(partial(_grouped, key=None, names=[thread_id]))
        return int(found[0]["count"]) if found else 0

    def thread_bytes(self, thread_id: str) -> int:
        """Return the bytes that a thread's documents hold; reads all of them."""
        return self._read(partial(_bytes, thread_id=thread_id))

    def checkpoints(self, thread_id: str, limit: int | None = None) -> list[CheckpointSummary]:
        """Return a thread's checkpoints, newest first."""
        query = Query(thread_id=thread_id, limit=0 if limit is None else limit)
        return [summary_of(row) for row in self._read(partial(_rows, query=query))]

    def tasks(self, thread_id: str, checkpoint_ns: str, checkpoint_id: str) -> list[TaskSummary]:
        """Return the tasks that wrote against a checkpoint."""
        where = {"thread_id": thread_id, "checkpoint_ns": checkpoint_ns, "checkpoint_id": checkpoint_id}
        return tasks_of(self._read(partial(_writes, where={"kind": "writes", **where})))

    async def _load(self, session: Session, *, thread_id: str, checkpoint_ns: str, checkpoint_id: str | None) -> Page:
        return await reading.load(session, thread_id, checkpoint_ns, checkpoint_id)


async def _newest(session: Session, limit: int) -> list[str]:
    """Return the threads that were active last, walking back from the newest checkpoint."""
    found: dict[str, None] = {}
    walk = session.each(session.living(CHECKPOINTS), fields=("thread_id",), order=reading.OF_ALL, size=WALKED)
    async with aclosing(walk) as documents:
        async for document in documents:
            if len(found) == limit:
                break
            found[document["thread_id"]] = None
    return list(found)


async def _grouped(session: Session, *, key: object, names: Sequence[str] | None = None) -> list[Document]:
    """Return how many checkpoints there are of each key, and the newest; of some threads, or of all."""
    where = CHECKPOINTS if names is None else {**CHECKPOINTS, "thread_id": {"$in": list(names)}}
    living = session.living(where)
    return await session.grouped(living, key, newest={"$max": "$checkpoint_id"}, count={"$sum": 1})


async def _threads(session: Session, *, limit: int | None) -> list[ThreadSummary]:
    names = None if limit is None else await _newest(session, limit)
    spaces = await _grouped(session, key={"thread": "$thread_id", "ns": "$checkpoint_ns"}, names=names)
    threads: dict[str, list[tuple[str, str, int]]] = {}
    for each in spaces:
        threads.setdefault(each["_id"]["thread"], []).append((each["_id"]["ns"], each["newest"], each["count"]))
    activity = {thread: max(newest for _, newest, _ in found) for thread, found in threads.items()}
    listed = sorted(threads, key=lambda thread: (activity[thread], thread), reverse=True)[:limit]
    heads = {checkpoint_id(thread, *min(threads[thread])[:2]): thread for thread in listed}
    outcomes = await _outcomes(session, {(thread, *min(threads[thread])[:2]) for thread in listed})
    rows: dict[str, CheckpointRow] = {}
    for part in in_parts(heads):
        documents = await session.find({"_id": {"$in": part}})
        rows |= {heads[document["_id"]]: row for document, row in await _with_pieces(session, documents)}
    return [
        ThreadSummary(
            thread,
            len(threads[thread]),
            sum(count for *_, count in threads[thread]),
            summary_of(rows[thread]),
            outcomes.get(thread, ()),
        )
        for thread in listed
        if thread in rows  # it may be gone by now
    ]


async def _outcomes(session: Session, heads: set[tuple[str, str, str]]) -> dict[str, list[str]]:
    """Return, by thread, what became of the tasks that wrote against these checkpoints."""
    found: dict[str, list[str]] = {}
    for part in in_parts({head[2] for head in heads}):
        threads = sorted({head[0] for head in heads if head[2] in part})
        where = {"kind": "writes", "thread_id": {"$in": threads}, "checkpoint_id": {"$in": part}}
        async for document in session.each(where, fields=OUTCOME):
            rows = write_rows(document, {})
            if rows and rows[0][:3] in heads:
                found.setdefault(rows[0][0], []).append(outcome([row[4] for row in rows]))
    return found


async def _rows(session: Session, *, query: Query) -> list[CheckpointRow]:
    where, order = reading.selection(query)
    documents = await session.find(session.living(where), order=order, limit=query.limit)
    return [row for _, row in await _with_pieces(session, documents)]


async def _with_pieces(session: Session, documents: Sequence[Document]) -> list[tuple[Document, CheckpointRow]]:
    pieces = await reading.whole_pieces(session, documents)
    return [(document, checkpoint_row(document, pieces)) for document in documents]


async def _writes(session: Session, *, where: Document) -> list[WriteRow]:
    return [row for document in await session.find(where) for row in write_rows(document, {})]


async def _bytes(session: Session, *, thread_id: str) -> int:
    count = 0
    async for document in session.each({"thread_id": thread_id}):
        count += len(bson.encode(document))
    return count


@contextmanager
def look_into(url: str, **settings: Any) -> Iterator[Listing]:
    """Open a database for reading; for callers that block.

    Raises:
        BackendOpenError: It cannot be reached, or holds no threads of this library.
        SchemaVersionError: A newer version of this library wrote it.
    """
    server = Server(url, Options(pool_size=1, **settings), DEFAULT_LIMITS, THREADS)
    try:
        there(partial(server.open, creates=False))
        yield Listing(server)
    finally:
        there(server.close)
