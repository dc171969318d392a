"""Matching what a thread has stored with the tasks that are due: finished work, failures, questions and answers."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from runtime.engine.questions import own_ids, renamed
from runtime.engine.tasks import HandlerTask, is_output
from runtime.engine.vetting import BY_ID, IN_ORDER
from runtime.errors import StoredNodeError, UnknownInterruptError
from runtime.interrupts import interrupt_id
from runtime.types.constants import ERROR, ERROR_SOURCE_NODE, INTERRUPT, NO_WRITES, NULL_TASK_ID, RESUME

if TYPE_CHECKING:
    from persistence.contracts.checkpoint import PendingWrite
    from runtime.engine.tasks import Task

_ID_LENGTH = 32


def null_writes(pending: Iterable[PendingWrite] | None) -> list[tuple[str, Any]]:
    """Return the stored writes that no task owns (a Command's update and goto)."""
    return [
        (channel, value)
        for owner, channel, value in pending or ()
        if owner == NULL_TASK_ID and channel not in (RESUME, INTERRUPT, ERROR)
    ]


def match(tasks: Sequence[Task], pending: Iterable[PendingWrite] | None) -> None:
    """Give every task what was stored of it: its writes if it finished, its error, its questions, its answers."""
    by_task: dict[str, list[tuple[str, Any]]] = {}
    for owner, channel, value in pending or ():
        by_task.setdefault(owner, []).append((channel, value))
    if not by_task:
        return
    for task in tasks:
        stored = by_task.get(task.id)
        if stored is not None:
            take(task, stored)
            if task.caught and not task.finished and task.node.handler is not None:
                handling = HandlerTask(task, task.node.handler, StoredNodeError(str(task.error)))
                take(handling, by_task.get(handling.id, []))
                task.stand_in = handling if handling.finished else None


def take(task: Task, stored: list[tuple[str, Any]]) -> None:
    """Give one task what was stored of it."""
    outputs = [(channel, value) for channel, value in stored if is_output(channel)]
    if outputs:
        task.writes = [(channel, value) for channel, value in outputs if channel != NO_WRITES]
    for channel, value in stored:
        if channel == ERROR:
            task.error = value
        elif channel == ERROR_SOURCE_NODE:
            task.caught = True
        elif channel == INTERRUPT:
            task.interrupts = tuple(value) if isinstance(value, (list, tuple)) else (value,)
        elif channel == RESUME:
            if type(value) is dict and value.keys() == {IN_ORDER, BY_ID}:
                task.answers, task.below = list(value[IN_ORDER]), dict(value[BY_ID])
            else:
                task.answers = list(value) if isinstance(value, list) else [value]


def stored_answers(task: Task) -> Any:
    """Return a task's answers as they are stored: a list, in the order of its questions.

    Of several questions put at once a later one may be answered first, and an answer to a subgraph's question may not
    have got there yet; then also those, by id.
    """
    return {IN_ORDER: list(task.answers), BY_ID: dict(task.below)} if task.below else list(task.answers)


def own_answers(task: Task) -> dict[str, Any]:
    """Return, of the answers by id, those to the task's own questions; the rest are for subgraphs."""
    if not task.below:
        return {}
    own = own_ids(task)
    return {key: value for key, value in task.below.items() if key in own}


def waiting(task: Task) -> tuple[Any, ...]:
    """Return the task's questions that have no answer."""
    if task.finished or not task.interrupts:
        return ()
    answered = {interrupt_id(task.ns, index) for index in range(len(task.answers))}
    return tuple(
        question for question in task.interrupts if question.id not in answered and question.id not in task.below
    )


def put_again(task: Task, pending: Sequence[Any]) -> None:
    """Let a task that failed wait for answers to these questions, whatever it was given for them."""
    task.interrupts = tuple(pending)
    task.below = {key: value for key, value in task.below.items() if all(key != one.id for one in pending)}


def answer(tasks: Sequence[Task], resume: Any) -> list[Task]:
    """Hand answers to the tasks whose questions they answer; return those tasks.

    Raises UnknownInterruptError, before anything is stored, for an id that is not pending and for one answer to
    several questions.
    """
    pending = [(task, question.id) for task in tasks for question in waiting(task)]
    given = by_id([key for _, key in pending], [key for _, key in pending], resume)
    answered = []
    for task, key in pending:
        if key in given:
            _accept(task, key, given[key])
            if task not in answered:
                answered.append(task)
    return answered


def reopen(tasks: Sequence[Task], resume: Any, others: Mapping[str, Task] | None = None) -> list[Task]:
    """Answer questions that a superstep once put, whether or not they have an answer; return those tasks.

    What a task did after its old answer has not happened. ``others``: ids of questions that its calls put earlier.

    Raises UnknownInterruptError as ``answer`` does.
    """
    known = put(tasks, others)
    answered = []
    for key, value in reopened(tasks, resume, others).items():
        task = known[key]
        for index in range(len(task.answers)):
            if key == interrupt_id(task.ns, index):
                del task.answers[index:]
                break
        task.writes = task.error = None
        _accept(task, key, value)
        if task not in answered:
            answered.append(task)
    return answered


def reopened(tasks: Sequence[Task], resume: Any, others: Mapping[str, Task] | None = None) -> Mapping[str, Any]:
    """Return by id the answers that ``reopen`` would accept.

    One answer without an id is for the question that waits, or if none does for the only one of the last pause.

    Raises UnknownInterruptError as ``answer`` does.
    """
    known = put(tasks, others)
    open_ids = [question.id for task in tasks for question in waiting(task)]
    last_ids = [question.id for task in tasks for question in task.interrupts]
    return by_id(known, open_ids or last_ids or list(known), resume)


def put(tasks: Sequence[Task], others: Mapping[str, Task] | None = None) -> dict[str, Task]:
    """Return the ids of all questions that are known to have been put, each with its task."""
    known = dict(others or {})
    for task in tasks:
        known |= {question.id: task for question in task.interrupts}
        known |= {interrupt_id(task.ns, index): task for index in range(len(task.answers))}
    return known


def carry_over(old: Task, new: Task) -> None:
    """Give a task what an earlier execution of it has: its result, and the answers to questions of its own."""
    new.writes, new.answers = old.writes, old.answers
    names = renamed(old, new)
    new.below = {names.get(key, key): value for key, value in old.below.items()}
    new.interrupts = tuple(
        replace(question, id=names[question.id])
        for question in old.interrupts
        if question.id in names and question.id in old.below
    )


def _accept(task: Task, key: str, value: Any) -> None:
    if key == interrupt_id(task.ns, len(task.answers)):
        task.answers = [*task.answers, value]
    else:
        task.below[key] = value


def by_id(known: Collection[str], waiting_ids: Sequence[str], resume: Any) -> Mapping[str, Any]:
    """Return answers by id."""
    if is_id_map(resume):
        unknown = [key for key in resume if key not in known]
        if unknown:
            msg = (
                f"No pending interrupt has the id {unknown[0]!r}. Pending: {list(known) or 'none'}. It may have its "
                "answer, or an edit or new input has taken it back: aget_state(config).interrupts lists what waits, "
                "and None as input asks again."
            )
            raise UnknownInterruptError(msg, reason="not_pending", interrupt_ids=unknown, pending_ids=list(known))
        answers: Mapping[str, Any] = resume
        return answers
    if len(waiting_ids) > 1:
        msg = (
            "When there are multiple pending interrupts, you must specify the interrupt id when resuming: "
            f"Command(resume={{id: answer}}). Pending: {list(waiting_ids)}."
        )
        raise UnknownInterruptError(msg, reason="ambiguous", interrupt_ids=(), pending_ids=waiting_ids)
    return dict.fromkeys(waiting_ids, resume)


def is_id_map(resume: Any) -> bool:
    """Tell whether a resume value maps interrupt ids to answers (an empty map answers nothing)."""
    return isinstance(resume, Mapping) and all(
        isinstance(key, str) and len(key) == _ID_LENGTH and all(digit in "0123456789abcdef" for digit in key)
        for key in resume
    )
