"""What LangGraph's engine meant by what it stored, as this engine goes on from it.

Ids of checkpoints, tasks and questions, names of channels and versions are made alike, so most of it stays as it is.
What differs: older layouts, answers that were on their way, what a failed task had written, who called a subgraph that
keeps its state, and values that LangGraph keeps as a chain of writes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from persistence.contracts.checkpoint import CHECKPOINT_FORMAT, TaskWrites
from persistence.migration.records import Uncarried
from runtime.channels import MISSING, DeltaChannel
from runtime.engine.cells import version_number
from runtime.engine.tasks import is_output
from runtime.graph.subgraphs import find
from runtime.interrupts import interrupt_id
from runtime.run.metadata import CALLER
from runtime.types.command import Command, Overwrite, Send
from runtime.types.constants import (
    ERROR,
    ERROR_SOURCE_NODE,
    INTERRUPT,
    NS_END,
    NS_SEP,
    NULL_TASK_ID,
    PULL,
    PUSH,
    RESUME,
    TASKS,
    branch_to,
)
from runtime.types.interrupts import Interrupt
from runtime.types.policy import TimeoutPolicy

if TYPE_CHECKING:
    from persistence.contracts.checkpoint import Unit
    from persistence.migration.records import WritesOf
    from runtime.engine.plan import Plan

_NAMED: Final = "must be named"
_SENDS_IN_WRITES: Final = 4
"""Checkpoints before this format keep Sends with what was written against their parent."""
_NAMED_EDGES: Final = 3
"""Those before this one have a trigger channel for each edge."""
_SENT: Final = re.compile(rf"^(~{PUSH}, \d+), 0+$")
"""The path of a task that a Send started: LangGraph writes the False at its end as a number."""
_JOIN: Final = "join:"
_DELTAS: Final = "counters_since_delta_snapshot"
_KEPT: Final = ("v", "id", "ts", "channel_values", "channel_versions", "versions_seen", "updated_channels")


def _send(node: str, arg: Any, timeout: Any = None) -> Send:
    return Send(node, arg, timeout=timeout)


def _interrupt(value: Any, id: str | None = None, response_schema: Any = None, **older: Any) -> Interrupt:  # noqa: A002 - as stored
    """Return a question; older ones have their place where newer ones have an id."""
    places = older.get("ns")
    if id is None and isinstance(places, (list, tuple)):
        id = interrupt_id(NS_SEP.join(map(str, places)), 0)  # noqa: A001 - as stored
    return Interrupt(value=value, id=id or "", response_schema=response_schema)


MAKERS: Final = {
    ("langgraph.types", "Send"): _send,
    ("langgraph.types", "Interrupt"): _interrupt,
    ("langgraph.types", "Command"): Command,
    ("langgraph.types", "Overwrite"): Overwrite,
    ("langgraph.types", "TimeoutPolicy"): TimeoutPolicy,
    ("langgraph.constants", "Send"): _send,
}
"""How LangGraph's own records are rebuilt: as ours, which have the same fields."""


