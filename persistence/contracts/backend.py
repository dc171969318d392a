"""The backend port: the few things a database must do for the persistence actor.

A backend knows rows, not values: everything it is handed is already encoded, everything it returns is still encoded.
Whatever changes the database travels as a request through one FIFO channel, so deletions keep their place between
writes. Requests carry plain bind tuples in the column order of the four tables (LangGraph's Postgres layout).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from persistence.contracts.lease import Lease, LeaseRow

CheckpointRow: TypeAlias = tuple[str, str, str, str | None, str, str, str]
"""(thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, checkpoint, metadata)"""

WriteRow: TypeAlias = tuple[str, str, str, str, int, str, str, bytes, str]
"""(thread_id, checkpoint_ns, checkpoint_id, task_id, idx, channel, type, blob, task_path)"""

BlobRow: TypeAlias = tuple[str, str, str, str, str, bytes]
"""(thread_id, checkpoint_ns, channel, version, type, blob)"""

CheckpointKey: TypeAlias = tuple[str, str, str]
"""(thread_id, checkpoint_ns, checkpoint_id)"""

BlobKey: TypeAlias = tuple[str, str, str, str]
"""(thread_id, checkpoint_ns, channel, version)"""


class Rows(msgspec.Struct, frozen=True, eq=False):
    """One encoded unit: rows of one (thread, namespace) that become durable together."""

    thread_id: str
    checkpoint_ns: str
    checkpoint: CheckpointRow | None
    """Replaces the row of the same key."""
    blobs: Sequence[BlobRow]
    """Kept as they are if the key exists: a version names one value for ever."""
    writes: Sequence[WriteRow]
    """Kept as they are if the key exists: the first result of a task wins."""
    upserts: Sequence[WriteRow]
    """Rows of the special channels; they replace what was there."""
    size: int
    """Bytes this request holds while it waits."""
    expected_head: str | None = None
    """The newest checkpoint that must be there, ``""`` for none; None if it does not matter."""
    lease: Lease | None = None
    """What must be, or becomes, the thread's lease; None if that does not matter."""
    based: bool = False
    """Whether the checkpoints that the writes are recorded against must be there."""
    anchor: CheckpointKey | None = None
    """Another checkpoint that must be there; with an id of ``""``, its namespace must have none."""

    @property
    def rests(self) -> bool:
        """Whether something must be there that is no head."""
        return self.based or self.anchor is not None

    def bases(self) -> Iterator[CheckpointKey]:
        """Yield what must be there: the anchor and, if based, what writes are recorded against; not the unit's own."""
        if self.anchor is not None:
            yield self.anchor
        own = None if self.checkpoint is None else self.checkpoint[:3]
        last = own
        for rows in (self.writes, self.upserts) if self.based else ():
            for row in rows:
                key = row[:3]
                if key not in (own, last):
                    yield key
                last = key


class Beat(msgspec.Struct, frozen=True, eq=False):
    """Say that an owner of leases lives: it counts as dead after so many seconds without another beat."""

    owner: str
    seconds: float
    """0 takes the owner off the list: its saver was closed."""
    size: int = 100


class DeleteThread(msgspec.Struct, frozen=True, eq=False):
    """Delete every row of a thread."""

    thread_id: str
    size: int = 100


class Reseal(Protocol):
    """Moves sealed rows to another thread; needed where the cipher binds a value to its place."""

    def blob(self, row: BlobRow, thread_id: str) -> BlobRow:
        """Return the row, sealed for the other thread."""
        ...

    def write(self, row: WriteRow, thread_id: str) -> WriteRow:
        """Return the row, sealed for the other thread."""
        ...


class CopyThread(msgspec.Struct, frozen=True, eq=False):
    """Copy every row of a thread to another; rows that the target already has stay."""

    source: str
    target: str
    reseal: Reseal | None = None
    """None where rows can be copied as they are."""
    size: int = 100


class Prune(msgspec.Struct, frozen=True, eq=False):
    """Keep only the newest checkpoint of each namespace, with its writes and the blobs it rests on; or nothing."""

    thread_ids: Sequence[str]
    strategy: Literal["keep_latest", "delete"]
    size: int = 100


class DeleteRuns(msgspec.Struct, frozen=True, eq=False):
    """Delete the checkpoints whose metadata names one of the runs, with their writes and blobs nobody needs."""

    run_ids: Sequence[str]
    size: int = 100


Request: TypeAlias = Rows | Beat | DeleteThread | CopyThread | Prune | DeleteRuns


class Query(msgspec.Struct, frozen=True):
    """Which checkpoints a page holds: newest id first, then greatest thread and namespace."""

    thread_id: str | None = None
    checkpoint_ns: str | None = None
    checkpoint_id: str | None = None
    before: str | None = None
    """Only ids smaller than this one."""
    after: CheckpointKey | None = None
    """Where the page before this one ended."""
    filter: str | None = None
    """A JSON object: the values that the metadata must hold under its keys."""
    limit: int = 1


class Page(msgspec.Struct, frozen=True, eq=False):
    """Stored checkpoints with everything needed to rebuild them."""

    checkpoints: Sequence[CheckpointRow]
    writes: Mapping[CheckpointKey, Sequence[WriteRow]]
    """Sorted by task path, task id and idx."""
    blobs: Mapping[BlobKey, tuple[str, bytes]]
    lease: LeaseRow | None = None
    """The thread's lease, if it was asked for; None if it never had one."""


class Backend(Protocol):
    """A database. Called from the saver's own loop only, and never twice at once for ``commit``."""

    async def open(self) -> None:
        """Connect and bring the schema up to date. Raises BackendOpenError with nothing changed."""
        ...

    async def close(self) -> None:
        """Release every connection and thread; safe to call again."""
        ...

    async def setup(self) -> None:
        """Create or migrate the tables; safe to call again and from several processes at once."""
        ...

    async def commit(self, batch: Sequence[Request]) -> None:
        """Apply the requests in order in one transaction: all or nothing, durable when this returns.

        Idempotent: applying a batch twice equals applying it once, so an unknown outcome may be tried again.

        Raises:
            TransientBackendError: It may succeed if tried again.
            CheckpointConflictError: A unit's expected head is not the head, or what it rests on is gone; see
                ``writer.fencing``.
            BackendError: It will not; nothing was applied.
            PersistenceClosedError: The connection is gone for good.
        """
        ...

    async def load(self, thread_id: str, checkpoint_ns: str, checkpoint_id: str | None) -> Page:
        """Return the addressed checkpoint, or the newest one; an empty page if there is none."""
        ...

    async def page(self, query: Query) -> Page:
        """Return up to ``query.limit`` matching checkpoints, in order."""
        ...


class LeasingBackend(Backend, Protocol):
    """A database that compares the leases of units with stored ones, and so keeps runs of several processes apart.

    Its ``commit`` raises LeaseLostError, naming every thread whose units show a lease that is not the stored one.
    """

    leasing: Literal[True]

    async def load_leased(self, thread_id: str, checkpoint_ns: str, checkpoint_id: str | None) -> Page:
        """Return what ``load`` does and the thread's lease, from one state of the database and in one answer."""
        ...

    async def lease(self, thread_id: str) -> LeaseRow | None:
        """Return a thread's lease."""
        ...

    async def held_leases(self) -> list[LeaseRow]:
        """Return every lease that is held, in order of thread ids."""
        ...

    async def free_leases(self, graph: str, after: str, limit: int) -> list[LeaseRow]:
        """Return so many leases of a graph's threads that are not held, in order of thread ids, from behind one on."""
        ...
