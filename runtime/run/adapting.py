"""Savers of third parties: those that offer the contract's methods but take no units, and those that block."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar
from weakref import WeakValueDictionary

import anyio

from persistence.contracts.saver import BaseCheckpointSaver
from persistence.errors import UnsupportedOperationError
from runtime.actors.threaded import in_thread

if TYPE_CHECKING:
    from persistence.contracts.checkpoint import Checkpoint, CheckpointTuple, Unit

T = TypeVar("T")


class Settled:
    """The receipt of something that is durable already."""

    done = True
    error: BaseException | None = None

    async def wait(self) -> None:
        """Return at once."""


SETTLED = Settled()


class ContractDoor:
    """Takes units for a saver that only has ``aput`` and ``aput_writes``; a task's writes before the checkpoint.

    Such a saver has no channel to queue in, so ``send`` returns once the unit is stored: every mode is then as durable
    as ``sync`` while it runs, and never further ahead of storage than one superstep.
    """

    inline = False

    def __init__(self, saver: BaseCheckpointSaver) -> None:
        self._saver = saver

    def encode(self, unit: Unit) -> Unit:
        """Return the unit; the saver encodes."""
        return unit

    def send_nowait(self, request: Unit) -> Any:
        """Refuse: storing takes a wait."""
        raise anyio.WouldBlock(request)

    async def send(self, request: Unit) -> Settled:
        """Store a unit: writes first, then the checkpoint."""
        place: dict[str, Any] = {"thread_id": request.thread_id, "checkpoint_ns": request.checkpoint_ns}
        for task in request.writes:
            config = {"configurable": {**place, "checkpoint_id": task.checkpoint_id}}
            await self._saver.aput_writes(config, list(task.writes), task.task_id, task.task_path)
        if request.checkpoint is not None:
            parent = {"configurable": {**place, "checkpoint_id": request.parent_id}}
            checkpoint = request.checkpoint
            moved = {key: checkpoint["channel_versions"][key] for key in request.changed}
            owned = {
                **checkpoint,
                "channel_values": dict(checkpoint["channel_values"]),
                "channel_versions": dict(checkpoint["channel_versions"]),
                "versions_seen": {node: dict(seen) for node, seen in checkpoint["versions_seen"].items()},
            }
            await self._saver.aput(parent, owned, dict(request.metadata), moved)  # type: ignore[arg-type]
        return SETTLED

    def register_types(self, types: Iterable[type]) -> None:
        """Ignore: the saver's own serialiser decides."""


class InThreads(BaseCheckpointSaver):
    """The async side of a saver that has blocking methods alone: each call runs in a worker thread, to its end."""

    def __init__(self, saver: Any) -> None:
        self.saver = saver

    async def aget_tuple(self, config: Mapping[str, Any]) -> CheckpointTuple | None:
        """See the contract."""
        found: CheckpointTuple | None = await self._called("get_tuple", config)
        return found

    async def alist(
        self,
        config: Mapping[str, Any] | None,
        *,
        filter: Mapping[str, Any] | None = None,  # noqa: A002 - the contract's public name
        before: Mapping[str, Any] | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """See the contract; all of it is read at once, as who iterates may stay away."""
        read = partial(self._method("list"), config, filter=filter, before=before, limit=limit)
        for found in await _in_thread(lambda: list(read())):
            yield found

    async def aput(
        self,
        config: Mapping[str, Any],
        checkpoint: Checkpoint,
        metadata: Mapping[str, Any],
        new_versions: Mapping[str, Any],
    ) -> dict[str, Any]:
        """See the contract."""
        stored: dict[str, Any] = await self._called("put", config, checkpoint, metadata, new_versions)
        return stored

    async def aput_writes(
        self, config: Mapping[str, Any], writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """See the contract."""
        await self._called("put_writes", config, writes, task_id, task_path)

    async def adelete_thread(self, thread_id: str) -> None:
        """See the contract."""
        await self._called("delete_thread", thread_id)

    def _method(self, name: str) -> Callable[..., Any]:
        method: Callable[..., Any] | None = getattr(self.saver, name, None)
        if method is None:
            msg = f"{type(self.saver).__name__} does not implement {name}()."
            raise UnsupportedOperationError(msg)
        return method

    async def _called(self, name: str, *args: Any) -> Any:
        return await _in_thread(partial(self._method(name), *args))


async def _in_thread(function: Callable[[], T]) -> T:
    found: T = await in_thread(function, anyio.CapacityLimiter(1))
    return found


_IN_THREADS: Final = WeakValueDictionary[int, InThreads]()
"""By the saver's id, which is its own as long as there is something that refers to it. One for each saver, because
savers are told apart by identity."""


def adapted(saver: Any) -> Any:
    """Return what the runtime can use: the saver itself, unless it has blocking methods alone."""
    if not callable(getattr(saver, "get_tuple", None)):
        return saver
    if getattr(type(saver), "aget_tuple", None) not in (None, BaseCheckpointSaver.aget_tuple):
        return saver
    found = _IN_THREADS.get(id(saver))
    if found is None:
        found = _IN_THREADS[id(saver)] = InThreads(saver)
    return found


def given(saver: Any) -> Any:
    """Return the saver that a program gave."""
    return saver.saver if isinstance(saver, InThreads) else saver


__all__ = ["SETTLED", "ContractDoor", "InThreads", "Settled", "adapted", "given"]
