"""The blocking side of savers and caches: thin doors to the async methods, never twins of them.

LangGraph's async classes have a few methods without the ``a`` that are awaited all the same; the classes that bear
their names here have them too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from persistence import portal

if TYPE_CHECKING:
    from persistence.contracts.cache import FullKey, Namespace
    from persistence.contracts.checkpoint import Checkpoint, CheckpointTuple


class BlockingDoor:
    """Adds ``with``, and a way to wait for an async method.

    It runs on the event loop that the object is open on, or on the process's portal. Called in that loop's own thread
    it raises SaverLoopError at once, naming the async method.
    """

    _entered: portal.Entered | None = None

    def __enter__(self) -> Self:
        """Open it for blocking use."""
        self._entered = portal.Entered(self)  # type: ignore[arg-type]
        return self

    @property
    def opened_for_blocking(self) -> bool:
        """Whether ``with`` opened it, on the portal's event loop."""
        return self._entered is not None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Commit what was accepted, then close."""
        entered, self._entered = self._entered, None
        if entered is not None:
            entered.exit(None, None, None)

    def _wait(self, method: str, *args: Any, **options: Any) -> Any:
        bound: Callable[..., Any] = getattr(self, method)

        async def run() -> Any:
            return await bound(*args, **options)

        at, thread = getattr(self, "home_token", None), getattr(self, "home_thread", None)
        return portal.call(run, at=at, thread=thread, instead=method)


class BlockingSetup(BlockingDoor):
    """Adds ``setup`` to what has ``asetup``."""

    def setup(self) -> None:
        """Create or migrate whatever it needs; opens and closes it if it is closed."""
        if getattr(self, "inline", False) or getattr(self, "home_token", None) is not None:
            self._wait("asetup")
            return
        with self:
            self._wait("asetup")


class BlockingSaver(BlockingSetup):
    """Adds ``with saver`` and the methods without the ``a`` prefix."""

    def get_tuple(self, config: Mapping[str, Any]) -> CheckpointTuple | None:
        """See ``aget_tuple``."""
        found: CheckpointTuple | None = self._wait("aget_tuple", config)
        return found

    def get(self, config: Mapping[str, Any]) -> Checkpoint | None:
        """Return the addressed checkpoint alone."""
        found = self.get_tuple(config)
        return None if found is None else found.checkpoint

    def list(
        self,
        config: Mapping[str, Any] | None,
        *,
        filter: Mapping[str, Any] | None = None,  # noqa: A002 - the contract's public name
        before: Mapping[str, Any] | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """See ``alist``; read page by page."""
        found = self.alist(config, filter=filter, before=before, limit=limit)  # type: ignore[attr-defined]
        at, thread = getattr(self, "home_token", None), getattr(self, "home_thread", None)
        done = object()

        async def following() -> Any:
            return await anext(found, done)

        while (item := portal.call(following, at=at, thread=thread, instead="alist")) is not done:
            yield item

    def put(
        self,
        config: Mapping[str, Any],
        checkpoint: Checkpoint,
        metadata: Mapping[str, Any],
        new_versions: Mapping[str, Any],
    ) -> dict[str, Any]:
        """See ``aput``."""
        stored: dict[str, Any] = self._wait("aput", config, checkpoint, metadata, new_versions)
        return stored

    def put_writes(
        self, config: Mapping[str, Any], writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """See ``aput_writes``."""
        self._wait("aput_writes", config, writes, task_id, task_path)

    def delete_thread(self, thread_id: str) -> None:
        """See ``adelete_thread``."""
        self._wait("adelete_thread", thread_id)

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """See ``acopy_thread``."""
        self._wait("acopy_thread", source_thread_id, target_thread_id)

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """See ``aprune``."""
        self._wait("aprune", thread_ids, strategy=strategy)

    def delete_for_runs(self, run_ids: Iterable[str]) -> None:
        """See ``adelete_for_runs``."""
        self._wait("adelete_for_runs", run_ids)


class BlockingCache(BlockingDoor):
    """Adds ``with cache`` and the methods without the ``a`` prefix."""

    def get(self, keys: Sequence[FullKey]) -> dict[FullKey, Any]:
        """See ``aget``."""
        found: dict[FullKey, Any] = self._wait("aget", keys)
        return found

    def set(self, pairs: Mapping[FullKey, tuple[Any, float | None]]) -> None:
        """See ``aset``."""
        self._wait("aset", pairs)

    def clear(self, namespaces: Sequence[Namespace] | None = None) -> None:
        """See ``aclear``."""
        self._wait("aclear", namespaces)


class AwaitedSetup:
    """Lets ``setup`` be awaited, as programs do that use LangGraph's async savers."""

    async def setup(self) -> None:
        """See ``asetup``; opens and closes what is closed."""
        opened: Any = self
        if getattr(self, "home_token", None) is None:
            async with opened:  # creates or migrates the tables
                return
        await opened.asetup()


class AwaitedUpkeep(AwaitedSetup):
    """Lets also the upkeep of a store be awaited, as programs do that use LangGraph's async stores."""

    async def sweep_ttl(self) -> int:
        """See ``asweep_ttl``."""
        swept: int = await self._store.asweep_ttl()
        return swept

    async def start_ttl_sweeper(self, sweep_interval_minutes: float | None = None) -> None:
        """See ``astart_ttl_sweeper``."""
        await self._store.astart_ttl_sweeper(sweep_interval_minutes)

    async def stop_ttl_sweeper(self, timeout: float | None = None) -> bool:  # noqa: ASYNC109 - LangGraph's parameter
        """See ``astop_ttl_sweeper``."""
        stopped: bool = await self._store.astop_ttl_sweeper(timeout)
        return stopped

    @property
    def _store(self) -> Any:
        return self
