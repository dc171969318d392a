"""MongoDBCache: results that processes and machines share."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from pymongo import ASCENDING, DeleteMany, IndexModel, UpdateOne

from persistence.mongo.chunks import PART, check_room, cut, in_parts, pieces_of, whole
from persistence.mongo.options import Options
from persistence.mongo.server import Layout, Server, checked
from persistence.mongo.shelved import vanishing
from persistence.stores.caching import ManagedCache, bounds_of, name_of
from persistence.writer.limits import DEFAULT_LIMITS
from persistence.writer.remote import chosen

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from persistence.contracts.cache import FullKey, Namespace
    from persistence.mongo.rows import Document
    from persistence.mongo.server import Session, Source
    from persistence.serde.serializer import Serializer, Typed

CACHED: Final = Layout(
    "cache",
    (
        IndexModel([("owner", ASCENDING)], name="of_an_owner", partialFilterExpression={"kind": "chunk"}),
        # The server's own clock decides here, so this only sweeps; what has expired is left out by the cache's clock.
        IndexModel([("vanishes_at", ASCENDING)], name="vanishing", expireAfterSeconds=0),
    ),
)

_ENTRY: Final = "entry:"


class MongoDBCache(ManagedCache):
    """Keeps values on a MongoDB server (4.4 or newer), which vanish from it when their time is over.

    Open it with ``async with cache`` (or ``with cache``). A saver's collections may stand beside it. What is kept
    together is one transaction where the server has them. Keys are digests of inputs. A serializer that encrypts hides
    the values, not which inputs were equal.
    """

    def __init__(
        self,
        source: Source,
        *,
        serde: Serializer | None = None,
        clock: Callable[[], float] = time.time,
        options: Options | None = None,
        **settings: Any,
    ) -> None:
        """Describe a cache; nothing is opened yet.

        ``source``, ``options`` and ``settings`` are those of ``MongoDBSaver``. ``serde`` turns values into bytes, with
        the safe defaults if it is None. ``clock`` tells the seconds by which values expire; processes must agree on it.
        """
        super().__init__(serde)
        self._server = Server(checked(source), chosen(Options, options, settings), DEFAULT_LIMITS, CACHED)
        self._clock = clock

    async def _open(self) -> None:
        await self._server.open()

    async def _close(self) -> None:
        await self._server.close()

    async def aget(self, keys: Sequence[FullKey]) -> dict[FullKey, Any]:
        """Return what is there of these keys.

        Raises:
            PersistenceError: The cache is not open, or the server cannot be read.
        """
        self._check()
        names = {_ENTRY + name_of(key): key for key in keys}
        found = await self._server.read(partial(_read, names=list(names), now=self._clock()))
        return self._values.load({names[name]: typed for name, typed in found.items()})

    async def aset(self, pairs: Mapping[FullKey, tuple[Any, float | None]]) -> None:
        """Keep values, each with the seconds that it stays; stored when this returns.

        Raises:
            PersistenceError: The cache is not open, a value cannot be stored, or the server refused.
        """
        self._check()
        now = self._clock()
        operations: list[Any] = []
        names: list[str] = []
        pieces: list[Document] = []
        for key, (kind, data), ttl in self._values.dump(pairs):
            name, until = _ENTRY + name_of(key), None if ttl is None else now + ttl
            check_room((name,), f"The key {key!r:.200}")
            held: Document = {"vanishes_at": None if until is None else vanishing(until, now)}
            value, cuts = cut(name, data, PART, held)
            pieces += cuts
            names.append(name)
            operations.append(_put(name, {"kind": "entry", "type": kind, "value": value, "expires_at": until, **held}))
        whole_ones = [_put(piece.pop("_id"), piece) for piece in [dict(piece) for piece in pieces]]
        kept = [piece["_id"] for piece in pieces]
        outdated = [DeleteMany({"kind": "chunk", "owner": {"$in": names}, "_id": {"$nin": kept}})] if names else []
        await self._server.persist(partial(_change, operations=[*whole_ones, *operations, *outdated]))

    async def aclear(self, namespaces: Sequence[Namespace] | None = None) -> None:
        """Forget what is in these namespaces and in those that begin with them; None: everything.

        Raises:
            PersistenceError: The cache is not open, or the server refused.
        """
        self._check()
        for namespace in [()] if namespaces is None else namespaces:
            first, after = bounds_of(namespace)
            within: Document = {"$gte": _ENTRY + first}
            within["$lt"] = _ENTRY + after if after else _ENTRY[:-1] + ";"
            operations = [DeleteMany({"_id": within}), DeleteMany({"kind": "chunk", "owner": within})]
            await self._server.persist(partial(_change, operations=operations))

    def __repr__(self) -> str:
        """Name the server without its password, and tell whether it is open."""
        return f"<MongoDBCache {self._server.name}, {'closed' if self._home is None else 'open'}>"


async def _read(session: Session, *, names: Sequence[str], now: float) -> dict[str, Typed]:
    """Return the values of the names that are there, neither damaged nor expired."""
    documents: list[Document] = []
    for part in in_parts(names):
        documents += await session.find({"_id": {"$in": part}})
    living = [document for document in documents if _lives(document.get("expires_at"), now)]
    wanted = [name for document in living for name in pieces_of(document["_id"], document.get("value"))]
    pieces: dict[str, bytes] = {}
    for part in in_parts(wanted):
        found = await session.find({"_id": {"$in": part}}, fields=("data",))
        pieces |= {piece["_id"]: piece["data"] for piece in found if isinstance(piece.get("data"), bytes)}
    values = {document["_id"]: _typed(document, pieces) for document in living}
    return {name: typed for name, typed in values.items() if typed is not None}


def _typed(document: Mapping[str, Any], pieces: Mapping[str, bytes]) -> Typed | None:
    kind, data = document.get("type"), whole(document["_id"], document.get("value"), pieces)
    return (kind, data) if isinstance(kind, str) and data is not None else None


def _lives(expires_at: object, now: float) -> bool:
    return expires_at is None or (isinstance(expires_at, int | float) and expires_at > now)


async def _change(session: Session, *, operations: Sequence[Any]) -> None:
    async with session.transaction():
        await session.change(operations)


def _put(name: str, fields: Mapping[str, Any]) -> UpdateOne:
    return UpdateOne({"_id": name}, {"$set": fields}, upsert=True)
