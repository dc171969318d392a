"""A store's items in MongoDB: how they are read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from persistence.contracts.store import Namespace
from persistence.errors import CorruptDataError
from persistence.mongo.chunks import in_parts, pieces_of, whole
from persistence.mongo.server import Session
from persistence.mongo.shelved import VECTORS, Document, Refreshed, item_id
from persistence.serde.serializer import Typed
from persistence.stores.carrying_out import Row
from persistence.stores.coding import Codec
from persistence.stores.namespaces import below, column, from_column
from persistence.stores.paging import Entry, PagingReader
from persistence.stores.ttl import alive

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


class Shelves(PagingReader[Refreshed]):
    """Answers the reads of one batch."""

    def __init__(self, session: Session, codec: Codec, dims: int, now: float) -> None:
        """Read over a session."""
        super().__init__(codec, dims, now)
        self._session = session
        self._in_pieces: set[int] = set()

    def _name(self, namespace: Namespace, key: str) -> str:
        return item_id(namespace, key)

    async def _entries(self, prefix: Namespace, limit: int | None) -> Sequence[Entry]:
        most = 0 if limit is None else min(limit, MOST)
        found = await self._session.find(self._at_and_below(prefix), fields=("number",), order=IN_ORDER, limit=most)
        return [Entry(document["number"], document["_id"]) for document in map(_checked, found)]

    async def _namespaces(self, prefix: Namespace) -> list[str]:
        return await self._session.distinct("namespace", self._at_and_below(prefix))

    async def _rows(self, names: Sequence[str]) -> dict[str, Row]:
        found = await self._documents(names, FIELDS)
        living = {name: each for name, each in found.items() if alive(each.get("expires_at"), self._now)}
        pieces = await self._pieces(living.values(), "value", "")
        self._in_pieces.update(each["number"] for each in living.values() if pieces_of("", each.get("value")))
        return {name: _row(document, pieces) for name, document in living.items()}

    async def _vectors(self, page: Sequence[Entry]) -> list[tuple[int, bytes | None]]:
        found = await self._documents([entry.name for entry in page], VECTOR_FIELDS)
        pieces = await self._pieces(found.values(), "vectors", VECTORS)
        there = [(entry.number, found[entry.name]) for entry in page if entry.name in found]
        return [(number, self._decoded(each, pieces)) for number, each in there if each.get("number") == number]

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

    def _decoded(self, document: Document, pieces: Mapping[str, bytes]) -> bytes | None:
        kind = document.get("vectors_type")
        if not isinstance(kind, str) or document.get("dims") != self._dims:
            return None
        data = whole(document["_id"] + VECTORS, document.get("vectors"), pieces) or b""
        return self._codec.decode_vectors(*_address(document), (kind, data))

    def _refreshed(self, row: Row, ttl: float) -> Refreshed:
        return Refreshed(item_id(row.namespace, row.key), row.number, ttl, row.number in self._in_pieces)


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
