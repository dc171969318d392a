"""Moving sealed rows to another thread: the cipher binds every value to its place."""

from __future__ import annotations

from typing import TYPE_CHECKING

from persistence.errors import CorruptDataError
from persistence.serde.serializer import Serializer, place
from persistence.writer.binding import blob_key, bound, open_write, unbound, write_key, write_place
from persistence.writer.encoding import ADDITION

if TYPE_CHECKING:
    from persistence.contracts.backend import BlobRow, WriteRow


class Resealer:
    """Opens rows at their place and seals them for another thread."""

    def __init__(self, serializer: Serializer) -> None:
        self._serializer = serializer

    def blob(self, row: BlobRow, thread_id: str) -> BlobRow:
        """Return the row, sealed for the other thread. Raises StoredDataError if it was not sealed for its own."""
        source, ns, channel, version, kind, data = row
        key = blob_key(ns, channel, version)
        kind = _own(unbound(kind, data, key), f"channel {channel!r} of thread {source!r}")
        suffix = ADDITION if kind.endswith(ADDITION) else ""
        parts = (ns, channel, version, suffix) if suffix else (ns, channel, version)
        kind, data = self._move((kind.removesuffix(ADDITION), data), source, thread_id, parts)
        return thread_id, ns, channel, version, bound(kind + suffix, data, key), data

    def write(self, row: WriteRow, thread_id: str) -> WriteRow:
        """Return the row, sealed for the other thread. Raises StoredDataError if it was not sealed for its own."""
        _, ns, checkpoint_id, task_id, idx, channel, kind, data, task_path = row
        key = write_key(ns, checkpoint_id, task_id, idx, channel, task_path)
        kind = _own(unbound(kind, data, key), f"the write of task {task_id} to channel {channel!r}")
        plain = open_write(self._serializer, kind, row)
        moved = (thread_id, *row[1:])
        kind, data = self._serializer.seal(plain, write_place(moved))
        return thread_id, ns, checkpoint_id, task_id, idx, channel, bound(kind, data, key), data, task_path

    def _move(self, typed: tuple[str, bytes], source: str, target: str, parts: tuple[str, ...]) -> tuple[str, bytes]:
        plain = self._serializer.open(typed, place(source, *parts))
        return self._serializer.seal(plain, place(target, *parts))


def _own(kind: str | None, what: str) -> str:
    """Return the type of what was stored in its own place."""
    if kind is None:
        message = f"The thread cannot be copied: {what} is damaged, it was stored as another's."
        raise CorruptDataError(message)
    return kind
