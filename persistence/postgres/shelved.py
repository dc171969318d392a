"""A store's rows in PostgreSQL: what its batches read and write."""

from __future__ import annotations

import struct
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Final

from persistence.contracts.store import Item, Namespace, SearchItem, Value
from persistence.postgres.layout import LOCK, Layout
from persistence.postgres.narrowing import Values, alive_below, narrowed, projection
from persistence.postgres.sessions import Session
from persistence.postgres.statements import QUERIES, migrations, queries
from persistence.stores.carrying_out import Refresh, Row
from persistence.stores.coding import Codec
from persistence.stores.namespaces import column, from_column, listed, literal
from persistence.stores.planning import Get, Listing, Plan, Put, Search
from persistence.stores.ranking import DECIMALS, FLOAT_BYTES, Ranking
from persistence.stores.remote import Changes
from persistence.stores.sweeping import SWEPT
from persistence.stores.ttl import deadline, moment

FIRST_PAGE, LARGEST_PAGE = 64, 4096
"""Items read at once where a filter decides in Python how many are needed."""

INDEXABLE: Final = 2000
"""Most dimensions that pgvector's index takes; more are compared one by one."""

_MOST: Final = 2**62
_SQL: Final = queries("store_queries.sql")
ROW: Final = 9
"""Columns of a row."""

LAYOUT: Final = Layout(
    {
        "store": (
            "id",
            "namespace",
            "key",
            "type",
            "value",
            "plain",
            "opaque",
            "dims",
            "created_at",
            "updated_at",
            "ttl_minutes",
            "expires_at",
        ),
        "store_sealed_vectors": ("item", "type", "vectors"),
    },
    migrations("store_migration"),
    "store_migrations",
    "number",
)
VECTORS: Final = Layout(
    {"store_vectors": ("item", "dims", "embedding")},
    migrations("store_vectors_migration"),
    "store_vectors_migrations",
    "number",
)


async def prepare(session: Session, name: str, dims: int, *, seals: bool) -> None:
    """Bring the tables up to date, and for a search by meaning its index."""
    await LAYOUT.migrate(session, name)
    if not dims or seals:
        return
    await VECTORS.migrate(session, name)
    if dims <= INDEXABLE and not (await session.rows(_SQL["indexed"], f"store_vectors_{dims}"))[0][0]:
        async with session.transaction():
            await session.rows(QUERIES["lock_migrations"], LOCK)
            await session.script(_SQL["index_vectors"].format(dims=dims))


async def sweep(session: Session, now: float) -> int:
    """Delete some of what has expired; return how many items that were."""
    swept: int = (await session.rows(_SQL["sweep"], now, SWEPT))[0][0]
    return swept


