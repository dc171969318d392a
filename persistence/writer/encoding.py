"""Units to rows: everything is turned into bytes in the task that made it.

So a value is frozen, checked and blamed where it was written, and what waits in the channel has a known size.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any

from persistence.contracts.backend import BlobRow, CheckpointKey, CheckpointRow, Rows, WriteRow
from persistence.contracts.checkpoint import (
    INTERRUPT,
    RESUME,
    RETURN,
    WRITES_IDX_MAP,
    Addition,
    Checkpoint,
    Mark,
    TaskWrites,
    Unit,
)
from persistence.errors import SerializationError
from persistence.serde.serializer import Serializer, place
from persistence.writer import plain_json
from persistence.writer.addressing import name
from persistence.writer.binding import blob_key, bound, write_key, write_place
from persistence.writer.inlining import inlines

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ADDITION = "+add"
"""Ends the type of a blob that holds an Addition; also part of its place, so that it cannot pass for a whole value."""

CHECKSUM = "json:"
"""Starts the type of a checkpoint row; the CRC-32 of its JSON follows, and that of its parent and metadata."""

ROWS, LINEAGE = "rows", "lineage"
"""Private keys in a checkpoint's JSON: the channels whose values are blob rows, and what additive ones rest on."""

ROW_OVERHEAD = 200
"""Bytes a row takes beside its payload: tuple, ids, object headers."""

_TOLD = {INTERRUPT: "A question", RESUME: "An answer", RETURN: "The result of a call", "__start__": "The input"}
"""What channels hold that are no keys of a state."""

KNOWN_NAMES = 4096
"""Names remembered as good before the memory starts anew."""

Typed = tuple[str, bytes]


