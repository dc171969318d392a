"""Reading and editing a thread: snapshots, history, updates."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from persistence.contracts.checkpoint import CheckpointTuple
from runtime.engine.applying import apply, fold_loose
from runtime.engine.cells import Cells
from runtime.engine.projecting import result_of_writes, values_of, writes_view
from runtime.engine.resuming import match, null_writes, waiting
from runtime.engine.scheduling import due
from runtime.engine.tasks import Moment, Task
from runtime.engine.vetting import vet
from runtime.graph.subgraphs import find, fits
from runtime.run.editing import Editor
from runtime.run.journal import Journal
from runtime.run.lineage import seen_at
from runtime.run.metadata import CALLER, visible
from runtime.run.opening import missing_checkpoint
from runtime.run.travelling import names_of
from runtime.run.views import subgraph_config
from runtime.types.config import checkpoint_config, parse_config
from runtime.types.constants import NS_END, NS_SEP, PULL, RETURN
from runtime.types.snapshot import PregelTask, StateSnapshot, StateUpdate

if TYPE_CHECKING:
    from runtime.run.program import Program
    from runtime.types.config import CallConfig, RunnableConfig

__all__ = ["StateUpdate", "get_history", "get_state", "update_state"]


async def get_state(program: Program, config: CallConfig, *, subgraphs: bool) -> StateSnapshot:
    """Return one snapshot: the live view of a thread, or the record of an addressed checkpoint."""
    program, config, found = await _located(program, config)
    if found is None:
        if config.checkpoint_id is not None:
            raise missing_checkpoint(config.checkpoint_id, config.thread_id or "", config.checkpoint_ns)
        return _nothing(_addressed(config))
    taken = snapshot(program, found, live=config.checkpoint_id is None)
    return await _with_subgraphs(program, taken) if subgraphs else taken


async def _with_subgraphs(program: Program, taken: StateSnapshot) -> StateSnapshot:
    """Return a snapshot whose tasks show the snapshots of their subgraphs, all the way down."""
    tasks = list(taken.tasks)
    for place, task in enumerate(tasks):
        where: RunnableConfig | StateSnapshot | None = task.state
        if isinstance(where, dict):
            shown = await _shown(program, taken, task)
            tasks[place] = task._replace(state=_nothing(where) if shown is None else await _with_subgraphs(*shown))
    return taken._replace(tasks=tuple(tasks))


def _addressed(config: CallConfig) -> RunnableConfig:
    """Return a config as it was given, with the thread's id as the text that it is from here on."""
    given = config.raw
    if config.thread_id is not None:
        given = {**given, "configurable": {**given["configurable"], "thread_id": config.thread_id}}
    return given


def _nothing(config: RunnableConfig) -> StateSnapshot:
    """Return what there is to see where nothing was saved."""
    return StateSnapshot({}, (), config, None, None, None, (), ())


async def _shown(program: Program, taken: StateSnapshot, task: PregelTask) -> tuple[Program, StateSnapshot] | None:
    """Return what a task shows: of several subgraphs that it ran, one that has work left, else the first."""
    where, node = parse_config(task.state), program.plan.nodes[task.name]
    if node.handler is not None and names_of(where.checkpoint_ns).rpartition(NS_SEP)[2] == node.handler.name:
        node = node.handler
    candidates = [_at_home(each, program) for each in node.subgraphs]
    child, found = await _newest(candidates, where, task, _parents(taken))
    first = None if found is None else (child, snapshot(child, found, live=True))
    if first is not None and (first[1].next or task.result is not None):
        return first
    other = await _working(candidates, taken, task, where)
    return other if first is None or (other is not None and other[1].next) else first


async def _working(
    candidates: Sequence[Program], taken: StateSnapshot, task: PregelTask, where: CallConfig
) -> tuple[Program, StateSnapshot] | None:
    """Return, of all subgraphs that a task ran, also in @task calls, one that has work left, else the newest."""
    at, parents = taken.config["configurable"], _parents(taken)
    names, newest, seen = names_of(where.checkpoint_ns), None, {where.checkpoint_ns}
    own = where.checkpoint_ns if where.checkpoint_ns != names else _joined(at["checkpoint_ns"], task)
    thread = {"configurable": {"thread_id": where.thread_id}}
    for saver in {id(each.saver): each.saver for each in candidates}.values():
        listed = saver.alist(thread, filter={"parents": parents})
        try:
            async for found in listed:
                ns = found.config["configurable"].get("checkpoint_ns", "")
                if ns in seen or not (_within(ns, own) or (ns == names_of(ns) and _within(ns, names))):
                    continue
                seen.add(ns)
                for child in [each for each in candidates if each.saver is saver and fits(each, vet(found).checkpoint)][
                    :1
                ]:
                    shown = snapshot(child, found, live=True)
                    if shown.next:
                        return child, shown
                    newest = newest or (child, shown)
        finally:
            if hasattr(listed, "aclose"):
                await listed.aclose()
    return newest


