"""A saver that somebody else wrote: the five methods that the contract asks for, slow, and failing when told to."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any

import anyio

from persistence.contracts.saver import BaseCheckpointSaver
from persistence.memory import InMemorySaver
from tests.crash.stored import node_of

Event = tuple[str, object]
"""What began or ended (``put``, ``put done``, ``writes``, ``writes done``, ``node``), and of which step or node."""


class PlainSaver(BaseCheckpointSaver):
    """Keeps checkpoints in memory and an account of what was asked of it, in order."""

    def __init__(
        self,
        delay: Callable[[], float] = lambda: 0.0,
        *,
        refused: Callable[[Event], bool] = lambda _event: False,
    ) -> None:
        """``delay`` says how long the next call takes, ``refused`` which calls fail."""
        self.inner = InMemorySaver()
        self.events: list[Event] = []
        self.delay = delay
        self.refused = refused

    async def aget_tuple(self, config: Any) -> Any:
        return await self.inner.aget_tuple(config)

    async def alist(
        self,
        config: Any,
        *,
        filter: Mapping[str, Any] | None = None,
        before: Any = None,
        limit: int | None = None,
    ) -> AsyncIterator[Any]:
        async for one in self.inner.alist(config, filter=filter, before=before, limit=limit):
            yield one

    async def aput(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
        await self._begin(("put", metadata["step"]))
        stored = await self.inner.aput(config, checkpoint, metadata, new_versions)
        self.events.append(("put done", metadata["step"]))
        return stored

    async def aput_writes(
        self, config: Any, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        await self._begin(("writes", node_of(task_path)))
        await self.inner.aput_writes(config, writes, task_id, task_path)
        self.events.append(("writes done", node_of(task_path)))

    async def adelete_thread(self, thread_id: str) -> None:
        await self.inner.adelete_thread(thread_id)

    async def _begin(self, event: Event) -> None:
        self.events.append(event)
        await anyio.sleep(self.delay())
        if self.refused(event):
            message = f"refused: {event[0]} {event[1]}"
            raise OSError(message)

    def note(self, *words: object) -> None:
        """Be a graph's witness: nodes' starts belong into the order of events."""
        if words[0] == "start":
            self.events.append(("node", words[1]))

    async def recorded(self, node: str) -> None:
        """Let siblings end in the order in which their delays run out."""
        await anyio.sleep(self.delay())

    def position(self, kind: str, what: object) -> int:
        """Return when something happened; every such thing happens once."""
        assert self.events.count((kind, what)) == 1, (kind, what, self.events)
        return self.events.index((kind, what))
