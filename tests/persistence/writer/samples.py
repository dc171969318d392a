"""Checkpoints and units for tests of savers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from persistence.contracts.checkpoint import Checkpoint, TaskWrites, Unit

if TYPE_CHECKING:
    from collections.abc import Mapping

    from persistence.contracts.saver import BaseCheckpointSaver


def config(thread_id: str = "t", checkpoint_id: str | None = None, ns: str = "") -> dict[str, Any]:
    """Return a config that addresses a thread or one checkpoint."""
    configurable = {"thread_id": thread_id, "checkpoint_ns": ns}
    if checkpoint_id is not None:
        configurable["checkpoint_id"] = checkpoint_id
    return {"configurable": configurable}


def checkpoint(checkpoint_id: str, values: Mapping[str, Any], versions: Mapping[str, Any] | None = None) -> Checkpoint:
    """Return a checkpoint whose channels all have a version."""
    return {
        "v": 4,
        "id": checkpoint_id,
        "ts": "2026-01-01T00:00:00+00:00",
        "channel_values": dict(values),
        "channel_versions": dict.fromkeys(values, "1") if versions is None else dict(versions),
        "versions_seen": {"node": {"a": "1"}},
        "updated_channels": sorted(values),
    }


async def put(
    saver: BaseCheckpointSaver,
    checkpoint_id: str,
    values: Mapping[str, Any],
    *,
    thread_id: str = "t",
    ns: str = "",
    parent: str | None = None,
    **metadata: Any,
) -> dict[str, Any]:
    """Store a checkpoint in which every channel is new; its versions are made from its id."""
    versions = {channel: f"{checkpoint_id}.{channel}" for channel in values}
    facts = {"source": "loop", "step": 0, "parents": {}, **metadata}
    return await saver.aput(config(thread_id, parent, ns), checkpoint(checkpoint_id, values, versions), facts, versions)


def unit(
    thread_id: str = "t",
    checkpoint_id: str | None = None,
    *,
    parent: str | None = None,
    writes_to: str | None = None,
    task_id: str = "task",
    value: Any = None,
    ns: str = "",
) -> Unit:
    """Return a unit with a checkpoint, writes to another, or both."""
    writes = [] if writes_to is None else [TaskWrites(writes_to, task_id, "", [("a", value)])]
    if checkpoint_id is None:
        return Unit(thread_id, ns, writes)
    made = checkpoint(checkpoint_id, {"a": value}, {"a": checkpoint_id})
    return Unit(thread_id, ns, writes, made, parent, {"step": 0}, {"a": value})
