"""Batches as commands: one for any number of units, and one before it where units expect a head.

Where the server has transactions, a batch is one. Elsewhere its documents are written in order: what a checkpoint rests
on first, checkpoints last, so a batch that was cut off shows nothing half done; and as each document can be written
again, it is completed by the next attempt. All that one task wrote is one document, and so is whole either way.

Between processes, a head is followed once: a unique index holds each fenced checkpoint's ``follows``. That decides
where two compared the head at the same time, transaction or not. The head is also written to in the same transaction,
as is what else checkpoints need: so who deletes it at the same time conflicts with that.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from pymongo import UpdateOne

from persistence.contracts.backend import CopyThread, DeleteThread, Prune
from persistence.mongo import upkeep
from persistence.mongo.faults import FOLLOWS
from persistence.mongo.lifetimes import VANISHES, dated
from persistence.mongo.reading import OF_A_SPACE, within
from persistence.mongo.rows import Row, Stored, Tasks, blob_document, checkpoint_document, checkpoint_id
from persistence.writer.batching import Merged, Segment
from persistence.writer.fencing import check_bases, check_heads, forks, origin

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from persistence.contracts.backend import CheckpointKey
    from persistence.mongo.rows import Document
    from persistence.mongo.server import Session
ROWS: Final = "rows"

NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})


async def commit(session: Session, segments: Sequence[Segment]) -> None:
    """Carry out everything in order. Raises an error of the driver, CheckpointConflictError or BackendError."""
    if len(segments) == 1 and isinstance(segments[0], Merged):
        merged = segments[0]
        operations = kept(session, merged)
        if len(operations) == 1 and not _needed(merged):  # one document is whole by itself
            await _store(session, merged, operations)
            return
        async with session.transaction():
            await _store(session, merged, operations)
        return
    async with session.transaction():
        for segment in segments:
            await _carry_out(session, segment)


async def _carry_out(session: Session, segment: Segment) -> None:
    if isinstance(segment, Merged):
        await _store(session, segment, kept(session, segment))
    elif isinstance(segment, DeleteThread):
        await upkeep.delete_threads(session, [segment.thread_id])
    elif isinstance(segment, CopyThread):
        copied = await upkeep.copied(session, segment)
        await session.change(kept(session, copied, gives_way=True))
    elif isinstance(segment, Prune):
        await upkeep.prune(session, segment)
    else:
        await upkeep.delete_runs(session, segment)


async def _store(session: Session, rows: Merged, operations: Sequence[Any]) -> None:
    if rows.bases or any(expected is not None for _, expected in rows.fenced):
        await _check(session, rows)
    if session.is_whole:
        operations = [*(_touched(key) for key in _needed(rows)), *operations]
    await session.change(operations)


def _needed(rows: Merged) -> list[CheckpointKey]:
    """Return the checkpoints that must still be there when those of a batch are stored, but for its own."""
    found = {base.key: None for base in rows.bases if base.own is not None and base.key[2]}
    coming: set[CheckpointKey] = set()
    for row, expected in rows.fenced:
        key = (row[0], row[1], expected or "")
        if expected and key not in coming:
            found[key] = None
        coming.add(row[:3])
    return list(found)


def _touched(key: CheckpointKey) -> UpdateOne:
    """Return what changes a checkpoint's document, where nobody looks: it is not to go while something comes to it."""
    return UpdateOne({"_id": checkpoint_id(*key)}, {"$inc": {"touched": 1}})


def kept(session: Session, rows: Merged, *, gives_way: bool = False) -> list[Any]:
    """Return the operations that store rows for as long as the session knows, in order.

    What a thread has already is dated first: it must not vanish before what rests on it.

    Raises:
        BackendError: Something is too long for a document.
    """
    if session.lifetimes is None:
        return stored(rows, gives_way=gives_way)
    until = session.lifetimes.until()
    threads = [row[0] for of_a_kind in (rows.checkpoints, rows.blobs, rows.writes, rows.upserts) for row in of_a_kind]
    facts: Document = {} if until is None else {VANISHES: until}
    return [*dated(threads, until), *stored(rows, gives_way=gives_way, facts=facts)]


