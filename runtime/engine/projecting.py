"""Reading the cells: what a node sees, what a run returns."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from runtime.channels import MISSING
from runtime.engine.tasks import HandlerTask
from runtime.schema.coerce import view
from runtime.schema.instances import apart
from runtime.types.constants import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from runtime.channels import BaseChannel
    from runtime.engine.cells import Cells
    from runtime.engine.plan import Plan
    from runtime.engine.tasks import Task
    from runtime.schema.introspect import Schema


def node_input(cells: Cells, task: Task) -> Any:
    """Return what the task's node receives: containers as copies, so that no node changes what another sees."""
    if isinstance(task, HandlerTask):
        task = task.failed
    if task.send is not None:
        return _state_view(task.send.arg)
    if task.given is not None:
        arguments, named = task.given
        return tuple(map(view, arguments)), {key: view(value) for key, value in named.items()}
    if task.node.source is not None:
        return view(cells.peek(task.node.source))
    return read(cells, task.node.schema, task.moment)


def _state_view(sent: Any) -> Any:
    """Return a copy of what is sent in place of a state; the values of a dict are copied too, and an instance's."""
    if type(sent) is dict:
        return {key: view(value) for key, value in sent.items()}
    copied = view(sent)
    return apart(sent) if copied is sent and not isinstance(sent, dict) else copied


def read(cells: Cells, schema: Schema, moment: Any) -> Any:
    """Return the schema's view of the state."""
    channels = cells.channels
    if schema.kind == "bare":
        value = channels[ROOT].peek()
        return None if value is MISSING else view(value)
    values: dict[str, Any] = {}
    for key in schema.channels:
        value = channels[key].peek()
        if value is not MISSING:
            values[key] = view(value)
    for key, manager in schema.managed.items():
        values[key] = manager.get(moment)
    return values if schema.build is None else schema.build(values)


def values_of(cells: Cells, keys: Iterable[str]) -> Any:
    """Return the available values of the keys as a new dict (the bare value if the state has no keys)."""
    return _shown(cells.plan, cells.channels, keys)


def _shown(plan: Plan, channels: Mapping[str, BaseChannel[Any, Any]], keys: Iterable[str]) -> Any:
    if plan.bare or plan.single is not None:
        value = channels[plan.single or ROOT].peek()
        return None if value is MISSING else view(value)
    values = {}
    for key in keys:
        channel = channels.get(key)
        if channel is not None:
            value = channel.peek()
            if value is not MISSING:
                values[key] = view(value)
    return values


def values_with(cells: Cells, keys: Iterable[str], tasks: Iterable[Task]) -> Any:
    """Return the values as they would be with these tasks' writes, without folding them into the cells.

    What cannot be folded is left out: this is for showing a run that stops here.
    """
    written: dict[str, list[Any]] = {}
    for task in sorted(tasks, key=lambda task: task.order):
        for key, value in task.writes or ():
            written.setdefault(key, []).append(value)
    if not written:
        return values_of(cells, keys)
    channels = dict(cells.channels)
    for key in written.keys() & cells.plan.state.keys():
        copied = channels[key].copy()
        with suppress(Exception):
            copied.update(written[key])
            channels[key] = copied
    return _shown(cells.plan, channels, keys)


def updates_of_task(cells: Cells, task: Task, keys: Iterable[str] | None = None) -> Any:
    """Return a finished task's state writes as observers see them.

    ``{key: value}``; several writes to one key give a list of dicts; None if it wrote no state.
    """
    return writes_view(cells, task.writes or (), keys)


def writes_view(cells: Cells, writes: Any, keys: Iterable[str] | None = None) -> Any:
    """Return writes as an observer sees them (see ``updates_of_task``)."""
    plan = cells.plan
    wanted = plan.state if keys is None else set(keys)
    if plan.bare or plan.single is not None:
        values = [value for key, value in writes if key == (plan.single or ROOT)]
        return values[-1] if values else None
    pairs = [(key, value) for key, value in writes if key in plan.state and key in wanted]
    if not pairs:
        return None
    if len({key for key, _ in pairs}) < len(pairs):
        return [{key: value} for key, value in pairs]
    return dict(pairs)


def result_of_writes(cells: Cells, writes: Any) -> dict[str, Any]:
    """Return a task's state writes as its result shows them: several to one key as ``{"$writes": [...]}``."""
    grouped: dict[str, list[Any]] = {}
    for key, value in writes:
        if key in cells.plan.state and key != ROOT:
            grouped.setdefault(key, []).append(value)
    return {key: values[0] if len(values) == 1 else {"$writes": values} for key, values in grouped.items()}
