"""The blocking API of a graph: thin doors to the async methods, through one portal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from persistence import portal
from persistence.errors import SaverLoopError
from runtime.context.scope import SCOPE
from runtime.errors import BlockingCallError

if TYPE_CHECKING:
    from runtime.run.program import Program
    from runtime.types.config import RunnableConfig
    from runtime.types.snapshot import StateSnapshot, StateUpdate


class BlockingDoor:
    """``invoke``, ``stream``, ``get_state`` and so on.

    They run where the saver is open, or else the cache, or else on the process's portal; so they work in plain scripts,
    in worker threads and in a notebook whose loop is running. Where waiting would deadlock they raise BlockingCallError
    at once, naming the async method.
    """

    program: Program

    def _wait(self, method: str, *args: Any, **options: Any) -> Any:
        bound: Callable[..., Any] = getattr(self, method)

        async def run() -> Any:
            return await bound(*args, **options)

        return self._through(run, method)

    def _through(self, run: Callable[[], Any], method: str) -> Any:
        # A node's call takes its place in the run around it, so it runs where that run does.
        around = SCOPE.get(None)
        home: Any = self._keeper() if around is None else around.run
        at, thread = getattr(home, "home_token", None), getattr(home, "home_thread", None)
        try:
            return portal.call(run, at=at, thread=thread, instead=method)
        except SaverLoopError as error:
            raise BlockingCallError(str(error)) from error

    def _keeper(self) -> Any:
        """Return the saver; where that is open nowhere, the cache."""
        saver, caching = self.program.saver, self.program.caching
        return saver if caching is None or getattr(saver, "home_token", None) is not None else caching.cache

    def _iterate(self, method: str, make: Callable[[], Any]) -> Iterator[Any]:
        made: list[Any] = []
        done = object()

        async def following() -> Any:
            if not made:
                made.append(make())
            return await anext(made[0], done)

        async def close() -> None:
            if made:
                await made[0].aclose()

        try:
            while (item := self._through(following, method)) is not done:
                yield item
        finally:
            self._through(close, method)

    def invoke(self, input: Any, config: Mapping[str, Any] | None = None, **options: Any) -> Any:  # noqa: A002 - public name
        """See ``ainvoke``."""
        return self._wait("ainvoke", input, config, **options)

    def stream(
        self,
        input: Any,  # noqa: A002 - LangGraph's public name
        config: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> Iterator[Any]:
        """See ``astream``. Closing the iterator, or dropping it, ends the run."""
        return self._iterate("astream", lambda: self.astream(input, config, **options))  # type: ignore[attr-defined]

    def get_state(self, config: Mapping[str, Any], *, subgraphs: bool = False) -> StateSnapshot:
        """See ``aget_state``."""
        snapshot: StateSnapshot = self._wait("aget_state", config, subgraphs=subgraphs)
        return snapshot

    def get_state_history(
        self,
        config: Mapping[str, Any],
        *,
        filter: Mapping[str, Any] | None = None,  # noqa: A002 - LangGraph's public name
        before: Mapping[str, Any] | None = None,
        limit: int | None = None,
    ) -> Iterator[StateSnapshot]:
        """See ``aget_state_history``."""
        return self._iterate(
            "aget_state_history",
            lambda: self.aget_state_history(config, filter=filter, before=before, limit=limit),  # type: ignore[attr-defined]
        )

    def update_state(
        self, config: Mapping[str, Any], values: Any, as_node: str | None = None, task_id: str | None = None
    ) -> RunnableConfig:
        """See ``aupdate_state``."""
        updated: RunnableConfig = self._wait("aupdate_state", config, values, as_node, task_id)
        return updated

    def bulk_update_state(
        self, config: Mapping[str, Any], supersteps: Sequence[Sequence[StateUpdate]]
    ) -> RunnableConfig:
        """See ``abulk_update_state``."""
        updated: RunnableConfig = self._wait("abulk_update_state", config, supersteps)
        return updated

    def clear_cache(self, nodes: Sequence[str] | None = None) -> None:
        """See ``aclear_cache``."""
        self._wait("aclear_cache", nodes)