class Adopting:
    """Adopts the checkpoints of one namespace, oldest first."""

    def __init__(self, deltas: Mapping[str, DeltaChannel[Any]], plans: Sequence[Plan] = ()) -> None:
        """``plans`` are those of the graphs that may have stored them.

        ``deltas`` are their channels, by name, whose values LangGraph may keep as a chain of writes.
        """
        self._deltas = deltas
        self._plans = plans
        self._values: dict[str, dict[str, Any]] = {}
        """Values of such channels by checkpoint."""
        self._written: dict[str, dict[str, list[Any]]] = {}
        """What was written to them against a checkpoint."""

    async def adopt(self, unit: Unit, writes_of: WritesOf) -> None:
        """Change a unit so that this engine goes on from it. Raises Uncarried where it cannot."""
        checkpoint: Any = unit.checkpoint
        if checkpoint["v"] < _SENDS_IN_WRITES:
            await _place_sends(unit, checkpoint, writes_of)
        if checkpoint["v"] < _NAMED_EDGES:
            _rename_edges(checkpoint, _targets(self._plans, unit.checkpoint_ns))
            # Its tasks have other ids here. So a subgraph that keeps its state is called anew, instead of going on.
            unit.metadata = {**unit.metadata, "parents": {}}
        self._fold_deltas(unit, checkpoint)
        _drop_empty(checkpoint["channel_values"])
        _check(unit, checkpoint)
        ns, given = unit.checkpoint_ns, [task for task in unit.writes if task.task_id == NULL_TASK_ID]
        tasks = [one for task in unit.writes if (one := _adopted(ns, task, checkpoint)).writes]
        unit.writes = _delivered(ns, tasks, checkpoint, [dict(task.writes).get(RESUME, MISSING) for task in given])
        await _name_caller(unit, writes_of)
        checkpoint["v"] = CHECKPOINT_FORMAT
        for key in checkpoint.keys() - set(_KEPT):
            del checkpoint[key]

    def _fold_deltas(self, unit: Unit, checkpoint: Any) -> None:
        """Give channels the value that follows from the parent's and from what was written against the parent."""
        held = checkpoint["channel_values"]
        known: dict[str, Any] = {}
        self._values[checkpoint["id"]] = known  # at once: if it cannot be folded, that is told once
        for channel in {*(unit.metadata.get(_DELTAS) or {}), *self._deltas} & checkpoint["channel_versions"].keys():
            if channel not in held:
                if channel not in self._deltas:
                    msg = f"the value of channel {channel!r} follows from its reducer: the graph that has it {_NAMED}"
                    raise Uncarried(msg)
                value = self._folded(self._deltas[channel], channel, unit.parent_id)
                if value is MISSING:
                    continue
                held[channel] = value
            if channel in self._deltas:
                known[channel] = held[channel]
        written: dict[str, list[Any]] = {}
        for task in unit.writes:
            for channel, value in task.writes:
                if channel in self._deltas:
                    written.setdefault(channel, []).append(value)
        self._written[checkpoint["id"]] = written

    def _folded(self, template: DeltaChannel[Any], channel: str, parent_id: str | None) -> Any:
        if parent_id is not None and parent_id not in self._values:
            msg = f"the value of channel {channel!r} follows from checkpoint {parent_id}, which is not there"
            raise Uncarried(msg)
        before = MISSING if parent_id is None else self._values[parent_id].get(channel, MISSING)
        cell = template.from_checkpoint(before)
        writes = self._written.get(parent_id or "", {}).get(channel, [])
        try:
            cell.update(writes)
        except Exception as error:
            msg = f"the reducer of channel {channel!r} fails: {type(error).__name__}: {error}"
            raise Uncarried(msg) from error
        return cell.peek() if writes or before is not MISSING else MISSING


def _check(unit: Unit, checkpoint: Any) -> None:
    """Refuse what would stop this engine half way. Raises Uncarried."""
    written = [pair for task in unit.writes for pair in task.writes]
    sent = [*checkpoint["channel_values"].get(TASKS, ()), *(value for channel, value in written if channel == TASKS)]
    asked = [one for channel, value in written if channel == INTERRUPT for one in _listed(value)]
    if not all(isinstance(one, Send) for one in sent) or not all(isinstance(one, Interrupt) for one in asked):
        msg = "what stands for a Send or a question in it is none"
        raise Uncarried(msg)


# ---- older layouts -------------------------------------------------------------------------------------------------


async def _place_sends(unit: Unit, checkpoint: Any, writes_of: WritesOf) -> None:
    """Put Sends where they are read: into a channel."""
    sends = checkpoint.get("pending_sends") or []
    if not sends and unit.parent_id is not None:
        written = await writes_of(unit.checkpoint_ns, unit.parent_id)
        sends = [write.value for write in written if write.channel == TASKS]
    versions = checkpoint["channel_versions"]
    if sends and TASKS not in checkpoint["channel_values"]:
        checkpoint["channel_values"][TASKS] = sends
        versions[TASKS] = max(versions.values(), key=version_number, default=f"{1:08d}.{checkpoint['id']}")
        if checkpoint["updated_channels"] is not None:
            checkpoint["updated_channels"] = sorted({*checkpoint["updated_channels"], TASKS})


