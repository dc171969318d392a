"""Savers of third parties: those that offer the contract's methods but take no units."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import anyio

if TYPE_CHECKING:
    from persistence.contracts.checkpoint import Unit
    from persistence.contracts.saver import BaseCheckpointSaver


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


__all__ = ["SETTLED", "ContractDoor", "Settled"]