class Shelves:
    """Carries out batches for one store."""

    def __init__(self, codec: Codec, dims: int) -> None:
        """Read and write with a store's codec; ``dims`` is 0 without a search by meaning."""
        self._codec = codec
        self._dims = dims
        self._seals = codec.serde.encrypts

    async def look(
        self, session: Session, *, plan: Plan, filters: Mapping[int, Mapping[str, Any] | None], now: float
    ) -> tuple[list[Any], Sequence[Refresh]]:
        """Return the results of a plan's reads, None in the places of its puts. ``filters`` are by place."""
        reader = _Reader(session, self._codec, self._dims, now)
        results: list[Any] = [None] * plan.size
        gets = [(place, read) for place, read in plan.reads if isinstance(read, Get)]
        for place, item in (await reader.gets(gets)).items():
            results[place] = item
        for place, read in plan.reads:
            if isinstance(read, Search):
                results[place] = await reader.search(read, filters.get(place))
            elif isinstance(read, Listing):
                results[place] = await reader.listing(read)
        return results, reader.refreshes

    async def change(self, session: Session, *, changes: Sequence[Changes[Refresh]]) -> None:
        """Apply what several batches lead to, in order and together."""
        puts = {(put.namespace, put.key): (put, each.now) for each in changes for put in each.puts}
        stored = [(put, now) for put, now in puts.values() if put.typed is not None]
        deleted = [put for put, _ in puts.values() if put.typed is None]
        refreshes = [(refresh, each.now) for each in changes for refresh in each.refreshes]
        alone = len(stored) == len(puts) and not refreshes and not any(put.vectors for put, _ in stored)
        if alone and len({now for _, now in stored}) == 1:
            await self._put(session, stored)
            return
        async with session.transaction():
            await self._prolong(session, refreshes)
            if deleted:
                await session.rows(_SQL["delete"], *_addresses(deleted))
            for now in dict.fromkeys(now for _, now in stored):
                await self._put(session, [each for each in stored if each[1] == now])

    async def _prolong(self, session: Session, refreshes: Sequence[tuple[Refresh, float]]) -> None:
        for now in dict.fromkeys(now for _, now in refreshes):
            kept = {refresh.number: refresh for refresh, at in refreshes if at == now}
            numbers = sorted(kept)
            ttls = [kept[number].ttl for number in numbers]
            await session.rows(_SQL["prolong"], numbers, ttls, [deadline(now, ttl) for ttl in ttls], now)

    async def _put(self, session: Session, stored: Sequence[tuple[Put, float]]) -> None:
        now = stored[0][1]
        puts = [put for put, _ in stored]
        typed = [put.typed or ("", b"") for put in puts]
        seen = [(None, None) if self._seals else projection(self._decoded(put)) for put in puts]
        rows = await session.rows(
            _SQL["put"],
            *_addresses(puts),
            [kind for kind, _ in typed],
            [value for _, value in typed],
            [plain for plain, _ in seen],
            [opaque for _, opaque in seen],
            [put.ttl for put in puts],
            [deadline(now, put.ttl) for put in puts],
            moment(now),
            now,
            [None if put.vectors is None else self._dims for put in puts],
        )
        if self._dims:
            numbers = {(namespace, key): number for number, namespace, key in rows}
            await self._index(session, [(numbers[column(put.namespace), put.key], put) for put in puts])

    def _decoded(self, put: Put) -> Value:
        return self._codec.decode(put.namespace, put.key, put.typed or ("", b""))

    async def _index(self, session: Session, numbered: Sequence[tuple[int, Put]]) -> None:
        indexed = [(number, put, put.vectors) for number, put in numbered if put.vectors is not None]
        if self._seals:
            kinds, vectors = [typed[0] for _, _, typed in indexed], [typed[1] for _, _, typed in indexed]
            if indexed:
                await session.rows(_SQL["put_sealed_vectors"], [each[0] for each in indexed], kinds, vectors)
            return
        await session.rows(_SQL["delete_vectors"], [number for number, _ in numbered])
        items: list[int] = []
        texts: list[str] = []
        for number, put, typed in indexed:
            packed = self._codec.decode_vectors(put.namespace, put.key, typed)
            size = self._dims * FLOAT_BYTES
            for start in range(0, len(packed), size):
                items.append(number)
                texts.append(written(packed[start : start + size]))
        if items:
            await session.rows(_SQL["put_vectors"], items, texts, self._dims)


