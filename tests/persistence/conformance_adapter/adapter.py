"""This project's savers behind LangGraph's saver interface, so that its public conformance suite can run on them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langgraph.checkpoint.base import BaseCheckpointSaver as LangGraphSaver
from langgraph.checkpoint.base import CheckpointTuple as LangGraphTuple

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Mapping, Sequence

    from persistence.contracts.checkpoint import CheckpointTuple
    from persistence.contracts.saver import BaseCheckpointSaver


class Adapter(LangGraphSaver[str]):
    """Delegates every call to one of our savers; only the tuple type changes on the way."""

    def __init__(self, saver: BaseCheckpointSaver) -> None:
        """Wrap an open saver."""
        super().__init__()
        self._saver = saver

    async def aget_tuple(self, config: Any) -> LangGraphTuple | None:
        found = await self._saver.aget_tuple(config)
        return None if found is None else _theirs(found)

    async def alist(
        self,
        config: Any,
        *,
        filter: dict[str, Any] | None = None,
        before: Any = None,
        limit: int | None = None,
    ) -> AsyncIterator[LangGraphTuple]:
        async for found in self._saver.alist(config, filter=filter, before=before, limit=limit):
            yield _theirs(found)

    async def aput(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
        return await self._saver.aput(config, checkpoint, metadata, new_versions)

    async def aput_writes(
        self, config: Any, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        await self._saver.aput_writes(config, writes, task_id, task_path)

    async def adelete_thread(self, thread_id: str) -> None:
        await self._saver.adelete_thread(thread_id)

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        await self._saver.acopy_thread(source_thread_id, target_thread_id)

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        await self._saver.aprune(thread_ids, strategy=strategy)

    async def adelete_for_runs(self, run_ids: Iterable[str]) -> None:
        await self._saver.adelete_for_runs(run_ids)

    def get_next_version(self, current: str | None, channel: None) -> str:
        version: str = self._saver.get_next_version(current, channel)
        return version


def _theirs(found: CheckpointTuple) -> LangGraphTuple:
    values: Mapping[str, Any] = found._asdict()
    return LangGraphTuple(**{name: value for name, value in values.items() if name != "lineage"})
