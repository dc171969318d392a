"""A store's items in Redis: what its batches read and write."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Iterator, Sequence
from datetime import datetime
from functools import partial
from typing import Any, Final, NamedTuple

from persistence.contracts.store import Item, Namespace, SearchItem, Value
from persistence.errors import CorruptDataError
from persistence.redis.rows import joined, parted
from persistence.redis.scripts import FIND_ITEMS, READ_ITEMS, SWEEP_ITEMS, WRITE_ITEMS
from persistence.redis.server import Session, unpacked
from persistence.serde.serializer import Typed
from persistence.stores.carrying_out import Row
from persistence.stores.coding import Codec
from persistence.stores.namespaces import below, column, from_column, listed, literal
from persistence.stores.planning import Get, Listing, Plan, Put, Search
from persistence.stores.ranking import Ranking
from persistence.stores.remote import Changes
from persistence.stores.sweeping import SWEPT
from persistence.stores.ttl import alive, deadline, moment

FIRST_PAGE, LARGEST_PAGE = 64, 1024
"""Items read by one call where a filter decides how many are needed; then by each call."""

LONGEST: Final = 10**15
"""Milliseconds: some thirty thousand years, and no more than the server can add to its clock."""

FIELDS: Final = ("number", "type", "value", "created_at", "updated_at", "ttl", "expires_at")
VECTORS: Final = ("number", "expires_at", "dims", "vectors_type", "vectors")


class Entry(NamedTuple):
    """What the sets say of an item."""

    number: int
    address: str


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


class Shelves:
    """Answers the reads of one store."""

    def __init__(self, codec: Codec, dims: int) -> None:
        """Read with a store's codec; ``dims`` is 0 without a search by meaning."""
        self._codec = codec
        self._dims = dims

    async def look(self, session: Session, *, plan: Plan, now: float) -> tuple[list[Any], Sequence[Refreshed]]:
        """Return the results of a plan's reads, None in the places of its puts, and what follows from them."""
        reader = _Reader(session, self._codec, self._dims, now)
        results: list[Any] = [None] * plan.size
        gets = [(place, read) for place, read in plan.reads if isinstance(read, Get) and read.namespace]
        for place, item in (await reader.gets(gets)).items():
            results[place] = item
        for place, read in plan.reads:
            if isinstance(read, Search):
                results[place] = await reader.search(read)
            elif isinstance(read, Listing):
                results[place] = await reader.listing(read)
        return results, reader.refreshes


