"""Reads: what runs in the reading connection's thread. Two queries a page, however long the history is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from persistence.contracts.backend import BlobKey, CheckpointRow, Page, Query, WriteRow
from persistence.contracts.lease import LeaseRow
from persistence.sqlite.rows import checkpoint_rows
from persistence.sqlite.statements import QUERIES
from persistence.writer.decoding import blobs_of, group_writes

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Sequence

_json = msgspec.json.Encoder().encode


def load(
    connection: sqlite3.Connection,
    thread_id: str,
    checkpoint_ns: str,
    checkpoint_id: str | None,
    *,
    leased: bool = False,
) -> Page:
    """Return one checkpoint with its rows: the addressed or the newest; and its thread's lease if told."""
    if checkpoint_id is None:
        sql, key = QUERIES["newest_checkpoint"], [thread_id, checkpoint_ns]
    else:
        sql, key = QUERIES["one_checkpoint"], [thread_id, checkpoint_ns, checkpoint_id]
    return _snapshot(connection, lambda: checkpoint_rows(connection.execute(sql, key)), thread_id if leased else None)


def lease(connection: sqlite3.Connection, thread_id: str) -> LeaseRow | None:
    """Return a thread's lease."""
    row = connection.execute(QUERIES["seen_lease"], (thread_id,)).fetchone()
    return None if row is None else _lease(row)


def held_leases(connection: sqlite3.Connection) -> list[LeaseRow]:
    """Return every lease that is held."""
    return [_lease(row) for row in connection.execute(QUERIES["held_leases"])]


def free_leases(connection: sqlite3.Connection, graph: str, after: str, limit: int) -> list[LeaseRow]:
    """Return leases of a graph's threads that are not held, from behind a thread id on."""
    return [_lease(row) for row in connection.execute(QUERIES["free_leases"], (graph, after, limit))]


def _lease(row: tuple[Any, ...]) -> LeaseRow:
    thread_id, epoch, owner, graph, held, seconds_left = row
    return LeaseRow(thread_id, epoch, owner, graph, bool(held), seconds_left)


def page(connection: sqlite3.Connection, query: Query) -> Page:
    """Return a page of checkpoints with their rows."""
    # With a plus no index serves it: without, SQLite may walk through all threads until enough of one were met.
    order = "+checkpoint_id" if query.thread_id is not None and query.checkpoint_ns is None else "checkpoint_id"
    conditions = " AND ".join(_conditions(query, order)) or "TRUE"
    sql = QUERIES["page_of_checkpoints"].format(conditions=conditions, checkpoint_id=order)
    after_thread, after_ns, after_id = query.after or (None, None, None)
    values = {
        "thread_id": query.thread_id,
        "checkpoint_ns": query.checkpoint_ns,
        "checkpoint_id": query.checkpoint_id,
        "before": query.before,
        "after_thread": after_thread,
        "after_ns": after_ns,
        "after_id": after_id,
        "filter": query.filter,
        "limit": query.limit,
    }
    return _snapshot(connection, lambda: checkpoint_rows(connection.execute(sql, values)))


def _conditions(query: Query, order: str) -> list[str]:
    found: list[str] = []
    if query.thread_id is not None:
        found.append("thread_id = :thread_id")
    if query.checkpoint_ns is not None:
        found.append("checkpoint_ns = :checkpoint_ns")
    if query.checkpoint_id is not None:
        found.append(f"{order} = :checkpoint_id")
    if query.before is not None:
        found.append(f"{order} < :before")
    if query.after is not None:
        # The first condition is the one an index can use.
        found.append(f"{order} <= :after_id")
        found.append(f"({order}, thread_id, checkpoint_ns) < (:after_id, :after_thread, :after_ns)")
    if query.filter is not None:
        found.append("metadata_matches(CAST(metadata AS BLOB), :filter)")
    return found


def _snapshot(
    connection: sqlite3.Connection, find: Callable[[], list[CheckpointRow]], leased: str | None = None
) -> Page:
    """Read checkpoints and then their rows, and the lease of a thread if told, from one state of the database.

    Without the transaction a deletion in between would look like lost rows.
    """
    connection.execute("BEGIN")
    try:
        rows = find()
        held = None if leased is None else lease(connection, leased)
        return _with_rows(connection, rows, held) if rows else Page((), {}, {}, held)
    finally:
        if connection.in_transaction:  # some faults have ended it already, and are the ones to tell of
            connection.execute("ROLLBACK")


def _with_rows(connection: sqlite3.Connection, rows: Sequence[CheckpointRow], held: LeaseRow | None) -> Page:
    wanted = {(*row[:2], *blob): None for row in rows for blob in blobs_of(row) or ()}
    keys = {"checkpoints": _json([row[:3] for row in rows]).decode(), "blobs": _json(list(wanted)).decode()}
    writes: list[WriteRow] = []
    blobs: dict[BlobKey, tuple[str, bytes]] = {}
    found: list[tuple[Any, ...]] = connection.execute(QUERIES["rows_of_checkpoints"], keys).fetchall()
    for row in found:
        if row[8] is None:
            blobs[row[0], row[1], row[2], row[3]] = row[6], row[7]
        else:
            writes.append(row)
    return Page(rows, group_writes(writes), blobs, held)
