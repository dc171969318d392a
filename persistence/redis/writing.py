"""Batches as jobs for scripts: one call for any number of units, one for each deletion or copy between them.

A call happens as a whole or not at all, and its requests in order. What stands in calls of its own may be done when a
later call of the same batch fails; as every request can be done again, that is as if the batch had been a smaller one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

from persistence.contracts.backend import CopyThread, DeleteThread, Prune
from persistence.errors import CheckpointConflictError
from persistence.redis.rows import blob, blob_parts, joined, parted, record, run_of_record, write, write_parts
from persistence.redis.scripts import DELETE, DUMP, STORE, TRIM
from persistence.redis.server import unpacked
from persistence.writer.batching import Merged, Segment
from persistence.writer.encoding import ROW_OVERHEAD
from persistence.writer.fencing import baseless, forks, uprooted
from persistence.writer.limits import MIB

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from persistence.contracts.backend import CheckpointRow
    from persistence.redis.server import Session
    from persistence.writer.fencing import Base

PART: Final = 16 * MIB
"""Bytes of a copy in one call, counting rows: others get their turn; smaller threads are copied as a whole."""

Fence: TypeAlias = tuple[int, str, str, str, str]
"""(number of the thread, checkpoint_ns, checkpoint_id, the head it expects, the newest that comes before it)

A sixth part names a checkpoint, as its field: if that is stored, the fence is open.
"""

NO_HEAD: Final = chr(0x10FFFF)
"""Expected where the head does not matter: then only a checkpoint that is there passes."""


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
            await session.run(TRIM, ((), segment.run_ids))


class _Job:
    """Rows on their way to the script that stores them: threads and values by number."""

    def __init__(self) -> None:
        self.threads: dict[str, int] = {}
        self.values: list[bytes] = []
        self.size = 0
        self.fences: list[Fence] = []
        self.bases: list[Base] = []
        self.forks: list[CheckpointRow] = []
        self.checkpoints: list[tuple[int, str, str, str, str | None, int]] = []
        self.blobs: list[tuple[int, str, int]] = []
        self.writes: list[tuple[int, str, int]] = []
        self.upserts: list[tuple[int, str, int]] = []

    def thread(self, thread_id: str) -> int:
        return self.threads.setdefault(thread_id, len(self.threads) + 1)

    def value(self, data: bytes) -> int:
        self.values.append(data)
        self.size += len(data) + ROW_OVERHEAD
        return len(self.values)

    def checkpoint(self, thread_id: str, ns: str, checkpoint_id: str, data: bytes) -> None:
        own, ordered = joined(ns, checkpoint_id), joined(checkpoint_id, ns)
        index, run = joined(checkpoint_id, thread_id, ns), run_of_record(data)
        of_run = joined(run, thread_id, ns, checkpoint_id) if run else None
        self.checkpoints.append((self.thread(thread_id), own, ordered, index, of_run, self.value(data)))

    def row(self, table: list[tuple[int, str, int]], thread_id: str, field: str, data: bytes) -> None:
        table.append((self.thread(thread_id), field, self.value(data)))

    async def run(self, session: Session, ttl: int, *, gives_way: bool = False) -> None:
        """Have it done. Raises CheckpointConflictError."""
        rows = self.checkpoints, self.blobs, self.writes, self.upserts
        based = [*map(self._needed, self.bases)]
        rooted = [(self.thread(row[0]), row[1], row[3], NO_HEAD, "", joined(row[1], row[2])) for row in self.forks]
        fences, names = [*self.fences, *based, *rooted], list(self.threads)
        refused: list[Any] = await session.run(STORE, (ttl, gives_way, names, fences, *rows), self.values)
        if refused:
            position = refused[0] - 1
            missing = position - len(self.fences)
            if missing >= len(based):
                raise CheckpointConflictError(uprooted(self.forks[missing - len(based)]))
            if missing >= 0:
                raise CheckpointConflictError(baseless(self.bases[missing]))
            fence = self.fences[position]
            raise _conflict(names[fence[0] - 1], fence, refused[1].decode())

    def _needed(self, base: Base) -> tuple[Any, ...]:
        """Return the fence of what must be there."""
        thread_id, ns, name = base.key
        fence = (self.thread(thread_id), ns, name, NO_HEAD if name else "", base.before)
        return fence if base.own is None else (*fence, joined(*base.own[1:]))


async def _store(session: Session, rows: Merged, ttl: int) -> None:
    job = _Job()
    job.fences, job.forks, job.bases = _fences(rows.fenced, job), forks(rows.fenced), [*rows.bases]
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
    gone = " (the thread expired or was deleted)" if expected and not head else ""
    message = (
        f"Thread {thread_id!r}, namespace {ns!r} has moved on: another writer stored checkpoint "
        f"{head or 'none'} where {expected or 'none'} was expected{gone}. Checkpoint {checkpoint_id} was not "
        "saved; load the thread again and repeat the call."
    )
    return CheckpointConflictError(message)


async def _copy_thread(session: Session, request: CopyThread, ttl: int) -> None:
    source, target = request.source, request.target
    if source == target:
        return
    checkpoints, blobs, sizes, body = await session.run(DUMP, source)
    parts, end = unpacked(sizes, body), checkpoints + blobs
    held = parts[:checkpoints], parts[checkpoints:end], parts[end:]
    job = _Job()
    for table, field, data in _moved(request, *held):
        if table == "checkpoints":
            ns, checkpoint_id = parted(field)
            job.checkpoint(target, ns, checkpoint_id, data)
        else:
            job.row(job.blobs if table == "blobs" else job.writes, target, field.decode(), data)
        if job.size > PART:
            await job.run(session, ttl, gives_way=True)
            job = _Job()
    if job.values:
        await job.run(session, ttl, gives_way=True)


def _moved(
    request: CopyThread, checkpoints: Sequence[bytes], blobs: Sequence[bytes], writes: Sequence[bytes]
) -> Iterator[tuple[str, bytes, bytes]]:
    """Yield the fields and values of a thread as the target will hold them; checkpoints after what they rest on."""
    reseal, source, target = request.reseal, request.source, request.target
    for field, data in zip(blobs[::2], blobs[1::2], strict=True):
        yield "blobs", field, data if reseal is None else blob_parts(reseal.blob(blob(source, field, data), target))[1]
    for field, data in zip(writes[::2], writes[1::2], strict=True):
        sealed = data if reseal is None else write_parts(reseal.write(write(source, field, data), target))[1]
        yield "writes", field, sealed
    for field, data in zip(checkpoints[::2], checkpoints[1::2], strict=True):
        yield "checkpoints", field, data


async def _prune(session: Session, request: Prune) -> None:
    if request.strategy == "delete":
        await session.run(DELETE, request.thread_ids)
    else:
        await session.run(TRIM, (request.thread_ids, ()))