class _Reader:
    """Answers the reads of one batch."""

    def __init__(self, session: Session, codec: Codec, dims: int, now: float) -> None:
        self._session = session
        self._codec = codec
        self._dims = dims
        self._now = now
        self.refreshes: list[Refreshed] = []

    async def gets(self, gets: Sequence[tuple[int, Get]]) -> dict[int, Item]:
        addresses = list(dict.fromkeys(address(get.namespace, get.key) for _, get in gets))
        found = dict(zip(addresses, await self._rows(addresses), strict=True))
        answers: dict[int, Item] = {}
        for place, get in gets:
            row = found[address(get.namespace, get.key)]
            if row is not None:
                self._touch(row, refresh=get.refresh)
                answers[place] = Item(row.namespace, row.key, self._value(row), row.created_at, row.updated_at)
        return answers

    async def search(self, search: Search) -> list[SearchItem]:
        if not search.limit:
            return []
        entries = await self._entries(search.prefix)
        found = self._in_order(search, entries) if search.vector is None else self._ranked(search, entries)
        items: list[SearchItem] = []
        passed, end = 0, search.offset + search.limit
        async for row, value, score in found:
            passed += 1
            if passed > search.offset:
                self._touch(row, refresh=search.refresh)
                items.append(SearchItem(row.namespace, row.key, value(), row.created_at, row.updated_at, score))
            if passed == end:
                break
        return items

    async def listing(self, listing: Listing) -> list[Namespace]:
        entries = await self._entries(literal(listing.conditions))
        texts = {entry.address.partition("\0")[0] for entry in entries}
        found = listed(map(from_column, texts), listing.conditions, listing.max_depth)
        return found[listing.offset : listing.offset + listing.limit]

    async def _entries(self, prefix: Namespace) -> list[Entry]:
        """Return what is at and below a namespace, by number."""
        bounds = [("-", "+")]
        if prefix:
            exact, (first, after) = column(prefix), below(prefix)
            bounds = [(f"[{exact}\0", f"({exact}\1"), (f"[{first}", f"({after}")]
        return sorted(map(_entry, unpacked(*await self._session.run(FIND_ITEMS, (repr(self._now), bounds)))))

    async def _in_order(self, search: Search, entries: Sequence[Entry]) -> AsyncIterator[tuple[Row, Any, float | None]]:
        """Yield what passes, with what gives its value, page by page."""
        size = min(search.offset + search.limit, LARGEST_PAGE) if search.test is None else FIRST_PAGE
        start = 0
        while start < len(entries):
            page = entries[start : start + size]
            for entry, row in zip(page, await self._rows([each.address for each in page]), strict=True):
                if row is None or row.number != entry.number:
                    continue
                if search.test is None:
                    yield row, partial(self._value, row), None
                elif search.test(value := self._value(row)):
                    yield row, partial(_same, value), None
            start, size = start + size, min(size * 4, LARGEST_PAGE)

    async def _ranked(self, search: Search, entries: Sequence[Entry]) -> AsyncIterator[tuple[Row, Any, float | None]]:
        ranking = Ranking(search.vector or b"")
        if search.test is not None:
            unlimited = [(row.number, row) async for row, _, _ in self._in_order(search, entries)]
            passing = dict(unlimited)
            entries = [entry for entry in entries if entry.number in passing]
        for page in _pages(entries):
            fields = await self._read(VECTORS, [each.address for each in page])
            for entry, (number, expires_at, dims, kind, vectors) in zip(page, fields, strict=True):
                if number is None or int(number) != entry.number or not alive(_float(expires_at), self._now):
                    continue
                fits = kind is not None and int(dims) == self._dims
                ranking.add(entry.number, self._vectors(entry, (kind.decode(), vectors)) if fits else None)
        addresses = {entry.number: entry.address for entry in entries}
        scores = ranking.ordered()
        ordered = [Entry(number, addresses[number]) for number, _ in scores]
        by_number = dict(scores)
        without_test = Search(search.prefix, None, search.limit, search.offset, refresh=search.refresh)
        async for row, value, _ in self._in_order(without_test, ordered):
            yield row, value, by_number[row.number]

    async def _rows(self, addresses: Sequence[str]) -> list[Row | None]:
        """Return the items of addresses, None for what is not there or has expired."""
        found = [] if not addresses else await self._read(FIELDS, addresses)
        rows = [_row(where, fields) for where, fields in zip(addresses, found, strict=True)]
        return [None if row is None or not alive(row.expires_at, self._now) else row for row in rows]

    async def _read(self, fields: Sequence[str], addresses: Sequence[str]) -> Sequence[Sequence[Any]]:
        found = unpacked(*await self._session.run(READ_ITEMS, (fields, addresses)))
        return [found[start : start + len(fields)] for start in range(0, len(found), len(fields))]

    def _vectors(self, entry: Entry, typed: Typed) -> bytes:
        namespace, key = parted(entry.address.encode())
        return self._codec.decode_vectors(from_column(namespace), key, typed)

    def _value(self, row: Row) -> Value:
        return self._codec.decode(row.namespace, row.key, row.typed)

    def _touch(self, row: Row, *, refresh: bool) -> None:
        if refresh and row.ttl is not None:
            self.refreshes.append(Refreshed(address(row.namespace, row.key), row.number, row.ttl))


def _pages(entries: Sequence[Entry]) -> Iterator[Sequence[Entry]]:
    for start in range(0, len(entries), LARGEST_PAGE):
        yield entries[start : start + LARGEST_PAGE]


def _same(value: Value) -> Value:
    return value


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
