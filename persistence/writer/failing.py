"""What a failed commit means: try again, search for the guilty unit, and fail what builds on it; pure."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

from persistence.contracts.backend import CheckpointKey, Request, Rows
from persistence.errors import (
    BackendError,
    CheckpointConflictError,
    CorruptDataError,
    DecryptionError,
    LeaseLostError,
    StoredDataError,
    TransientBackendError,
    UnknownTypeError,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from persistence.writer.limits import Limits

T = TypeVar("T")

_MOST_DOUBLINGS: Final = 60
"""Keeps the exponent finite however often it is tried."""

Failure: TypeAlias = BackendError | StoredDataError
"""Why a request was not carried out."""

_KINDS: Final = (
    TransientBackendError,
    LeaseLostError,
    CheckpointConflictError,
    CorruptDataError,
    DecryptionError,
    UnknownTypeError,
)
"""Failures that a sender may want to tell apart."""


def personal(error: Failure) -> Failure:
    """Return the error once more, for one sender: each raises its own, and adds its own traceback to it."""
    kind: type[Failure] = next((kind for kind in _KINDS if isinstance(error, kind)), BackendError)
    own = kind(str(error))
    own.__cause__ = error
    return own


def delay(attempt: int, limits: Limits) -> float:
    """Return the seconds to wait after a number of failed attempts: doubling, up to the limit."""
    return min(limits.first_delay * 2.0 ** min(attempt - 1, _MOST_DOUBLINGS), limits.longest_delay)


def halves(batch: Sequence[T]) -> tuple[Sequence[T], Sequence[T]]:
    """Cut a batch in two, the older part first."""
    middle = len(batch) // 2
    return batch[:middle], batch[middle:]


class Losses:
    """What could not be saved, so that nothing is saved on top of it: never step N without step N-1.

    Two kinds. A checkpoint that was not saved is no parent for anyone, now or later; unless it is found in storage
    after all, because the outcome of its commit was unknown. A checkpoint that lacks writes of a lost unit is a parent
    again once the run has heard of it and sends them anew; only what had been accepted before that moment fails.
    """

    def __init__(self, limits: Limits) -> None:
        """Start with nothing lost."""
        self._most = limits.remembered_losses
        self._missing: OrderedDict[CheckpointKey, Failure] = OrderedDict()
        self._incomplete: OrderedDict[CheckpointKey, tuple[int, Failure]] = OrderedDict()

    def __len__(self) -> int:
        """Return how many checkpoints are remembered."""
        return len(self._missing) + len(self._incomplete)

    def __bool__(self) -> bool:
        """Whether anything is remembered."""
        return bool(self._missing or self._incomplete)

    def add(self, request: Request, newest: int, error: Failure) -> None:
        """Remember a request that failed; ``newest`` is the request accepted last before its sender hears of it."""
        if not isinstance(request, Rows):
            return
        if request.checkpoint is not None:
            self._remember(self._missing, request.checkpoint[:3], error)
        for key in _written(request):
            self._remember(self._incomplete, key, (newest, error))

    def forget(self, request: Request) -> None:
        """Note that a request was saved: its checkpoint is a parent again."""
        if isinstance(request, Rows) and request.checkpoint is not None:
            self._missing.pop(request.checkpoint[:3], None)

    def found(self, keys: Iterable[CheckpointKey]) -> None:
        """Note that checkpoints were read: whatever was heard of their commits, they are there."""
        for key in keys:
            self._missing.pop(key, None)

    def barring(self, request: Request, sequence: int) -> BackendError | None:
        """Return why a request must fail because of what was lost before it; None if it may be saved."""
        if not isinstance(request, Rows):
            return None
        parent = _parent(request)
        if parent is not None and parent in self._incomplete:
            newest, error = self._incomplete[parent]
            if sequence <= newest:
                return _barred(request, f"writes to checkpoint {parent[2]}", error)
            del self._incomplete[parent]
        for key in (parent, request.anchor, *_written(request)):
            if key is not None and key in self._missing:
                return _barred(request, f"checkpoint {key[2]}", self._missing[key])
        return None

    def _remember(self, table: OrderedDict[CheckpointKey, T], key: CheckpointKey, fact: T) -> None:
        table[key] = fact
        table.move_to_end(key)
        while len(table) > self._most:
            table.popitem(last=False)


def _parent(rows: Rows) -> CheckpointKey | None:
    if rows.checkpoint is None or rows.checkpoint[3] is None:
        return None
    return rows.thread_id, rows.checkpoint_ns, rows.checkpoint[3]


def _written(rows: Rows) -> Iterator[CheckpointKey]:
    last = None
    for group in (rows.writes, rows.upserts):
        for row in group:
            if row[2] != last:
                last = row[2]
                yield row[:3]


def _barred(rows: Rows, lost: str, error: Failure) -> BackendError:
    message = (
        f"Not saved for thread {rows.thread_id!r}, namespace {rows.checkpoint_ns!r}: "
        f"it builds on {lost}, which could not be saved: {error}"
    )
    kinds: tuple[type[BackendError], ...] = (LeaseLostError, CheckpointConflictError, BackendError)
    return next((kind for kind in kinds if isinstance(error, kind)), BackendError)(message)
