"""What the runtime itself keeps in stored checkpoints, checked once, where it is loaded.

Rows can be changed by whoever can write to the database, and a saver gives back what they say: any value that can be
stored, in any place. Questions, answers, Sends, steps and versions are what the engine computes with, so each is of the
kind that it was written as, or the checkpoint is refused. What stands in the channels of the state is the program's own
business, as it is when a node writes it.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from persistence.errors import CorruptDataError
from runtime.types.command import Send
from runtime.types.constants import BRANCH, CALLED_BY, CALLERS, INTERRUPT, RESUME, TASKS
from runtime.types.interrupts import Interrupt
from runtime.types.policy import TimeoutPolicy

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from persistence.contracts.checkpoint import CheckpointTuple

IN_ORDER: Final = "in_order"
BY_ID: Final = "by_id"
"""Keys of a task's stored answers: to its own questions, and by id to those of its subgraphs."""

_PARTS: Final = frozenset({"ts", "channel_values", "channel_versions", "versions_seen"})
_NO_VALUE: Final = object()
_MANY: Final = frozenset({list, tuple})
_TIMES: Final = frozenset({type(None), int, float, timedelta})


def vet(found: CheckpointTuple) -> CheckpointTuple:
    """Return a loaded checkpoint. Raises CorruptDataError if something in it cannot be what the runtime wrote."""
    fault = _fault(found)
    if fault is not None:
        checkpoint_id = found.checkpoint["id"]
        where = found.config["configurable"]
        error = CorruptDataError(
            f"Checkpoint {checkpoint_id} of thread {where.get('thread_id')!r}, namespace "
            f"{where.get('checkpoint_ns', '')!r}, cannot be gone on from: {fault}. Something else than this runtime "
            "wrote it. Other checkpoints of the thread can be addressed by their checkpoint_id."
        )
        error.checkpoint_id = checkpoint_id
        raise error
    return found


def _fault(found: CheckpointTuple) -> str | None:
    metadata: Mapping[str, Any] = found.metadata
    lost = _PARTS - found.checkpoint.keys()
    if lost:
        return f"it has no {min(lost)}"
    if type(metadata.get("step", 0)) is not int:
        return "the step in its metadata is no number"
    parents = metadata.get("parents")
    if parents is not None and not (type(parents) is dict and all(type(each) is str for each in parents.values())):
        return "the parents in its metadata are no checkpoints by namespace"
    if not _is_place(metadata):
        return "what its metadata says of its branch or callers is none"
    sends = found.checkpoint["channel_values"].get(TASKS)
    if sends is not None and not _all(_is_send, sends):
        return "its Sends are none"
    for task_id, channel, value in found.pending_writes or ():
        kind = _KINDS.get(channel)
        if kind is not None and not kind[0](value):
            return f"task {task_id} wrote {kind[1]} that is none"
    return None


def _is_place(metadata: Mapping[str, Any]) -> bool:
    """Tell whether what is noted of a checkpoint's place can be; plain values of these names are the program's own."""
    branch, callers = metadata.get(BRANCH), metadata.get(CALLERS)
    if type(branch) is dict and not (branch.keys() == {"at", "left"} and all(map(_is_text, branch.values()))):
        return False
    return type(callers) is not list or all(map(_is_text, callers))


def _all(fits: Callable[[Any], bool], values: Any) -> bool:
    return type(values) in _MANY and all(map(fits, values))


def _is_text(value: Any) -> bool:
    return type(value) is str


def _is_send(value: Any) -> bool:
    return (
        isinstance(value, Send)
        and type(_attribute(value, "node")) is str
        and _attribute(value, "arg") is not _NO_VALUE
        and _is_timeout(_attribute(value, "timeout"))
    )


def _is_timeout(value: Any) -> bool:
    if type(value) is not TimeoutPolicy:
        return value is None
    times = _attribute(value, "run_timeout"), _attribute(value, "idle_timeout")
    return {*map(type, times)} <= _TIMES and type(_attribute(value, "refresh_on")) is str


def _is_question(value: Any) -> bool:
    return (
        isinstance(value, Interrupt)
        and type(_attribute(value, "id")) is str
        and _attribute(value, "value") is not _NO_VALUE
        and _attribute(value, "response_schema") is not _NO_VALUE
    )


def _are_questions(value: Any) -> bool:
    return _all(_is_question, value) or _is_question(value)


def _are_answers(value: Any) -> bool:
    """Whether these are answers: a list in order, or that with others by id; or one answer, as LangGraph keeps it."""
    if type(value) is dict and value.keys() == {IN_ORDER, BY_ID}:
        by_id = value[BY_ID]
        return type(value[IN_ORDER]) is list and type(by_id) is dict and all(type(key) is str for key in by_id)
    return True


def _attribute(value: Any, name: str) -> Any:
    """Return an attribute of an instance that was made without asking its class, and so may lack it."""
    return getattr(value, name, _NO_VALUE)


_KINDS: Final[Mapping[str, tuple[Callable[[Any], bool], str]]] = {
    INTERRUPT: (_are_questions, "a question"),
    RESUME: (_are_answers, "an answer"),
    TASKS: (_is_send, "a Send"),
    CALLED_BY: (_is_text, "a caller"),
}
