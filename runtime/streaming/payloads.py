"""What chunks show of tasks, their results and questions; pure but for the clock of ``debug``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from persistence.contracts.checkpoint import EXCLUDED_METADATA_KEYS
from runtime.engine.projecting import node_input, result_of_writes, values_of, writes_view
from runtime.engine.resuming import waiting

if TYPE_CHECKING:
    from runtime.engine.cells import Cells
    from runtime.engine.tasks import Task

_STEPS: Final = "seq:step"
"""How tags begin that LangChain gives by itself."""


def by_task(questions: Sequence[Any], tasks: Sequence[Task]) -> list[tuple[Any, ...]]:
    """Return the questions of each task, and last those of tasks that asked in an earlier run; () at a breakpoint."""
    left = {question.id: question for question in questions}
    found = [tuple(left.pop(one.id) for one in waiting(task) if one.id in left) for task in tasks]
    return [asked for asked in (*found, tuple(left.values())) if asked] or [()]


def alone(update: Any, key: str | None) -> Any:
    """Return an update; of one key alone only its value, or its values."""
    if key is None or update is None:
        return update
    return [one[key] for one in update] if isinstance(update, list) else update[key]


def input_of(cells: Cells, task: Task) -> Any:
    """Return what a task's node receives; what its schema refuses, as it is: the node's failure tells of that."""
    try:
        return node_input(cells, task)
    except Exception:  # noqa: BLE001 - the schema's library raises what it likes
        return values_of(cells, task.node.schema.channels)


def about(config: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """Return what ``tasks`` tells of a task beside itself: metadata and tags, of the call and of its node."""
    given = {**(config.get("metadata") or {}), **own}
    told = {key: value for key, value in given.items() if key not in EXCLUDED_METADATA_KEYS}
    tags = [tag for tag in config.get("tags") or () if not tag.startswith(_STEPS)]
    return {**told, "tags": tags} if tags else told


def end_of(task: Task, result: Any, error: Any, questions: Sequence[Any]) -> dict[str, Any]:
    """Return the payload of ``tasks`` for a task that ended."""
    return {
        "id": task.id,
        "name": task.name,
        "error": error,
        "result": result if result is not None else {},
        "interrupts": [question_view(question) for question in questions],
    }


def question_view(question: Any) -> dict[str, Any]:
    """Return a question as ``tasks`` and ``checkpoints`` show it."""
    return {"value": question.value, "id": question.id, "response_schema": question.response_schema}


def result_view(cells: Cells, task: Task) -> Any:
    """Return what a task wrote as ``tasks`` and ``checkpoints`` show it."""
    writes, plan = task.writes or (), cells.plan
    if plan.single is not None:
        return {plan.single: writes_view(cells, writes)}
    return writes_view(cells, writes) or {} if plan.bare else result_of_writes(cells, writes)


def stamped(kind: str, step: int, payload: Any) -> dict[str, Any]:
    """Return a payload as ``debug`` shows it."""
    return {"step": step, "timestamp": datetime.now(UTC).isoformat(), "type": kind, "payload": payload}
