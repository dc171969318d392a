"""What looking into a database tells: threads, their checkpoints, and what was written against each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple, Protocol

import msgspec

from persistence.contracts.checkpoint import ERROR, INTERRUPT, RESUME, WRITES_IDX_MAP, CheckpointTuple

UNCLEAR: Final = "?"
"""Ends a likely outcome, of a task that has both questions and answers: only their values tell."""


class _Facts(msgspec.Struct):
    """The part of a checkpoint's JSON that a listing shows."""

    ts: str | None = None
    updated_channels: list[str] | None = None
    channel_versions: Any = None
    versions_seen: Any = None
    channel_values: dict[str, msgspec.Raw] = {}
    rows: list[str] = []


class TaskSummary(NamedTuple):
    """A task that wrote against a checkpoint."""

    task_id: str
    path: str
    outcome: str
    """``done``, ``failed``, ``asked`` (it put a question, maybe after it had failed), ``answered`` (it has answers, and
    has not ended since); the likely one and a question mark, if it has both questions and answers."""


class CheckpointSummary(NamedTuple):
    """What is known of a checkpoint without its values; fields that are damaged are None or empty."""

    checkpoint_ns: str
    checkpoint_id: str
    parent_id: str | None
    created_at: str | None
    metadata: dict[str, Any]
    updated: Sequence[str]
    """Channels that its superstep changed."""
    unseen: Sequence[str] = ()
    """Channels that hold a value which no node has been started by."""


class ThreadSummary(NamedTuple):
    """A thread and its newest checkpoint: the main namespace's, if it has one."""

    thread_id: str
    namespaces: int
    checkpoints: int
    newest: CheckpointSummary
    outcomes: Sequence[str] = ()
    """What became of the tasks that wrote against the newest checkpoint, of each one."""


class StoredCheckpoint(NamedTuple):
    """A checkpoint as it is stored."""

    summary: CheckpointSummary
    found: CheckpointTuple | None
    """None if it is damaged."""
    damage: str | None
    tasks: Sequence[TaskSummary]


class Listing(Protocol):
    """What can be asked of a database that is looked into. Every method blocks, and raises PersistenceError."""

    def threads(self, limit: int | None = None) -> list[ThreadSummary]:
        """Return threads, the last active first."""
        ...

    def thread_count(self) -> int:
        """Return how many threads there are."""
        ...

    def checkpoint_count(self, thread_id: str) -> int:
        """Return how many checkpoints a thread has, in all its namespaces."""
        ...

    def thread_bytes(self, thread_id: str) -> int:
        """Return the bytes that a thread's rows hold; reads all of them."""
        ...

    def checkpoints(self, thread_id: str, limit: int | None = None) -> list[CheckpointSummary]:
        """Return a thread's checkpoints, newest first."""
        ...

    def tasks(self, thread_id: str, checkpoint_ns: str, checkpoint_id: str) -> list[TaskSummary]:
        """Return the tasks that wrote against a checkpoint."""
        ...

    def checkpoint(
        self, thread_id: str, checkpoint_ns: str, checkpoint_id: str | None, serializer: Any
    ) -> StoredCheckpoint | None:
        """Return one checkpoint with its values, or the newest one; None if there is none."""
        ...


def summary(row: Sequence[Any]) -> CheckpointSummary:
    """Return what is known of a row: namespace, id, parent, checkpoint and metadata as JSON."""
    ns, checkpoint_id, parent, checkpoint, metadata = row
    facts = _decoded(checkpoint, _Facts) or _Facts()
    return CheckpointSummary(
        ns,
        checkpoint_id,
        parent,
        facts.ts,
        _decoded(metadata, dict[str, Any]) or {},
        facts.updated_channels or (),
        _unseen(facts),
    )


def _unseen(facts: _Facts) -> Sequence[str]:
    versions, seen = facts.channel_versions, facts.versions_seen
    if not isinstance(versions, dict) or not isinstance(seen, dict):
        return ()
    # What others wrote, such as LangGraph, may keep the versions of channels that have been emptied since.
    held = facts.channel_values.keys() | facts.rows
    noted = [each for each in seen.values() if isinstance(each, dict)]
    return [
        name for name, version in versions.items() if name in held and all(each.get(name) != version for each in noted)
    ]


def _decoded(text: bytes, kind: Any) -> Any:
    """Return what JSON holds; None if it is damaged, which must not hide the other rows."""
    try:
        return msgspec.json.decode(text, type=kind)
    except (msgspec.MsgspecError, ValueError):
        return None


def outcome(indices: list[int]) -> str:
    """Tell from the indices of a task's rows what became of it; results have indices from zero on."""
    if max(indices) >= 0:
        return "done"
    if WRITES_IDX_MAP[INTERRUPT] not in indices:
        return "failed" if WRITES_IDX_MAP[ERROR] in indices else "answered"
    if WRITES_IDX_MAP[RESUME] not in indices:
        return "asked"  # an error beside the question is older: who fails on an answer has that beside it
    return f"failed{UNCLEAR}" if WRITES_IDX_MAP[ERROR] in indices else f"asked{UNCLEAR}"


def is_unclear(outcome: str) -> bool:
    """Tell whether values could tell more of what became of a task."""
    return outcome.endswith(UNCLEAR)


def outcomes(indices: str | None) -> list[str]:
    """Tell the same of some tasks, whose indices are lists in a JSON list."""
    return [outcome(each) for each in msgspec.json.decode(indices, type=list[list[int]])] if indices else []
