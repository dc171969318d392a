"""What a branch retains of the work that it leaves, and what subgraphs kept in it.

A branch does not do again what the step back does not reach: tasks that had finished, calls with their results,
subgraphs up to the point that they start from. The states that subgraphs keep and that were changed there are recorded
again as of the branch; it would not see them otherwise, as they were made from what it left.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from persistence.contracts.checkpoint import Unit
from persistence.contracts.saver import takes_units
from runtime.engine.tasks import handler_of
from runtime.engine.vetting import vet
from runtime.run.keeping import tasks_around
from runtime.run.metadata import CALLER, KEPT_AT, callers_in
from runtime.run.travelling import id_in
from runtime.types.constants import CALLERS
from runtime.types.ids import IDS, utc_now

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from persistence.contracts.checkpoint import Checkpoint, CheckpointTuple
    from runtime.engine.tasks import Task
    from runtime.run.conductor import Conductor
    from runtime.run.nesting import Nested


class Kept(NamedTuple):
    """A checkpoint of a state that is kept."""

    ns: str
    checkpoint_id: str
    callers: Sequence[str]
    """Ids of the tasks and calls around it, outermost first."""
    parents: Mapping[str, str]


async def retain_tasks(run: Conductor, tasks: Iterable[tuple[Task, Task]]) -> None:
    """Let a branch see what was kept by tasks that it retains: each as it was, and as it is on the branch."""
    new: dict[str, Task] = {}
    for old, task in tasks:
        new[old.id] = task
        if old.node.handler is not None:
            new[handler_of(old).id] = handler_of(task)
    if new:
        around = [each.id for each in tasks_around(run.nested)]
        await _retain(run, {old: [*around, *_ids(task)] for old, task in new.items()})


async def retain_below(run: Conductor, nested: Nested, past_ns: str, start: str) -> None:
    """Let a branch see what was kept inside a subgraph up to the point that it starts from."""
    travel, task = run.call.travel, nested.scope.task
    assert travel is not None  # noqa: S101 - only a journey sends a subgraph back
    caller = id_in(travel.stored(task.ns))
    await _retain(run, {caller: [each.id for each in tasks_around(nested)]}, inside=(past_ns, start))


async def _retain(run: Conductor, callers: Mapping[str, list[str]], *, inside: tuple[str, str] | None = None) -> None:
    """Record again what was kept below some callers of the past; ``inside``: only up to a point of a subgraph."""
    assert run.journal is not None  # noqa: S101 - only what is stored can be gone back in
    done: set[str] = set()
    for kept in await _since(run):
        known = [caller for caller in kept.callers if caller in callers]
        made_from = None if inside is None else kept.parents.get(inside[0])
        if not known or kept.ns in done or (inside is not None and (made_from is None or made_from >= inside[1])):
            continue
        done.add(kept.ns)
        found = await run.journal.load_at(kept.ns, kept.checkpoint_id)
        newest = await run.journal.load_at(kept.ns, None)
        if found is None or newest is None:
            continue
        chain = [*callers[known[-1]], *kept.callers[kept.callers.index(known[-1]) + 1 :]]
        parents = {**kept.parents, **run.parents, run.ns: made_from or run.checkpoint_id}
        await run.journal.pass_on(
            Unit(
                run.journal.thread_id,
                kept.ns,
                checkpoint=_anew(found, newest.checkpoint["id"]),
                parent_id=found.checkpoint["id"],
                metadata={**found.metadata, "parents": parents, CALLER: chain[-1], CALLERS: chain},
                lineage=found.lineage or {},
                expected_head=newest.checkpoint["id"],
            )
        )


def _anew(found: CheckpointTuple, newest: str) -> Checkpoint:
    checkpoint = found.checkpoint.copy()
    checkpoint["id"], checkpoint["ts"] = IDS.mint(int(found.metadata.get("step", -1)), newest), utc_now()
    return checkpoint


async def _since(run: Conductor) -> list[Kept]:
    """Return what was kept since the point that the journey goes back to, newest first."""
    travel, journal = run.call.travel, run.journal
    assert travel is not None and journal is not None  # noqa: S101, PT018 - only a journey retains anything
    known = travel.kept.get(id(journal.saver))
    if known is None:
        known = travel.kept[id(journal.saver)] = []
        start, listed = travel.start, journal.saver.alist({"configurable": {"thread_id": journal.thread_id}})
        try:
            async for found in listed:
                if found.checkpoint["id"] > start:
                    known += _kept(vet(found))
                elif takes_units(journal.saver):
                    break  # the newest come first, of whatever namespace
        finally:
            if hasattr(listed, "aclose"):
                await listed.aclose()
    return known


def _kept(found: CheckpointTuple) -> list[Kept]:
    metadata: Mapping[str, Any] = found.metadata
    if KEPT_AT not in metadata:
        return []
    ns = found.config["configurable"].get("checkpoint_ns", "")
    return [Kept(ns, found.checkpoint["id"], callers_in(metadata), metadata.get("parents") or {})]


def _ids(task: Task) -> list[str]:
    """Return the ids of a task or call and of those around it in the same run, outermost first."""
    ids = [task.id]
    while task.around is not None:
        task = task.around.task
        ids.append(task.id)
    return ids[::-1]
