"""A store's items in MongoDB: how they are written."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple

from pymongo import ASCENDING, DeleteMany, IndexModel, UpdateMany, UpdateOne

from persistence.contracts.store import Namespace
from persistence.mongo.chunks import MIB, PART, check_room, cut, joined
from persistence.mongo.server import Layout, Session
from persistence.serde.serializer import Typed
from persistence.stores.namespaces import column
from persistence.stores.planning import Put
from persistence.stores.remote import Changes
from persistence.stores.sweeping import SWEPT
from persistence.stores.ttl import deadline, moment

Document = dict[str, Any]

ITEMS: Final = Layout(
    "items",
    (
        IndexModel([("namespace", ASCENDING), ("number", ASCENDING)], name="of_a_namespace"),
        IndexModel([("number", ASCENDING)], name="in_order"),
        IndexModel([("owner", ASCENDING)], name="of_an_owner", partialFilterExpression={"kind": "chunk"}),
        IndexModel([("expires_at", ASCENDING)], name="expiring", partialFilterExpression={"ttl": {"$type": "double"}}),
        # The server's own clock decides here, so this only sweeps; what has expired is left out by the store's clock.
        IndexModel([("vanishes_at", ASCENDING)], name="vanishing", expireAfterSeconds=0),
    ),
)

NUMBERS: Final = "numbers"
"""The document that counts the items."""

GRACE: Final = timedelta(minutes=1)
"""What the server's clock may be ahead."""

VECTORS: Final = " vectors"
"""Ends the owner's name of pieces of vectors, to tell them from those of the value."""


class Refreshed(NamedTuple):
    """An item that was read, whose time to live starts again."""

    id: str
    number: int
    ttl: float
    in_pieces: bool


def item_id(namespace: Namespace, key: str) -> str:
    """Return the id of an item's document: labels and keys hold no NUL, and labels no period."""
    return joined("item", column(namespace), key)


async def change(session: Session, changes: Sequence[Changes[Refreshed]], dims: int) -> None:
    """Apply what several batches lead to; together, where the server has transactions."""
    work = _Work(dims)
    for each in changes:
        for refreshed in each.refreshes:
            work.refresh(refreshed, each.now)
        for put in each.puts:
            work.put(put, each.now)
    # Outside of the transaction: two that count at once would undo each other's work.
    first = await session.count_up(NUMBERS, work.stored) - work.stored + 1 if work.stored else 0
    operations = work.operations(first)
    if len(operations) == 1:
        await session.change(operations)
        return
    async with session.transaction():
        await session.change(operations)


async def sweep(session: Session, now: float) -> int:
    """Delete some of what has expired; return how many items that were."""
    where = {"kind": "item", "ttl": {"$type": "double"}, "expires_at": {"$lte": now}}
    found = await session.find(where, fields=("_id",), limit=SWEPT)
    if not found:
        return 0
    # Unless one was put again meanwhile. Pieces are left to the server: who put them may be about to use them.
    return await session.change([DeleteMany({**where, "_id": {"$in": [document["_id"] for document in found]}})])


class _Work:
    """Changes on their way to the server: of several to one address the last, operations of one kind side by side."""

    def __init__(self, dims: int) -> None:
        self._dims = dims
        self._refreshes: list[Any] = []
        self._puts: dict[str, tuple[Put, float]] = {}

    @property
    def stored(self) -> int:
        """How many items may be created."""
        return sum(put.typed is not None for put, _ in self._puts.values())

    def refresh(self, one: Refreshed, now: float) -> None:
        """Start a time to live again, unless the item has expired or was put again with another."""
        until = deadline(now, one.ttl) or now
        where = {"_id": one.id, "number": one.number, "ttl": one.ttl, "expires_at": {"$gt": now, "$lt": until}}
        vanishes = {"vanishes_at": vanishing(until, now)}
        self._refreshes.append(UpdateOne(where, {"$set": {"expires_at": until, **vanishes}}))
        if one.in_pieces:
            self._refreshes.append(
                UpdateMany({"kind": "chunk", "owner": {"$in": _owners([one.id])}}, {"$set": vanishes})
            )

    def put(self, put: Put, now: float) -> None:
        """Take a put in the place of an older one to its address. Raises BackendError if its names are too long."""
        check_room((column(put.namespace), put.key) * 2, f"The item {put.key!r:.80} of {put.namespace!r:.200}")
        self._puts[item_id(put.namespace, put.key)] = put, now

    def operations(self, number: int) -> list[Any]:
        """Return what to do, in order; items that are created get numbers from this one on."""
        names = list(self._puts)
        if not names:
            return self._refreshes
        gone = [name for name, (put, _) in self._puts.items() if put.typed is None]
        oldest = min(now for _, now in self._puts.values())
        deletes = [
            DeleteMany({"_id": {"$in": names}, "expires_at": {"$lte": oldest}}),
            DeleteMany({"_id": {"$in": gone}}),
        ]
        updates: list[UpdateOne] = []
        pieces: list[str] = []
        for name, (put, now) in self._puts.items():
            if put.typed is not None:
                fields, cuts = _document(put, put.typed, now, self._dims)
                pieces += [piece["_id"] for piece in cuts]
                updates += [_piece(piece) for piece in cuts]
                created = {"number": number, "created_at": fields["updated_at"]}
                updates.append(UpdateOne({"_id": name}, {"$set": fields, "$setOnInsert": created}, upsert=True))
                number += 1
        # Last, so that no item is ever without the pieces that it is in.
        outdated = DeleteMany({"kind": "chunk", "owner": {"$in": _owners(names)}, "_id": {"$nin": pieces}})
        return [*self._refreshes, *(deletes if gone else deletes[:1]), *updates, outdated]


def _document(put: Put, typed: Typed, now: float, dims: int) -> tuple[Document, list[Document]]:
    """Return the fields of an item, and the pieces of what is large in it."""
    where, until = item_id(put.namespace, put.key), deadline(now, put.ttl)
    vanishes = {"vanishes_at": None if until is None else vanishing(until, now)}
    kind, data = typed
    value, pieces = cut(where, data, PART, vanishes)
    fields: Document = {
        "kind": "item",
        "namespace": column(put.namespace),
        "key": put.key,
        "type": kind,
        "value": value,
        "updated_at": moment(now).isoformat(timespec="microseconds"),
        "ttl": put.ttl,
        "expires_at": until,
        **vanishes,
        **_indexed(put.vectors, where, dims, MIB if isinstance(value, bytes) else PART, vanishes, pieces),
    }
    return fields, pieces


def _indexed(
    vectors: Typed | None, where: str, dims: int, room: int, facts: Document, pieces: list[Document]
) -> Document:
    if vectors is None:
        return {"dims": None, "vectors_type": None, "vectors": None}
    kind, data = vectors
    stored, cuts = cut(where + VECTORS, data, room, facts)
    pieces += cuts
    return {"dims": dims, "vectors_type": kind, "vectors": stored}


def _piece(piece: Document) -> UpdateOne:
    return UpdateOne(
        {"_id": piece["_id"]}, {"$set": {key: value for key, value in piece.items() if key != "_id"}}, upsert=True
    )


def _owners(names: Sequence[str]) -> list[str]:
    return [owner for name in names for owner in (name, name + VECTORS)]


def vanishing(until: float, now: float) -> datetime | None:
    """Return when the server may delete what expires, by its own clock; None if no date is so late."""
    try:
        return datetime.fromtimestamp(time.time(), UTC) + timedelta(seconds=max(until - now, 0)) + GRACE
    except OverflowError:
        return None