def _targets(plans: Iterable[Plan], ns: str) -> dict[str, list[str]]:
    """Return where the plain edges of each node of a namespace's graph lead to."""
    here = [below for plan in plans for below in ([program.plan for program in find(plan, ns)] if ns else [plan])]
    return {
        name: [
            channel.removeprefix(branch_to("")) for channel, _ in node.edge_writes if channel.startswith(branch_to(""))
        ]
        for plan in here
        for name, node in plan.nodes.items()
    }


def _rename_edges(checkpoint: Any, targets: Mapping[str, list[str]]) -> None:
    """Turn trigger channels of edges, or of the node that they leave, into one for each node that they lead to.

    Raises Uncarried where only the graph knows.
    """
    values, versions, seen = checkpoint["channel_values"], checkpoint["channel_versions"], checkpoint["versions_seen"]
    for old in list(versions):
        target = _target_of(old)
        if target is None and old not in targets:
            if old in seen and old in values:
                msg = f"LangGraph 0.3 or older stored it while what follows node {old!r} was due: the graph {_NAMED}"
                raise Uncarried(msg)
            continue
        for node in targets[old] if target is None else (target,):
            new = branch_to(node)
            for held in (versions, *(each for each in (seen.get(node), seen.get(INTERRUPT)) if each and old in each)):
                held[new] = max((held[key] for key in (old, new) if key in held), key=version_number)
            if old in values:
                values[new] = None
        values.pop(old, None)
        for held in (versions, *seen.values()):
            held.pop(old, None)
    checkpoint["updated_channels"] = None  # so that what is due is found by versions


def _target_of(channel: str) -> str | None:
    parts = channel.split(NS_END)
    if parts[0] == "start" and len(parts) == 2:  # noqa: PLR2004 - start:node
        return parts[1]
    return parts[3] if parts[0] == "branch" and len(parts) == 4 else None  # noqa: PLR2004 - branch:source:condition:node


def _drop_empty(values: dict[str, Any]) -> None:
    """Drop joins and Sends that wait for nothing: here, what is empty is absent."""
    for channel, value in list(values.items()):
        empty = value[0] if isinstance(value, (list, tuple)) and len(value) == 2 else value  # noqa: PLR2004 - deferred
        if (channel.startswith(_JOIN) and isinstance(empty, (set, list)) and not empty) or (
            channel == TASKS and not value
        ):
            del values[channel]


# ---- what tasks wrote ----------------------------------------------------------------------------------------------


def _delivered(ns: str, tasks: list[TaskWrites], checkpoint: Any, given: list[Any]) -> list[TaskWrites]:
    """Give an answer that was on its way when the process died to the task whose question it answers.

    LangGraph leaves each answer with the checkpoint, also once it was used: then its task has it already.
    """
    waiting = [task for task in tasks if _waits(task)]
    if len(waiting) != 1 or given[-1:] in ([], [MISSING]):
        return tasks
    (task,) = waiting
    held = dict(task.writes)
    answers = _listed(held.pop(RESUME, []))
    if (answers and _same(answers[-1], given[-1])) or _task_ns(
        ns, task, checkpoint, _asked(task.writes), len(answers)
    ) is None:
        return tasks
    held[RESUME] = [*answers, given[-1]]
    return [task._replace(writes=list(held.items())) if one is task else one for one in tasks]


def _same(one: Any, other: Any) -> bool:
    """Compare answers; where that cannot be told, the later one was used: else it would be given twice."""
    try:
        return bool(one == other)
    except Exception:  # noqa: BLE001 - arrays and the like have no plain equality
        return True


