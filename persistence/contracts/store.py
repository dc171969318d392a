"""The store contract: long-term memory, kept by namespace and key, whatever thread a graph runs on.

``BaseStore`` is what third parties subclass: ``abatch`` and ``batch`` are enough, every other method is one of their
operations. Names and signatures are LangGraph's.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal, NamedTuple, Protocol, TypeAlias, TypedDict

from persistence.errors import UnsupportedOperationError

Value: TypeAlias = dict[str, Any]
Namespace: TypeAlias = tuple[str, ...]
NamespacePath: TypeAlias = tuple[str, ...]
"""Labels of a namespace, of which ``"*"`` stands for any one label."""
NamespaceMatchType: TypeAlias = Literal["prefix", "suffix"]
Vector: TypeAlias = Sequence[float]


class NotProvided:
    """The type of ``NOT_GIVEN``: an argument that was left out, where None means something else."""

    def __bool__(self) -> Literal[False]:
        """Count as absent."""
        return False

    def __repr__(self) -> str:
        """Name the constant."""
        return "NOT_GIVEN"


NOT_GIVEN: Final = NotProvided()


@dataclass(slots=True, eq=False, repr=False)
class Item:
    """A stored value with where it is kept and since when."""

    namespace: tuple[str, ...]
    key: str
    value: Value
    created_at: datetime
    """When the key was first stored; later puts keep it."""
    updated_at: datetime
    """When it was stored last."""

    def __post_init__(self) -> None:
        """Take what JSON makes of an item: a list for the namespace, text for the times."""
        self.namespace = tuple(self.namespace)
        self.created_at = _moment(self.created_at)
        self.updated_at = _moment(self.updated_at)

    def dict(self) -> Value:
        """Return the item as JSON takes it."""
        return {
            "namespace": list(self.namespace),
            "key": self.key,
            "value": self.value,
            "created_at": self.created_at.isoformat(),
            "updated_at": self.updated_at.isoformat(),
        }

    def __eq__(self, other: object) -> bool:
        """Compare everything but the score of a search."""
        if not isinstance(other, Item):
            return NotImplemented
        return (self.namespace, self.key, self.value, self.created_at, self.updated_at) == (
            other.namespace,
            other.key,
            other.value,
            other.created_at,
            other.updated_at,
        )

    def __hash__(self) -> int:
        """Hash the address."""
        return hash((self.namespace, self.key))

    def __repr__(self) -> str:
        """Show every field as JSON has it."""
        return f"Item({', '.join(f'{name}={value!r}' for name, value in self.dict().items())})"


@dataclass(slots=True, eq=False, repr=False)
class SearchItem(Item):
    """An item that a search found."""

    score: float | None = None
    """Cosine similarity to the query, rounded to six decimals; None without a query, or if the item is not indexed."""

    def dict(self) -> Value:
        """Return the item as JSON takes it, with its score."""
        return {**Item.dict(self), "score": self.score}


class GetOp(NamedTuple):
    """Read one item."""

    namespace: tuple[str, ...]
    key: str
    refresh_ttl: bool | None = True
    """Whether reading starts the item's time to live again; None: what the store's config says."""


class SearchOp(NamedTuple):
    """Read the items of a namespace and of all below it."""

    namespace_prefix: tuple[str, ...]
    filter: Mapping[str, Any] | None = None
    limit: int = 10
    offset: int = 0
    query: str | None = None
    refresh_ttl: bool | None = True


class PutOp(NamedTuple):
    """Store a value; None deletes."""

    namespace: tuple[str, ...]
    key: str
    value: Mapping[str, Any] | None
    index: Literal[False] | Sequence[str] | None = None  # type: ignore[assignment]  # LangGraph's name; tuples have another
    """Paths of the texts to index; None: those of the store's config; False or none: not searchable by meaning."""
    ttl: float | None = None
    """Minutes until the item expires; None: never."""


class MatchCondition(NamedTuple):
    """How a namespace must begin or end; ``"*"`` stands for any one label."""

    match_type: NamespaceMatchType
    path: NamespacePath


class ListNamespacesOp(NamedTuple):
    """List the namespaces that hold items."""

    match_conditions: tuple[MatchCondition, ...] | None = None
    max_depth: int | None = None
    limit: int = 100
    offset: int = 0


