"""Subgraphs that keep their state (``checkpointer=True``): one user at a time, in an order that is known.

Their namespaces are made of names and of the order of calls. Calls made at once have no order: on the thread's next
turn each could get the state of another. So the second of them is refused, also if the first one has ended: it had no
order with one that another task of the event loop makes, unless the node itself went on in between.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from runtime.errors import ErrorCode, InvalidUpdateError, create_error_message
from runtime.run.subruns import subruns_of

if TYPE_CHECKING:
    from runtime.engine.tasks import Task
    from runtime.run.conductor import Conductor
    from runtime.run.nesting import Nested


@contextmanager
def sole_user(run: Conductor) -> Iterator[None]:
    """Keep others from the state of a subgraph, and from the numbers that lead to it, while it runs.

    Raises InvalidUpdateError where another one of the same task is under way, or one that had no order with it ran.
    """
    lineage = tasks_around(run.nested)
    before = run.family.users.get(run.ns)
    if before is not None and (name := _at_once(before, lineage)) is not None:
        raise used_twice(name)
    held = []
    branch = run
    while branch.nested is not None:
        nested, scope = branch.nested, branch.nested.scope
        subruns = subruns_of(scope)
        beside = scope.inside is None and nested.line != subruns.last_line
        if beside or any(other is not branch for other in subruns.keepers):
            raise used_twice(f"node {scope.task.name!r}")
        held.append((subruns, branch, nested))
        branch = nested.around
    run.family.users[run.ns] = lineage
    for subruns, branch, _ in held:
        subruns.keepers[branch] += 1
    try:
        yield
    finally:
        for subruns, branch, nested in () if run.paused else held:  # one that waits for an answer is still under way
            subruns.keepers[branch] -= 1
            if not subruns.keepers[branch]:
                del subruns.keepers[branch]
            if nested.aside and not nested.scope.inside:
                nested.scope.inside, subruns.last_line = None, nested.line


def tasks_around(nested: Nested | None) -> list[Task]:
    """Return the tasks and calls that a run is nested in, outermost first."""
    tasks: list[Task] = []
    while nested is not None:
        task: Task = nested.scope.task
        tasks.append(task)
        while task.around is not None:
            task = task.around.task
            tasks.append(task)
        nested = nested.around.nested
    return tasks[::-1]


def _at_once(before: Sequence[Any], now: Sequence[Any]) -> str | None:
    """Return what had no order, if two lines of tasks part at tasks of one superstep or at calls that overlapped."""
    for earlier, later in zip(before, now, strict=False):
        if earlier.id == later.id:
            continue
        if earlier.around is not None and later.around is not None:
            return f"calls of task {later.name!r}" if later.overlaps(earlier) else None
        same_superstep = earlier.moment.checkpoint_id == later.moment.checkpoint_id
        return f"node {later.name!r}" if same_superstep else None
    return None


def used_twice(where: str) -> InvalidUpdateError:
    """Return the error for a kept state that two would change at once."""
    return InvalidUpdateError(
        create_error_message(
            message=f"A subgraph that keeps its state (checkpointer=True) is run twice at once in {where}: the two "
            "would change one state, or get each other's the next time. Run it from nodes of different names, one "
            "after the other, or compile it without checkpointer=True.",
            error_code=ErrorCode.MULTIPLE_SUBGRAPHS,
        )
    )
