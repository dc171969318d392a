"""Reads: checkpoints by one query, all that they rest on by a second, pieces of large values by a third.

The queries are no snapshot. Where something that a checkpoint rests on is gone, the page is read again: the checkpoint
was deleted meanwhile, or it is damaged, which its reader is told.
"""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING, Final, NamedTuple

from persistence.contracts.backend import BlobKey, CheckpointRow, Page, Query, WriteRow
from persistence.mongo.chunks import in_parts, joined
from persistence.mongo.lifetimes import refreshed
from persistence.mongo.rows import (
    blob_id,
    blob_row,
    checkpoint_id,
    checkpoint_row,
    needed_pieces,
    write_rows,
)
from persistence.writer.decoding import blobs_of, group_writes
from persistence.writer.filtering import metadata_matches

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from persistence.mongo.rows import Document
    from persistence.mongo.server import Session

SCANNED: Final = 1000
"""Checkpoints whose metadata is fetched at once where a filter decides."""

ATTEMPTS: Final = 3
"""How often a page is read that is not whole."""

KEY: Final = ("thread_id", "checkpoint_ns", "checkpoint_id")

OF_A_SPACE: Final = (("_id", -1),)
OF_A_THREAD: Final = (("checkpoint_id", -1), ("checkpoint_ns", -1))
OF_ALL: Final = (("checkpoint_id", -1), ("thread_id", -1), ("checkpoint_ns", -1))


class Selection(NamedTuple):
    """Which checkpoints, in which order."""

    where: Document
    order: Sequence[tuple[str, int]]


async def load(session: Session, thread_id: str, checkpoint_ns: str, checkpoint_id: str | None) -> Page:
    """Return one checkpoint with its rows: the addressed or the newest."""
    return await page(session, Query(thread_id=thread_id, checkpoint_ns=checkpoint_ns, checkpoint_id=checkpoint_id))


async def page(session: Session, query: Query) -> Page:
    """Return a page of checkpoints with their rows."""
    for _ in range(ATTEMPTS):
        documents = await _checkpoints(session, query)
        found, is_whole = await _gathered(session, documents)
        if is_whole:
            break
    if session.lifetimes is not None and session.lifetimes.refreshes:
        await session.change(refreshed(documents, session.lifetimes.until()))
    return found


async def whole_pieces(session: Session, documents: Iterable[Document]) -> dict[str, bytes]:
    """Return the pieces that documents refer to, by id."""
    names = [name for document in documents for name in needed_pieces(document)]
    found = [
        piece for part in in_parts(names) for piece in await session.find({"_id": {"$in": part}}, fields=("data",))
    ]
    return {piece["_id"]: piece["data"] for piece in found if isinstance(piece.get("data"), bytes)}


def within(kind: str, *names: str) -> Document:
    """Return the bounds of the ids that begin with some names."""
    return {"$gte": joined(kind, *names, ""), "$lt": joined(kind, *names) + "\1"}


async def _checkpoints(session: Session, query: Query) -> list[Document]:
    where, order = selection(query)
    where = session.living(where)
    if query.filter is None:
        return await session.find(where, order=order, limit=query.limit)
    names: list[str] = []
    if query.limit > 0:
        async with aclosing(session.each(where, fields=("metadata",), order=order, size=SCANNED)) as documents:
            async for document in documents:
                facts = document.get("metadata")
                if metadata_matches(facts if isinstance(facts, str) else "", query.filter):
                    names.append(document["_id"])
                    if len(names) == query.limit:
                        break
    return [one for part in in_parts(names) for one in await session.find({"_id": {"$in": part}}, order=order)]


async def _gathered(session: Session, documents: Sequence[Document]) -> tuple[Page, bool]:
    """Return checkpoints with what they rest on, and whether all of that was there."""
    pieces = await whole_pieces(session, documents)
    rows = [checkpoint_row(document, pieces) for document in documents]
    named = [(row, channel, version) for row in rows for channel, version in blobs_of(row) or ()]
    blobs = await _resting(session, rows, {blob_id(*row[:2], channel, version) for row, channel, version in named})
    found_blobs: dict[BlobKey, tuple[str, bytes]] = {}
    found_writes: list[WriteRow] = []
    pieces = await whole_pieces(session, blobs)
    for document in blobs:
        if document.get("kind") == "writes":
            found_writes += write_rows(document, pieces)
        elif (blob := blob_row(document, pieces)) is not None:
            found_blobs[blob[:4]] = blob[4:]
    is_whole = all((*row[:2], channel, version) in found_blobs for row, channel, version in named)
    is_whole = is_whole and all(name in pieces for document in blobs for name in needed_pieces(document))
    return Page(rows, group_writes(found_writes), found_blobs), is_whole


async def _resting(session: Session, rows: Sequence[CheckpointRow], blobs: Iterable[str]) -> list[Document]:
    """Return the blobs of these ids and the writes against some checkpoints."""
    spaces: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        spaces.setdefault(row[:2], []).append(row[2])
    wanted: list[Document] = [
        {"kind": "writes", "thread_id": thread_id, "checkpoint_id": {"$in": names}, "checkpoint_ns": ns}
        for (thread_id, ns), names in spaces.items()
    ]
    first, *others = list(in_parts(blobs)) or [[]]
    if first:
        wanted.append({"_id": {"$in": first}})
    if not wanted:
        return []
    found = await session.find(wanted[0] if len(wanted) == 1 else {"$or": wanted})
    for part in others:
        found += await session.find({"_id": {"$in": part}})
    return found


def selection(query: Query) -> Selection:
    """Return what a query asks for."""
    thread_id, ns = query.thread_id, query.checkpoint_ns
    if thread_id is not None and ns is not None:
        return Selection(_of_a_space(query, thread_id, ns), OF_A_SPACE)
    where: Document = {"kind": "checkpoint"}
    if thread_id is not None:
        where["thread_id"] = thread_id
    if ns is not None:
        where["checkpoint_ns"] = ns
    bounds: Document = {}
    if query.checkpoint_id is not None:
        bounds["$eq"] = query.checkpoint_id
    if query.before is not None:
        bounds["$lt"] = query.before
    if query.after is not None:
        after_thread, after_ns, after_id = query.after
        bounds["$lte"] = after_id
        last: Document = {"checkpoint_id": after_id}
        later = [{"checkpoint_id": {"$lt": after_id}}, {**last, "checkpoint_ns": {"$lt": after_ns}}]
        if thread_id is None:
            later[1]["thread_id"] = after_thread
            later.append({**last, "thread_id": {"$lt": after_thread}})
        where["$or"] = later
    if bounds:
        where["checkpoint_id"] = bounds
    return Selection(where, OF_A_THREAD if thread_id is not None else OF_ALL)


def _of_a_space(query: Query, thread_id: str, ns: str) -> Document:
    """Return the condition on ids: those of one namespace sort like its checkpoints."""
    bounds = within("checkpoint", thread_id, ns)
    highs: list[str] = [bounds["$lt"]]
    if query.before is not None:
        highs.append(checkpoint_id(thread_id, ns, query.before))
    if query.after is not None:
        highs.append(checkpoint_id(thread_id, ns, query.after[2]))
    bounds["$lt"] = min(highs)
    if query.checkpoint_id is not None:
        bounds["$eq"] = checkpoint_id(thread_id, ns, query.checkpoint_id)
    return {"_id": bounds}
