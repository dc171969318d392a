"""A store's items in MongoDB: how they are read."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any, Final, NamedTuple

from persistence.contracts.store import Item, Namespace, SearchItem, Value
from persistence.errors import CorruptDataError
from persistence.mongo.chunks import in_parts, pieces_of, whole
from persistence.mongo.server import Session
from persistence.mongo.shelved import VECTORS, Document, Refreshed, item_id
from persistence.serde.serializer import Typed
from persistence.stores.carrying_out import Row
from persistence.stores.coding import Codec
from persistence.stores.namespaces import below, column, from_column, listed, literal
from persistence.stores.planning import Get, Listing, Plan, Search
from persistence.stores.ranking import Ranking
from persistence.stores.ttl import alive

FIRST_PAGE, LARGEST_PAGE = 64, 1024
"""Items read by one query where a filter decides how many are needed; then by each query."""

MOST: Final = 2**31 - 1
"""What a limit of the server may be."""

FIELDS: Final = (
    "number",
    "type",
    "value",
    "created_at",
    "updated_at",
    "ttl",
    "expires_at",
)
VECTOR_FIELDS: Final = ("number", "dims", "vectors_type", "vectors")

IN_ORDER: Final = (("number", 1),)

Found = tuple[Row, Any, "float | None"]
"""A row, what gives its value, and its score."""


class Entry(NamedTuple):
    """What an index says of an item."""

    number: int
    id: str


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
        self._in_pieces: set[int] = set()
        self.refreshes: list[Refreshed] = []

    async def gets(self, gets: Sequence[tuple[int, Get]]) -> dict[int, Item]:
        names = list(dict.fromkeys(item_id(get.namespace, get.key) for _, get in gets))
        found = await self._rows(names)
        answers: dict[int, Item] = {}
        for place, get in gets:
            row = found.get(item_id(get.namespace, get.key))
            if row is not None:
                self._touch(row, refresh=get.refresh)
                answers[place] = Item(row.namespace, row.key, self._value(row), row.created_at, row.updated_at)
        return answers

    async def search(self, search: Search) -> list[SearchItem]:
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

    async def listing(self, listing: Listing) -> list[Namespace]:
        texts = await self._session.distinct("namespace", self._at_and_below(literal(listing.conditions)))
        found = listed(map(from_column, texts), listing.conditions, listing.max_depth)
        return found[listing.offset : listing.offset + listing.limit]

    async def _matching(self, search: Search) -> AsyncIterator[Found]:
        where = self._at_and_below(search.prefix)
        if search.vector is not None:
            found = self._ranked(search, where)
        else:
            # Without a test, no more than these can be asked for.
            limit = min(search.offset + search.limit, MOST) if search.test is None else 0
            found = self._in_order(search, await self._entries(where, limit))
        async for each in found:
            yield each

    def _at_and_below(self, prefix: Namespace) -> Document:
        """Return the condition for what is at and below a namespace and has not expired."""
        where: Document = {
            "kind": "item",
            "$and": [{"$or": [{"expires_at": None}, {"expires_at": {"$gt": self._now}}]}],
        }
        if prefix:
            first, after = below(prefix)
            where["$and"].append({"$or": [{"namespace": column(prefix)}, {"namespace": {"$gte": first, "$lt": after}}]})
        return where

    async def _entries(self, where: Document, limit: int) -> list[Entry]:
        found = await self._session.find(where, fields=("number",), order=IN_ORDER, limit=limit)
        return [Entry(document["number"], document["_id"]) for document in map(_checked, found)]

    async def _in_order(self, search: Search, entries: Sequence[Entry]) -> AsyncIterator[Found]:
        """Yield what passes, with what gives its value, page by page."""
        size = LARGEST_PAGE if search.test is None else FIRST_PAGE
        start = 0
        while start < len(entries):
            page = entries[start : start + size]
            rows = await self._rows([entry.id for entry in page])
            for entry in page:
                row = rows.get(entry.id)
                if row is None or row.number != entry.number:
                    continue
                if search.test is None:
                    yield row, partial(self._value, row), None
                elif search.test(value := self._value(row)):
                    yield row, partial(_same, value), None
            start, size = start + size, min(size * 4, LARGEST_PAGE)

    async def _ranked(self, search: Search, where: Document) -> AsyncIterator[Found]:
        ranking = Ranking(search.vector or b"")
        entries = await self._entries(where, 0)
        if search.test is not None:
            passing = {row.number async for row, _, _ in self._in_order(search, entries)}
            entries = [entry for entry in entries if entry.number in passing]
        for page in _pages(entries):
            found = await self._documents([entry.id for entry in page], VECTOR_FIELDS)
            pieces = await self._pieces(found.values(), "vectors", VECTORS)
            for entry in page:
                document = found.get(entry.id)
                if document is not None and document.get("number") == entry.number:
                    ranking.add(entry.number, self._vectors(document, pieces))
        scores = ranking.ordered()
        by_number = dict(scores)
        names = {entry.number: entry.id for entry in entries}
        without_test = Search(search.prefix, None, search.limit, search.offset, refresh=search.refresh)
        ordered = [Entry(number, names[number]) for number, _ in scores[: search.offset + search.limit]]
        async for row, value, _ in self._in_order(without_test, ordered):
            yield row, value, by_number[row.number]

    async def _rows(self, names: Sequence[str]) -> dict[str, Row]:
        """Return the items of ids, without what is not there or has expired."""
        found = await self._documents(names, FIELDS)
        living = {name: each for name, each in found.items() if alive(each.get("expires_at"), self._now)}
        pieces = await self._pieces(living.values(), "value", "")
        self._in_pieces.update(each["number"] for each in living.values() if pieces_of("", each.get("value")))
        return {name: _row(document, pieces) for name, document in living.items()}

    async def _documents(self, names: Sequence[str], fields: Sequence[str]) -> dict[str, Document]:
        found: dict[str, Document] = {}
        for part in in_parts(names):
            documents = await self._session.find({"_id": {"$in": part}}, fields=fields)
            found.update((document["_id"], _checked(document)) for document in documents)
        return found

    async def _pieces(self, documents: Any, field: str, suffix: str) -> dict[str, bytes]:
        names = [name for document in documents for name in pieces_of(document["_id"] + suffix, document.get(field))]
        return await self._data(names)

    async def _data(self, names: Sequence[str]) -> dict[str, bytes]:
        found: dict[str, bytes] = {}
        for part in in_parts(names):
            pieces = await self._session.find({"_id": {"$in": part}}, fields=("data",))
            found.update((piece["_id"], piece["data"]) for piece in pieces)
        return found

    def _vectors(self, document: Document, pieces: Mapping[str, bytes]) -> bytes | None:
        kind = document.get("vectors_type")
        if not isinstance(kind, str) or document.get("dims") != self._dims:
            return None
        data = whole(document["_id"] + VECTORS, document.get("vectors"), pieces) or b""
        return self._codec.decode_vectors(*_address(document), (kind, data))

    def _value(self, row: Row) -> Value:
        return self._codec.decode(row.namespace, row.key, row.typed)

    def _touch(self, row: Row, *, refresh: bool) -> None:
        if refresh and row.ttl is not None:
            in_pieces = row.number in self._in_pieces
            self.refreshes.append(Refreshed(item_id(row.namespace, row.key), row.number, row.ttl, in_pieces))


def _pages(entries: Sequence[Entry]) -> Iterator[Sequence[Entry]]:
    for start in range(0, len(entries), LARGEST_PAGE):
        yield entries[start : start + LARGEST_PAGE]


def _same(value: Value) -> Value:
    return value


def _address(document: Mapping[str, Any]) -> tuple[Namespace, str]:
    """Return where an item is: its id says so."""
    _, namespace, key = document["_id"].split("\0")
    return from_column(namespace), key


def _checked(document: Document) -> Document:
    """Return an item's document if what it is told by is of the right kind. Raises CorruptDataError."""
    expires_at = document.get("expires_at")
    if isinstance(document.get("number"), int) and (expires_at is None or isinstance(expires_at, int | float)):
        return document
    raise _damaged(document, "its number or its expiry is none")


def _row(document: Document, pieces: Mapping[str, bytes]) -> Row:
    namespace, key = _address(document)
    try:
        created, updated = (datetime.fromisoformat(document[each]) for each in ("created_at", "updated_at"))
        typed: Typed = document["type"], whole(document["_id"], document["value"], pieces) or b""
        return Row(document["number"], namespace, key, typed, created, updated, document["ttl"], document["expires_at"])
    except (KeyError, TypeError, ValueError) as error:
        raise _damaged(document, f"{type(error).__name__}: {error}") from error


def _damaged(document: Mapping[str, Any], what: str) -> CorruptDataError:
    namespace, key = _address(document)
    return CorruptDataError(f"The item {key!r} of {namespace!r} is damaged: {what}. Put it again.")
