"""Transactions: what runs in the writing connection's thread, from BEGIN to COMMIT."""

from __future__ import annotations

import re
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

import msgspec

from persistence.contracts.backend import CopyThread, DeleteRuns, DeleteThread, Prune
from persistence.sqlite.rows import checkpoint_rows
from persistence.sqlite.statements import QUERIES
from persistence.writer.batching import Merged, Segment
from persistence.writer.decoding import unreferenced
from persistence.writer.fencing import check_bases, check_heads
from persistence.writer.leasing import moves, settled

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Sequence

    from persistence.contracts.backend import Beat, CheckpointKey, CheckpointRow, Rows

Row = tuple[Any, ...]

ROWS_AT_ONCE: Final = (256, 64, 16, 4, 1)
"""Sizes of the inserts that a table's rows are split into, largest first; each is one prepared statement."""


def _widened(sql: str) -> tuple[tuple[int, str], ...]:
    """Return the one-row insert for each number of rows."""
    head, row, tail = re.split(r"(?<=VALUES )(\([?, ]+\))", sql, maxsplit=1)
    return tuple((size, head + ", ".join([row] * size) + tail) for size in ROWS_AT_ONCE)


_PUT_CHECKPOINT: Final = _widened(QUERIES["put_checkpoint"])
_KEEP_BLOB: Final = _widened(QUERIES["keep_blob"])
_KEEP_WRITE: Final = _widened(QUERIES["keep_write"])
_PUT_WRITE: Final = _widened(QUERIES["put_write"])
_PUT_LEASE: Final = _widened(QUERIES["put_lease"])


def commit(connection: sqlite3.Connection, segments: Sequence[Segment]) -> None:
    """Carry out everything in one transaction; on any error nothing is kept. Raises sqlite3.Error."""
    # IMMEDIATE takes the write lock at once: a lock that is upgraded half way fails without waiting its turn.
    connection.execute("BEGIN IMMEDIATE")
    try:
        for segment in segments:
            if isinstance(segment, Merged):
                _insert(connection, segment)
            elif isinstance(segment, DeleteThread):
                _delete_thread(connection, segment.thread_id)
            elif isinstance(segment, CopyThread):
                _copy_thread(connection, segment)
            elif isinstance(segment, Prune):
                _prune(connection, segment)
            else:
                _delete_runs(connection, segment)
        connection.execute("COMMIT")
    finally:
        # A failed COMMIT leaves the transaction open or has rolled it back already, depending on the fault.
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _insert(connection: sqlite3.Connection, rows: Merged) -> None:
    if rows.beat is not None:
        _note_life(connection, rows.beat)
    if rows.leased:
        _settle_leases(connection, rows.leased)
    if rows.fenced:
        check_heads(rows.fenced, _heads(connection, rows.fenced), partial(_holds, connection))
    if rows.bases:
        check_bases(rows.bases, partial(_head, connection), partial(_holds, connection))
    for sql, table in (
        (_PUT_CHECKPOINT, rows.checkpoints),
        (_KEEP_BLOB, rows.blobs),
        (_KEEP_WRITE, rows.writes),
        (_PUT_WRITE, rows.upserts),
    ):
        if table:
            _insert_rows(connection, sql, table)


def _insert_rows(connection: sqlite3.Connection, sized: tuple[tuple[int, str], ...], rows: Sequence[Row]) -> None:
    """Insert rows, many per statement.

    The driver takes the interpreter's lock back after each statement; row by row, a busy event loop would make each
    wait its turn, and the loop and the database would work by turns instead of side by side.
    """
    done = 0
    for size, sql in sized:
        while len(rows) - done >= size:
            connection.execute(sql, tuple(chain.from_iterable(rows[done : done + size])))
            done += size


def _note_life(connection: sqlite3.Connection, beat: Beat) -> None:
    if beat.seconds:
        connection.execute(QUERIES["beat"], {"owner": beat.owner, "seconds": beat.seconds})
    else:
        connection.execute(QUERIES["forget_owner"], {"owner": beat.owner})


