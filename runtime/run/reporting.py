"""What a run tells those who follow it: pauses once they are durable, and what nodes write while they work."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from anyio import from_thread

from persistence.portal import is_elsewhere
from runtime.engine.resuming import waiting
from runtime.run.calls import CallTask

if TYPE_CHECKING:
    from runtime.engine.tasks import Task
    from runtime.run.conductor import Conductor


async def tell_of_pauses(run: Conductor) -> None:
    """Tell the consumer what waits, now that it is durable; a subgraph leaves it to the run that is streamed."""
    if run.hub is not None and (run.paused_tasks or run.paused):
        run.hub.paused(run, run.pause if run.paused else _left_open(run), run.paused_tasks)
    if run.call.hub is not None:
        await run.call.hub.release()
    if run.watchers is not None and run.pause is not None and run.nested is None:
        await run.watchers.paused(run.status, run.checkpoint_id, run.ns, run.pause)


def _left_open(run: Conductor) -> tuple[Any, ...] | None:
    """Return the questions that were put beside a failure: they wait, though the run fails."""
    asked = [task for task in run.paused_tasks if not isinstance(task, CallTask)]  # a call's are its node's as well
    return tuple(question for task in asked for question in waiting(task)) or None


def write_custom(run: Conductor, item: Any, mode: str, *, once: bool, ns: str | None) -> None:
    """Put an item on the stream of a mode, from whatever thread; ``once``: unless its message was told before."""
    if run.hub is None:
        return
    if is_elsewhere(run.home_thread):
        # A sync node's worker thread: it can wait for room, and must not touch the event loop's objects.
        from_thread.run(partial(run.hub.put_custom, once=once, ns=ns), run, item, mode, token=run.home_token)
    else:
        run.hub.custom(run, item, mode, once=once, ns=ns)


def too_slow(run: Conductor, work: list[Task], timeout: float) -> TimeoutError:
    """Return the error for a superstep that took longer than it may."""
    names = ", ".join(task.name for task in work if not task.finished)
    where = f"Superstep {run.step} of graph {run.plan.name!r}"
    if run.journal is not None:
        where += f" on thread {run.journal.thread_id!r}"
    return TimeoutError(f"{where} took longer than step_timeout ({timeout:g} s); unfinished: {names}.")
