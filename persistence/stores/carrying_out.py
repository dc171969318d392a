"""Carrying out a plan on a table: the same steps in the same order, whatever keeps the rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, NamedTuple, Protocol

from persistence.contracts.store import Item, Namespace, SearchItem, Value
from persistence.serde.serializer import Typed
from persistence.stores.coding import Codec
from persistence.stores.namespaces import listed, literal
from persistence.stores.planning import Get, Listing, Plan, Put, Search
from persistence.stores.ranking import Ranking
from persistence.stores.ttl import alive, deadline


class Row(NamedTuple):
    """A stored item."""

    number: int
    """Grows with each item that is created."""
    namespace: Namespace
    key: str
    typed: Typed
    created_at: datetime
    updated_at: datetime
    ttl: float | None
    expires_at: float | None


class Candidate(NamedTuple):
    """What a search by meaning must know of an item."""

    number: int
    namespace: Namespace
    key: str
    typed: Typed | None
    """The value, if it was asked for."""
    vectors: Typed | None
    """None: not indexed, or with another number of dimensions."""


class Table(Protocol):
    """Rows, with reads that leave out what has expired, except for single rows. Used in one thread at a time."""

    def find(self, namespace: Namespace, key: str) -> Row | None:
        """Return the row of an address, expired or not."""
        ...

    def row(self, number: int) -> Row:
        """Return a row that this transaction has seen."""
        ...

    def rows(self, prefix: Namespace, now: float, *, offset: int, limit: int | None) -> Iterable[Row]:
        """Yield the rows at and below a namespace by number: so many, or all."""
        ...

    def candidates(self, prefix: Namespace, dims: int, now: float, *, whole: bool) -> Iterable[Candidate]:
        """Yield the rows at and below a namespace in any order, with their values if ``whole``."""
        ...

    def namespaces(self, prefix: Namespace, now: float) -> Iterable[Namespace]:
        """Yield the namespaces at and below one that hold rows."""
        ...

    def put(self, put: Put, dims: int, now: float, expires_at: float | None) -> None:
        """Create a row, or change it, keeping its number and when it was created; an expired one is created anew."""
        ...

    def delete(self, namespace: Namespace, key: str) -> None:
        """Remove a row if it is there."""
        ...

    def prolong(self, number: int, ttl: float, now: float) -> None:
        """Start a row's time to live again, unless it has expired or has another one by now."""
        ...


class Nearest(Protocol):
    """Compares vectors where they are kept."""

    def __call__(
        self, prefix: Namespace, query: bytes, now: float, *, offset: int, limit: int
    ) -> list[tuple[int, float | None]] | None:
        """Return what a page of ``Ranking.ordered`` would be; None if it cannot be done there."""
        ...


class Refresh(NamedTuple):
    """A row that was read, whose time to live starts again."""

    number: int
    ttl: float


class Reading(NamedTuple):
    """What the reads of a batch found, and what follows from having read it."""

    results: list[Any]
    refreshes: list[Refresh]


class Reader:
    """Answers the reads of one batch."""

    def __init__(self, table: Table, codec: Codec, dims: int, now: float, nearest: Nearest | None = None) -> None:
        """Read from a table as of a moment; ``nearest`` compares vectors that are stored as they are."""
        self._table = table
        self._nearest = None if codec.serde.encrypts else nearest
        self._codec = codec
        self._dims = dims
        self._now = now
        self._refreshes: list[Refresh] = []

    def read(self, plan: Plan) -> Reading:
        """Return the results of a plan, None in the places of its puts.

        Raises:
            StoredDataError: A value cannot be read back.
        """
        results: list[Any] = [None] * plan.size
        for place, read in plan.reads:
            if isinstance(read, Get):
                results[place] = self._get(read)
            elif isinstance(read, Search):
                results[place] = list(self._search(read))
            else:
                results[place] = self._list(read)
        return Reading(results, self._refreshes)

    def _get(self, get: Get) -> Item | None:
        row = self._table.find(get.namespace, get.key) if get.namespace else None
        if row is None or not alive(row.expires_at, self._now):
            return None
        self._touch(row, refresh=get.refresh)
        return Item(row.namespace, row.key, self._value(row), row.created_at, row.updated_at)

    def _search(self, search: Search) -> Iterator[SearchItem]:
        if not search.limit:
            return
        page = self._ranked(search) if search.vector is not None else self._in_order(search)
        for row, value, score in page:
            self._touch(row, refresh=search.refresh)
            yield SearchItem(row.namespace, row.key, value, row.created_at, row.updated_at, score)

    def _in_order(self, search: Search) -> Iterator[tuple[Row, Value, None]]:
        if search.test is None:
            for row in self._table.rows(search.prefix, self._now, offset=search.offset, limit=search.limit):
                yield row, self._value(row), None
            return
        passed, end = 0, search.offset + search.limit
        for row in self._table.rows(search.prefix, self._now, offset=0, limit=None):
            value = self._value(row)
            if search.test(value):
                passed += 1
                if passed > search.offset:
                    yield row, value, None
                if passed == end:
                    return

    def _ranked(self, search: Search) -> Iterator[tuple[Row, Value, float | None]]:
        page = None
        if self._nearest is not None and search.test is None:
            query, end = search.vector or b"", {"offset": search.offset, "limit": search.limit}
            page = self._nearest(search.prefix, query, self._now, **end)
        for number, score in self._compared(search) if page is None else page:
            row = self._table.row(number)
            yield row, self._value(row), score

    def _compared(self, search: Search) -> list[tuple[int, float | None]]:
        """Return a page of what is found, compared here."""
        ranking = Ranking(search.vector or b"")
        test, codec = search.test, self._codec
        for each in self._table.candidates(search.prefix, self._dims, self._now, whole=test is not None):
            if test is not None and not test(codec.decode(each.namespace, each.key, each.typed or ("", b""))):
                continue
            vectors = each.vectors
            ranking.add(each.number, vectors and codec.decode_vectors(each.namespace, each.key, vectors))
        return ranking.ordered()[search.offset : search.offset + search.limit]

    def _list(self, listing: Listing) -> list[Namespace]:
        found = self._table.namespaces(literal(listing.conditions), self._now)
        return listed(found, listing.conditions, listing.max_depth)[listing.offset : listing.offset + listing.limit]

    def _value(self, row: Row) -> Value:
        return self._codec.decode(row.namespace, row.key, row.typed)

    def _touch(self, row: Row, *, refresh: bool) -> None:
        if refresh and row.ttl is not None:
            self._refreshes.append(Refresh(row.number, row.ttl))


def write(table: Table, refreshes: Iterable[Refresh], puts: Iterable[Put], dims: int, now: float) -> None:
    """Apply what follows from reading, then the puts."""
    for number, ttl in refreshes:
        table.prolong(number, ttl, now)
    for put in puts:
        if put.typed is None:
            table.delete(put.namespace, put.key)
        else:
            table.put(put, dims, now, deadline(now, put.ttl))
