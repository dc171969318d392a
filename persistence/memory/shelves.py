"""The rows of a store in memory: a tree of namespaces, so that a search looks at nothing outside its prefix."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import count
from operator import itemgetter

from persistence.contracts.store import Namespace
from persistence.serde.serializer import Typed
from persistence.stores.carrying_out import Candidate, Row
from persistence.stores.planning import Put
from persistence.stores.ttl import alive, deadline, moment


class Shelf:
    """One namespace: the numbers of its items by key, and the namespaces right below it."""

    __slots__ = ("below", "keys")

    def __init__(self) -> None:
        self.keys: dict[str, int] = {}
        self.below: dict[str, Shelf] = {}


class Shelves:
    """A table (see ``stores.carrying_out``). Nothing in it fails half way: whatever can is checked before."""

    def __init__(self) -> None:
        """Make an empty table."""
        self._rows: dict[int, Row] = {}
        self._vectors: dict[int, Typed] = {}
        self._root = Shelf()
        self._next = count(1)

    def __len__(self) -> int:
        """Return how many rows there are, expired ones included."""
        return len(self._rows)

    def find(self, namespace: Namespace, key: str) -> Row | None:
        """Return the row of an address, expired or not."""
        shelf = self._shelf(namespace)
        number = None if shelf is None else shelf.keys.get(key)
        return None if number is None else self._rows[number]

    def row(self, number: int) -> Row:
        """Return a row."""
        return self._rows[number]

    def rows(self, prefix: Namespace, now: float, *, offset: int, limit: int | None) -> Iterable[Row]:
        """Return the rows at and below a namespace by number: so many, or all."""
        found = sorted(self._below(prefix, now), key=itemgetter(0))
        return found[offset : None if limit is None else offset + limit]

    def candidates(self, prefix: Namespace, dims: int, now: float, *, whole: bool) -> Iterable[Candidate]:  # noqa: ARG002 - a process has one number of dimensions
        """Yield the rows at and below a namespace, with their values if ``whole``."""
        for row in self._below(prefix, now):
            typed = row.typed if whole else None
            yield Candidate(row.number, row.namespace, row.key, typed, self._vectors.get(row.number))

    def namespaces(self, prefix: Namespace, now: float) -> Iterable[Namespace]:
        """Return the namespaces at and below one that hold rows."""
        return {row.namespace for row in self._below(prefix, now)}

    def put(self, put: Put, dims: int, now: float, expires_at: float | None) -> None:  # noqa: ARG002
        """Create a row, or change it; an expired one is created anew."""
        assert put.typed is not None  # noqa: S101 - deletes have their own method
        old = self.find(put.namespace, put.key)
        if old is not None and not alive(old.expires_at, now):
            self._remove(old)
            old = None
        number = next(self._next) if old is None else old.number
        updated_at = moment(now)
        created_at = updated_at if old is None else old.created_at
        self._rows[number] = Row(number, put.namespace, put.key, put.typed, created_at, updated_at, put.ttl, expires_at)
        self._vectors.pop(number, None)
        if put.vectors is not None:
            self._vectors[number] = put.vectors
        shelf = self._root
        for label in put.namespace:
            shelf = shelf.below.setdefault(label, Shelf())
        shelf.keys[put.key] = number

    def delete(self, namespace: Namespace, key: str) -> None:
        """Remove a row if it is there."""
        row = self.find(namespace, key)
        if row is not None:
            self._remove(row)

    def prolong(self, number: int, ttl: float, now: float) -> None:
        """Start a row's time to live again."""
        self._rows[number] = self._rows[number]._replace(expires_at=deadline(now, ttl))

    def sweep(self, now: float) -> int:
        """Remove what has expired; return how many rows that were."""
        expired = [row for row in self._rows.values() if not alive(row.expires_at, now)]
        for row in expired:
            self._remove(row)
        return len(expired)

    def _shelf(self, namespace: Namespace) -> Shelf | None:
        shelf: Shelf | None = self._root
        for label in namespace:
            shelf = None if shelf is None else shelf.below.get(label)
        return shelf

    def _below(self, prefix: Namespace, now: float) -> Iterator[Row]:
        first = self._shelf(prefix)
        waiting = [] if first is None else [first]
        while waiting:
            shelf = waiting.pop()
            waiting.extend(shelf.below.values())
            for number in shelf.keys.values():
                row = self._rows[number]
                if alive(row.expires_at, now):
                    yield row

    def _remove(self, row: Row) -> None:
        del self._rows[row.number]
        self._vectors.pop(row.number, None)
        path = [self._root]
        for label in row.namespace:
            path.append(path[-1].below[label])
        del path[-1].keys[row.key]
        for label, shelf, above in zip(reversed(row.namespace), reversed(path), reversed(path[:-1]), strict=False):
            if shelf.keys or shelf.below:
                break
            del above.below[label]
