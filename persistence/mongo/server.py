"""One server: where its client comes from, how work on a collection is done, and how that is tried."""

from __future__ import annotations

from contextlib import asynccontextmanager
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, TypeVar

from bson.codec_options import CodecOptions
from pymongo import AsyncMongoClient, IndexModel, ReadPreference, WriteConcern
from pymongo.read_concern import ReadConcern

from persistence.errors import BackendOpenError, PersistenceError, SchemaVersionError
from persistence.mongo.faults import DRIVER_ERRORS, described, read_fault, write_fault
from persistence.mongo.lifetimes import INDEXES, Lifetimes, alive
from persistence.writer.remote import Faults, Remote

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence

    from pymongo.asynchronous.client_session import AsyncClientSession
    from pymongo.asynchronous.collection import AsyncCollection

    from persistence.mongo.options import Options
    from persistence.mongo.rows import Document
    from persistence.writer.limits import Limits

T = TypeVar("T")

Source: TypeAlias = "str | AsyncMongoClient[Any] | Callable[[], Any]"
"""A URL, a client, or a function that makes a client on the event loop it will be used on."""

SCHEMES: Final = ("mongodb://", "mongodb+srv://")

FORMAT: Final = 1
"""Of the documents of every collection."""

VANISHING: Final = "vanishing"
"""Beside the format, if what is in the collection may vanish: so that those who give it no time to live look out."""

DURABLE: Final = WriteConcern(w="majority", j=True)
"""Acknowledged means in the journals of a majority of the replica set, or of the one server."""

_SNAPSHOT: Final = ReadConcern("snapshot")

# Bytes that are no text arrive as text that fails its checksum, not as an error of the driver.
_CODECS: Final[CodecOptions[dict[str, Any]]] = CodecOptions(unicode_decode_error_handler="surrogateescape")


class Layout(NamedTuple):
    """A collection: what its name ends with, and its indexes."""

    name: str
    indexes: Sequence[IndexModel]


class Session:
    """A collection at work."""

    def __init__(
        self, collection: AsyncCollection[dict[str, Any]], lifetimes: Lifetimes | None, *, transactions: bool
    ) -> None:
        """Work on a collection, in transactions if the server has them; None: nothing vanishes from it."""
        self.lifetimes = lifetimes
        self._collection = collection
        self._transactions = transactions
        self._transaction: AsyncClientSession | None = None

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[None]:
        """Do what follows as a whole; where the server has no transactions, in order."""
        if not self._transactions:
            yield
            return
        client = self._collection.database.client
        async with (
            client.start_session(causal_consistency=False) as session,
            await session.start_transaction(_SNAPSHOT, DURABLE, ReadPreference.PRIMARY),
        ):
            self._transaction = session
            try:
                yield
            finally:
                self._transaction = None

    @property
    def is_whole(self) -> bool:
        """Whether all that is done now is done as a whole."""
        return self._transaction is not None

    def living(self, where: Document) -> Document:
        """Return a condition that what has vanished does not meet."""
        return where if self.lifetimes is None else {"$and": [where, alive()]}

    async def find(
        self,
        where: Mapping[str, Any],
        *,
        fields: Sequence[str] | None = None,
        order: Sequence[tuple[str, int]] = (),
        skip: int = 0,
        limit: int = 0,
    ) -> list[Document]:
        """Return documents, or some of their fields; a limit of 0 is none."""
        return [each async for each in self.each(where, fields=fields, order=order, skip=skip, limit=limit)]

    async def each(
        self,
        where: Mapping[str, Any],
        *,
        fields: Sequence[str] | None = None,
        order: Sequence[tuple[str, int]] = (),
        skip: int = 0,
        limit: int = 0,
        size: int = 0,
    ) -> AsyncGenerator[Document, None]:
        """Yield documents, ``size`` at once."""
        cursor = self._collection.find(
            where,
            dict.fromkeys(fields, 1) if fields else None,
            sort=list(order) or None,
            skip=skip,
            limit=limit,
            batch_size=size,
            session=self._transaction,
        )
        async with cursor:
            async for document in cursor:
                yield document

    async def distinct(self, field: str, where: Mapping[str, Any]) -> list[Any]:
        """Return the values of a field, each once."""
        return [document["_id"] for document in await self.grouped(where, f"${field}")]

    async def grouped(self, where: Mapping[str, Any], key: object, **sums: Mapping[str, Any]) -> list[Document]:
        """Return a document for each group of documents that have the same key, with what is told of the group."""
        stages: list[Document] = [{"$match": where}, {"$group": {"_id": key, **sums}}]
        # Groups take memory, of which the server allows so much.
        found = await self._collection.aggregate(stages, session=self._transaction, allowDiskUse=True)
        async with found as cursor:
            return [document async for document in cursor]

    async def change(self, operations: Sequence[Any]) -> int:
        """Carry out operations in order; return how many documents were deleted."""
        if not operations:
            return 0
        done = await self._collection.bulk_write(operations, ordered=True, session=self._transaction)
        return done.deleted_count

    async def count_up(self, name: str, by: int) -> int:
        """Add to a counter and return what it then is."""
        found: Any = None
        while found is None:  # of two that create it at once, one may be told of nothing
            found = await self._collection.find_one_and_update(
                {"_id": name}, {"$inc": {"count": by}}, upsert=True, return_document=True, session=self._transaction
            )
        return int(found["count"])


