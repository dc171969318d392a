"""What became of a superstep's tasks, recorded as it comes: durable with the checkpoint, or before a sibling ends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from runtime.actors.outcomes import Cancelled, Completed, Escalated, Failed, Paused
from runtime.engine.resuming import own_answers, put_again, stored_answers
from runtime.engine.writing import without_parent
from runtime.run.nesting import save_subgraphs
from runtime.run.views import failure_of
from runtime.types.constants import ERROR, ERROR_SOURCE_NODE, INTERRUPT, RESUME
from runtime.types.strangers import asked_langgraph
from runtime.types.telling import add_note, described

if TYPE_CHECKING:
    from runtime.actors.outcomes import Outcome
    from runtime.engine.tasks import Task
    from runtime.run.conductor import Conductor

CANCELLED: Final = "CancelledError()"
"""What is stored of a task that was cancelled with its run, or for a sibling's failure."""


async def report(run: Conductor, task: Task, outcome: Outcome, left: int) -> None:
    """Record one outcome as it comes. What finished is sent at once, unless its superstep ends right here."""
    if isinstance(outcome, Completed):
        await completed(run, task, left)
        return
    if run.unsaved:
        await save_subgraphs(run, task)
    if isinstance(outcome, Paused):
        await _paused(run, task, outcome, left)
    elif isinstance(outcome, Failed):
        await failed(run, task, outcome, left)
    elif isinstance(outcome, Cancelled):
        await _record_error(run, task, CANCELLED, left)
    elif isinstance(outcome, Escalated) and run.nested is None:
        await failed(run, task, Failed(without_parent(run.plan, task.name)), left)
    elif isinstance(outcome, Escalated):
        order, _ = run.command or (task.order, None)
        if task.order <= order:
            run.command = (task.order, outcome.command)


async def completed(run: Conductor, task: Task, left: int, *, cached: bool = False) -> None:
    """Record that a task finished. ``left``: how many of its superstep are at work yet; ``cached``: it did not run."""
    task = task.effective
    if run.journal is not None:
        try:
            if run.siblings is not None:
                run.siblings.admit(task)
            run.journal.finished(task)
        except Exception as error:  # noqa: BLE001 - the node's writes are at fault
            task.writes = None
            await failed(run, task, Failed(error), left)
            return
        if left:
            await run.journal.flush()
    run.finished.append(task)
    if run.hub is not None:
        await run.hub.task_finished(run, task, cached=cached)


async def _paused(run: Conductor, task: Task, outcome: Paused, left: int) -> None:
    task.interrupts = (*outcome.interrupts, *outcome.settled)
    task.below = own_answers(task) | {one.id: task.below[one.id] for one in outcome.settled}
    task.writes = None
    run.pauses(task)
    if run.journal is not None:
        writes: list[tuple[str, Any]] = [(INTERRUPT, list(task.interrupts))]
        if task.answers or task.below or task.path in run.answered:
            writes.append((RESUME, stored_answers(task)))
        run.journal.hold(run.checkpoint_id, task.id, task.path_text, writes)
        if left:
            await run.journal.flush()


async def failed(run: Conductor, task: Task, outcome: Failed, left: int = 0) -> None:
    """Record that a task failed, with the questions that it puts again."""
    if asked_langgraph(outcome.error):
        add_note(outcome.error, "That is how functions of LangGraph's fail here: import it from runtime.types.")
    run.failures.append((task, outcome))
    await _record_error(run, task, described(outcome.error), left, outcome.pending)
    if run.hub is not None:
        await run.hub.task_failed(run, task, outcome.error)


async def _record_error(
    run: Conductor, task: Task, text: str, left: int, pending: tuple[Any, ...] | None = None
) -> None:
    if run.journal is not None:
        writes: list[tuple[str, Any]] = [(ERROR, text)]
        if pending is not None:
            put_again(task, pending)
        if pending is not None or run.answering:
            writes.append((INTERRUPT, list(task.interrupts)))
        if task.answers or task.interrupts or task.below:
            writes.append((RESUME, stored_answers(task)))
        run.journal.hold(run.checkpoint_id, task.id, task.path_text, writes)
        if left:
            await run.journal.flush()


async def not_applied(run: Conductor, tasks: list[Task], error: Exception) -> None:
    """Let the task that finished last have failed: its writes are not stored yet, and it runs again on resume."""
    blamed = tasks[:1] if len(tasks) == 1 else []
    if run.journal is not None:
        blamed = run.journal.withdraw()
    for task in blamed:
        task.effective.writes = None
        await failed(run, task.effective, Failed(error))
    if blamed:
        failure_of(run)


async def caught(run: Conductor, task: Task, failure: Failed) -> None:
    """Make a failure durable before its handler starts: after a crash the handler runs, not the node."""
    if run.journal is not None:
        writes = [(ERROR, described(failure.error)), (ERROR_SOURCE_NODE, task.name)]
        run.journal.hold(run.checkpoint_id, task.id, task.path_text, writes)
        await run.journal.flush()
        await run.journal.settle(wait=True)
    if run.hub is not None:
        await run.hub.task_failed(run, task, failure.error)