def _waits(task: TaskWrites) -> bool:
    channels = {channel for channel, _ in task.writes}
    return INTERRUPT in channels and ERROR not in channels and not any(map(is_output, channels))


def _adopted(ns: str, task: TaskWrites, checkpoint: Any) -> TaskWrites:
    """Return what counts here of what a task wrote."""
    writes = list(task.writes)
    channels = {channel for channel, _ in writes}
    if task.task_id == NULL_TASK_ID:
        # An answer reaches its task at once here; LangGraph also leaves it with the checkpoint, long after it was used.
        writes = [(channel, value) for channel, value in writes if channel != RESUME]
    elif ERROR in channels and ERROR_SOURCE_NODE not in channels:
        # It had written when its router failed. It has not finished, so it runs again.
        writes = [(channel, value) for channel, value in writes if not is_output(channel)]
    elif RESUME in channels and _waits(task):
        writes = _asked_anew(_task_ns(ns, task, checkpoint, _asked(writes)), writes)
    return task._replace(writes=writes, task_path=_SENT.sub(r"\1, False", task.task_path))


def _asked_anew(task_ns: str | None, writes: list[tuple[str, Any]]) -> list[tuple[str, Any]]:
    """Give a task's later question its own id: before LangGraph 1.2, all of them had that of the first."""
    held = dict(writes)
    answers = _listed(held[RESUME])
    if task_ns is None or not answers:
        return writes
    first, next_id = interrupt_id(task_ns, 0), interrupt_id(task_ns, len(answers))
    asked = [replace(one, id=next_id) if one.id == first else one for one in _listed(held[INTERRUPT])]
    return [(channel, asked if channel == INTERRUPT else value) for channel, value in writes]


def _asked(writes: Iterable[tuple[str, Any]]) -> set[str]:
    """Return the ids of questions."""
    return {one.id for channel, value in writes if channel == INTERRUPT for one in _listed(value)}


def _listed(value: Any) -> list[Any]:
    """Return questions or answers as a list; older versions stored a single one as it is."""
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _task_ns(ns: str, task: TaskWrites, checkpoint: Any, asked: set[str], answers: int = 0) -> str | None:
    """Return the namespace of a task that has asked: the id of its question tells which of the due nodes it ran."""
    for node in _due(checkpoint["channel_values"]):
        own = f"{node}{NS_END}{task.task_id}"
        found = f"{ns}{NS_SEP}{own}" if ns else own
        if asked & {interrupt_id(found, number) for number in (0, answers)}:
            return found
    return None


def _due(values: Mapping[str, Any]) -> Iterable[str]:
    """Return nodes that may be due."""
    for channel in values:
        if channel.startswith((branch_to(""), _JOIN)):
            yield channel.rpartition(NS_END)[2]
    yield from (send.node for send in values.get(TASKS, ()))


def _node_of(task_path: str) -> str | None:
    kind, comma, node = task_path.removeprefix("~").partition(", ")
    return node if comma and kind == PULL else None


# ---- subgraphs that keep their state -------------------------------------------------------------------------------


async def _name_caller(unit: Unit, writes_of: WritesOf) -> None:
    """Note which task called a subgraph that keeps its state: by it, going on is told from a new call."""
    parents = unit.metadata.get("parents")
    name = unit.checkpoint_ns.rpartition(NS_SEP)
    place = name[0] if name[2].isdecimal() else unit.checkpoint_ns
    around, _, node = place.rpartition(NS_SEP)
    if not node or NS_END in node or not isinstance(parents, dict) or not parents:
        return
    where = around if around in parents else max(parents, key=len)
    asked = _asked((channel, value) for task in unit.writes for channel, value in task.writes)
    callers = [
        write.task_id
        for write in await writes_of(where, str(parents[where]))
        if _node_of(write.task_path) == node or asked & _asked([(write.channel, write.value)])
    ]
    if callers:
        unit.metadata = {**unit.metadata, CALLER: callers[0]}
