"""The saver contract: what the runtime asks of whatever keeps checkpoints.

``BaseCheckpointSaver`` is what third parties subclass; the first five async methods are enough to run, resume, read
and delete. ``UnitSaver`` is the faster door that this project's savers offer beside it: the runtime hands over whole
units, encoded at once, acknowledged once durable.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeGuard, runtime_checkable

from persistence.contracts.checkpoint import Checkpoint, CheckpointTuple, Unit
from persistence.errors import UnsupportedOperationError

Config = Mapping[str, Any]


class BaseCheckpointSaver:
    """Keeps the checkpoints and pending writes of threads.

    ``config["configurable"]`` addresses them: ``thread_id``, ``checkpoint_ns`` (default ``""``) and, for one
    checkpoint, ``checkpoint_id``.
    """

    async def aget_tuple(self, config: Config) -> CheckpointTuple | None:
        """Return the addressed checkpoint, or the thread's newest one; None if there is none."""
        raise self._lacks("aget_tuple")

    async def aget(self, config: Config) -> Checkpoint | None:
        """Return the addressed checkpoint alone, or the thread's newest one; None if there is none."""
        found = await self.aget_tuple(config)
        return None if found is None else found.checkpoint

    def alist(
        self,
        config: Config | None,
        *,
        filter: Mapping[str, Any] | None = None,  # noqa: A002 - the contract's public name
        before: Config | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """Yield matching checkpoints, newest first.

        ``config`` None means every thread; without ``checkpoint_ns``, every namespace. ``filter`` compares metadata
        keys for equality; ``before`` keeps ids smaller than its ``checkpoint_id``.
        """
        raise self._lacks("alist")

    async def aput(
        self,
        config: Config,
        checkpoint: Checkpoint,
        metadata: Mapping[str, Any],
        new_versions: Mapping[str, Any],
    ) -> dict[str, Any]:
        """Store a checkpoint as a child of ``config``'s; durable when this returns. Returns the new config."""
        raise self._lacks("aput")

    async def aput_writes(
        self, config: Config, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Store what a task wrote against ``config``'s checkpoint; durable when this returns.

        Rows of the special channels replace what was there; any other row keeps the first value stored.
        """
        raise self._lacks("aput_writes")

    async def adelete_thread(self, thread_id: str) -> None:
        """Delete everything of a thread, all namespaces included."""
        raise self._lacks("adelete_thread")

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy every checkpoint, namespace and pending write of a thread to another."""
        raise self._lacks("acopy_thread")

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Drop history: all but the newest checkpoint per namespace (``keep_latest``) or everything (``delete``)."""
        raise self._lacks("aprune")

    async def adelete_for_runs(self, run_ids: Iterable[str]) -> None:
        """Delete the checkpoints, with their writes, whose metadata carries one of the run ids."""
        raise self._lacks("adelete_for_runs")

    async def asetup(self) -> None:
        """Create or migrate whatever the saver needs; safe to call again."""

    def get_next_version(self, current: Any, channel: None = None) -> Any:
        """Return a version greater than ``current`` (None for the first)."""
        return 1 if current is None else current + 1

    def _lacks(self, method: str) -> UnsupportedOperationError:
        return UnsupportedOperationError(f"{type(self).__name__} does not implement {method}().")


class Ack(Protocol):
    """The receipt for one unit: done means durable."""

    @property
    def done(self) -> bool:
        """Whether the unit was committed or has failed."""
        ...

    @property
    def error(self) -> BaseException | None:
        """Why it failed; None while waiting and after success."""
        ...

    async def wait(self) -> None:
        """Return once durable. Raises the error that kept it from being so. May be awaited many times."""
        ...


@runtime_checkable
class UnitSaver(Protocol):
    """A saver that takes encoded units and commits them in the order they were sent.

    ``encode`` runs in the caller's task, so a value is frozen, checked and blamed where it was written.
    """

    @property
    def inline(self) -> bool:
        """True if a sent unit is durable at once (memory): no waiting, no open needed."""
        ...

    def encode(self, unit: Unit) -> Any:
        """Turn a unit into bytes. Raises SerializationError naming channel and type."""
        ...

    def send_nowait(self, request: Any) -> Ack:
        """Queue an encoded unit. Raises anyio.WouldBlock when the channel is full."""
        ...

    async def send(self, request: Any) -> Ack:
        """Queue an encoded unit, waiting while the channel is full. A cancel here means it was not accepted."""
        ...

    def register_types(self, types: Iterable[type]) -> None:
        """Allow values of these types to be rebuilt on load."""
        ...


def takes_units(saver: object) -> TypeGuard[UnitSaver]:
    """Tell whether a saver offers the unit door.

    A runtime protocol check would cost more than a superstep.
    """
    kind = type(saver)
    return hasattr(kind, "send_nowait") and hasattr(kind, "register_types")
