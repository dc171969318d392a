"""Answering reads where the server has no index for filters or vectors: page by page, with the deciding done here."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final, Generic, NamedTuple, TypeVar

from persistence.contracts.store import Item, Namespace, SearchItem, Value
from persistence.stores.carrying_out import Row
from persistence.stores.coding import Codec
from persistence.stores.namespaces import from_column, listed, literal
from persistence.stores.planning import Get, Listing, Plan, Search
from persistence.stores.ranking import Ranking

R = TypeVar("R")

FIRST_PAGE: Final = 64
"""Items read by one query where a filter decides how many are needed; then more and more."""

LARGEST_PAGE: Final = 1024
"""Items read by one query at most."""

Found = tuple[Row, Callable[[], Value], "float | None"]
"""A row, what gives its value, and its score."""


class Entry(NamedTuple):
    """What an index says of an item."""

    number: int
    name: str


class PagingReader(ABC, Generic[R]):
    """Answers the reads of one batch."""

    def __init__(self, codec: Codec, dims: int, now: float) -> None:
        """Read with a store's codec, as of a moment; ``dims`` is 0 without a search by meaning."""
        self._codec = codec
        self._dims = dims
        self._now = now
        self._refreshes: list[R] = []

    async def look(self, plan: Plan) -> tuple[list[Any], Sequence[R]]:
        """Return the results of a plan's reads, None in the places of its puts, and what follows from them."""
        results: list[Any] = [None] * plan.size
        gets = [(place, read) for place, read in plan.reads if isinstance(read, Get) and read.namespace]
        for place, item in (await self._gets(gets)).items():
            results[place] = item
        for place, read in plan.reads:
            if isinstance(read, Search):
                results[place] = await self._search(read)
            elif isinstance(read, Listing):
                results[place] = await self._list(read)
        return results, self._refreshes

    @abstractmethod
    def _name(self, namespace: Namespace, key: str) -> str:
        """Return what an item is called on the server."""

    @abstractmethod
    async def _rows(self, names: Sequence[str]) -> Mapping[str, Row]:
        """Return the items of these names, without those that are not there or have expired."""

    @abstractmethod
    async def _entries(self, prefix: Namespace, limit: int | None) -> Sequence[Entry]:
        """Return what is at and below a namespace, by number; more than ``limit`` are not needed."""

    @abstractmethod
    async def _namespaces(self, prefix: Namespace) -> Iterable[str]:
        """Return the namespaces at and below one, as they are stored."""

    @abstractmethod
    async def _vectors(self, page: Sequence[Entry]) -> Iterable[tuple[int, bytes | None]]:
        """Return the numbers of those entries that are there, each with its vectors."""

    @abstractmethod
    def _refreshed(self, row: Row, ttl: float) -> R:
        """Return what starts a time to live again."""

    async def _gets(self, gets: Sequence[tuple[int, Get]]) -> dict[int, Item]:
        names = {place: self._name(get.namespace, get.key) for place, get in gets}
        found = await self._rows(list(dict.fromkeys(names.values()))) if names else {}
        answers: dict[int, Item] = {}
        for place, get in gets:
            row = found.get(names[place])
            if row is not None:
                self._touch(row, refresh=get.refresh)
                answers[place] = Item(row.namespace, row.key, self._value(row), row.created_at, row.updated_at)
        return answers

    async def _search(self, search: Search) -> list[SearchItem]:
        if not search.limit:
            return []
        items: list[SearchItem] = []
        passed, end = 0, search.offset + search.limit
        async for row, value, score in self._matching(search):
            passed += 1
            if passed > search.offset:
                self._touch(row, refresh=search.refresh)
                items.append(SearchItem(row.namespace, row.key, value(), row.created_at, row.updated_at, score))
            if passed == end:
                break
        return items

    async def _list(self, listing: Listing) -> list[Namespace]:
        texts = await self._namespaces(literal(listing.conditions))
        found = listed(map(from_column, texts), listing.conditions, listing.max_depth)
        return found[listing.offset : listing.offset + listing.limit]

    async def _matching(self, search: Search) -> AsyncIterator[Found]:
        limited = search.test is None and search.vector is None
        entries = await self._entries(search.prefix, search.offset + search.limit if limited else None)
        found = self._in_order(search, entries) if search.vector is None else self._ranked(search, entries)
        async for each in found:
            yield each

    async def _in_order(self, search: Search, entries: Sequence[Entry]) -> AsyncIterator[Found]:
        """Yield what passes, page by page."""
        size = min(search.offset + search.limit, LARGEST_PAGE) if search.test is None else FIRST_PAGE
        start = 0
        while start < len(entries):
            page = entries[start : start + size]
            rows = await self._rows([entry.name for entry in page])
            for entry in page:
                row = rows.get(entry.name)
                if row is None or row.number != entry.number:
                    continue
                if search.test is None:
                    yield row, partial(self._value, row), None
                elif search.test(value := self._value(row)):
                    yield row, partial(_same, value), None
            start, size = start + size, min(size * 4, LARGEST_PAGE)

    async def _ranked(self, search: Search, entries: Sequence[Entry]) -> AsyncIterator[Found]:
        if search.test is not None:
            passing = {row.number async for row, _, _ in self._in_order(search, entries)}
            entries = [entry for entry in entries if entry.number in passing]
        ranking = Ranking(search.vector or b"")
        for page in _pages(entries):
            for number, vectors in await self._vectors(page):
                ranking.add(number, vectors)
        names = {entry.number: entry.name for entry in entries}
        scores = ranking.ordered()
        by_number = dict(scores)
        without_test = Search(search.prefix, None, search.limit, search.offset, refresh=search.refresh)
        async for row, value, _ in self._in_order(without_test, [Entry(number, names[number]) for number, _ in scores]):
            yield row, value, by_number[row.number]

    def _value(self, row: Row) -> Value:
        return self._codec.decode(row.namespace, row.key, row.typed)

    def _touch(self, row: Row, *, refresh: bool) -> None:
        if refresh and row.ttl is not None:
            self._refreshes.append(self._refreshed(row, row.ttl))


def _pages(entries: Sequence[Entry]) -> Iterator[Sequence[Entry]]:
    for start in range(0, len(entries), LARGEST_PAGE):
        yield entries[start : start + LARGEST_PAGE]


def _same(value: Value) -> Value:
    return value
