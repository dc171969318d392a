"""A backend whose faults follow a script: the world at its worst, without a disk."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import anyio
import anyio.lowlevel

from persistence.contracts.backend import Page, Query, Request, Rows
from persistence.errors import BackendError
from persistence.memory.tables import Tables
from persistence.writer.batching import Merged, segments
from persistence.writer.fencing import check_heads

Fault = Callable[["FaultyBackend", Sequence[Request]], None]


class FaultyBackend:
    """Keeps rows in memory; before each commit it may do what the script says.

    ``script`` holds one entry per commit: an error to raise before anything is kept, ``"commit, then"`` with an error
    (the outcome is unknown to the caller), ``"hang"``, or None. ``poison`` names checkpoint ids and task ids that are
    refused for ever.
    """

    def __init__(self, script: Sequence[object] = (), *, poison: Sequence[str] = ()) -> None:
        """Start with empty tables."""
        self.tables = Tables()
        self.script = list(script)
        self.poison = set(poison)
        self.batches: list[list[Request]] = []
        """What was committed, batch by batch."""
        self.attempts = 0
        self.opened = 0
        self.closed = 0
        self.gate: anyio.Event | None = None
        """If set, commits wait for it."""

    async def open(self) -> None:
        """Count."""
        self.opened += 1

    async def close(self) -> None:
        """Count."""
        self.closed += 1

    async def setup(self) -> None:
        """Nothing to set up."""

    async def commit(self, batch: Sequence[Request]) -> None:
        """Follow the script."""
        self.attempts += 1
        if self.gate is not None:
            await self.gate.wait()
        await anyio.lowlevel.checkpoint()
        step = self.script.pop(0) if self.script else None
        if step == "hang":
            await anyio.sleep_forever()
        if isinstance(step, BaseException):
            raise step
        for request in batch:
            if self.poison.intersection(names(request)):
                message = f"cannot store {sorted(names(request))}"
                raise BackendError(message)
        for segment in segments(batch):
            if isinstance(segment, Merged):
                check_heads(segment.fenced, self.tables.head, self.tables.holds)
        for request in batch:
            self.tables.apply(request)
        self.batches.append(list(batch))
        if isinstance(step, tuple):
            raise step[1]

    async def load(self, thread_id: str, checkpoint_ns: str, checkpoint_id: str | None) -> Page:
        """Read."""
        await anyio.lowlevel.checkpoint()
        return self.tables.load(thread_id, checkpoint_ns, checkpoint_id)

    async def page(self, query: Query) -> Page:
        """Read."""
        await anyio.lowlevel.checkpoint()
        return self.tables.page(query)

    @property
    def committed(self) -> list[str]:
        """Checkpoint ids and task ids in the order they were committed."""
        return [name for batch in self.batches for request in batch for name in sorted(names(request))]


def names(request: Request) -> set[str]:
    """Return the checkpoint id and the task ids of a request."""
    if not isinstance(request, Rows):
        return set()
    found = {row[3] for row in (*request.writes, *request.upserts)}
    if request.checkpoint is not None:
        found.add(request.checkpoint[2])
    return found
