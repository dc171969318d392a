"""A run seen from outside: its result, its newest checkpoint, how full its buffers are, what it leaves waiting."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from runtime.engine.projecting import values_of, values_with
from runtime.engine.resuming import own_answers
from runtime.engine.scheduling import due
from runtime.engine.tasks import Moment, handler_of
from runtime.errors import KEPT_ANSWER, is_invalid_resume
from runtime.run.metadata import visible
from runtime.run.travelling import names_of
from runtime.streaming.payloads import question_view, result_view
from runtime.types.config import checkpoint_config
from runtime.types.constants import INTERRUPT, PREVIOUS
from runtime.types.telling import add_note, described

if TYPE_CHECKING:
    from collections.abc import Mapping

    from persistence.contracts.checkpoint import CheckpointTuple
    from runtime.actors.supervisor import SupervisorStatistics
    from runtime.engine.plan import Plan
    from runtime.engine.tasks import Task
    from runtime.run.conductor import Conductor
    from runtime.streaming.hub import HubStatistics

LOG = logging.getLogger("actorgraph")

NO_CONTEXT: Final = "The graph has a context_schema, and this call gave no context: pass it as context=..."
"""Noted on what may be the error of a node that looked for one."""
_TO_EDIT: Final = "To be asked again, update_state(config, {}) and then run with None."
_TO_CALL: Final = "To be asked again, call the workflow with its input."


@dataclass(frozen=True, slots=True)
class RunStatistics:
    """One run at work."""

    thread_id: str | None
    step: int
    supervisor: SupervisorStatistics | None
    """Actors with their mailboxes, and workers; None before the first superstep."""
    stream: HubStatistics | None
    """The buffer to the stream's consumer, if there is one."""


def run_statistics(run: Conductor) -> RunStatistics:
    """Return where a run stands and how full its buffers are."""
    return RunStatistics(
        thread_id=run.config.thread_id,
        step=run.step,
        supervisor=None if run.supervisor is None else run.supervisor.statistics(),
        stream=None if run.hub is None else run.hub.statistics(),
    )


def output_of(run: Conductor) -> Any:
    """Return what a run returns: the output keys, also as tasks beside a pause left them, and the questions."""
    keys = run.call.output_keys or run.plan.output_keys
    key = run.call.output_key
    whole = run.plan.single is not None  # what a workflow function returned last time is no part of this answer
    values = values_of(run.cells, keys) if whole else values_with(run.cells, keys, run.finished)
    if not run.interrupts:
        return values if key is None else values.get(key)
    pending = {INTERRUPT: list(run.interrupts)}
    return {**values, **pending} if isinstance(values, dict) and not whole and key is None else pending


class Recorded(NamedTuple):
    """What a checkpoint is, beside its values."""

    source: str
    step: int
    parent: str | None
    metadata: Mapping[str, Any] | None = None
    """As stored, if another run made it."""


def recorded_of(saved: CheckpointTuple) -> Recorded:
    """Return what a stored checkpoint is."""
    parent = saved.parent_config["configurable"]["checkpoint_id"] if saved.parent_config else None
    metadata = saved.metadata
    return Recorded(metadata.get("source", "loop"), int(metadata.get("step", -2)), parent, visible(metadata))


def checkpoint_view(run: Conductor) -> dict[str, Any]:
    """Return the newest checkpoint as the ``checkpoints`` stream shows it, with what is stored of its tasks."""
    source, step, parent, metadata = run.recorded or Recorded("loop", run.step - 1, None)
    if metadata is None:
        metadata = {"source": source, "step": step, "parents": run.parents}
    tasks = run.first_tasks
    if tasks is None:
        tasks = due(run.cells, Moment(run.checkpoint_id, run.ns, run.step, run.stop))
    where, thread = run.ns, run.config.thread_id or ""
    return {
        "config": checkpoint_config(thread, where, run.checkpoint_id, run.parents),
        "parent_config": None if parent is None else checkpoint_config(thread, where, parent, run.parents),
        "values": values_of(run.cells, run.plan.state),
        "metadata": dict(metadata),
        "next": [task.name for task in tasks],
        "tasks": [_task_view(run, task, thread) for task in tasks],
    }


