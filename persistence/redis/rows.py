"""Rows as members, fields and values of keys, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from persistence.errors import SchemaVersionError
from persistence.writer.addressing import name
from persistence.writer.decoding import blobs_of
from persistence.writer.filtering import metadata_run_id

if TYPE_CHECKING:
    from persistence.contracts.backend import BlobRow, CheckpointRow, WriteRow

FORMAT: Final = 1
"""Of a checkpoint's record; the scripts know it too."""

_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(tuple[int, str | None, str, str, list[str]]).decode


def joined(*parts: str) -> str:
    """Return a member or field: names with a NUL between, as they hold none. Its bytes sort like the names."""
    return "\0".join(parts)


def parted(member: bytes) -> list[str]:
    """Return the names that a member or field was joined of."""
    return member.decode().split("\0")


def run_of(row: CheckpointRow) -> str:
    """Return the run that a checkpoint can be deleted by, the empty name if there is none."""
    found = metadata_run_id(row[6])
    try:
        return name(found or "", "run_id")
    except ValueError:  # nobody can ask for it
        return ""


def record(row: CheckpointRow) -> bytes:
    """Return the value of a checkpoint; its run and metadata, which hold no NUL, stand where scripts find them."""
    _, _, _, parent, kind, body, facts = row
    rests = [joined(channel, version) for channel, version in blobs_of(row) or ()]
    return joined(run_of(row), facts, "").encode() + _encode((FORMAT, parent, kind, body, rests))


def run_of_record(value: bytes) -> str:
    """Return the run in the value of a checkpoint."""
    return value.partition(b"\0")[0].decode("utf-8", "replace")


def checkpoint(thread_id: str, ns: str, checkpoint_id: str, value: bytes) -> CheckpointRow:
    """Return the row of a checkpoint; of a damaged one, a row that fails its checksum.

    Raises:
        SchemaVersionError: A newer version of this library wrote it.
    """
    _, facts, rest = [*value.split(b"\0", 2), b"", b""][:3]
    try:
        number, parent, kind, body, _ = _decode(rest)
    except msgspec.MsgspecError:
        number, parent, kind, body = _format(rest), None, "", ""
    if number > FORMAT:
        message = (
            f"Checkpoint {checkpoint_id} of thread {thread_id!r} was written by a newer version of this library "
            f"(format {number}, this one knows {FORMAT}): upgrade to read it."
        )
        raise SchemaVersionError(message)
    return thread_id, ns, checkpoint_id, parent, kind, body, facts.decode("utf-8", "surrogateescape")


def _format(value: bytes) -> int:
    try:
        number = msgspec.msgpack.decode(value)[0]
    except (msgspec.MsgspecError, TypeError, LookupError):
        return 0
    return number if isinstance(number, int) else 0


def blob_parts(row: BlobRow) -> tuple[str, bytes]:
    """Return the field and value of a blob."""
    return joined(*row[1:4]), row[4].encode() + b"\0" + row[5]


def blob(thread_id: str, field: bytes, value: bytes) -> BlobRow:
    """Return the row of a blob."""
    ns, channel, version = parted(field)
    kind, _, data = value.partition(b"\0")
    return thread_id, ns, channel, version, kind.decode("utf-8", "replace"), data


def write_parts(row: WriteRow) -> tuple[str, bytes]:
    """Return the field and value of a write."""
    _, ns, checkpoint_id, task_id, idx, channel, kind, data, task_path = row
    return joined(ns, checkpoint_id, task_id, str(idx)), joined(channel, kind, task_path, "").encode() + data


def write(thread_id: str, field: bytes, value: bytes) -> WriteRow:
    """Return the row of a write."""
    ns, checkpoint_id, task_id, idx = parted(field)
    parts = value.split(b"\0", 3)
    channel, kind, task_path, data = parts + [b""] * (4 - len(parts))
    names: Any = [part.decode("utf-8", "replace") for part in (channel, kind, task_path)]
    return thread_id, ns, checkpoint_id, task_id, int(idx), names[0], names[1], data, names[2]
