"""How a thread stands, and what became of its tasks, as far as what is stored tells without the graph.

Which special rows a task has tells most of it, and needs no value. A task with a question and with answers may wait for
one more, or have all of them and have failed or died since: then questions and answers are compared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from persistence.contracts.checkpoint import ERROR, INTERRUPT, RESUME
from persistence.contracts.listing import UNCLEAR, is_unclear
from runtime.cli.triggers import node_of, sent_nodes, triggered
from runtime.cli.unregistered import ShowingSerializer
from runtime.engine.vetting import BY_ID, IN_ORDER
from runtime.interrupts import interrupt_id
from runtime.types.constants import CALLED_BY, NS_END, NS_SEP, RETURN

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from persistence.contracts.checkpoint import CheckpointTuple
    from persistence.contracts.listing import Listing, StoredCheckpoint, TaskSummary, ThreadSummary

_STATUS: Final = {"failed": "failed", "asked": "asking"}
"""What makes a thread more than unfinished; the first counts."""


def status_of(thread: ThreadSummary, listing: Listing) -> tuple[str, list[str]]:
    """Say how a thread stands, and which nodes are due, as far as its newest checkpoint and what was written tell."""
    if thread.newest.created_at is None:
        return "damaged", []
    following = triggered(thread.newest.unseen)
    found: Sequence[str] = thread.outcomes
    if any(map(is_unclear, found)):
        address = (thread.thread_id, thread.newest.checkpoint_ns, thread.newest.checkpoint_id)
        stored = listing.checkpoint(*address, ShowingSerializer())
        found = [] if stored is None else [*outcomes_of(stored).values()]
    told = next((status for outcome, status in _STATUS.items() if outcome in found), None)
    return told or ("unfinished" if following else "done"), following


def outcomes_of(stored: StoredCheckpoint) -> dict[str, str]:
    """Return by id what became of the tasks that wrote against a checkpoint."""
    outcomes = {task.task_id: task.outcome.removesuffix(UNCLEAR) for task in stored.tasks}
    if stored.found is None:
        return outcomes
    written = _written(stored.found)
    asked = [task for task in stored.tasks if _has_asked(task, written.get(task.task_id, {}))]
    sent = sent_nodes(stored.found.checkpoint)
    ns = stored.summary.checkpoint_ns
    open_ids: set[str] = set()
    calls: list[TaskSummary] = []
    for task in asked:
        node = node_of(task.path, sent)
        if node is None:
            calls.append(task)
            continue
        own = f"{node}{NS_END}{task.task_id}"
        waits = _waiting(written[task.task_id], f"{ns}{NS_SEP}{own}" if ns else own)
        open_ids |= waits
        outcomes[task.task_id] = _outcome(written[task.task_id], asks=bool(waits))
    for task in calls:  # who made a call has its questions too
        held = written[task.task_id]
        outcomes[task.task_id] = _outcome(held, asks=not _asked(held).isdisjoint(open_ids))
    return outcomes


def _written(found: CheckpointTuple) -> dict[str, dict[str, Any]]:
    """Return what the special channels hold for each task."""
    written: dict[str, dict[str, Any]] = {}
    for task_id, channel, value in found.pending_writes or ():
        written.setdefault(task_id, {})[channel] = value
    return written


def _has_asked(task: TaskSummary, held: Mapping[str, Any]) -> bool:
    """Tell whether a task has asked and not finished; a call notes in an ordinary row who made it."""
    return INTERRUPT in held and (task.outcome != "done" or (CALLED_BY in held and RETURN not in held))


def _outcome(held: Mapping[str, Any], *, asks: bool) -> str:
    if asks:
        return "asked"
    return "failed" if ERROR in held else "answered"


def _waiting(held: Mapping[str, Any], ns: str) -> set[str]:
    """Return the ids of a task's questions that have no answer."""
    answers, by_id = held.get(RESUME, []), dict[str, Any]()
    if type(answers) is dict and answers.keys() == {IN_ORDER, BY_ID}:
        answers, by_id = answers[IN_ORDER], answers[BY_ID]
    count = len(answers) if isinstance(answers, list) else 1
    return _asked(held) - {interrupt_id(ns, index) for index in range(count)} - by_id.keys()


def _asked(held: Mapping[str, Any]) -> set[str]:
    asked = held[INTERRUPT]
    return {str(getattr(one, "id", "")) for one in (asked if isinstance(asked, (list, tuple)) else [asked])}
