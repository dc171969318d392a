"""Reads: one call a page, however long the history is; a few more where a filter leaves much out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, NamedTuple

import msgspec

from persistence.contracts.backend import BlobKey, CheckpointKey, CheckpointRow, Page, Query, WriteRow
from persistence.redis.rows import blob, checkpoint, joined, parted, write
from persistence.redis.scripts import PAGE
from persistence.redis.server import unpacked
from persistence.writer.decoding import group_writes
from persistence.writer.filtering import metadata_matches

if TYPE_CHECKING:
    from collections.abc import Sequence

    from persistence.redis.server import Session

SCANNED: Final = 1000
"""Checkpoints whose metadata is read at once where a filter decides."""

Facts = list[tuple[CheckpointKey, str]]

Depth = Literal["all", "writes", "record", "metadata"]
"""How much of each checkpoint is wanted."""


class _Range(NamedTuple):
    """Where to look: members of a sorted set, from the greatest to the least."""

    kind: str
    high: str
    low: str


class _Found(NamedTuple):
    """What one call found: the parts of checkpoints, writes and blobs, one after the other."""

    more: bool
    last: bytes
    checkpoints: Sequence[bytes]
    writes: Sequence[bytes]
    blobs: Sequence[bytes]


async def load(session: Session, thread_id: str, checkpoint_ns: str, checkpoint_id: str | None, ttl: int) -> Page:
    """Return one checkpoint with its rows: the addressed or the newest."""
    query = Query(thread_id=thread_id, checkpoint_ns=checkpoint_ns, checkpoint_id=checkpoint_id)
    return (await _page(session, query, ttl))[0]


async def page(session: Session, query: Query, ttl: int) -> Page:
    """Return a page of checkpoints with their rows. ``ttl`` is what reading starts again, in milliseconds; or 0."""
    if query.filter is not None:
        return await _filtered(session, query, query.filter, ttl)
    found: list[Page] = []
    following: Query | None = query
    while following is not None:
        one, following = await _page(session, following, ttl)
        found.append(one)
    return _together(found)


async def scan(session: Session, query: Query) -> tuple[Facts, Query | None]:
    """Return the metadata of some checkpoints, with the query for those after them, None if there are none."""
    more, last, rows, _, _ = await _look(session, query, 0, depth="metadata")
    facts = [
        ((thread.decode(), ns.decode(), checkpoint_id.decode()), metadata.decode("utf-8", "replace"))
        for thread, ns, checkpoint_id, metadata in _by(4, rows)
    ]
    return facts, _after(query, last, query.limit) if more else None


async def records(session: Session, query: Query) -> list[CheckpointRow]:
    """Return the rows of checkpoints alone, all of them."""
    rows: list[CheckpointRow] = []
    following: Query | None = query
    while following is not None:
        one, following = await _page(session, following, 0, "record")
        rows += one.checkpoints
    return rows


async def writes(session: Session, thread_id: str, checkpoint_ns: str, checkpoint_id: str) -> list[WriteRow]:
    """Return the rows that tasks wrote against one checkpoint."""
    query = Query(thread_id=thread_id, checkpoint_ns=checkpoint_ns, checkpoint_id=checkpoint_id)
    found = _read(await _look(session, query, 0, depth="writes")).writes
    return [row for rows in found.values() for row in rows]


async def _filtered(session: Session, query: Query, wanted: str, ttl: int) -> Page:
    found: list[Page] = []
    missing = query.limit
    following: Query | None = _with_limit(query, SCANNED)
    while following is not None and missing:
        facts, following = await scan(session, following)
        matching = [key for key, metadata in facts if metadata_matches(metadata, wanted)]
        # Some may be gone by now; then others are looked for.
        while matching and missing:
            one = _read(await _look(session, query, ttl, matching[:missing]))
            matching = matching[missing:]
            missing -= len(one.checkpoints)
            found.append(one)
    return _together(found)


async def _page(session: Session, query: Query, ttl: int, depth: Depth = "all") -> tuple[Page, Query | None]:
    """Return what one call finds, and what to ask for next if the page is not full."""
    found = await _look(session, query, ttl, depth=depth)
    one = _read(found)
    missing = query.limit - len(one.checkpoints)
    return one, _after(query, found.last, missing) if found.more and missing else None


async def _look(
    session: Session, query: Query, ttl: int, named: Sequence[CheckpointKey] = (), *, depth: Depth = "all"
) -> _Found:
    where = _range(query)
    # A set that is sorted by namespaces answers for one; in the others, others are passed over.
    wanted = None if where.kind == "spaces" else query.checkpoint_ns
    job = (ttl, where.kind, query.thread_id, where.high, where.low, query.limit, wanted, depth, named)
    more, last, checkpoints, writes, sizes, body = await session.run(PAGE, job)
    parts = unpacked(sizes, body)
    end = checkpoints + writes
    return _Found(bool(more), last, parts[:checkpoints], parts[checkpoints:end], parts[end:])


def _read(found: _Found) -> Page:
    _, _, rows, writes, blobs = found
    checkpoints: list[CheckpointRow] = [
        checkpoint(thread.decode(), ns.decode(), checkpoint_id.decode(), value)
        for thread, ns, checkpoint_id, value in _by(4, rows)
    ]
    found_writes: list[WriteRow] = [write(thread.decode(), field, value) for thread, field, value in _by(3, writes)]
    found_blobs: dict[BlobKey, tuple[str, bytes]] = {}
    for thread, field, value in _by(3, blobs):
        thread_id, ns, channel, version, kind, data = blob(thread.decode(), field, value)
        found_blobs[thread_id, ns, channel, version] = kind, data
    return Page(checkpoints, group_writes(found_writes), found_blobs)


def _range(query: Query) -> _Range:
    thread_id, ns = query.thread_id, query.checkpoint_ns
    if thread_id is not None and ns is not None:
        return _within(query, ns)
    # Members begin with the id, and end with the thread, if there are many, and the namespace.
    highs: list[str] = []
    low = "-"
    if query.checkpoint_id is not None:
        low = "[" + joined(query.checkpoint_id, "")
        highs.append(query.checkpoint_id + "\1")
    if query.before is not None:
        highs.append(joined(query.before, ""))
    if query.after is not None:
        after_thread, after_ns, after_id = query.after
        place = [after_thread, after_ns] if thread_id is None else [after_ns]
        highs.append(joined(after_id, *place))
    return _Range("index" if thread_id is None else "order", "(" + min(highs) if highs else "+", low)


def _within(query: Query, ns: str) -> _Range:
    """Return where to look for the checkpoints of one namespace: members begin with it, and end with the id."""
    low = "[" + joined(ns, query.checkpoint_id or "")
    highs = [ns + "\1"]
    if query.checkpoint_id is not None:
        highs.append(joined(ns, query.checkpoint_id) + "\1")
    if query.before is not None:
        highs.append(joined(ns, query.before))
    if query.after is not None:
        highs.append(joined(ns, query.after[2]))
    return _Range("spaces", "(" + min(highs), low)


def _after(query: Query, last: bytes, limit: int) -> Query:
    """Return the query for what follows the member that was looked at last."""
    names = parted(last)
    if query.thread_id is None:
        key = names[1], names[2], names[0]
    elif query.checkpoint_ns is None:
        key = query.thread_id, names[1], names[0]
    else:
        key = query.thread_id, names[0], names[1]
    return msgspec.structs.replace(query, after=key, limit=limit)


def _with_limit(query: Query, limit: int) -> Query:
    return msgspec.structs.replace(query, limit=limit)


def _together(pages: Sequence[Page]) -> Page:
    if len(pages) == 1:
        return pages[0]
    rows = [row for each in pages for row in each.checkpoints]
    writes = {key: value for each in pages for key, value in each.writes.items()}
    blobs = {key: value for each in pages for key, value in each.blobs.items()}
    return Page(rows, writes, blobs)


def _by(size: int, flat: Sequence[bytes]) -> list[Sequence[bytes]]:
    return [flat[start : start + size] for start in range(0, len(flat), size)]