def _task_view(run: Conductor, task: Task, thread: str) -> dict[str, Any]:
    told: dict[str, Any] = {"id": task.id, "name": task.name}
    if task.error is not None:
        told["error"] = task.error
    else:
        if task.finished and (result := _returned(run, result_view(run.cells, task))):
            told["result"] = result
        told["interrupts"] = tuple(question_view(question) for question in task.interrupts)
    told["state"] = subgraph_config(task, thread)
    return told


def _returned(run: Conductor, result: Any) -> Any:
    """Return of a task's result the keys that the caller asked for."""
    keys, alone = run.call.output_keys, run.call.output_key
    if not keys or not run.plan.keyed:
        return result
    return {key: value for key, value in result.items() if key in keys} if alone is None else result.get(alone)


def subgraph_config(task: Task, thread_id: str) -> Any:
    """Return the address of a task's subgraph; None if it has none, or none that keeps state."""
    if task.caught and task.node.handler is not None and task.node.handler.subgraphs:
        task = task.stand_in or handler_of(task)
    if not task.node.subgraphs:
        return None
    ns = names_of(task.ns) if task.node.subgraphs[0].saver is True else task.ns
    return {"configurable": {"thread_id": thread_id, "checkpoint_ns": ns}}


def tell_of_waiting_joins(run: Conductor) -> None:
    """Say which joins a finished run left half filled: the nodes behind them never ran."""
    for key, channel in run.cells.channels.items():
        missing: frozenset[str] = getattr(channel, "names", frozenset()) - getattr(channel, "seen", frozenset())
        if missing and key.startswith("join:"):
            LOG.warning(
                "Run of graph %r on thread %r ended while node %r still waits for %s to run (join edge).",
                run.plan.name,
                run.config.thread_id,
                key.rpartition(":")[2],
                ", ".join(map(repr, sorted(missing))),
            )


def tell_of_lost_pause(run: Conductor) -> None:
    """Say once a graph that a run which nothing keeps has paused, and so cannot go on."""
    if run.program.lost_pause:
        return
    run.program.lost_pause = True
    LOG.warning(
        "Run of graph %r paused (%s), and cannot be resumed: the graph has no checkpointer, so nothing keeps the run. "
        "Give it one where it is made: compile(checkpointer=...), entrypoint(checkpointer=...).",
        run.plan.name,
        "interrupt()" if run.interrupts else run.status,
    )


def failure_of(run: Conductor) -> BaseException:
    """Return the first failure of a superstep, with where it happened and what else failed."""
    task, outcome = run.failures[0]
    error, attempts = outcome.error, outcome.attempts
    add_note(error, f"During task with name {task.name!r} and id {task.id!r} (step {run.step}, attempt {attempts})")
    for other, also in run.failures[1:]:
        told = described(also.error)
        add_note(error, f"Also failed in this superstep: node {other.name!r} (id {other.id!r}): {told}")
    note_kept_answer(error, task, run.plan)
    if run.context is None and run.program.context_schema is not None and missed_context(error):
        add_note(error, NO_CONTEXT)
    return error


def missed_context(error: BaseException) -> bool:
    """Tell whether an error may be that of a node that looked for a context which nobody gave; told once."""
    if NO_CONTEXT in getattr(error, "__notes__", ()):
        return False
    if isinstance(error, AttributeError):
        return error.name is not None and error.obj is None
    return isinstance(error, TypeError) and error.args == ("'NoneType' object is not subscriptable",)


def note_kept_answer(error: BaseException, task: Task, plan: Plan) -> None:
    """Note on the error of a task that had been given an answer how to be asked again."""
    if (task.answers or own_answers(task)) and not is_invalid_resume(error):
        add_note(error, f"{KEPT_ANSWER} {_TO_CALL if PREVIOUS in plan.state else _TO_EDIT}")