def stored(rows: Merged, *, gives_way: bool = False, facts: Mapping[str, Any] = NOTHING) -> list[UpdateOne]:
    """Return the operations that store rows, in order; ``gives_way``: what is there already stays.

    Each document also holds some ``facts``.

    Raises:
        BackendError: Something is too long for a document.
    """
    expected = {row[:3]: head for row, head in rows.fenced if head is not None and row[2] > head}
    tasks = Tasks()
    tasks.add(rows.writes, replaces=False)
    tasks.add(rows.upserts, replaces=not gives_way)
    pieces: list[Document] = []
    resting: list[UpdateOne] = []
    checkpoints: list[UpdateOne] = []
    for blob in map(blob_document, rows.blobs):
        pieces += blob.pieces
        blob.fields.update(facts)
        resting.append(_insert(blob))
    for task, held in tasks.stored():
        pieces += task.pieces
        task.fields.update(facts)
        resting.append(_merge(task, held))
    for row in rows.checkpoints:
        one = checkpoint_document(row)
        pieces += one.pieces
        one.fields.update(facts)
        if row[:3] in expected:
            one.fields[FOLLOWS] = expected[row[:3]]
        checkpoints.append(_insert(one) if gives_way else _replace(one))
    return [*(_piece({**piece, **facts}) for piece in pieces), *resting, *checkpoints]


def _piece(piece: Document) -> UpdateOne:
    return _insert(Stored(piece.pop("_id"), piece, ()))


def _insert(one: Stored) -> UpdateOne:
    """Return what stores a document unless there is one of this id."""
    return UpdateOne({"_id": one.id}, {"$setOnInsert": one.fields}, upsert=True)


def _replace(one: Stored) -> UpdateOne:
    """Return what stores a document or puts new fields into the one of this id."""
    return UpdateOne({"_id": one.id}, {"$set": one.fields}, upsert=True)


def _merge(one: Stored, rows: dict[int, Row]) -> UpdateOne:
    """Return what puts rows into a task's document: each stays if it is there, unless the new one replaces it."""
    fields: Document = {key: {"$literal": value} for key, value in one.fields.items()}
    for idx, row in rows.items():
        name, value = f"{ROWS}.{idx}", {"$literal": row.stored}
        fields[name] = value if row.replaces else {"$ifNull": [f"${name}", value]}
    return UpdateOne({"_id": one.id}, [{"$set": fields}], upsert=True)


async def _check(session: Session, rows: Merged) -> None:
    """Compare what units need with what is stored, by one query that asks only for what is not older than a head.

    Raises:
        CheckpointConflictError: The newest checkpoint is not the expected one, or something is gone.
    """
    oldest: dict[tuple[str, str], str] = {}
    for row, expected in rows.fenced:
        if expected is not None:
            oldest[row[:2]] = min(oldest.get(row[:2], row[2]), expected, row[2])
    oldest.update((base.key[:2], "") for base in rows.bases if not base.key[2])
    ranges = [{"_id": {**within("checkpoint", *place), "$gte": checkpoint_id(*place, name)}}
              for place, name in oldest.items()]  # fmt: skip
    needed = {key for base in rows.bases for key in (base.key, base.own) if key is not None and key[2]}
    needed.update(origin(row) for row in forks(rows.fenced))
    some = [{"_id": checkpoint_id(*key)} for key in needed]
    found = await session.find(session.living({"$or": [*ranges, *some]}), fields=("_id",))
    heads: dict[tuple[str, str], str] = {}
    held: set[CheckpointKey] = set()
    for document in found:
        _, thread_id, ns, name = document["_id"].split("\0")
        held.add((thread_id, ns, name))
        heads[thread_id, ns] = max(heads.get((thread_id, ns), ""), name)
    for place in [place for place, name in oldest.items() if name and place not in heads]:
        where = session.living({"_id": within("checkpoint", *place)})
        newest = await session.find(where, fields=("_id",), order=OF_A_SPACE, limit=1)
        heads.update((place, document["_id"].split("\0")[3]) for document in newest)

    def head_of(thread_id: str, ns: str) -> str | None:
        return heads.get((thread_id, ns))

    check_heads(rows.fenced, head_of, held.__contains__)
    check_bases(rows.bases, head_of, held.__contains__)
