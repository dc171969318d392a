"""Transactions: one statement for any number of units; a few more where history is deleted or copied."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import msgspec

from persistence.contracts.backend import CopyThread, DeleteRuns, DeleteThread, Prune
from persistence.errors import CheckpointConflictError
from persistence.postgres import jsonb
from persistence.postgres.statements import QUERIES
from persistence.writer.batching import Merged, Segment
from persistence.writer.decoding import unreferenced
from persistence.writer.encoding import checksum_of_facts
from persistence.writer.fencing import baseless, forks, origin, uprooted
from persistence.writer.leasing import Move, Stored, lost, moves

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from persistence.contracts.backend import BlobRow, CheckpointKey, CheckpointRow, WriteRow
    from persistence.postgres.sessions import Session
    from persistence.writer.fencing import Base

_json: Final = msgspec.json.Encoder().encode

Columns: TypeAlias = "tuple[Sequence[Any], ...]"
Fence: TypeAlias = tuple[str, str, str, str, str]
"""(thread_id, checkpoint_ns, checkpoint_id, the head it expects, the newest that the batch itself stores before it)"""

NO_HEAD: Final = chr(0x10FFFF)
"""Expected where the head does not matter: then only a checkpoint that is there passes."""


async def commit(session: Session, segments: Sequence[Segment]) -> None:
    """Carry out everything in one transaction; on any error nothing is kept.

    Raises an error of the driver, or CheckpointConflictError.
    """
    if len(segments) == 1 and isinstance(segments[0], Merged):
        await _carry_out(session, segments[0])
        return
    async with session.transaction():
        for segment in segments:
            await _carry_out(session, segment)


async def _carry_out(session: Session, segment: Segment) -> None:
    if isinstance(segment, Merged):
        await _store(session, segment)
    elif isinstance(segment, DeleteThread):
        await _delete_threads(session, [segment.thread_id])
    elif isinstance(segment, CopyThread):
        await _copy_thread(session, segment)
    elif isinstance(segment, Prune):
        await _prune(session, segment)
    else:
        await _delete_runs(session, segment)


async def _store(session: Session, rows: Merged) -> None:
    fences = _fences(rows.fenced)
    needed = [*(_needed(base) for base in rows.bases), *map(_start, forks(rows.fenced))]
    leases = moves(rows.leased)
    # One statement cannot change a row twice, so of several rows with one key only the last is sent.
    checkpoints = {row[:3]: row for row in rows.checkpoints}.values()
    upserts = {row[:5]: row for row in rows.upserts}.values()
    blobs = [row[5] for row in rows.blobs], [row[7] for row in rows.writes], [row[7] for row in upserts]
    parts = {
        "beat": None if rows.beat is None else (rows.beat.owner, rows.beat.seconds),
        "leases": [_asked(move) for move in leases],
        "moved": [_asked(move) for move in leases if move.writes],
        "checkpoints": [_checkpoint(row) for row in checkpoints],
        "blobs": [row[:5] for row in rows.blobs],
        "writes": [(*row[:7], row[8]) for row in rows.writes],
        "upserts": [(*row[:7], row[8]) for row in upserts],
    }
    while True:
        parts["fences"] = [*fences, *(each.fence for each in needed)]
        batch = _json({name: part for name, part in parts.items() if part}).decode()
        refused = await session.rows(QUERIES["commit"], batch, *blobs)
        if not refused:
            return
        position, head = refused[0]
        if position < 0:
            raise lost({leases[-where - 1].thread_id: _found(what) for where, what in refused})
        if position <= len(fences):
            raise _conflict(fences[position - 1], head)
        missing = needed.pop(position - 1 - len(fences))
        # What is stored is tried again, after an answer that was lost: it needs nothing any more.
        if missing.own is None or not await session.rows(QUERIES["holds"], *missing.own):
            raise CheckpointConflictError(missing.told)


class _Needed(NamedTuple):
    """What must be there beside the heads, as the database compares it."""

    fence: Fence
    own: CheckpointKey | None
    """The checkpoint that needs it."""
    told: str
    """What to say if it is not there."""


def _needed(base: Base) -> _Needed:
    return _Needed((*base.key, NO_HEAD if base.key[2] else "", base.before), base.own, baseless(base))


def _start(fork: CheckpointRow) -> _Needed:
    return _Needed((*origin(fork), NO_HEAD, ""), fork[:3], uprooted(fork))


def _columns(rows: Sequence[tuple[Any, ...]], count: int) -> Columns:
    return tuple(zip(*rows, strict=True)) if rows else ((),) * count


def _checkpoint(row: CheckpointRow) -> tuple[Any, ...]:
    body, kind = jsonb.sealed(row[5])
    kind += checksum_of_facts(row[3], jsonb.canonical(row[6]).encode())
    return (*row[:4], kind, msgspec.Raw(body.encode()), msgspec.Raw(jsonb.stored(row[6]).encode()))


def _asked(move: Move) -> tuple[Any, ...]:
    """Return what the database is told of a lease; of the proof, the key within the thread."""
    return (*move[:-1], *((None, None) if move.proof is None else move.proof[1:]))


def _found(what: str) -> Stored | None:
    epoch, _, owner = what.partition(" ")
    return (int(epoch), owner) if epoch else None


def _fences(moves: Iterable[tuple[CheckpointRow, str | None]]) -> list[Fence]:
    """Return the units that expect a head, each with what the units before it will have stored."""
    coming: dict[tuple[str, str], str] = {}
    found: list[Fence] = []
    for row, expected in moves:
        place = (row[0], row[1])
        before = coming.get(place, "")
        if expected is not None:
            found.append((*row[:3], expected, before))
        coming[place] = max(row[2], before)
    return found


def _conflict(fence: Fence, head: str) -> CheckpointConflictError:
    thread_id, ns, checkpoint_id, expected, _ = fence
    message = (
        f"Thread {thread_id!r}, namespace {ns!r} has moved on: another writer stored checkpoint "
        f"{head or 'none'} where {expected or 'none'} was expected. Checkpoint {checkpoint_id} was not "
        "saved; load the thread again and repeat the call."
    )
    return CheckpointConflictError(message)


async def _copy_thread(session: Session, request: CopyThread) -> None:
    if request.reseal is None:
        await session.rows(QUERIES["copy_thread"], request.source, request.target)
        return
    found = await session.rows(QUERIES["copy_checkpoints"], request.source, request.target)
    blobs: list[BlobRow] = []
    writes: list[WriteRow] = []
    for row in found:
        if row[8] is None:
            blob = (row[0], row[1], row[2], row[3], row[6], row[7])
            blobs.append(request.reseal.blob(blob, request.target))
        else:
            write: Any = tuple(row)
            writes.append(request.reseal.write(write, request.target))
    await _store(session, Merged(blobs=blobs, writes=writes))


async def _prune(session: Session, request: Prune) -> None:
    threads = list(request.thread_ids)
    if request.strategy == "delete":
        await _delete_threads(session, threads)
        return
    await session.rows(QUERIES["lock_threads"], threads)
    await _sweep(session, await session.rows(QUERIES["keep_newest_checkpoints"], threads))


async def _delete_threads(session: Session, threads: list[str]) -> None:
    await session.rows(QUERIES["lock_threads"], threads)
    await session.rows(QUERIES["delete_thread"], threads)


async def _delete_runs(session: Session, request: DeleteRuns) -> None:
    runs = [jsonb.value(run_id) for run_id in request.run_ids]
    await session.rows(QUERIES["lock_runs"], runs)
    await _sweep(session, await session.rows(QUERIES["delete_runs"], runs))


async def _sweep(session: Session, places: Sequence[tuple[str, str]]) -> None:
    """Delete the writes and blobs that no remaining checkpoint of some namespaces needs."""
    where = _columns([tuple(place) for place in places], 2)
    await session.rows(QUERIES["delete_orphaned_writes"], *where)
    kept: list[CheckpointRow] = []
    stored: list[tuple[str, str, str, str]] = []
    for thread_id, ns, name, version, kind, body in await session.rows(QUERIES["kept"], *where):
        if version is None:
            kept.append((thread_id, ns, name, None, kind, jsonb.restored(body), "{}"))
        else:
            stored.append((thread_id, ns, name, version))
    doomed = unreferenced(stored, kept)
    if doomed:
        await session.rows(QUERIES["delete_blobs"], *_columns(doomed, 4))