class _Reader:
    """Answers the reads of one batch."""

    def __init__(self, session: Session, codec: Codec, dims: int, now: float) -> None:
        self._session = session
        self._codec = codec
        self._dims = dims
        self._now = now
        self.refreshes: list[Refresh] = []

    async def gets(self, gets: Sequence[tuple[int, Get]]) -> dict[int, Item]:
        asked = [(place, get) for place, get in gets if get.namespace]
        if not asked:
            return {}
        addresses = dict.fromkeys((column(get.namespace), get.key) for _, get in asked)
        namespaces, keys = [each[0] for each in addresses], [each[1] for each in addresses]
        rows = await self._session.rows(_SQL["find"], namespaces, keys, self._now)
        found = {(row.namespace, row.key): row for row in map(_row, rows)}
        answers: dict[int, Item] = {}
        for place, get in asked:
            row = found.get((get.namespace, get.key))
            if row is not None:
                self._touch(row, refresh=get.refresh)
                answers[place] = Item(row.namespace, row.key, self._value(row), row.created_at, row.updated_at)
        return answers

    async def search(self, search: Search, conditions: Mapping[str, Any] | None) -> list[SearchItem]:
        if not search.limit:
            return []
        found = self._in_order(search, conditions) if search.vector is None else self._ranked(search, conditions)
        items: list[SearchItem] = []
        passed, end = 0, search.offset + search.limit
        async for row, value, score in found:
            passed += 1
            if passed > search.offset:
                self._touch(row, refresh=search.refresh)
                items.append(SearchItem(row.namespace, row.key, value, row.created_at, row.updated_at, score))
            if passed == end:
                break
        return items

    async def listing(self, listing: Listing) -> list[Namespace]:
        values = Values()
        where = " AND ".join(alive_below(literal(listing.conditions), self._now, values))
        rows = await self._session.rows(_SQL["namespaces"].format(conditions=where), *values.held)
        found = (from_column(row[0]) for row in rows)
        return listed(found, listing.conditions, listing.max_depth)[listing.offset : listing.offset + listing.limit]

    async def _in_order(
        self, search: Search, conditions: Mapping[str, Any] | None, *further: str
    ) -> AsyncIterator[tuple[Row, Value, float | None]]:
        """Yield what passes, page by page: without a filter in one."""
        # The offset is counted by whoever asked, so pages start at the first item.
        size, after = (search.offset + search.limit if search.test is None else FIRST_PAGE), 0
        size = min(size, LARGEST_PAGE)
        while True:
            values = Values(size, 0)
            where = [*self._where(search, conditions, values), *further, f"s.id > {values.bind(after)}::bigint"]
            rows = await self._session.rows(_SQL["rows"].format(conditions=" AND ".join(where)), *values.held)
            for row in map(_row, rows):
                value = self._value(row)
                if search.test is None or search.test(value):
                    yield row, value, None
            if len(rows) < size:
                return
            after, size = rows[-1][0], min(size * 4, LARGEST_PAGE)

    async def _ranked(
        self, search: Search, conditions: Mapping[str, Any] | None
    ) -> AsyncIterator[tuple[Row, Value, float | None]]:
        if self._codec.serde.encrypts:
            for row, value, score in await self._compared(search, conditions):
                yield row, value, score
            return
        for row, value, score in await self._nearest(search, conditions):
            yield row, value, score
        rest = f"s.dims IS DISTINCT FROM {self._dims}"
        async for row, value, _ in self._in_order(search, conditions, rest):
            yield row, value, None

    async def _nearest(
        self, search: Search, conditions: Mapping[str, Any] | None
    ) -> list[tuple[Row, Value, float | None]]:
        """Return at least as many of the nearest as are asked for, or all: best first, of equals the oldest."""
        end = search.offset + search.limit
        size = min(max(2 * end, FIRST_PAGE), LARGEST_PAGE)
        while True:
            best: dict[int, tuple[float, Row, Value]] = {}
            rows, last = await self._neighbours(search, conditions, size), 0.0
            for each in rows:
                last = round(-float(each[ROW]), DECIMALS) + 0.0
                row = _row(each[:ROW])
                if row.number in best:
                    continue
                value = self._value(row)
                if search.test is None or search.test(value):
                    best[row.number] = last, row, value
            ordered = sorted(best.values(), key=lambda each: (-each[0], each[1].number))
            # What was cut off could be as near as the last that counts, and older.
            if len(rows) < size or (len(ordered) >= end and ordered[end - 1][0] > last):
                return [(row, value, score) for score, row, value in ordered]
            size *= 4

    async def _neighbours(
        self, search: Search, conditions: Mapping[str, Any] | None, size: int
    ) -> Sequence[Sequence[Any]]:
        """Return items by distance: from the index if it gives so many, else by comparing each."""
        values = Values(size, written(search.vector or b""))
        where = " AND ".join(self._where(search, conditions, values))
        distance = f"v.embedding::vector({self._dims}) <#> $2::text::vector({self._dims})"
        query = _SQL["nearest"]
        if self._dims <= INDEXABLE:
            async with self._session.transaction():
                await self._session.script(_SQL["search_on"])
                rows = await self._session.rows(
                    query.format(dims=self._dims, conditions=where, order=distance), *values.held
                )
            if len(rows) == size:
                return rows
        exact = query.format(dims=self._dims, conditions=where, order=f"({distance}) + 0")
        return await self._session.rows(exact, *values.held)

    async def _compared(
        self, search: Search, conditions: Mapping[str, Any] | None
    ) -> list[tuple[Row, Value, float | None]]:
        values = Values(self._dims)
        where = " AND ".join(self._where(search, conditions, values))
        rows = await self._session.rows(_SQL["candidates"].format(conditions=where), *values.held)
        ranking = Ranking(search.vector or b"")
        known: dict[int, tuple[Row, Value]] = {}
        for each in rows:
            row, kind, vectors = _row(each[:ROW]), each[ROW], each[ROW + 1]
            value = self._value(row)
            if search.test is None or search.test(value):
                known[row.number] = row, value
                typed = None if kind is None else (kind, vectors)
                ranking.add(row.number, typed and self._codec.decode_vectors(row.namespace, row.key, typed))
        return [(*known[number], score) for number, score in ranking.ordered()]

    def _where(self, search: Search, conditions: Mapping[str, Any] | None, values: Values) -> list[str]:
        return [*alive_below(search.prefix, self._now, values), *narrowed(conditions, values)]

    def _value(self, row: Row) -> Value:
        return self._codec.decode(row.namespace, row.key, row.typed)

    def _touch(self, row: Row, *, refresh: bool) -> None:
        if refresh and row.ttl is not None:
            self.refreshes.append(Refresh(row.number, row.ttl))


def written(packed: bytes) -> str:
    """Return a packed vector as pgvector reads it."""
    numbers = struct.unpack(f"<{len(packed) // FLOAT_BYTES}f", packed)
    return f"[{','.join(map(repr, numbers))}]"


def _addresses(puts: Sequence[Put]) -> tuple[list[str], list[str]]:
    return [column(put.namespace) for put in puts], [put.key for put in puts]


def _row(columns: Sequence[Any]) -> Row:
    number, namespace, key, kind, value, created_at, updated_at, ttl, expires_at = columns
    return Row(number, from_column(namespace), key, (kind, value), created_at, updated_at, ttl, expires_at)
