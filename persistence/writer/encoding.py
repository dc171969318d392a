"""Units to rows: everything is turned into bytes in the task that made it.

So a value is frozen, checked and blamed where it was written, and what waits in the channel has a known size.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from typing import Any

from persistence.contracts.backend import BlobRow, CheckpointRow, Rows, WriteRow
from persistence.contracts.checkpoint import WRITES_IDX_MAP, Addition, Checkpoint, Mark, TaskWrites, Unit
from persistence.errors import SerializationError
from persistence.serde.serializer import Serializer, place
from persistence.writer import plain_json
from persistence.writer.addressing import name
from persistence.writer.inlining import inlines

ADDITION = "+add"
"""Ends the type of a blob that holds an Addition; also part of its place, so that it cannot pass for a whole value."""

CHECKSUM = "json:"
"""Starts the type of a checkpoint row; the CRC-32 of its JSON follows."""

ROWS, LINEAGE = "rows", "lineage"
"""Private keys in a checkpoint's JSON: the channels whose values are blob rows, and what additive ones rest on."""

_ROW_OVERHEAD = 200
"""Bytes a row takes beside its payload: tuple, ids, object headers."""

Typed = tuple[str, bytes]


class Encoder:
    """Encodes units with one serializer."""

    __slots__ = ("_seals", "_serializer")

    def __init__(self, serializer: Serializer) -> None:
        self._serializer = serializer
        self._seals = serializer.encrypts

    def encode(self, unit: Unit) -> Rows:
        """Turn a unit into rows.

        Raises:
            SerializationError: A value cannot be stored; names channel, and task for writes.
            TypeError, ValueError: An id or channel name cannot be a key.
        """
        thread_id = name(unit.thread_id, "thread_id")
        ns = name(unit.checkpoint_ns, "checkpoint_ns")
        # One value is often a task's write and a channel's new value: dump it once. The unit keeps it alive, so its
        # id() stays its own for the length of this call. Sealed bytes differ by place and are not shared.
        seen: dict[int, Typed] = {}
        writes: list[WriteRow] = []
        upserts: list[WriteRow] = []
        for task in unit.writes:
            self._encode_writes(thread_id, ns, task, writes, upserts, seen)
        row: CheckpointRow | None = None
        blobs: list[BlobRow] = []
        if unit.checkpoint is not None:
            inline, rows = self._split(unit.checkpoint["channel_values"], unit.lineage)
            blobs = self._encode_changed(thread_id, ns, unit, inline, seen)
            row = _checkpoint_row(thread_id, ns, unit, inline, rows)
        return Rows(thread_id, ns, row, blobs, writes, upserts, _size(row, blobs, writes, upserts))

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
        self, thread_id: str, ns: str, unit: Unit, inline: Mapping[str, Any], seen: dict[int, Typed]
    ) -> list[BlobRow]:
        versions = unit.checkpoint["channel_versions"] if unit.checkpoint is not None else {}
        blobs: list[BlobRow] = []
        for channel, value in unit.changed.items():
            if channel in inline:
                continue
            name(channel, "channel name")
            try:
                version = str(versions[channel])
            except KeyError:
                message = f"Channel {channel!r} changed but has no version in the checkpoint's channel_versions."
                raise ValueError(message) from None
            if type(value) is Addition:
                kind, data = self._encode_addition(thread_id, ns, channel, version, value)
            else:
                kind, data = self._dump(value, seen, channel)
                if self._seals:
                    kind, data = self._serializer.seal((kind, data), place(thread_id, ns, channel, version))
            blobs.append((thread_id, ns, channel, version, kind, data))
        return blobs

    def _encode_addition(self, thread_id: str, ns: str, channel: str, version: str, value: Addition) -> Typed:
        base = value.base
        payload = [base.index, base.version, base.length, value.index, value.items]
        typed = self._dump(payload, {}, channel)
        if self._seals:
            typed = self._serializer.seal(typed, place(thread_id, ns, channel, version, ADDITION))
        return typed[0] + ADDITION, typed[1]

    def _encode_writes(
        self,
        thread_id: str,
        ns: str,
        task: TaskWrites,
        writes: list[WriteRow],
        upserts: list[WriteRow],
        seen: dict[int, Typed],
    ) -> None:
        checkpoint_id = name(task.checkpoint_id, "checkpoint_id")
        task_id = name(task.task_id, "task_id")
        task_path = name(task.task_path, "task_path")
        for position, (channel, value) in enumerate(task.writes):
            name(channel, "channel name")
            kind, data = self._dump(value, seen, channel, task_id)
            if self._seals:
                where = place(thread_id, ns, checkpoint_id, task_id, channel)
                kind, data = self._serializer.seal((kind, data), where)
            idx = WRITES_IDX_MAP.get(channel)
            target, idx = (writes, position) if idx is None else (upserts, idx)
            target.append((thread_id, ns, checkpoint_id, task_id, idx, channel, kind, data, task_path))

    def _dump(self, value: Any, seen: dict[int, Typed], channel: str, task_id: str | None = None) -> Typed:
        typed = seen.get(id(value))
        if typed is None:
            try:
                typed = self._serializer.dumps_typed(value)
            except SerializationError as error:
                by = "" if task_id is None else f", written by task {task_id},"
                message = f"The value of channel {channel!r}{by} cannot be stored: {error}"
                raise SerializationError(message) from error
            seen[id(value)] = typed
        return typed


def _checkpoint_row(
    thread_id: str, ns: str, unit: Unit, inline: Mapping[str, Any], rows: Sequence[str]
) -> CheckpointRow:
    checkpoint: Checkpoint = unit.checkpoint  # type: ignore[assignment]
    checkpoint_id = name(checkpoint["id"], "checkpoint id")
    parent = unit.parent_id
    if parent is not None:
        name(parent, "parent checkpoint id")
    body: dict[str, Any] = {**checkpoint, "channel_values": inline, ROWS: rows}
    if unit.lineage:
        body[LINEAGE] = {
            channel: [(mark.index, mark.version, mark.length) for mark in marks]
            for channel, marks in unit.lineage.items()
        }
    text = plain_json.dump(body, f"Checkpoint {checkpoint_id} of thread {thread_id!r}")
    plain_json.check(unit.metadata, "metadata")
    metadata = plain_json.dump(unit.metadata, "metadata")
    return thread_id, ns, checkpoint_id, parent, checksum(text), text, metadata


def checksum(text: str) -> str:
    """Return the type under which a checkpoint's JSON is stored."""
    return f"{CHECKSUM}{zlib.crc32(text.encode()):08x}"


def _size(
    row: CheckpointRow | None, blobs: Sequence[BlobRow], writes: Sequence[WriteRow], upserts: Sequence[WriteRow]
) -> int:
    size = _ROW_OVERHEAD * (1 + len(blobs) + len(writes) + len(upserts))
    if row is not None:
        size += len(row[5]) + len(row[6])
    for blob in blobs:
        size += len(blob[5])
    for write in writes:
        size += len(write[7])
    for write in upserts:
        size += len(write[7])
    return size