class Server(Remote[Session]):
    """A MongoDB server as one saver, store or cache uses it."""

    faults = Faults(DRIVER_ERRORS, described, write_fault, read_fault)
    kept = "What was acknowledged is safe."

    def __init__(
        self, source: Source, options: Options, limits: Limits, layout: Layout, lifetimes: Lifetimes | None = None
    ) -> None:
        """Describe a server, and how long what is written stays; nothing is connected yet."""
        super().__init__(_name(source), limits)
        self._source = source
        self._options = options
        self._layout = layout
        self._lifetimes = lifetimes
        self._client: AsyncMongoClient[Any] | None = None
        self._collection: AsyncCollection[dict[str, Any]] | None = None
        self._transactions = False
        self._owned = False

    async def open(self, *, creates: bool = True) -> None:
        """Connect once, and create the indexes if they are not there and it ``creates``.

        Raises:
            BackendOpenError: It cannot be reached, or refuses; or nothing is there, and nothing was to be created.
        """
        await self._enter(self._start, creates)

    async def setup(self) -> None:
        """Create the indexes; safe to call again, and from many processes at once."""
        self._check()
        try:
            await self._crossing.call(self._create)
        except DRIVER_ERRORS as error:
            raise write_fault(error, self.name) from error

    def _connected(self) -> bool:
        return self._collection is not None

    def _let_go(self) -> Callable[[], Coroutine[Any, Any, None]] | None:
        client, self._client, self._collection = self._client, None, None
        return client.close if client is not None and self._owned else None

    async def _start(self, creates: bool) -> None:  # noqa: FBT001 - the bridge passes no names
        client = self._client = await self._made()
        hello: Mapping[str, Any] = await client.admin.command("hello")
        told = self._options.transactions
        self._transactions = ("setName" in hello or hello.get("msg") == "isdbgrid") if told is None else told
        self._collection = self._held(client, self._layout.name)
        number, vanishes = await self._format(client)
        if number > FORMAT:
            message = (
                f"{self.name} was written by a newer version of this library (format {number}, this one knows "
                f"{FORMAT}): upgrade to use it."
            )
            raise SchemaVersionError(message)
        if number < FORMAT and not creates:
            message = f"{self.name} holds no {self._layout.name}: nothing of this library has written it."
            raise BackendOpenError(message)
        if number < FORMAT or (self._lifetimes is not None and not vanishes):
            await self._create()
        if vanishes and self._lifetimes is None:
            self._lifetimes = Lifetimes()  # others give threads a time to live

    def _held(self, client: AsyncMongoClient[Any], name: str) -> AsyncCollection[dict[str, Any]]:
        database = client[self._options.database_of(client)]
        # A URL may ask for less; what is acknowledged must stay.
        return database.get_collection(
            f"{self._options.prefix}_{name}", _CODECS, ReadPreference.PRIMARY, write_concern=DURABLE
        )

    async def _format(self, client: AsyncMongoClient[Any]) -> tuple[int, bool]:
        """Return the format of the collection, 0 if there is none, and whether something may vanish from it."""
        found = await self._held(client, "formats").find_one({"_id": self._layout.name}) or {"format": 0}
        number = found.get("format")
        if not isinstance(number, int):
            message = f"{self.name}: the collection {self._options.prefix}_formats is not ours: choose another prefix."
            raise BackendOpenError(message)
        return number, VANISHING in found

    async def _create(self) -> None:
        client, collection = self._client, self._collection
        assert client is not None  # noqa: S101 - whoever got here has opened it
        assert collection is not None  # noqa: S101 - likewise
        await collection.create_indexes([*self._layout.indexes, *(INDEXES if self._lifetimes is not None else ())])
        noted: Document = {"$setOnInsert": {"format": FORMAT}}
        if self._lifetimes is not None:
            noted["$set"] = {VANISHING: True}
        await self._held(client, "formats").update_one({"_id": self._layout.name}, noted, upsert=True)

    async def _made(self) -> AsyncMongoClient[Any]:
        if isinstance(self._source, str):
            self._owned = True
            return self._options.client(self._source)
        if isinstance(self._source, AsyncMongoClient):
            if self._crossing.bridged:
                message = (
                    "On trio the driver works on an asyncio loop of its own, where this client is not: pass a URL, or "
                    "a function that makes the client (lambda: pymongo.AsyncMongoClient(...))."
                )
                raise PersistenceError(message)
            return self._source
        client: Any = self._source()
        if isawaitable(client):
            client = await client
        if not isinstance(client, AsyncMongoClient):
            message = f"The function made a {type(client).__name__}, not a pymongo.AsyncMongoClient."
            raise PersistenceError(message)
        self._owned = True
        return client

    async def _at_work(self, work: Callable[[Session], Awaitable[T]]) -> T:
        collection = self._collection
        if collection is None:
            raise self._closed()
        return await work(Session(collection, self._lifetimes, transactions=self._transactions))

    def __repr__(self) -> str:
        """Name the server, without its password."""
        return f"<MongoDB {self.name}>"


def checked(source: Source) -> Source:
    """Return where a client comes from.

    Raises:
        ValueError: It is a text but no URL.
        TypeError: It is a client that blocks, or nothing of use.
    """
    if isinstance(source, str):
        if not source.startswith(SCHEMES):
            message = "Not a MongoDB URL: write it as mongodb://user:password@host:27017/database."
            raise ValueError(message)
    elif not isinstance(source, AsyncMongoClient) and (not callable(source) or hasattr(source, "list_databases")):
        message = (
            f"Pass a URL, a pymongo.AsyncMongoClient or a function that makes one, not a {type(source).__module__}."
            f"{type(source).__name__}: it would block the event loop."
        )
        raise TypeError(message)
    return source


def _name(source: Source) -> str:
    """Return what to call a server in messages: hosts and database, never a password."""
    if not isinstance(source, str):
        return "the server of the given client"
    return source.partition("://")[2].partition("?")[0].rpartition("@")[2]