def _settle_leases(connection: sqlite3.Connection, units: Sequence[Rows]) -> None:
    """Compare the leases that units show with what is stored, and store what becomes of them."""
    asked = moves(units)
    if len(asked) == 1:
        thread_id = asked[0].thread_id
        row = connection.execute(QUERIES["lease"], (thread_id,)).fetchone()
        stored = {} if row is None else {thread_id: row}
    else:
        wanted = msgspec.json.encode([move.thread_id for move in asked]).decode()
        stored = {row[0]: row[1:] for row in connection.execute(QUERIES["leases"], (wanted,))}
    changed = settled(asked, stored, partial(_holds, connection))
    if changed:
        rows = [(move.thread_id, move.new_epoch, move.new_owner, move.graph, int(move.held)) for move in changed]
        _insert_rows(connection, _PUT_LEASE, rows)


def _heads(
    connection: sqlite3.Connection, fenced: Sequence[tuple[CheckpointRow, str | None]]
) -> Callable[[str, str], str | None]:
    """Return what tells the heads of all places that the units stand at, read in one statement."""
    places = list({row[:2]: None for row, _ in fenced})
    if len(places) == 1:
        [head] = connection.execute(QUERIES["head"], places[0])
        return lambda _thread_id, _ns: head[0]
    found = dict(
        zip(places, connection.execute(QUERIES["heads"], (msgspec.json.encode(places).decode(),)), strict=True)
    )
    return lambda thread_id, ns: found[thread_id, ns][0]


def _head(connection: sqlite3.Connection, thread_id: str, ns: str) -> str | None:
    [head] = connection.execute(QUERIES["head"], (thread_id, ns)).fetchone()
    return None if head is None else str(head)


def _holds(connection: sqlite3.Connection, key: CheckpointKey) -> bool:
    return connection.execute(QUERIES["holds"], key).fetchone() is not None


def _delete_thread(connection: sqlite3.Connection, thread_id: str) -> None:
    for name in ("delete_checkpoints", "delete_writes", "delete_blobs", "delete_lease"):
        connection.execute(QUERIES[name], (thread_id,))


def _copy_thread(connection: sqlite3.Connection, request: CopyThread) -> None:
    names = {"source": request.source, "target": request.target}
    connection.execute(QUERIES["copy_checkpoints"], names)
    if request.reseal is None:
        connection.execute(QUERIES["copy_writes"], names)
        connection.execute(QUERIES["copy_blobs"], names)
        return
    reseal, source, target = request.reseal, (request.source,), request.target
    writes = connection.execute(QUERIES["all_writes"], source).fetchall()
    _insert_rows(connection, _KEEP_WRITE, [reseal.write(row, target) for row in writes])
    blobs = connection.execute(QUERIES["all_blobs"], source).fetchall()
    _insert_rows(connection, _KEEP_BLOB, [reseal.blob(row, target) for row in blobs])


def _prune(connection: sqlite3.Connection, request: Prune) -> None:
    for thread_id in request.thread_ids:
        if request.strategy == "delete":
            _delete_thread(connection, thread_id)
            continue
        connection.execute(QUERIES["keep_newest_checkpoints"], {"thread_id": thread_id})
        for (ns,) in connection.execute(QUERIES["namespaces"], {"thread_id": thread_id}).fetchall():
            _sweep(connection, thread_id, ns)


def _delete_runs(connection: sqlite3.Connection, request: DeleteRuns) -> None:
    runs = msgspec.json.encode(request.run_ids).decode()
    doomed = connection.execute(QUERIES["checkpoints_of_runs"], (runs,)).fetchall()
    connection.executemany(QUERIES["delete_checkpoint"], doomed)
    for thread_id, ns in sorted({key[:2] for key in doomed}):
        _sweep(connection, thread_id, ns)


def _sweep(connection: sqlite3.Connection, thread_id: str, ns: str) -> None:
    """Delete the writes and blobs that no remaining checkpoint of a namespace needs."""
    place = (thread_id, ns)
    connection.execute(QUERIES["delete_orphaned_writes"], {"thread_id": thread_id, "checkpoint_ns": ns})
    kept = checkpoint_rows(connection.execute(QUERIES["kept_checkpoints"], place))
    stored = connection.execute(QUERIES["blob_keys"], place).fetchall()
    connection.executemany(QUERIES["delete_blob"], unreferenced(stored, kept))
