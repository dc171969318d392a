"""Rows to checkpoints, and which rows a checkpoint needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import msgspec

from persistence.contracts.checkpoint import Checkpoint, CheckpointTuple, Mark, PendingWrite
from persistence.errors import CorruptDataError, DecryptionError, StoredDataError
from persistence.serde.serializer import Serializer, place
from persistence.writer import plain_json
from persistence.writer.addressing import config_of
from persistence.writer.binding import blob_key, open_write, unbound, write_key
from persistence.writer.encoding import ADDITION, LINEAGE, ROWS, checksum, checksum_of_facts

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from persistence.contracts.backend import BlobKey, CheckpointRow, Page, WriteRow


class _Body(msgspec.Struct):
    """What a checkpoint's JSON must look like wherever it says anything, so that nobody above has to doubt it."""

    id: str
    channel_values: dict[str, Any]
    channel_versions: dict[str, str | int | float]
    rows: list[str]
    lineage: dict[str, list[tuple[int, str, int]]] = {}
    versions_seen: dict[str, dict[str, str | int | float]] = {}
    updated_channels: list[str] | None = None
    ts: str = ""


class _References(msgspec.Struct):
    """The part of a checkpoint's JSON that says which blob rows it rests on."""

    channel_versions: dict[str, Any] = {}
    rows: list[str] = []
    lineage: dict[str, list[tuple[int, str | int | float, int]]] = {}


_GROWING = frozenset({list, str, dict})
"""Types of the values that are stored as what they gained."""

DAMAGE = (msgspec.MsgspecError, UnicodeEncodeError, RecursionError)
"""What parsing damaged JSON raises; bytes that are no UTF-8 arrive as escaped surrogates."""

_references = msgspec.json.Decoder(_References).decode


def blobs_of(row: CheckpointRow) -> list[tuple[str, str]] | None:
    """Return the (channel, version) of every blob row that a checkpoint rests on; None if its JSON is damaged."""
    try:
        held = _references(row[5])
    except DAMAGE:
        return None
    found: list[tuple[str, str]] = []
    for channel in held.rows:
        marks = held.lineage.get(channel)
        if marks is not None:
            found += [(channel, str(version)) for _, version, _ in marks]
        elif channel in held.channel_versions:
            found.append((channel, str(held.channel_versions[channel])))
    return found


def unreferenced(stored: Iterable[BlobKey], kept: Iterable[CheckpointRow]) -> list[BlobKey]:
    """Return the stored blobs that no kept checkpoint rests on.

    Where a kept checkpoint is damaged, its namespace keeps every blob: deleting must not make the damage worse.
    """
    needed: set[BlobKey] = set()
    spared: set[tuple[str, str]] = set()
    for row in kept:
        found = blobs_of(row)
        if found is None:
            spared.add(row[:2])
        else:
            needed.update((row[0], row[1], channel, version) for channel, version in found)
    return [key for key in stored if key not in needed and key[:2] not in spared]


