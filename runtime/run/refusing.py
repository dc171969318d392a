"""What the journal could not store: whose it was, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from persistence.contracts.checkpoint import NULL_TASK_ID, TaskWrites
from persistence.errors import CheckpointConflictError, LeaseLostError
from runtime.errors import FencedError, ThreadConflictError
from runtime.types.constants import PULL

if TYPE_CHECKING:
    from runtime.engine.tasks import Task

_SCALARS: Final = frozenset({type(None), bool, int, float, str, bytes})


def conflict(error: CheckpointConflictError, thread_id: str, ns: str) -> ThreadConflictError:
    """Return what a run is told whose unit came too late."""
    where = f"thread {thread_id!r}" + (f", namespace {ns!r}" if ns else "")
    advice = (
        "What this run had not saved by then is not saved; the other's work is untouched. Read the thread's state and "
        "call again if it is still needed."
    )
    if isinstance(error, LeaseLostError):
        return FencedError(
            f"This run has lost {where}: it was deleted, or a later run took it because this one's process was silent "
            f"for too long. {advice}"
        )
    return ThreadConflictError(
        f"Another writer (a second process, a second saver, or who deleted it) moved {where} on while this run was at "
        f"work on it. {advice}"
    )


def surely_storable(write: tuple[str, Any]) -> bool:
    """Tell whether every serializer stores this write; encoding it to find out would cost a third of a superstep."""
    kind = type(write[1])
    return kind in _SCALARS or (kind is list and _SCALARS.issuperset(map(type, write[1])))


def told(writes: TaskWrites, task: Task | None) -> str:
    """Say whose writes these are."""
    if task is not None:
        return f"Node {task.name!r}"
    if writes.task_id == NULL_TASK_ID:
        return "The Command given as input"
    kind, _, name = writes.task_path.partition(", ")
    return f"Node {name!r}" if kind == f"~{PULL}" else f"Task {writes.task_id}"
