"""Batches as jobs for scripts: one call for any number of units, one for each deletion or copy between them.

A call happens as a whole or not at all, and its requests in order. What stands in calls of its own may be done when a
later call of the same batch fails; as every request can be done again, that is as if the batch had been a smaller one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

from persistence.contracts.backend import CopyThread, DeleteRuns, DeleteThread, Prune, Query
from persistence.errors import CheckpointConflictError
from persistence.redis import reading
from persistence.redis.rows import blob, blob_parts, joined, parted, record, write, write_parts
from persistence.redis.scripts import DELETE, DUMP, STORE, TRIM
from persistence.writer.batching import Merged, Segment
from persistence.writer.filtering import metadata_run_id

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from persistence.contracts.backend import CheckpointRow
    from persistence.redis.server import Session

SCANNED: Final = 1000
"""Checkpoints whose metadata is read at once, to find those of a run."""

Fence: TypeAlias = tuple[int, str, str, str, str]
"""(number of the thread, checkpoint_ns, checkpoint_id, the head it expects, the newest that comes before it)"""


async def commit(session: Session, segments: Sequence[Segment], ttl: int) -> None:
    """Carry out everything in order. ``ttl`` is in milliseconds, 0 for ever.

    Raises an error of the driver, or CheckpointConflictError.
    """
    for segment in segments:
        if isinstance(segment, Merged):
            await _store(session, segment, ttl)
        elif isinstance(segment, DeleteThread):
            await session.run(DELETE, (segment.thread_id,))
        elif isinstance(segment, CopyThread):
            await _copy_thread(session, segment, ttl)
        elif isinstance(segment, Prune):
            await _prune(session, segment)
        else:
            await _delete_runs(session, segment)


class _Job:
    """Rows on their way to the script that stores them: threads and values by number."""

    def __init__(self) -> None:
        self.threads: dict[str, int] = {}
        self.values: list[bytes] = []
        self.fences: list[Fence] = []
        self.checkpoints: list[tuple[int, str, str, str, int]] = []
        self.blobs: list[tuple[int, str, int]] = []
        self.writes: list[tuple[int, str, int]] = []
        self.upserts: list[tuple[int, str, int]] = []

    def thread(self, thread_id: str) -> int:
        return self.threads.setdefault(thread_id, len(self.threads) + 1)

    def value(self, data: bytes) -> int:
        self.values.append(data)
        return len(self.values)

    def checkpoint(self, thread_id: str, ns: str, checkpoint_id: str, data: bytes) -> None:
        index = joined(checkpoint_id, thread_id, ns)
        own, ordered = joined(ns, checkpoint_id), joined(checkpoint_id, ns)
        self.checkpoints.append((self.thread(thread_id), own, ordered, index, self.value(data)))

    def row(self, table: list[tuple[int, str, int]], thread_id: str, field: str, data: bytes) -> None:
        table.append((self.thread(thread_id), field, self.value(data)))

    async def run(self, session: Session, ttl: int, *, gives_way: bool = False) -> None:
        """Have it done. Raises CheckpointConflictError."""
        names = list(self.threads)
        rows = self.checkpoints, self.blobs, self.writes, self.upserts
        refused: list[Any] = await session.run(STORE, (ttl, gives_way, names, self.fences, *rows), self.values)
        if refused:
            fence = self.fences[refused[0] - 1]
            raise _conflict(names[fence[0] - 1], fence, refused[1].decode())


async def _store(session: Session, rows: Merged, ttl: int) -> None:
    job = _Job()
    job.fences = _fences(rows.fenced, job)
    for row in rows.checkpoints:
        job.checkpoint(*row[:3], record(row))
    for blob_row in rows.blobs:
        job.row(job.blobs, blob_row[0], *blob_parts(blob_row))
    for table, written in ((job.writes, rows.writes), (job.upserts, rows.upserts)):
        for write_row in written:
            job.row(table, write_row[0], *write_parts(write_row))
    await job.run(session, ttl)


def _fences(moves: Iterable[tuple[CheckpointRow, str | None]], job: _Job) -> list[Fence]:
    """Return the units that expect a head, each with what the units before it will have stored."""
    coming: dict[tuple[str, str], str] = {}
    found: list[Fence] = []
    for row, expected in moves:
        thread_id, ns, checkpoint_id = row[:3]
        before = coming.get((thread_id, ns), "")
        if expected is not None:
            found.append((job.thread(thread_id), ns, checkpoint_id, expected, before))
        coming[thread_id, ns] = max(checkpoint_id, before)
    return found


def _conflict(thread_id: str, fence: Fence, head: str) -> CheckpointConflictError:
    _, ns, checkpoint_id, expected, _ = fence
    message = (
        f"Thread {thread_id!r}, namespace {ns!r} has moved on: another writer stored checkpoint "
        f"{head or 'none'} where {expected or 'none'} was expected. Checkpoint {checkpoint_id} was not "
        "saved; load the thread again and repeat the call."
    )
    return CheckpointConflictError(message)


async def _copy_thread(session: Session, request: CopyThread, ttl: int) -> None:
    source, target = request.source, request.target
    if source == target:
        return
    held: Sequence[Sequence[bytes]] = await session.run(DUMP, source)
    checkpoints, blobs, writes = (list(zip(fields[::2], fields[1::2], strict=True)) for fields in held)
    reseal, job = request.reseal, _Job()
    for member, data in checkpoints:
        ns, checkpoint_id = parted(member)
        job.checkpoint(target, ns, checkpoint_id, data)
    for field, data in blobs:
        moved = data if reseal is None else blob_parts(reseal.blob(blob(source, field, data), target))[1]
        job.row(job.blobs, target, field.decode(), moved)
    for field, data in writes:
        moved = data if reseal is None else write_parts(reseal.write(write(source, field, data), target))[1]
        job.row(job.writes, target, field.decode(), moved)
    if job.threads:
        await job.run(session, ttl, gives_way=True)


async def _prune(session: Session, request: Prune) -> None:
    if request.strategy == "delete":
        await session.run(DELETE, tuple(request.thread_ids))
    else:
        await session.run(TRIM, [(thread_id, False) for thread_id in request.thread_ids])


async def _delete_runs(session: Session, request: DeleteRuns) -> None:
    """Find the checkpoints of some runs, page by page, so that nobody waits for long; then delete them together."""
    runs = frozenset(request.run_ids)
    doomed: dict[str, list[str]] = {}
    query: Query | None = Query(limit=SCANNED) if runs else None
    while query is not None:
        facts, query = await reading.scan(session, query)
        for (thread_id, ns, checkpoint_id), metadata in facts:
            if metadata_run_id(metadata) in runs:
                doomed.setdefault(thread_id, []).append(joined(ns, checkpoint_id))
    if doomed:
        await session.run(TRIM, list(doomed.items()))