def _parents(taken: StateSnapshot) -> dict[str, str]:
    """Return what subgraphs that were run from a snapshot note of it."""
    at = taken.config["configurable"]
    return dict(at.get("checkpoint_map") or {at["checkpoint_ns"]: at["checkpoint_id"]})


def _within(ns: str, place: str) -> bool:
    return ns == place or ns.startswith(place + NS_SEP)


def _joined(ns: str, task: PregelTask) -> str:
    own = f"{task.name}{NS_END}{task.id}"
    return f"{ns}{NS_SEP}{own}" if ns else own


async def _newest(
    candidates: Sequence[Program], config: CallConfig, task: PregelTask, at: Mapping[str, str]
) -> tuple[Program, CheckpointTuple | None]:
    """Return the newest checkpoint of a task's subgraph; of one that outlives the task, as the task left it."""
    address = {"configurable": _address(config)}
    outlives = config.checkpoint_ns == names_of(config.checkpoint_ns)
    for child in candidates:
        found: CheckpointTuple | None = None
        if outlives and task.result is not None:
            async for each in child.saver.alist(address, filter={CALLER: task.id, "source": "loop"}, limit=1):
                found = each
        else:
            found = await child.saver.aget_tuple(address)
            if outlives and found is not None:
                journal = Journal(child.saver, config.thread_id or "", config.checkpoint_ns, "sync", {}, {})
                found = await seen_at(journal, vet(found), at)
        if found is not None and fits(child, vet(found).checkpoint):
            return child, found
    return candidates[0], None


async def _located(
    program: Program, config: CallConfig, *, strict: bool = False
) -> tuple[Program, CallConfig, CheckpointTuple | None]:
    """Return the program whose state a namespace holds, the address there, and what it leads to: maybe the newest.

    Raises ValueError for an unknown subgraph when ``strict``; otherwise this graph itself reads it.
    """
    candidates = [(program, config)]
    if config.checkpoint_ns:
        inside = find(program.plan, config.checkpoint_ns)
        candidates = [(_at_home(each, program), _place_of(each, config)) for each in inside]
        if not candidates and strict:
            nodes = [node.name for node in program.plan.nodes.values() if node.subgraphs]
            msg = (
                f"Subgraph {config.checkpoint_ns!r} not found in graph {program.plan.name!r}. Nodes that run "
                f"subgraphs: {', '.join(nodes) or 'none'}. A subgraph's config is that of its snapshot: "
                "aget_state(config, subgraphs=True).tasks[0].state.config."
            )
            raise ValueError(msg)
    candidates = candidates or [(program, config)]
    for child, place in candidates:
        found: CheckpointTuple | None = await child.saver.aget_tuple({"configurable": _address(place)})
        if found is not None and (len(candidates) == 1 or fits(child, vet(found).checkpoint)):
            return child, place, found
    return *candidates[0], None


def _place_of(child: Program, config: CallConfig) -> CallConfig:
    """Return where a subgraph keeps its state: what outlives the tasks that run it lies under names alone."""
    return replace(config, checkpoint_ns=names_of(config.checkpoint_ns)) if child.saver is True else config


def _at_home(child: Program, program: Program) -> Program:
    """Return a subgraph's program with the saver that keeps its state."""
    own = child.saver is not None and not isinstance(child.saver, bool)
    return child if own else replace(child, saver=program.saver)


