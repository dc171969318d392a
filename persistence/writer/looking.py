"""Looking into a database on a server: for callers that block, without a graph and without a saver."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import partial
from typing import TYPE_CHECKING, Generic, TypeVar

from persistence import portal
from persistence.contracts.listing import CheckpointSummary, StoredCheckpoint, TaskSummary, outcome, summary
from persistence.errors import StoredDataError
from persistence.writer.decoding import Decoder

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from persistence.contracts.backend import CheckpointRow, Page, WriteRow
    from persistence.serde.serializer import Serializer
    from persistence.writer.remote import Remote

S = TypeVar("S")
T = TypeVar("T")


class RemoteListing(ABC, Generic[S]):
    """Reads one database that is open on the process's portal. Every method blocks, and raises PersistenceError."""

    def __init__(self, remote: Remote[S]) -> None:
        """Look into an open server."""
        self._remote = remote

    def checkpoint(
        self, thread_id: str, checkpoint_ns: str, checkpoint_id: str | None, serializer: Serializer
    ) -> StoredCheckpoint | None:
        """Return one checkpoint with its values, or the newest one; None if there is none."""
        find = partial(self._load, thread_id=thread_id, checkpoint_ns=checkpoint_ns, checkpoint_id=checkpoint_id)
        page = self._read(find)
        if not page.checkpoints:
            return None
        row = page.checkpoints[0]
        return stored(row, page, serializer, self._summary(row), self.tasks(*row[:3]))

    @abstractmethod
    def tasks(self, thread_id: str, checkpoint_ns: str, checkpoint_id: str) -> list[TaskSummary]:
        """Return the tasks that wrote against a checkpoint."""

    @abstractmethod
    async def _load(self, session: S, *, thread_id: str, checkpoint_ns: str, checkpoint_id: str | None) -> Page:
        """Return one checkpoint with its rows, or the newest one."""

    def _summary(self, row: CheckpointRow) -> CheckpointSummary:
        return summary_of(row)

    def _read(self, work: Callable[[S], Awaitable[T]]) -> T:
        return there(partial(self._remote.read, work))


def there(work: Callable[[], Awaitable[T]]) -> T:
    """Do something on the portal's loop, where what is looked into is open."""
    return portal.call(work, at=None, thread=None, instead="Listing")


def stored(
    row: CheckpointRow, page: Page, serializer: Serializer, told: CheckpointSummary, tasks: list[TaskSummary]
) -> StoredCheckpoint:
    """Return a checkpoint with its values, or with what is wrong with them."""
    try:
        return StoredCheckpoint(told, Decoder(serializer).decode(row, page), None, tasks)
    except StoredDataError as error:
        return StoredCheckpoint(told, None, str(error), tasks)


def summary_of(row: CheckpointRow) -> CheckpointSummary:
    """Return what is known of a checkpoint's row, whose text is JSON as it was written."""
    return summary((*row[1:4], *(part.encode("utf-8", "surrogateescape") for part in row[5:])))


def tasks_of(rows: Iterable[WriteRow]) -> list[TaskSummary]:
    """Return the tasks whose rows these are."""
    indices: dict[tuple[str, str], list[int]] = {}
    for row in rows:
        indices.setdefault((row[8], row[3]), []).append(row[4])
    return [TaskSummary(task_id, path, outcome(found)) for (path, task_id), found in sorted(indices.items())]
