"""Checkpoints for the checks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from persistence.contracts.checkpoint import CHECKPOINT_FORMAT, Checkpoint

if TYPE_CHECKING:
    from persistence.contracts.checkpoint import CheckpointTuple
    from persistence.contracts.saver import BaseCheckpointSaver


def config(thread_id: str, checkpoint_id: str | None = None, ns: str = "") -> dict[str, Any]:
    """Return a config that addresses a thread, or one checkpoint of it."""
    configurable = {"thread_id": thread_id, "checkpoint_ns": ns}
    if checkpoint_id is not None:
        configurable["checkpoint_id"] = checkpoint_id
    return {"configurable": configurable}


def checkpoint(checkpoint_id: str, values: Mapping[str, Any], versions: Mapping[str, Any]) -> Checkpoint:
    """Return a checkpoint with these values."""
    return {
        "v": CHECKPOINT_FORMAT,
        "id": checkpoint_id,
        "ts": "2026-01-01T00:00:00.000000+00:00",
        "channel_values": dict(values),
        "channel_versions": dict(versions),
        "versions_seen": {"node": {"a": "1"}},
        "updated_channels": sorted(values),
    }


async def put(
    saver: BaseCheckpointSaver,
    thread_id: str,
    checkpoint_id: str,
    values: Mapping[str, Any],
    *,
    ns: str = "",
    parent: str | None = None,
    **metadata: Any,
) -> dict[str, Any]:
    """Store a checkpoint all of whose channels are new; return its config."""
    versions = {channel: f"{checkpoint_id}.{channel}" for channel in values}
    facts = {"source": "loop", "step": 0, "parents": {}, **metadata}
    return await saver.aput(config(thread_id, parent, ns), checkpoint(checkpoint_id, values, versions), facts, versions)


async def listed(saver: BaseCheckpointSaver, where: Mapping[str, Any] | None, **options: Any) -> list[str]:
    """Return the ids that a listing gives, in its order."""
    return [found.checkpoint["id"] async for found in saver.alist(where, **options)]


async def values(saver: BaseCheckpointSaver, thread_id: str, checkpoint_id: str | None = None, ns: str = "") -> Any:
    """Return the channel values of a checkpoint; None if there is none."""
    found = await saver.aget_tuple(config(thread_id, checkpoint_id, ns))
    return None if found is None else found.checkpoint["channel_values"]


async def everything(saver: BaseCheckpointSaver, thread_id: str) -> list[Any]:
    """Return all that a thread holds but its name, to compare threads by."""
    return [content(found) async for found in saver.alist({"configurable": {"thread_id": thread_id}})]


def content(found: CheckpointTuple) -> Any:
    """Return what a checkpoint holds, without the thread's name."""
    parent = None if found.parent_config is None else found.parent_config["configurable"]["checkpoint_id"]
    where = found.config["configurable"]["checkpoint_ns"]
    return where, dict(found.checkpoint), dict(found.metadata), parent, list(found.pending_writes or ())


async def fill(saver: BaseCheckpointSaver, thread_id: str) -> None:
    """Store a thread with a branch, a namespace, pending writes and two runs."""
    await put(saver, thread_id, "1", {"a": [1], "n": 1}, run_id=f"{thread_id} first")
    await put(saver, thread_id, "2", {"a": [1, 2], "n": 2}, parent="1", step=1, run_id=f"{thread_id} first")
    await put(saver, thread_id, "3", {"a": [1, 3], "n": 3}, parent="1", step=1, run_id=f"{thread_id} second")
    await put(saver, thread_id, "4", {"child": {"x": (1, 2)}}, ns="child:7", run_id=f"{thread_id} second")
    await saver.aput_writes(config(thread_id, "1"), [("a", [2])], "task of 2", "~a")
    await saver.aput_writes(config(thread_id, "3"), [("a", [4]), ("n", None)], "task of 4", "~b")
