"""The rows of an in-memory saver: the same rows a database would hold, in dicts."""

from __future__ import annotations

from bisect import bisect_left, insort
from heapq import merge
from typing import TYPE_CHECKING

from persistence.contracts.backend import (
    BlobKey,
    BlobRow,
    CheckpointKey,
    CheckpointRow,
    CopyThread,
    DeleteRuns,
    DeleteThread,
    Page,
    Prune,
    Query,
    Request,
    Rows,
    WriteRow,
)
from persistence.writer.decoding import blobs_of, pending_order, unreferenced
from persistence.writer.fencing import Base, check_bases, check_heads
from persistence.writer.filtering import metadata_matches, metadata_run_id

if TYPE_CHECKING:
    from collections.abc import Iterator

Blob = tuple[str, bytes]


class Space:
    """One (thread, namespace)."""

    __slots__ = ("blobs", "checkpoints", "ids", "writes")

    def __init__(self) -> None:
        self.ids: list[str] = []
        """Sorted, so that the newest is last and a page is a slice."""
        self.checkpoints: dict[str, CheckpointRow] = {}
        self.writes: dict[str, dict[tuple[str, int], WriteRow]] = {}
        self.blobs: dict[BlobKey, Blob] = {}

    def put(self, row: CheckpointRow) -> None:
        """Store a checkpoint, replacing the one with its id."""
        checkpoint_id = row[2]
        if checkpoint_id not in self.checkpoints:
            if self.ids and self.ids[-1] > checkpoint_id:
                insort(self.ids, checkpoint_id)
            else:
                self.ids.append(checkpoint_id)
        self.checkpoints[checkpoint_id] = row

    def keep(self, checkpoint_ids: set[str]) -> None:
        """Drop every other checkpoint, and what only they needed."""
        self.ids = [checkpoint_id for checkpoint_id in self.ids if checkpoint_id in checkpoint_ids]
        self.checkpoints = {checkpoint_id: self.checkpoints[checkpoint_id] for checkpoint_id in self.ids}
        self.writes = {key: rows for key, rows in self.writes.items() if key in checkpoint_ids}
        for blob in unreferenced(list(self.blobs), self.checkpoints.values()):
            del self.blobs[blob]


class Relabel:
    """Moves rows that are not bound to their place."""

    def blob(self, row: BlobRow, thread_id: str) -> BlobRow:
        """Return the row under another thread."""
        return (thread_id, *row[1:])

    def write(self, row: WriteRow, thread_id: str) -> WriteRow:
        """Return the row under another thread."""
        return (thread_id, *row[1:])


