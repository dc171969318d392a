"""What a foreign database holds, as its reader hands it on: rows, still encoded; and what cannot be carried."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, Self, TypeAlias

from persistence.contracts.checkpoint import Unit
from persistence.serde.serializer import Typed

PLAIN = "plain"
"""Type of a body that is plain JSON, without values that need rebuilding."""


class ForeignWrite(NamedTuple):
    """What a task wrote to one channel."""

    task_id: str
    task_path: str
    channel: str
    typed: Typed


@dataclass(frozen=True, slots=True)
class ForeignCheckpoint:
    """A stored checkpoint with the writes against it."""

    thread_id: str
    checkpoint_ns: str
    checkpoint_id: str
    parent_id: str | None
    body: Typed
    metadata: str | bytes
    """JSON."""
    blobs: dict[str, Typed] = field(default_factory=dict)
    """Values that are kept outside the body, by channel."""
    writes: Sequence[ForeignWrite] = ()
    """By task path, task and position."""


class ForeignItem(NamedTuple):
    """An item of a store."""

    namespace: str
    key: str
    value: str
    """JSON."""
    created_at: float
    updated_at: float
    expires_at: float | None
    ttl: float | None


class ForeignThread(NamedTuple):
    """A thread and how much there is of it."""

    thread_id: str
    checkpoints: int


class Source(Protocol):
    """A foreign database. Nothing in it is ever changed."""

    async def __aenter__(self) -> Self:
        """Open it. Raises BackendOpenError if it is not what it should be."""
        ...

    async def __aexit__(self, *exc: object) -> None:
        """Close it."""
        ...

    async def threads(self) -> Sequence[ForeignThread]:
        """Return every thread, by id."""
        ...

    async def heads(self, thread_id: str) -> dict[str, str]:
        """Return the newest checkpoint id of each of a thread's namespaces."""
        ...

    async def checkpoints(
        self, thread_id: str, checkpoint_ns: str, after: str, limit: int
    ) -> Sequence[ForeignCheckpoint]:
        """Return the checkpoints with ids greater than ``after``, oldest first, at most ``limit``."""
        ...

    async def writes(self, thread_id: str, checkpoint_ns: str, checkpoint_id: str) -> Sequence[ForeignWrite]:
        """Return the writes against one checkpoint."""
        ...

    async def item_count(self) -> int:
        """Return how many items the store has; 0 if there is no store."""
        ...

    async def has_vectors(self) -> bool:
        """Tell whether items are indexed for search by meaning."""
        ...

    async def items(self, start: int, limit: int) -> Sequence[ForeignItem]:
        """Return items in the order of their creation, so many after the first ``start``."""
        ...


class DecodedWrite(NamedTuple):
    """What a task wrote to one channel, rebuilt."""

    task_id: str
    task_path: str
    channel: str
    value: Any


WritesOf: TypeAlias = Callable[[str, str], Awaitable[list[DecodedWrite]]]
"""Returns the writes against a checkpoint of the same thread, given by namespace and id."""


class Adopter(Protocol):
    """Turns what the other engine stored into what this project's engine goes on from."""

    async def adopt(self, unit: Unit, writes_of: WritesOf) -> None:
        """Change a unit that holds one checkpoint and the writes against it.

        Raises Uncarried if that cannot be done. Units of a namespace come oldest first.
        """
        ...


class Uncarried(Exception):  # noqa: N818 - a finding, collected and reported
    """Something cannot be carried; says why, maybe for several reasons."""

    def __init__(self, *reasons: str) -> None:
        """Carry the reasons."""
        super().__init__("; ".join(reasons))
        self.reasons = reasons


class Problem(NamedTuple):
    """What cannot be carried, where it is, and why."""

    thread_id: str | None
    checkpoint_ns: str
    checkpoint_id: str
    where: str
    """The channel, the write, the item."""
    reason: str