class Decoder:
    """Rebuilds checkpoints with one serializer."""

    __slots__ = ("_seals", "_serializer")

    def __init__(self, serializer: Serializer) -> None:
        self._serializer = serializer
        self._seals = serializer.encrypts

    def decode(self, row: CheckpointRow, page: Page) -> CheckpointTuple:
        """Rebuild one checkpoint of a page.

        Raises:
            CorruptDataError: A checksum is wrong, a row is missing or does not parse.
            UnknownTypeError, DecryptionError: A value cannot be rebuilt.
        """
        try:
            return self._decoded(row, page)
        except StoredDataError as error:
            error.checkpoint_id = row[2]
            raise

    def _decoded(self, row: CheckpointRow, page: Page) -> CheckpointTuple:
        thread_id, ns, checkpoint_id, parent, _, text, metadata_text = row
        if not _is_sound(row):
            _corrupt(row, "its checksum does not match its content")
        try:
            body = plain_json.decode(text)
            checked = msgspec.convert(body, _Body)
            metadata = msgspec.convert(plain_json.decode(metadata_text), dict[str, Any])
            del body[ROWS]
            body.pop(LINEAGE, None)
            values: dict[str, Any] = body["channel_values"]
            versions = {channel: checked.channel_versions[channel] for channel in checked.rows}
            lineage = {
                channel: tuple(Mark(*mark) for mark in marks)
                for channel, marks in checked.lineage.items()
                if channel in versions  # nothing can be added to what is no row
            }
        except (*DAMAGE, KeyError) as error:
            _corrupt(row, f"it does not parse ({type(error).__name__}: {error})", error)
        if checked.id != checkpoint_id:
            _corrupt(row, f"its content is that of checkpoint {checked.id!r:.80}")
        if self._seals and values:
            message = f"{_title(row)} holds plain values of {sorted(values)}; a serializer that encrypts reads none."
            raise DecryptionError(message)
        for channel, version in versions.items():
            values[channel] = self._channel(row, channel, version, lineage.get(channel), page)
        checkpoint: Checkpoint = body
        return CheckpointTuple(
            config_of(thread_id, ns, checkpoint_id),
            checkpoint,
            metadata,
            None if parent is None else config_of(thread_id, ns, parent),
            [self._write(row, write) for write in page.writes.get(row[:3], ())],
            lineage or None,
        )

    def _channel(self, row: CheckpointRow, channel: str, version: Any, marks: Sequence[Mark] | None, page: Page) -> Any:
        if marks is None:
            return self._blob(row, channel, str(version), page, addition=False)
        if not marks or str(marks[-1].version) != str(version):
            _corrupt(row, f"the lineage of channel {channel!r} does not end at its version")
        value: Any = None
        for position, mark in enumerate(marks):
            held = self._blob(row, channel, str(mark.version), page, addition=position > 0)
            if position == 0:
                value = held
                if type(value) not in _GROWING:
                    _corrupt(row, f"channel {channel!r} holds a {type(value).__name__}, to which nothing can be added")
                if mark.index != 0:
                    _corrupt(row, f"the lineage of channel {channel!r} begins at addition {mark.index}, not at 0")
            else:
                base = marks[position - 1]
                if mark.index <= base.index:  # who counts on from it would not come to an end
                    _corrupt(row, f"the lineage of channel {channel!r} does not ascend")
                follows = [base.index, base.version, base.length, mark.index]
                if type(held) is not list or held[:-1] != follows or type(held[-1]) is not type(value):
                    _corrupt(row, f"channel {channel!r} has an addition that does not follow its base")
                value = value | held[-1] if type(value) is dict else value + held[-1]
            if len(value) != mark.length:
                _corrupt(row, f"channel {channel!r} is {len(value)} long at version {mark.version}, not {mark.length}")
        return value

    def _blob(self, row: CheckpointRow, channel: str, version: str, page: Page, *, addition: bool) -> Any:
        stored = page.blobs.get((row[0], row[1], channel, version))
        if stored is None:
            _corrupt(row, f"channel {channel!r} has no stored value for version {version}")
        kind, data = unbound(stored[0], stored[1], blob_key(row[1], channel, version)), stored[1]
        if kind is None:
            self._displaced(row, f"channel {channel!r}")
        if kind.endswith(ADDITION) != addition:
            _corrupt(row, f"channel {channel!r} holds {kind!r} at version {version}, where it cannot stand")
        where: tuple[str, ...] = (row[0], row[1], channel, version)
        if addition:
            kind, where = kind[: -len(ADDITION)], (*where, ADDITION)
        try:
            typed = self._serializer.open((kind, data), place(*where)) if self._seals else (kind, data)
            return self._serializer.loads_typed(typed)
        except StoredDataError as error:
            raise _unread(row, f"channel {channel!r}", error) from error

    def _write(self, row: CheckpointRow, write: WriteRow) -> PendingWrite:
        _, ns, checkpoint_id, task_id, idx, channel, stored, data, task_path = write
        told = f"the write of task {task_id} to channel {channel!r}"
        kind = unbound(stored, data, write_key(ns, checkpoint_id, task_id, idx, channel, task_path))
        if kind is None:
            self._displaced(row, told)
        try:
            typed = open_write(self._serializer, kind, write) if self._seals else (kind, data)
            return task_id, channel, self._serializer.loads_typed(typed)
        except StoredDataError as error:
            raise _unread(row, told, error) from error

    def _displaced(self, row: CheckpointRow, what: str) -> NoReturn:
        """Raise what tells of a value that was not stored under its key."""
        told = f"{what} cannot be read: it was damaged, or belongs to another place"
        if self._seals:
            message = f"{_title(row)}: {told}."
            raise DecryptionError(message)
        _corrupt(row, told)


def _unread(row: CheckpointRow, what: str, error: StoredDataError) -> StoredDataError:
    """Return the error once more, with what could not be read."""
    return type(error)(f"{_title(row)}: {what} cannot be read: {error}")


def pending_order(write: WriteRow) -> tuple[str, str, int]:
    """Sort key of pending writes."""
    return write[8], write[3], write[4]


def group_writes(rows: Iterable[WriteRow]) -> Mapping[tuple[str, str, str], list[WriteRow]]:
    """Return writes by checkpoint, each group in the order that readers promise."""
    groups: dict[tuple[str, str, str], list[WriteRow]] = {}
    for row in rows:
        groups.setdefault(row[:3], []).append(row)
    for group in groups.values():
        group.sort(key=pending_order)
    return groups


def _is_sound(row: CheckpointRow) -> bool:
    """Tell whether a row has the checksums of what it holds."""
    held, facts = (text.encode("utf-8", "surrogatepass") for text in row[5:])
    own = checksum(held)
    return row[4] in (own, own + checksum_of_facts(row[3], facts))


def _title(row: CheckpointRow) -> str:
    return f"Checkpoint {row[2]} of thread {row[0]!r}, namespace {row[1]!r}"


def _corrupt(row: CheckpointRow, what: str, cause: Exception | None = None) -> NoReturn:
    message = (
        f"{_title(row)} is damaged: {what}. Other checkpoints of the thread are still readable: "
        "list them with before=, or address one by its checkpoint_id."
    )
    raise CorruptDataError(message) from cause
