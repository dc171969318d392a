"""A saver written by a third party: it delegates to another one, and notes, delays or fails what passes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import anyio

from persistence.contracts.saver import BaseCheckpointSaver
from persistence.memory import InMemorySaver


class RecordingSaver(BaseCheckpointSaver):
    """Implements the async half of the contract only."""

    def __init__(self, *, delay: float = 0, fail_at: int | None = None, slow_writes: float = 0) -> None:
        """Delay every call, or fail the put of one step."""
        super().__init__()
        self.inner = InMemorySaver()
        self.events: list[str] = []
        self.delay = delay
        self.slow_writes = slow_writes
        self.fail_at = fail_at

    async def aget_tuple(self, config: Any) -> Any:
        """Read through."""
        return await self.inner.aget_tuple(config)

    async def alist(
        self,
        config: Any,
        *,
        filter: Mapping[str, Any] | None = None,
        before: Any = None,
        limit: int | None = None,
    ) -> AsyncIterator[Any]:
        """Read through."""
        async for one in self.inner.alist(config, filter=filter, before=before, limit=limit):
            yield one

    async def aput(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
        """Note the step, then store."""
        step = metadata["step"]
        self.events.append(f"put {step}")
        await anyio.sleep(self.delay)
        if step == self.fail_at:
            message = f"no room for step {step}"
            raise OSError(message)
        stored = await self.inner.aput(config, checkpoint, metadata, new_versions)
        self.events.append(f"put {step} done")
        return stored

    async def aput_writes(
        self, config: Any, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Note the task's path, then store."""
        name = task_path.rpartition(", ")[2]
        self.events.append(f"writes {name}")
        await anyio.sleep(self.slow_writes or self.delay)
        await self.inner.aput_writes(config, writes, task_id, task_path)
        self.events.append(f"writes {name} done")

    async def adelete_thread(self, thread_id: str) -> None:
        """Delete through."""
        await self.inner.adelete_thread(thread_id)
