"""Folding a superstep's writes into the channels, in task order and never in completion order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from runtime.channels import (
    MISSING,
    AnyValue,
    BaseChannel,
    BinaryOperatorAggregate,
    DeltaChannel,
    EphemeralValue,
    LastValue,
    LastValueAfterFinish,
    NamedBarrierValue,
    NamedBarrierValueAfterFinish,
    Topic,
    UntrackedValue,
)
from runtime.channels.reducers import overwritten, replacement
from runtime.engine.blaming import note_writers, writers_of
from runtime.engine.scheduling import due_nodes
from runtime.errors import InvalidUpdateError
from runtime.types.constants import RESERVED, TASKS
from runtime.types.telling import add_note

if TYPE_CHECKING:
    from runtime.engine.cells import Cells
    from runtime.engine.tasks import Task

Writes = Sequence[tuple[str, Any]]


def apply(cells: Cells, tasks: Sequence[Task]) -> None:
    """Fold what the tasks wrote; ``cells.updated`` then says which channels hold something new.

    Raises what a channel raises (InvalidUpdateError, a reducer's own error); the cells are as before then.
    """
    tasks = [task.effective for task in tasks]
    ordered = tasks if len(tasks) < 2 else sorted(tasks, key=lambda task: task.order)  # noqa: PLR2004 - nothing to sort
    # Backwards, because a node that the state triggered may have been sent to as well: its triggers count.
    ran = {task.name: task.triggers for task in reversed(ordered)}
    fold(cells, (task.writes or () for task in ordered), ran, bump=bool(ran), tasks=ordered)


def fold(
    cells: Cells,
    writes: Iterable[Writes],
    ran: dict[str, tuple[str, ...]],
    *,
    bump: bool,
    tasks: Sequence[Task] = (),
) -> None:
    """Fold groups of writes; ``ran`` are the nodes that consumed their triggers, ``bump`` whether time passes.

    ``tasks`` are those that wrote them, to be named if it fails. A superstep in which nothing was triggered (a
    Command's writes, an update) does not clear volatile channels.
    """
    fired: set[str] = set()
    grouped = _grouped(writes, cells.plan.triggers, fired)
    read = _read(cells, ran) if ran else {}
    prepared = _prepared(cells, grouped, read, tasks)
    version = cells.next_version()
    channels = cells.channels
    if ran:
        _consume(cells, ran, read, version)
    cells.trigger(fired, version, bump=bump)
    updated = set(fired)
    for key, channel, values in prepared:
        if values is not None and not channel.update(values):
            continue
        if channels.get(key) is not channel:
            cells.place(key, channel)
        cells.touch(key, channel, version)
        if channel.is_available():
            updated.add(key)
    if bump and cells.volatile:
        _clear(cells, [key for key in cells.volatile if key not in grouped], updated, version)
    if bump and cells.deferred and TASKS not in updated and updated.isdisjoint(cells.plan.subscribers):
        _finish(cells, updated, version)
    cells.updated = updated if bump or cells.updated is None else cells.updated | updated


def fold_loose(cells: Cells, writes: Writes) -> None:
    """Fold what no task wrote: a Command's update and goto. No time passes.

    A deferred node that it goes to runs if nothing else is to run; one that is to run already does not wait again.
    """
    due = {trigger for node in due_nodes(cells) for trigger in node.triggers}
    fold(cells, [[write for write in writes if write[0] not in due]], {}, bump=False)
    if cells.deferred and not due_nodes(cells) and cells.peek(TASKS) is MISSING:
        updated: set[str] = set()
        _finish(cells, updated, cells.next_version())
        cells.updated = updated if cells.updated is None else cells.updated | updated


def _read(cells: Cells, ran: dict[str, tuple[str, ...]]) -> dict[str, BaseChannel[Any, Any]]:
    """Return the channels that started the nodes. A plain trigger has none: it is not consumed but cleared."""
    channels = cells.channels
    return {trigger: channels[trigger] for triggers in ran.values() for trigger in triggers if trigger in channels}


def _consume(
    cells: Cells, ran: dict[str, tuple[str, ...]], read: dict[str, BaseChannel[Any, Any]], version: str
) -> None:
    """Note what the nodes have seen, and empty the barriers that started them."""
    versions = cells.versions
    cells.seen = {
        name: {trigger: versions[trigger] for trigger in triggers if trigger in versions}
        for name, triggers in ran.items()
    }
    for trigger, channel in read.items():
        if channel.consume():
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


class Siblings:
    """What the tasks of one superstep have written so far, as far as it decides what can be folded together with it.

    So a superstep that cannot be applied never gets into storage: each task is admitted before its writes are stored.
    Reducers are tried with one task's writes alone; a failure in combination shows when all are folded.
    """

    __slots__ = ("_cells", "_writers", "_written")

    def __init__(self, cells: Cells) -> None:
        self._cells = cells
        self._written: dict[str, list[Any]] = {}
        self._writers: dict[str, str] = {}
        """Who wrote last what is remembered of a key."""

    def admit(self, task: Task) -> None:
        """Raise if the task's writes do not go with those admitted before it; else remember them."""
        mine = _grouped((task.writes or (),), self._cells.plan.triggers, set())
        for key, values in mine.items():
            channel = self._channel(key)
            if channel is not None:
                try:
                    self._check(key, channel, values)
                except InvalidUpdateError as error:
                    before = [self._writers[key]] if key in self._written else []
                    note_writers(error, key, [*before, *writers_of(key, (task,))])
                    raise
        for key, values in mine.items():
            self._remember(key, values, task)

    def _check(self, key: str, channel: BaseChannel[Any, Any], values: list[Any]) -> None:
        together = [*self._written.get(key, ()), *values]
        if type(channel) not in _OURS:
            BaseChannel.check(channel, together)  # a program's own kind may refuse in update() alone
        elif channel.folds:
            replacement(key, together)
            channel.check(values)
        else:
            channel.check(together)

    def _remember(self, key: str, values: list[Any], task: Task) -> None:
        """Keep what a later write may clash with: it must not cost more, the more siblings there are."""
        channel = self._channel(key)
        if channel is None:
            return
        if type(channel) not in _OURS:
            pass
        elif channel.folds:
            values = [write for write in values if overwritten(write)[0]]
        else:
            values = values[-1:]  # either one write is all that the channel takes, or any number is fine
            self._written.pop(key, None)
        if values:
            self._written.setdefault(key, []).extend(values)
            self._writers[key] = task.name

    def _channel(self, key: str) -> BaseChannel[Any, Any] | None:
        channel = self._cells.channels.get(key)
        return self._cells.plan.template(key) if channel is None else channel


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


def _prepared(
    cells: Cells, grouped: dict[str, list[Any]], read: dict[str, BaseChannel[Any, Any]], tasks: Sequence[Task]
) -> list[tuple[str, BaseChannel[Any, Any], list[Any] | None]]:
    """Return the channels to update with their writes, having done everything that can fail on copies.

    One write to most kinds of channel cannot fail. Several writes can, and reducers: they are folded into a copy first,
    that then takes the channel's place (writes None), so that a failure leaves no cell torn. What started a node starts
    over before it takes the writes of the same superstep.
    """
    prepared: list[tuple[str, BaseChannel[Any, Any], list[Any] | None]] = []
    for key, values in grouped.items():
        channel = cells.channels.get(key)
        if channel is None:
            template = cells.plan.template(key)
            if template is None:
                continue
            channel = template.fresh()
        elif key in read:
            channel = channel.copy()
            channel.consume()
        if len(values) == 1 and type(channel) in _SURE:
            prepared.append((key, channel, values))
            continue
        folded = channel.copy()
        try:
            changed = folded.update(values)
        except InvalidUpdateError as error:
            note_writers(error, key, writers_of(key, tasks))
            raise
        except Exception as error:
            add_note(error, f"While folding the superstep's writes into channel {key!r}; nothing of it was stored.")
            if len(tasks) > 1:
                note_writers(error, key, writers_of(key, tasks))
            raise
        if changed:
            prepared.append((key, folded, None))
    return prepared


_SURE: Final[frozenset[type]] = frozenset(
    {AnyValue, EphemeralValue, LastValue, LastValueAfterFinish, Topic, UntrackedValue}
)
"""Kinds that take one write, whatever it is."""

_OURS: Final[frozenset[type]] = _SURE | {
    BinaryOperatorAggregate,
    DeltaChannel,
    NamedBarrierValue,
    NamedBarrierValueAfterFinish,
}