class Tables:
    """Every thread's rows. Not locked: its owner is."""

    def __init__(self) -> None:
        self.threads: dict[str, dict[str, Space]] = {}

    def apply(self, request: Request) -> None:
        """Carry out one request."""
        if isinstance(request, Rows):
            if request.checkpoint is not None and request.expected_head is not None:
                check_heads([(request.checkpoint, request.expected_head)], self.head, self.holds)
            if request.rests:
                own = None if request.checkpoint is None else request.checkpoint[:3]
                check_bases([Base(key, own) for key in request.bases()], self.head, self.holds)
            self._write(request)
        elif isinstance(request, DeleteThread):
            self.threads.pop(request.thread_id, None)
        elif isinstance(request, CopyThread):
            self._copy(request)
        elif isinstance(request, Prune):
            self._prune(request)
        elif isinstance(request, DeleteRuns):
            self._delete_runs(request)

    def load(self, thread_id: str, checkpoint_ns: str, checkpoint_id: str | None) -> Page:
        """Return one checkpoint: the addressed or the newest."""
        space = self.threads.get(thread_id, {}).get(checkpoint_ns)
        if space is None or not space.ids:
            return Page((), {}, {})
        row = space.checkpoints.get(space.ids[-1] if checkpoint_id is None else checkpoint_id)
        return Page((), {}, {}) if row is None else self._gather([row])

    def page(self, query: Query) -> Page:
        """Return a page of checkpoints."""
        found: list[CheckpointRow] = []
        for row in self._newest_first(query):
            if len(found) == query.limit:
                break
            if query.filter is None or metadata_matches(row[6], query.filter):
                found.append(row)
        return self._gather(found)

    def head(self, thread_id: str, checkpoint_ns: str) -> str | None:
        """Return the greatest checkpoint id of a namespace."""
        space = self.threads.get(thread_id, {}).get(checkpoint_ns)
        return space.ids[-1] if space is not None and space.ids else None

    def holds(self, key: CheckpointKey) -> bool:
        """Whether a checkpoint is stored."""
        space = self.threads.get(key[0], {}).get(key[1])
        return space is not None and key[2] in space.checkpoints

    def _write(self, rows: Rows) -> None:
        spaces = self.threads.get(rows.thread_id)
        if spaces is None:
            spaces = self.threads[rows.thread_id] = {}
        space = spaces.get(rows.checkpoint_ns)
        if space is None:
            space = spaces[rows.checkpoint_ns] = Space()
        for blob in rows.blobs:
            space.blobs.setdefault(blob[:4], blob[4:])
        for write in rows.writes:
            space.writes.setdefault(write[2], {}).setdefault((write[3], write[4]), write)
        for write in rows.upserts:
            space.writes.setdefault(write[2], {})[write[3], write[4]] = write
        if rows.checkpoint is not None:
            space.put(rows.checkpoint)

    def _copy(self, request: CopyThread) -> None:
        # Everything is moved before anything is stored: a row that does not open must leave the target as it was.
        for rows, checkpoints in [self._moved(request, ns) for ns in self.threads.get(request.source, {})]:
            self._write(rows)
            space = self.threads[rows.thread_id][rows.checkpoint_ns]
            for row in checkpoints:
                if row[2] not in space.checkpoints:
                    space.put(row)

    def _moved(self, request: CopyThread, ns: str) -> tuple[Rows, list[CheckpointRow]]:
        space, target = self.threads[request.source][ns], request.target
        reseal = Relabel() if request.reseal is None else request.reseal
        blobs = [reseal.blob((*key, *blob), target) for key, blob in space.blobs.items()]
        writes = [reseal.write(write, target) for rows in space.writes.values() for write in rows.values()]
        checkpoints: list[CheckpointRow] = [(target, *row[1:]) for row in space.checkpoints.values()]
        return Rows(target, ns, None, blobs, writes, (), 0), checkpoints

    def _prune(self, request: Prune) -> None:
        for thread_id in request.thread_ids:
            if request.strategy == "delete":
                self.threads.pop(thread_id, None)
            else:
                for space in self.threads.get(thread_id, {}).values():
                    space.keep(set(space.ids[-1:]))

    def _delete_runs(self, request: DeleteRuns) -> None:
        runs = frozenset(request.run_ids)
        for spaces in self.threads.values():
            for space in spaces.values():
                kept = {row[2] for row in space.checkpoints.values() if metadata_run_id(row[6]) not in runs}
                if len(kept) < len(space.ids):
                    space.keep(kept)

    def _newest_first(self, query: Query) -> Iterator[CheckpointRow]:
        threads = self.threads if query.thread_id is None else (query.thread_id,)
        branches = [
            _descending(thread_id, ns, space, query)
            for thread_id in threads
            for ns, space in self.threads.get(thread_id, {}).items()
            if query.checkpoint_ns is None or ns == query.checkpoint_ns
        ]
        return merge(*branches, key=_list_order, reverse=True)

    def _gather(self, rows: list[CheckpointRow]) -> Page:
        writes: dict[CheckpointKey, list[WriteRow]] = {}
        blobs: dict[BlobKey, Blob] = {}
        for row in rows:
            thread_id, ns, checkpoint_id = key = row[:3]
            space = self.threads[thread_id][ns]
            held = space.writes.get(checkpoint_id)
            if held:
                writes[key] = sorted(held.values(), key=pending_order)
            for channel, version in blobs_of(row) or ():
                blob_key = (thread_id, ns, channel, version)
                blob = space.blobs.get(blob_key)
                if blob is not None:
                    blobs[blob_key] = blob
        return Page(rows, writes, blobs)


def _descending(thread_id: str, ns: str, space: Space, query: Query) -> Iterator[CheckpointRow]:
    """Yield a space's rows below the query's bounds, newest first."""
    if query.checkpoint_id is not None:
        ids = [query.checkpoint_id] if query.checkpoint_id in space.checkpoints else []
    else:
        ids = space.ids
    end = len(ids)
    if query.before is not None:
        end = bisect_left(ids, query.before)
    if query.after is not None:
        last_thread, last_ns, last_id = query.after
        bound = bisect_left(ids, last_id)
        if (thread_id, ns) < (last_thread, last_ns) and bound < len(ids) and ids[bound] == last_id:
            bound += 1
        end = min(end, bound)
    for position in range(end - 1, -1, -1):
        yield space.checkpoints[ids[position]]


def _list_order(row: CheckpointRow) -> tuple[str, str, str]:
    return row[2], row[0], row[1]
