"""Copying, pruning and deleting. Checkpoints go first: what they rest on is never missing from one that is there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pymongo import DeleteMany

from persistence.mongo.chunks import in_parts
from persistence.mongo.reading import whole_pieces
from persistence.mongo.rows import blob_row, checkpoint_id, checkpoint_row, key_of, write_rows
from persistence.writer.batching import Merged
from persistence.writer.decoding import unreferenced

if TYPE_CHECKING:
    from collections.abc import Sequence

    from persistence.contracts.backend import BlobKey, CopyThread, DeleteRuns, Prune
    from persistence.mongo.rows import Document
    from persistence.mongo.server import Session

PLACE: Final = ("thread_id", "checkpoint_ns")


async def delete_threads(session: Session, thread_ids: Sequence[str]) -> None:
    """Delete everything of some threads."""
    operations: list[Any] = []
    for part in in_parts(thread_ids):
        operations.append(DeleteMany({"thread_id": {"$in": part}, "kind": "checkpoint"}))
        operations.append(DeleteMany({"thread_id": {"$in": part}}))
    await session.change(operations)


async def copied(session: Session, request: CopyThread) -> Merged:
    """Return a thread's rows as rows of another. Raises DecryptionError if they cannot be sealed for it."""
    merged, target, reseal = Merged(), request.target, request.reseal
    if request.source == target:
        return merged
    documents = await session.find(session.living({"thread_id": request.source, "kind": {"$ne": "chunk"}}))
    for document in documents:
        pieces = await whole_pieces(session, [document])
        kind = document.get("kind")
        if kind == "checkpoint":
            row = checkpoint_row(document, pieces)
            merged.checkpoints.append((target, *row[1:]))
        elif kind == "writes":
            for write in write_rows(document, pieces):
                merged.writes.append((target, *write[1:]) if reseal is None else reseal.write(write, target))
        elif (blob := blob_row(document, pieces)) is not None:
            merged.blobs.append((target, *blob[1:]) if reseal is None else reseal.blob(blob, target))
    return merged


async def prune(session: Session, request: Prune) -> None:
    """Keep the newest checkpoint of each namespace, with what it rests on; or nothing."""
    if request.strategy == "delete":
        await delete_threads(session, request.thread_ids)
        return
    for thread_id in request.thread_ids:
        where = {"thread_id": thread_id, "kind": "checkpoint"}
        newest: dict[str, str] = {}
        names: list[tuple[str, str]] = []
        async for document in session.each(where, fields=(*PLACE, "checkpoint_id")):
            _, ns, name = key_of(document)
            names.append((ns, name))
            newest[ns] = max(newest.get(ns, ""), name)
        await _delete(session, [checkpoint_id(thread_id, *each) for each in names if newest[each[0]] != each[1]])
        await _sweep(session, {"thread_id": thread_id})


async def delete_runs(session: Session, request: DeleteRuns) -> None:
    """Delete the checkpoints of some runs, and what nothing that is left rests on."""
    doomed: list[Document] = []
    for part in in_parts(request.run_ids):
        doomed += await session.find({"run_id": {"$in": part}, "kind": "checkpoint"}, fields=PLACE)
    await _delete(session, [document["_id"] for document in doomed])
    for thread_id, ns in sorted({key_of(document)[:2] for document in doomed}):
        await _sweep(session, {"thread_id": thread_id, "checkpoint_ns": ns})


async def _sweep(session: Session, where: Document) -> None:
    """Delete the writes and blobs that no remaining checkpoint of some namespaces needs."""
    kept = await session.find({**where, "kind": "checkpoint"})
    rows = [checkpoint_row(document, await whole_pieces(session, [document])) for document in kept]
    there = {row[:3] for row in rows}
    written = await session.find({**where, "kind": "writes"}, fields=(*PLACE, "checkpoint_id"))
    doomed = [document["_id"] for document in written if key_of(document) not in there]
    stored: dict[BlobKey, str] = {}
    async for document in session.each({**where, "kind": "blob"}, fields=(*PLACE, "channel", "version")):
        stored[(*key_of(document)[:2], document.get("channel", ""), document.get("version", ""))] = document["_id"]
    await _delete(session, doomed + [stored[key] for key in unreferenced(stored, rows)])


async def _delete(session: Session, ids: Sequence[str]) -> None:
    """Delete documents with their pieces."""
    operations: list[Any] = []
    for part in in_parts(ids):
        operations.append(DeleteMany({"_id": {"$in": part}}))
        operations.append(DeleteMany({"owner": {"$in": part}, "kind": "chunk"}))
    await session.change(operations)
