"""A store's items in Redis: what its batches read and write."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from persistence.contracts.store import Namespace
from persistence.errors import CorruptDataError
from persistence.redis.rows import joined, parted
from persistence.redis.scripts import FIND_ITEMS, READ_ITEMS, SWEEP_ITEMS, WRITE_ITEMS
from persistence.redis.server import Session, unpacked
from persistence.serde.serializer import Typed
from persistence.stores.carrying_out import Row
from persistence.stores.coding import Codec
from persistence.stores.namespaces import below, column, from_column
from persistence.stores.paging import Entry, PagingReader
from persistence.stores.planning import Put
from persistence.stores.remote import Changes
from persistence.stores.sweeping import SWEPT
from persistence.stores.ttl import alive, deadline, moment

LONGEST: Final = 10**15
"""Milliseconds: some thirty thousand years, and no more than the server can add to its clock."""

FIELDS: Final = ("number", "type", "value", "created_at", "updated_at", "ttl", "expires_at")
VECTORS: Final = ("number", "expires_at", "dims", "vectors_type", "vectors")


class Refreshed(NamedTuple):
    """An item that was read, whose time to live starts again."""

    address: str
    number: int
    ttl: float


def address(namespace: Namespace, key: str) -> str:
    """Return where an item is: labels and keys hold no NUL, and labels no period."""
    return joined(column(namespace), key)


async def sweep(session: Session, now: float) -> int:
    """Delete some of what has expired; return how many items that were."""
    swept: int = await session.run(SWEEP_ITEMS, (repr(now), SWEPT))
    return swept


async def change(session: Session, changes: Sequence[Changes[Refreshed]], dims: int) -> None:
    """Apply what several batches lead to, in order and together: one call."""
    values: list[bytes] = []
    refreshes = [_refresh(each, change.now) for change in changes for each in change.refreshes]
    puts = [_put(put, change.now, dims, values) for change in changes for put in change.puts]
    now = min(change.now for change in changes)
    await session.run(WRITE_ITEMS, (repr(now), refreshes, puts), values)


def _refresh(refreshed: Refreshed, now: float) -> tuple[Any, ...]:
    until = deadline(now, refreshed.ttl)
    return refreshed.address, str(refreshed.number), repr(refreshed.ttl), repr(until), _milliseconds(until, now)


def _put(put: Put, now: float, dims: int, values: list[bytes]) -> tuple[Any, ...]:
    where = address(put.namespace, put.key)
    if put.typed is None:
        return (where,)
    kind, value = put.typed
    values.append(value)
    told: list[Any] = [where, kind, len(values), moment(now).isoformat(timespec="microseconds")]
    until = deadline(now, put.ttl)
    told += [None] * 3 if until is None else [repr(put.ttl), repr(until), _milliseconds(until, now)]
    if put.vectors is not None:
        vectors_kind, vectors = put.vectors
        values.append(vectors)
        told += [str(dims), vectors_kind, len(values)]
    return tuple(told)


def _milliseconds(until: float | None, now: float) -> int:
    return max(1, min(math.ceil(((until or now) - now) * 1000), LONGEST))


class Shelves(PagingReader[Refreshed]):
    """Answers the reads of one batch."""

    def __init__(self, session: Session, codec: Codec, dims: int, now: float) -> None:
        """Read over a session."""
        super().__init__(codec, dims, now)
        self._session = session

    def _name(self, namespace: Namespace, key: str) -> str:
        return address(namespace, key)

    async def _entries(self, prefix: Namespace, limit: int | None) -> Sequence[Entry]:
        del limit  # the sets are sorted by address
        bounds = [("-", "+")]
        if prefix:
            exact, (first, after) = column(prefix), below(prefix)
            bounds = [(f"[{exact}\0", f"({exact}\1"), (f"[{first}", f"({after}")]
        return sorted(map(_entry, unpacked(*await self._session.run(FIND_ITEMS, (repr(self._now), bounds)))))

    async def _namespaces(self, prefix: Namespace) -> set[str]:
        return {entry.name.partition("\0")[0] for entry in await self._entries(prefix, None)}

    async def _rows(self, names: Sequence[str]) -> dict[str, Row]:
        found = [] if not names else await self._read(FIELDS, names)
        rows = [(where, _row(where, fields)) for where, fields in zip(names, found, strict=True)]
        return {where: row for where, row in rows if row is not None and alive(row.expires_at, self._now)}

    async def _vectors(self, page: Sequence[Entry]) -> list[tuple[int, bytes | None]]:
        found: list[tuple[int, bytes | None]] = []
        read = await self._read(VECTORS, [each.name for each in page])
        for entry, (number, expires_at, dims, kind, vectors) in zip(page, read, strict=True):
            if number is None or int(number) != entry.number or not alive(_float(expires_at), self._now):
                continue
            fits = kind is not None and int(dims) == self._dims
            found.append((entry.number, self._decoded(entry, (kind.decode(), vectors)) if fits else None))
        return found

    async def _read(self, fields: Sequence[str], addresses: Sequence[str]) -> Sequence[Sequence[Any]]:
        found = unpacked(*await self._session.run(READ_ITEMS, (fields, addresses)))
        return [found[start : start + len(fields)] for start in range(0, len(found), len(fields))]

    def _decoded(self, entry: Entry, typed: Typed) -> bytes:
        namespace, key = parted(entry.name.encode())
        return self._codec.decode_vectors(from_column(namespace), key, typed)

    def _refreshed(self, row: Row, ttl: float) -> Refreshed:
        return Refreshed(address(row.namespace, row.key), row.number, ttl)


def _entry(member: bytes) -> Entry:
    where, _, number = member.decode().rpartition("\0")
    return Entry(int(number), where)


def _float(text: bytes | None) -> float | None:
    return None if text is None else float(text)


def _row(where: str, fields: Sequence[bytes | None]) -> Row | None:
    number, kind, value, created_at, updated_at, ttl, expires_at = fields
    if number is None:
        return None
    namespace, key = where.split("\0")
    try:
        created, updated = _time(created_at), _time(updated_at)
        typed = (kind or b"").decode(), value or b""
        return Row(int(number), from_column(namespace), key, typed, created, updated, _float(ttl), _float(expires_at))
    except ValueError as error:
        message = f"The item {key!r} of {from_column(namespace)!r} is damaged: {error}. Put it again."
        raise CorruptDataError(message) from error


def _time(text: bytes | None) -> datetime:
    return datetime.fromisoformat((text or b"").decode())
