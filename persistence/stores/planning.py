"""From the operations of a batch to what is to be read and what is to be written: checked, encoded, decided."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from persistence.contracts.store import (
    GetOp,
    ListNamespacesOp,
    MatchCondition,
    Namespace,
    Op,
    PutOp,
    SearchOp,
    TTLConfig,
)
from persistence.serde.serializer import Typed
from persistence.stores.coding import Codec
from persistence.stores.embedding import Index
from persistence.stores.filters import Test, compiled
from persistence.stores.namespaces import checked, checked_conditions, checked_for_writing, checked_key
from persistence.stores.ttl import expiry, minutes


@dataclass(slots=True)
class Get:
    """Read one item."""

    namespace: Namespace
    key: str
    refresh: bool


@dataclass(slots=True)
class Search:
    """Read a page of the items at and below a namespace."""

    prefix: Namespace
    test: Test | None
    limit: int
    offset: int
    refresh: bool
    query: str = ""
    vector: bytes | None = None
    """The packed query; None: in the order of creation."""


@dataclass(slots=True)
class Listing:
    """Read a page of the namespaces that hold items."""

    conditions: tuple[MatchCondition, ...]
    max_depth: int | None
    limit: int
    offset: int


@dataclass(slots=True)
class Put:
    """Write one item, or delete it."""

    namespace: Namespace
    key: str
    typed: Typed | None = None
    """The encoded value; None deletes."""
    ttl: float | None = None
    texts: tuple[str, ...] = ()
    vectors: Typed | None = None


Read: TypeAlias = Get | Search | Listing


@dataclass(slots=True)
class Plan:
    """A batch."""

    size: int = 0
    reads: list[tuple[int, Read]] = field(default_factory=list)
    """With their places among the results."""
    puts: list[Put] = field(default_factory=list)
    """One per address."""

    def texts(self) -> tuple[list[str], list[str]]:
        """Return the texts to embed, each once: those to store, those to search for."""
        stored = dict.fromkeys(text for put in self.puts for text in put.texts)
        return list(stored), list(dict.fromkeys(search.query for search in self.searches()))

    def searches(self) -> list[Search]:
        """Return the searches by meaning."""
        return [read for _, read in self.reads if isinstance(read, Search) and read.query]


class Planner:
    """Checks and encodes batches for one store."""

    def __init__(self, codec: Codec, index: Index | None, ttl: TTLConfig | None) -> None:
        """Use a store's serializer and configs. Raises ValueError for an impossible config."""
        self.codec = codec
        self.index = index
        self._expiry = expiry(ttl)

    def plan(self, ops: Iterable[Op]) -> Plan:
        """Return what a batch is to do; nothing has happened yet.

        Raises:
            InvalidNamespaceError: A label or namespace is not one.
            SerializationError: A value cannot be stored as it is.
            TypeError, ValueError: An operation, filter, limit or time to live is impossible.
        """
        plan = Plan()
        puts: dict[tuple[Namespace, str], Put] = {}
        for place, op in enumerate(ops):
            plan.size += 1
            if isinstance(op, PutOp):
                put = self._put(op)
                puts[put.namespace, put.key] = put
            else:
                plan.reads.append((place, self._read(op)))
        plan.puts.extend(puts.values())
        return plan

    def attach(self, plan: Plan, stored: Sequence[bytes], searched: Sequence[bytes]) -> None:
        """Give the plan the packed vectors of its texts."""
        documents, queries = plan.texts()
        by_document = dict(zip(documents, stored, strict=True))
        by_query = dict(zip(queries, searched, strict=True))
        for put in plan.puts:
            if put.texts:
                vectors = b"".join(by_document[text] for text in put.texts)
                put.vectors = self.codec.encode_vectors(put.namespace, put.key, vectors)
        for search in plan.searches():
            search.vector = by_query[search.query]

    def _read(self, op: object) -> Read:
        if isinstance(op, GetOp):
            return Get(checked(op.namespace), checked_key(op.key), self._refreshes(op.refresh_ttl))
        if isinstance(op, SearchOp):
            return Search(
                checked(op.namespace_prefix),
                compiled(op.filter),
                _count(op.limit, "limit"),
                _count(op.offset, "offset"),
                self._refreshes(op.refresh_ttl),
                (op.query or "") if self.index is not None else "",
            )
        if isinstance(op, ListNamespacesOp):
            depth = None if op.max_depth is None else _count(op.max_depth, "max_depth", least=1)
            conditions = checked_conditions(op.match_conditions)
            return Listing(conditions, depth, _count(op.limit, "limit"), _count(op.offset, "offset"))
        message = f"Unknown operation: {op!r:.80}. There are GetOp, SearchOp, PutOp and ListNamespacesOp."
        raise ValueError(message)

    def _put(self, op: PutOp) -> Put:
        if op.value is None:
            return Put(checked(op.namespace), checked_key(op.key))
        if not isinstance(op.value, Mapping):
            message = f"The value of {op.key!r:.80} must be a dict, or None to delete, not {type(op.value).__name__}."
            raise TypeError(message)
        value: dict[Any, Any] = op.value if isinstance(op.value, dict) else dict(op.value)
        namespace, key = checked_for_writing(op.namespace), checked_key(op.key)
        texts = () if self.index is None else self.index.texts(value, op.index)
        return Put(namespace, key, self.codec.encode(namespace, key, value), minutes(op.ttl), texts)

    def _refreshes(self, asked: bool | None) -> bool:  # noqa: FBT001 - the operation's own word
        return self._expiry.refresh_on_read if asked is None else asked


def _count(given: object, what: str, *, least: int = 0) -> int:
    if not isinstance(given, int) or isinstance(given, bool) or given < least:
        message = f"{what} must be a whole number of at least {least}, not {given!r:.80}."
        raise ValueError(message)
    return given
