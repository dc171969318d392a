"""A database in memory that takes its time: what is on its way to it can be told from what has arrived."""

from __future__ import annotations

import json
from collections.abc import Sequence

import anyio

from persistence.contracts.backend import Page, Query, Request, Rows
from persistence.errors import BackendError
from persistence.memory.tables import Tables


class SlowBackend:
    """Each commit takes ``seconds``; the checkpoint of step ``refuses`` is refused."""

    def __init__(self, seconds: float, *, refuses: int | None = None) -> None:
        self.tables = Tables()
        self.seconds = seconds
        self.refuses = refuses
        self.commits = 0

    async def open(self) -> None:
        """Nothing to open."""

    async def close(self) -> None:
        """Nothing to close."""

    async def setup(self) -> None:
        """Nothing to set up."""

    async def commit(self, batch: Sequence[Request]) -> None:
        await anyio.sleep(self.seconds)
        for request in batch:
            if self.refuses is not None and self.refuses in steps_of(request):
                message = f"refused: put {self.refuses}"
                raise BackendError(message)
        for request in batch:
            self.tables.apply(request)
        self.commits += 1

    async def load(self, thread_id: str, checkpoint_ns: str, checkpoint_id: str | None) -> Page:
        return self.tables.load(thread_id, checkpoint_ns, checkpoint_id)

    async def page(self, query: Query) -> Page:
        return self.tables.page(query)

    def steps(self, thread_id: str = "t") -> list[int]:
        """Return the steps of the checkpoints that have arrived, oldest first."""
        spaces = self.tables.threads.get(thread_id, {})
        rows = spaces[""].checkpoints if "" in spaces else {}
        return [json.loads(rows[one][6])["step"] for one in sorted(rows)]


def steps_of(request: Request) -> list[int]:
    """Return the step of a request's checkpoint, if it has one."""
    if not isinstance(request, Rows) or request.checkpoint is None:
        return []
    return [json.loads(request.checkpoint[6])["step"]]