Op: TypeAlias = GetOp | SearchOp | PutOp | ListNamespacesOp
Result: TypeAlias = Item | list[Item] | list[SearchItem] | list[tuple[str, ...]] | None


class Embeddings(Protocol):
    """An object that turns texts into vectors, as LangChain's do."""

    def embed_documents(self, texts: list[str]) -> Sequence[Vector]:
        """Return a vector for each text that is stored."""
        ...

    def embed_query(self, text: str) -> Vector:
        """Return the vector of a text that is searched for."""
        ...


EmbeddingsFunc: TypeAlias = Callable[[list[str]], Sequence[Vector]]
AEmbeddingsFunc: TypeAlias = Callable[[list[str]], Awaitable[Sequence[Vector]]]


class IndexConfig(TypedDict, total=False):
    """How a store searches by meaning."""

    dims: int
    """Length of the vectors."""
    embed: Embeddings | EmbeddingsFunc | AEmbeddingsFunc | str
    """What turns texts into vectors; a text is a name that LangChain knows."""
    fields: list[str] | None
    """Paths of the texts to index: ``a.b``, ``a[*].b``, ``a[0]``, ``a[-1]``, ``{a,b}``; ``$`` is the whole value."""


class TTLConfig(TypedDict, total=False):
    """When items expire. Expired items are never returned, swept away or not."""

    refresh_on_read: bool
    """Whether reading an item starts its time to live again, unless the call says; True if left out."""
    omit_expired: bool
    """Accepted for the sake of other libraries' configs: expired items are always left out."""
    default_ttl: float | None
    """Minutes; for puts that do not say."""
    sweep_interval_minutes: float | None
    """How often the sweeper deletes expired items; 5 if left out."""


