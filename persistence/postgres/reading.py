"""Reads: one query a page, however long the history is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from persistence.contracts.backend import BlobKey, CheckpointRow, Page, Query, WriteRow
from persistence.contracts.lease import LeaseRow
from persistence.postgres import jsonb
from persistence.postgres.narrowing import Values
from persistence.postgres.statements import QUERIES
from persistence.writer.decoding import group_writes

if TYPE_CHECKING:
    from collections.abc import Iterable

    from persistence.postgres.sessions import Session

_decode = msgspec.json.Decoder().decode

EVERYTHING = "checkpoints"
OF_ONE_THREAD = "(SELECT * FROM checkpoints WHERE thread_id = {thread_id} OFFSET 0) AS of_one_thread"
"""Keeps the planner from reading all threads newest first until enough of this one were met."""


async def load(session: Session, thread_id: str, checkpoint_ns: str, checkpoint_id: str | None) -> Page:
    """Return one checkpoint with its rows: the addressed or the newest."""
    return await page(session, Query(thread_id=thread_id, checkpoint_ns=checkpoint_ns, checkpoint_id=checkpoint_id))


async def load_leased(session: Session, thread_id: str, checkpoint_ns: str, checkpoint_id: str | None) -> Page:
    """Return one checkpoint and its thread's lease, by one statement."""
    query = Query(thread_id=thread_id, checkpoint_ns=checkpoint_ns, checkpoint_id=checkpoint_id)
    sql, values = _statement(query)
    lease = QUERIES["lease"].format(conditions=f"l.thread_id = ${len(values) + 1}")
    return _page(await session.rows(f"{sql} UNION ALL {lease}", *values, thread_id))


async def lease(session: Session, thread_id: str) -> LeaseRow | None:
    """Return a thread's lease."""
    sql = QUERIES["lease"].format(conditions="l.thread_id = $1")
    return _page(await session.rows(sql, thread_id)).lease


async def held_leases(session: Session) -> list[LeaseRow]:
    """Return every lease that is held."""
    found = await session.rows(QUERIES["lease"].format(conditions="l.held ORDER BY l.thread_id"))
    return [lease for row in found if (lease := _page([row]).lease) is not None]


async def free_leases(session: Session, graph: str, after: str, limit: int) -> list[LeaseRow]:
    """Return leases of a graph's threads that are not held, from behind a thread id on."""
    which = "NOT l.held AND l.graph = $1 AND l.thread_id > $2 ORDER BY l.thread_id LIMIT $3"
    found = await session.rows(QUERIES["lease"].format(conditions=which), graph, after, limit)
    return [lease for row in found if (lease := _page([row]).lease) is not None]


async def page(session: Session, query: Query) -> Page:
    """Return a page of checkpoints with their rows."""
    sql, values = _statement(query)
    return _page(await session.rows(sql, *values))


def _statement(query: Query) -> tuple[str, list[object]]:
    values = Values(query.limit)
    source, found = EVERYTHING, []
    if query.thread_id is not None:
        bound = values.bind(query.thread_id)
        if query.checkpoint_ns is None:
            source = OF_ONE_THREAD.format(thread_id=bound)
        else:
            found.append(f"thread_id = {bound}")
    if query.checkpoint_ns is not None:
        found.append(f"checkpoint_ns = {values.bind(query.checkpoint_ns)}")
    if query.checkpoint_id is not None:
        found.append(f"checkpoint_id = {values.bind(query.checkpoint_id)}")
    if query.before is not None:
        found.append(f"checkpoint_id < {values.bind(query.before)}")
    if query.after is not None:
        after_thread, after_ns, after_id = map(values.bind, query.after)
        found.append(f"(checkpoint_id, thread_id, checkpoint_ns) < ({after_id}, {after_thread}, {after_ns})")
    if query.filter is not None:
        wanted: dict[str, Any] = _decode(query.filter)
        found += [_equals(values, key, item) for key, item in wanted.items()]
    conditions = " AND ".join(found) or "true"
    return QUERIES["page"].format(source=source, conditions=conditions), values.held


def _equals(values: Values, key: str, item: object) -> str:
    """Compare what the metadata holds under a key; numbers by value, so either zero equals the other."""
    alike = [0.0, -0.0] if type(item) in {int, float} and item == 0 else [item]
    held = values.bind(jsonb.key(key))
    return f"metadata -> {held}::text = ANY ({values.bind([jsonb.value(one) for one in alike])}::text[]::jsonb[])"


def _page(rows: Iterable[Any]) -> Page:
    checkpoints: list[CheckpointRow] = []
    writes: list[WriteRow] = []
    blobs: dict[BlobKey, tuple[str, bytes]] = {}
    held: LeaseRow | None = None
    for what, thread_id, ns, third, fourth, idx, channel, kind, blob, body, facts in rows:
        if what == "write":
            writes.append((thread_id, ns, third, fourth, idx, channel, kind, blob, body))
        elif what == "blob":
            blobs[thread_id, ns, third, fourth] = kind, blob
        elif what == "lease":
            held = LeaseRow(thread_id, int(body), ns, third, fourth == "true", float(facts))
        else:
            restored = jsonb.restored(body), jsonb.restored(facts)
            checkpoints.append((thread_id, ns, third, fourth, kind, *restored))
    # The database ordered the page to cut it; its answer to a UNION promises no order.
    checkpoints.sort(key=lambda row: (row[2], row[0], row[1]), reverse=True)
    return Page(checkpoints, group_writes(writes), blobs, held)
