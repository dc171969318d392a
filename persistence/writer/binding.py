"""Binding values to their rows: one that stands in another's place is told, though it is sound in itself.

The type of a blob or write ends with a checksum of its key and of how its data begins: with the data's own checksum, or
the nonce it was sealed with. The thread is not part of it, so that threads can be copied inside the database.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from xxhash import xxh32_hexdigest

from persistence.errors import DecryptionError
from persistence.serde.serializer import place

if TYPE_CHECKING:
    from persistence.contracts.backend import WriteRow
    from persistence.serde.serializer import Serializer, Typed

MARK: Final = "@"
"""Between the type and its checksum; rows of old have neither."""

BEGINNING: Final = 16
"""Bytes of data that tell one value from another."""


def blob_key(ns: str, channel: str, version: str) -> str:
    """Return what a channel's value is bound to."""
    return f"{ns}\0{channel}\0{version}"


def write_key(ns: str, checkpoint_id: str, task_id: str, idx: int, channel: str, task_path: str) -> str:
    """Return what a task's write is bound to."""
    return f"{ns}\0{checkpoint_id}\0{task_id}\0{idx}\0{channel}\0{task_path}"


def bound(kind: str, data: bytes, key: str) -> str:
    """Return the type under which a value is stored."""
    told = f"{kind}\0{key}".encode("utf-8", "surrogatepass") + data[:BEGINNING]
    return f"{kind}{MARK}{xxh32_hexdigest(told)}"


def unbound(kind: str, data: bytes, key: str) -> str | None:
    """Return the type of a value that was stored under this key, None if it was stored under another."""
    plain, mark, _ = kind.partition(MARK)
    return plain if not mark or kind == bound(plain, data, key) else None


def write_place(row: WriteRow) -> bytes:
    """Return the place that a task's write is sealed for: its whole key."""
    thread_id, ns, checkpoint_id, task_id, idx, channel, _, _, task_path = row
    return place(thread_id, ns, checkpoint_id, task_id, channel, str(idx), task_path)


def open_write(serializer: Serializer, kind: str, row: WriteRow) -> Typed:
    """Open a task's write at its place. Raises DecryptionError if it was sealed for another.

    A write of old was sealed for any that its task made to the channel.
    """
    typed = kind, row[7]
    try:
        return serializer.open(typed, write_place(row))
    except DecryptionError as error:
        thread_id, ns, checkpoint_id, task_id, _, channel, *_ = row
        try:
            return serializer.open(typed, place(thread_id, ns, checkpoint_id, task_id, channel))
        except DecryptionError:
            raise error from None
