"""Folding a superstep's writes into the channels, in task order and never in completion order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from runtime.channels.reducers import replacement
from runtime.errors import InvalidUpdateError
from runtime.types.constants import RESERVED

if TYPE_CHECKING:
    from runtime.channels import BaseChannel
    from runtime.engine.cells import Cells
    from runtime.engine.tasks import Task

Writes = Sequence[tuple[str, Any]]


def apply(cells: Cells, tasks: Sequence[Task]) -> None:
    """Fold what the tasks wrote; ``cells.updated`` then says which channels hold something new.

    Raises what a channel raises (InvalidUpdateError, a reducer's own error); the cells are as before then.
    """
    tasks = [task.effective for task in tasks]
    ordered = tasks if len(tasks) < 2 else sorted(tasks, key=lambda task: task.order)  # noqa: PLR2004 - nothing to sort
    ran = {task.name: task.triggers for task in ordered}
    fold(cells, (task.writes or () for task in ordered), ran, bump=bool(ran))


def fold(cells: Cells, writes: Iterable[Writes], ran: dict[str, tuple[str, ...]], *, bump: bool) -> None:
    """Fold groups of writes; ``ran`` are the nodes that consumed their triggers, ``bump`` whether time passes.

    A superstep in which nothing was triggered (a Command's writes, an update) does not clear volatile channels.
    """
    fired: set[str] = set()
    grouped = _grouped(writes, cells.plan.triggers, fired)
    prepared = _prepared(cells, grouped)
    version = cells.next_version()
    channels = cells.channels
    if ran:
        _consume(cells, ran, version)
    cells.trigger(fired, version, bump=bump)
    updated = set(fired)
    for key, channel, values in prepared:
        if values is None:
            channels[key] = channel
        elif not channel.update(values):
            continue
        cells.touch(key, channel, version)
        if channel.is_available():
            updated.add(key)
    if bump and cells.volatile:
        _clear(cells, [key for key in cells.volatile if key not in grouped], updated, version)
    if bump and cells.deferred and updated.isdisjoint(cells.plan.subscribers):
        _finish(cells, updated, version)
    cells.updated = updated if bump or cells.updated is None else cells.updated | updated


def _consume(cells: Cells, ran: dict[str, tuple[str, ...]], version: str) -> None:
    """Note what the nodes have seen, and empty the barriers that started them."""
    versions, channels = cells.versions, cells.channels
    cells.seen = {
        name: {trigger: versions[trigger] for trigger in triggers if trigger in versions}
        for name, triggers in ran.items()
    }
    for triggers in ran.values():
        for trigger in triggers:
            channel = channels.get(trigger)  # a plain trigger has none: it is not consumed but cleared
            if channel is not None and channel.consume():
                cells.touch(trigger, channel, version)


def _clear(cells: Cells, keys: Iterable[str], updated: set[str], version: str) -> None:
    """Let a superstep pass for channels that it did not write to."""
    for key in keys:
        channel = cells.channels[key]
        if channel.is_available() and channel.update(()):
            cells.touch(key, channel, version)
            if channel.is_available():
                updated.add(key)


def _finish(cells: Cells, updated: set[str], version: str) -> None:
    """Tell the channels that waited for it that nothing else is left to do."""
    for key in list(cells.deferred):
        channel = cells.channels[key]
        if channel.finish():
            cells.touch(key, channel, version)
            if channel.is_available():
                updated.add(key)


def check(cells: Cells, finished: Sequence[Task], task: Task) -> None:
    """Raise if the task's writes cannot be folded together with those of siblings that finished before it.

    Called before the task's writes are stored, so that a superstep that cannot be applied never gets into storage.
    Channels that take one write are checked against the siblings; reducers are tried with this task's writes alone.
    """
    mine = _grouped((task.writes or (),), cells.plan.triggers, set())
    for key, values in mine.items():
        channel = cells.channels.get(key)
        if channel is None:
            continue
        others = [value for other in finished for name, value in other.writes or () if name == key]
        if channel.folds:
            replacement(key, [*others, *values])
            channel.check(values)
        else:
            channel.check([*others, *values])


def _grouped(writes: Iterable[Writes], triggers: frozenset[str], fired: set[str]) -> dict[str, list[Any]]:
    """Return the writes by channel; those to trigger channels only say that they fired."""
    grouped: dict[str, list[Any]] = {}
    for group in writes:
        for key, value in group:
            if key in triggers:
                fired.add(key)
            elif key in grouped:
                grouped[key].append(value)
            elif key not in RESERVED:
                grouped[key] = [value]
    return grouped


def _prepared(cells: Cells, grouped: dict[str, list[Any]]) -> list[tuple[str, BaseChannel[Any, Any], list[Any] | None]]:
    """Return the channels to update with their writes, having done everything that can fail on copies.

    One plain write to a channel cannot fail. Several writes, or a reducer, can: they are folded into a copy first, that
    then takes the channel's place (writes None), so that a failure leaves no cell torn.
    """
    prepared: list[tuple[str, BaseChannel[Any, Any], list[Any] | None]] = []
    for key, values in grouped.items():
        channel = cells.open(key)
        if channel is None:
            continue
        if len(values) == 1 and not channel.folds:
            prepared.append((key, channel, values))
            continue
        folded = channel.copy()
        try:
            changed = folded.update(values)
        except InvalidUpdateError:
            raise
        except Exception as error:
            error.add_note(f"While folding the superstep's writes into channel {key!r}; nothing of it was stored.")
            raise
        if changed:
            prepared.append((key, folded, None))
    return prepared