class Encoder:
    """Encodes units with one serializer."""

    __slots__ = ("_names", "_seals", "_serializer")

    def __init__(self, serializer: Serializer) -> None:
        """Encode with this serializer."""
        self._serializer = serializer
        self._seals = serializer.encrypts
        self._names: set[str] = set()
        """Names found good: the same threads, channels and paths come again and again."""

    def encode(self, unit: Unit) -> Rows:
        """Turn a unit into rows.

        Raises:
            SerializationError: A value cannot be stored; names channel, and task for writes.
            TypeError, ValueError: An id or channel name cannot be a key.
        """
        self._check_name(unit.thread_id, "thread_id")
        self._check_name(unit.checkpoint_ns, "checkpoint_ns")
        # One value is often a task's write and a channel's new value: dump it once. The unit keeps it alive, so its
        # id() stays its own for the length of this call. Sealed bytes differ by place and are not shared.
        seen: dict[int, Typed] = {}
        writes: list[WriteRow] = []
        upserts: list[WriteRow] = []
        blobs: list[BlobRow] = []
        row: CheckpointRow | None = None
        anchor = None if unit.anchor is None else self._anchor(unit, unit.anchor)
        size = 0
        for task in unit.writes:
            size += self._encode_writes(unit, task, writes, upserts, seen)
        if unit.checkpoint is not None:
            inline, rows = self._split(unit.checkpoint["channel_values"], unit.lineage)
            size += self._encode_changed(unit, unit.checkpoint, inline, rows, blobs, seen)
            row = _checkpoint_row(unit, unit.checkpoint, inline, rows)
            size += ROW_OVERHEAD + len(row[5]) + len(row[6])
        return Rows(
            unit.thread_id,
            unit.checkpoint_ns,
            row,
            blobs,
            writes,
            upserts,
            size,
            unit.expected_head,
            unit.lease,
            unit.based,
            anchor,
        )

    def _anchor(self, unit: Unit, anchor: tuple[str, str]) -> CheckpointKey:
        ns, checkpoint_id = anchor
        self._check_name(ns, "checkpoint_ns of the anchor")
        if checkpoint_id:
            name(checkpoint_id, "checkpoint_id of the anchor")
        return unit.thread_id, ns, checkpoint_id

    def _check_name(self, value: str, what: str) -> None:
        if value not in self._names:
            name(value, what)
            if len(self._names) >= KNOWN_NAMES:
                self._names.clear()
            self._names.add(value)

    def _split(
        self, values: Mapping[str, Any], lineage: Mapping[str, tuple[Mark, ...]]
    ) -> tuple[dict[str, Any], list[str]]:
        """Tell the values that go inside the checkpoint from those that are rows.

        An additive channel's value is always a row: later additions rest on it. Nothing is inlined where values are
        encrypted, because the checkpoint itself is not.
        """
        if self._seals:
            return {}, list(values)
        inline: dict[str, Any] = {}
        rows: list[str] = []
        for channel, value in values.items():
            if inlines(value) and channel not in lineage:
                inline[channel] = value
            else:
                rows.append(channel)
        return inline, rows

    def _encode_changed(
        self,
        unit: Unit,
        checkpoint: Checkpoint,
        inline: Mapping[str, Any],
        rows: list[str],
        blobs: list[BlobRow],
        seen: dict[int, Typed],
    ) -> int:
        """Append a row for each changed value that is not inlined; return their size."""
        thread_id, ns, versions = unit.thread_id, unit.checkpoint_ns, checkpoint["channel_versions"]
        values = checkpoint["channel_values"]
        size = 0
        for channel, value in unit.changed.items():
            if channel in inline:
                continue
            if channel not in self._names:
                self._check_name(channel, "channel name")
            if channel not in versions:
                message = f"Channel {channel!r} changed but has no version in the checkpoint's channel_versions."
                raise ValueError(message)
            if channel not in values:  # the caller left it out; it is stored, so it must be found
                rows.append(channel)
            version = str(versions[channel])
            if type(value) is Addition:
                kind, data = self._encode_addition(thread_id, ns, channel, version, value)
            else:
                kind, data = seen.get(id(value)) or self._dump(value, seen, channel)
                if self._seals:
                    kind, data = self._serializer.seal((kind, data), place(thread_id, ns, channel, version))
            kind = bound(kind, data, blob_key(ns, channel, version))
            blobs.append((thread_id, ns, channel, version, kind, data))
            size += ROW_OVERHEAD + len(data)
        return size

    def _encode_addition(self, thread_id: str, ns: str, channel: str, version: str, value: Addition) -> Typed:
        base = value.base
        payload = [base.index, base.version, base.length, value.index, value.items]
        typed = self._dump(payload, {}, channel)
        if self._seals:
            typed = self._serializer.seal(typed, place(thread_id, ns, channel, version, ADDITION))
        return typed[0] + ADDITION, typed[1]

    def _encode_writes(
        self, unit: Unit, task: TaskWrites, writes: list[WriteRow], upserts: list[WriteRow], seen: dict[int, Typed]
    ) -> int:
        """Append a row for each write of a task, to those that keep or those that replace; return their size."""
        thread_id, ns = unit.thread_id, unit.checkpoint_ns
        checkpoint_id, task_id, task_path = task.checkpoint_id, task.task_id, task.task_path
        name(checkpoint_id, "checkpoint_id")
        name(task_id, "task_id")
        names = self._names
        if task_path not in names:
            self._check_name(task_path, "task_path")
        size = 0
        for position, (channel, value) in enumerate(task.writes):
            if channel not in names:
                self._check_name(channel, "channel name")
            kind, data = seen.get(id(value)) or self._dump(value, seen, channel, task_id)
            if channel in WRITES_IDX_MAP:
                rows, idx = upserts, WRITES_IDX_MAP[channel]
            else:
                rows, idx = writes, position
            if self._seals:
                where = write_place((thread_id, ns, checkpoint_id, task_id, idx, channel, kind, data, task_path))
                kind, data = self._serializer.seal((kind, data), where)
            kind = bound(kind, data, write_key(ns, checkpoint_id, task_id, idx, channel, task_path))
            rows.append((thread_id, ns, checkpoint_id, task_id, idx, channel, kind, data, task_path))
            size += ROW_OVERHEAD + len(data)
        return size

    def _dump(self, value: Any, seen: dict[int, Typed], channel: str, task_id: str | None = None) -> Typed:
        try:
            typed = seen[id(value)] = self._serializer.dumps_typed(value)
        except SerializationError as error:
            by = f", written by task {task_id}," if task_id else ""
            what = _TOLD.get(channel, f"The value of channel {channel!r}")
            why = str(error).removeprefix("Cannot store ")
            refusal = SerializationError(f"{what}{by} cannot be stored: {why}")
            refusal.task_id = task_id
            raise refusal from error
        return typed


def checksum(data: bytes) -> str:
    """Return the first part of the type under which a checkpoint's JSON is stored; rows of old have no other."""
    return f"{CHECKSUM}{zlib.crc32(data):08x}"


def checksum_of_facts(parent: str | None, metadata: bytes) -> str:
    """Return the second part: for what stands beside the JSON."""
    around = "" if parent is None else f"{parent}\0"
    return f":{zlib.crc32(metadata, zlib.crc32(around.encode('utf-8', 'surrogatepass'))):08x}"


def _checkpoint_row(
    unit: Unit, checkpoint: Checkpoint, inline: Mapping[str, Any], rows: Sequence[str]
) -> CheckpointRow:
    checkpoint_id, parent, metadata = checkpoint["id"], unit.parent_id, unit.metadata
    name(checkpoint_id, "checkpoint id")
    if parent is not None:
        name(parent, "parent checkpoint id")
    body: dict[str, Any] = {**checkpoint, "channel_values": inline, ROWS: rows}
    if unit.lineage:
        body[LINEAGE] = {
            channel: [(mark.index, mark.version, mark.length) for mark in marks]
            for channel, marks in unit.lineage.items()
        }
    data = plain_json.dump(body, "The checkpoint")
    plain_json.check(metadata, "metadata")
    facts = plain_json.dump(metadata, "metadata")
    kind = checksum(data) + checksum_of_facts(parent, facts)
    return unit.thread_id, unit.checkpoint_ns, checkpoint_id, parent, kind, data.decode(), facts.decode()