async def get_history(
    program: Program,
    config: CallConfig,
    filter: Mapping[str, Any] | None,  # noqa: A002 - as in the public method
    before: Mapping[str, Any] | None,
    limit: int | None,
) -> AsyncIterator[StateSnapshot]:
    """Yield records, newest first."""
    if limit is not None and not isinstance(limit, int):
        msg = f"limit must be a number of checkpoints or None, not {limit!r:.80}."
        raise TypeError(msg)
    if limit is not None and limit < 0:
        msg = f"limit must be at least 0, got {limit}."
        raise ValueError(msg)
    if config.checkpoint_ns:
        program, config, _ = await _located(program, config)
    found = program.saver.alist({"configurable": _address(config)}, filter=filter, before=before, limit=limit)
    async for item in found:
        yield snapshot(program, item, live=False)


def _address(config: CallConfig) -> dict[str, Any]:
    address: dict[str, Any] = {"thread_id": config.thread_id, "checkpoint_ns": config.checkpoint_ns}
    if config.checkpoint_id is not None:
        address["checkpoint_id"] = config.checkpoint_id
    return address


def snapshot(program: Program, found: CheckpointTuple, *, live: bool) -> StateSnapshot:
    """Return the reader's view of a stored checkpoint.

    ``live``: finished tasks' writes are applied, and only what is left to do is next: the unfinished tasks, or what
    follows where all have finished. Otherwise the superstep as it started, with what became of each task. Nodes that
    were due and that the graph lacks are next, too, though they have no task: whoever runs the thread is told of them.
    """
    cells = Cells(program.plan, "")
    checkpoint = vet(found).checkpoint
    orphans = cells.restore(checkpoint, None, reading=True)
    loose = null_writes(found.pending_writes)
    if loose:
        fold_loose(cells, loose)
    address = found.config["configurable"]
    ns = address.get("checkpoint_ns", "")
    step = int(found.metadata.get("step", -2)) + 1
    tasks = sorted(due(cells, Moment(checkpoint["id"], ns, step, 0)), key=_listed)
    match(tasks, found.pending_writes)
    shown = tuple(_task_view(cells, task, address["thread_id"], live=live) for task in tasks)
    if live:
        finished = [task for task in tasks if task.finished]
        left = [task for task in tasks if not task.finished]
        if finished and not _applied(cells, finished):
            left = tasks
        elif finished and not left:  # the run stopped before the checkpoint that these tasks led to
            left = sorted(due(cells, Moment(checkpoint["id"], ns, step + 1, 0)), key=_listed)
    else:
        left = tasks
    around = found.metadata.get("parents")
    parent = found.parent_config["configurable"] if found.parent_config else None
    return StateSnapshot(
        values=values_of(cells, program.plan.state),
        next=(*(task.name for task in left), *orphans),
        config=checkpoint_config(address["thread_id"], ns, checkpoint["id"], around),
        metadata=visible(found.metadata),
        created_at=checkpoint["ts"],
        parent_config=checkpoint_config(parent["thread_id"], ns, parent["checkpoint_id"], around) if parent else None,
        tasks=shown,
        interrupts=tuple(question for task in shown for question in task.interrupts),
    )


def _listed(task: Task) -> tuple[int, int]:
    """Sort Sends first, by index, then nodes in the order in which they were added."""
    return (1, task.node.index) if task.path[0] == PULL else (0, task.send_index)


def _applied(cells: Cells, finished: list[Task]) -> bool:
    """Show finished tasks' writes in the values; if they cannot be folded, the thread stays readable without them."""
    try:
        apply(cells, finished)
    except Exception:  # noqa: BLE001 - whatever a reducer raises; running the thread again reports it
        return False
    return True


def _task_view(cells: Cells, task: Task, thread_id: str, *, live: bool) -> PregelTask:
    return PregelTask(
        id=task.id,
        name=task.name,
        path=task.path,
        error=task.error,
        interrupts=waiting(task) if live else task.interrupts,
        state=subgraph_config(task, thread_id),
        result=_result(cells, task) if task.writes is not None else None,
    )


def _result(cells: Cells, task: Task) -> Any:
    writes = task.writes or []
    for channel, value in writes:
        if channel == RETURN:
            return value
    if cells.plan.bare or cells.plan.single is not None:
        return writes_view(cells, writes)
    return result_of_writes(cells, writes)


async def update_state(
    program: Program, config: CallConfig, supersteps: Sequence[Sequence[StateUpdate]]
) -> RunnableConfig:
    """Apply updates; see run/editing."""
    around = program.saver
    if config.checkpoint_ns:
        program, config, _ = await _located(program, config, strict=True)
    return await Editor(program, config, os.urandom(6).hex(), around).apply(supersteps)