class BaseStore(ABC):
    """Keeps values by namespace and key, and finds them again by namespace, by filter and by meaning.

    The operations of one batch that read see the store as it was before the batch; of several puts to one key the last
    wins; a batch happens as a whole or not at all.
    """

    supports_ttl: bool = False
    ttl_config: TTLConfig | None = None

    @abstractmethod
    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """See ``abatch``; blocks."""

    @abstractmethod
    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Carry out operations together; returns one result each, None for puts."""

    async def aget(self, namespace: Namespace, key: str, *, refresh_ttl: bool | None = None) -> Item | None:
        """Return an item, None if there is none or it has expired.

        ``refresh_ttl`` says whether this starts its time to live again; None: what the store's config says.
        """
        found: Any = (await self.abatch([GetOp(namespace, str(key), refresh_ttl)]))[0]
        return found  # type: ignore[no-any-return]

    async def asearch(
        self,
        namespace_prefix: Namespace,
        /,
        *,
        query: str | None = None,
        filter: Mapping[str, Any] | None = None,  # noqa: A002 - the contract's public name
        limit: int = 10,
        offset: int = 0,
        refresh_ttl: bool | None = None,
    ) -> list[SearchItem]:
        """Return up to ``limit`` items of a namespace and of all below it, after skipping ``offset``.

        Args:
            namespace_prefix: leading labels; ``()`` searches everything. Labels match whole.
            query: text to rank by meaning; best first, items that are not indexed last. Without it, or where the store
                has no index, items come in the order in which their keys were first stored.
            filter: conditions that all must hold, by key of the value: an equal value (of a dict, the keys given; a
                missing key equals None), or operators ``$eq``, ``$ne``, ``$gt``, ``$gte``, ``$lt``, ``$lte``. The last
                four compare numbers, and never match what is none.
            limit: most items to return.
            offset: items to skip.
            refresh_ttl: whether this starts the returned items' time to live again; None: what the config says.

        Raises:
            InvalidNamespaceError: a label is not one.
            ValueError: an unknown operator, or a number to compare with that is none.
        """
        found: Any = (await self.abatch([SearchOp(namespace_prefix, filter, limit, offset, query, refresh_ttl)]))[0]
        return found  # type: ignore[no-any-return]

    async def aput(
        self,
        namespace: Namespace,
        key: str,
        value: Mapping[str, Any],
        index: Literal[False] | list[str] | None = None,
        *,
        ttl: float | NotProvided | None = NOT_GIVEN,
    ) -> None:
        """Store a value, replacing what the key holds.

        Args:
            namespace: one or more labels, from the general to the particular.
            key: its name there.
            value: a dict, kept as it is now.
            index: paths of the texts to index; None: those of the store's config; False: not searchable by meaning.
            ttl: minutes until it expires; None: never; left out: the config's ``default_ttl``.

        Raises:
            InvalidNamespaceError: the namespace is empty, or a label is not one.
            SerializationError: the value, or something in it, cannot be stored as it is.
            UnsupportedOperationError: the store does not know expiry.
        """
        await self.abatch([PutOp(namespace, str(key), value, index, self._minutes(ttl))])

    async def adelete(self, namespace: Namespace, key: str) -> None:
        """Delete an item; nothing happens if there is none."""
        await self.abatch([PutOp(namespace, str(key), None)])

    async def alist_namespaces(
        self,
        *,
        prefix: NamespacePath | None = None,
        suffix: NamespacePath | None = None,
        max_depth: int | None = None,
        limit: int = 100,
        offset: int = 0,
    ) -> list[tuple[str, ...]]:
        """Return the namespaces that hold items, in order.

        Args:
            prefix: how they must begin; ``"*"`` stands for any one label.
            suffix: how they must end.
            max_depth: cut them to so many labels; what becomes equal is listed once.
            limit: most namespaces to return.
            offset: namespaces to skip.

        Raises:
            InvalidNamespaceError: a label is not one.
        """
        op = ListNamespacesOp(_conditions(prefix, suffix), max_depth, limit, offset)
        found: Any = (await self.abatch([op]))[0]
        return found  # type: ignore[no-any-return]

    def get(self, namespace: Namespace, key: str, *, refresh_ttl: bool | None = None) -> Item | None:
        """See ``aget``; blocks."""
        found: Any = self.batch([GetOp(namespace, str(key), refresh_ttl)])[0]
        return found  # type: ignore[no-any-return]

    def search(
        self,
        namespace_prefix: Namespace,
        /,
        *,
        query: str | None = None,
        filter: Mapping[str, Any] | None = None,  # noqa: A002 - the contract's public name
        limit: int = 10,
        offset: int = 0,
        refresh_ttl: bool | None = None,
    ) -> list[SearchItem]:
        """See ``asearch``; blocks."""
        found: Any = self.batch([SearchOp(namespace_prefix, filter, limit, offset, query, refresh_ttl)])[0]
        return found  # type: ignore[no-any-return]

    def put(
        self,
        namespace: Namespace,
        key: str,
        value: Mapping[str, Any],
        index: Literal[False] | list[str] | None = None,
        *,
        ttl: float | NotProvided | None = NOT_GIVEN,
    ) -> None:
        """See ``aput``; blocks."""
        self.batch([PutOp(namespace, str(key), value, index, self._minutes(ttl))])

    def delete(self, namespace: Namespace, key: str) -> None:
        """See ``adelete``; blocks."""
        self.batch([PutOp(namespace, str(key), None)])

    def list_namespaces(
        self,
        *,
        prefix: NamespacePath | None = None,
        suffix: NamespacePath | None = None,
        max_depth: int | None = None,
        limit: int = 100,
        offset: int = 0,
    ) -> list[tuple[str, ...]]:
        """See ``alist_namespaces``; blocks."""
        found: Any = self.batch([ListNamespacesOp(_conditions(prefix, suffix), max_depth, limit, offset)])[0]
        return found  # type: ignore[no-any-return]

    def _minutes(self, ttl: float | NotProvided | None) -> float | None:
        """Return the time to live of a put. Raises UnsupportedOperationError if one is asked of a store without."""
        if isinstance(ttl, NotProvided):
            return (self.ttl_config or {}).get("default_ttl") if self.supports_ttl else None
        if ttl is not None and not self.supports_ttl:
            message = f"{type(self).__name__} does not know expiry: pass ttl=None, or use a store with supports_ttl."
            raise UnsupportedOperationError(message)
        return ttl


def _conditions(prefix: NamespacePath | None, suffix: NamespacePath | None) -> tuple[MatchCondition, ...] | None:
    found = []
    if prefix:
        found.append(MatchCondition("prefix", prefix))
    if suffix:
        found.append(MatchCondition("suffix", suffix))
    return tuple(found) or None


def _moment(value: datetime | str) -> datetime:
    return datetime.fromisoformat(value) if isinstance(value, str) else value
