"""From cells to a checkpoint and what storage needs of it.

Append-only channels are stored as what they gained, dicts merged with ``operator.or_`` as what was written to them.
Addition number i rests on addition p(i), so that a value is read back from few rows and no byte is stored often: with
base 8, p(i) is i-1 within a group of 8, i-8 at each group's end, i-64 at each 64th, and so on. Reading takes at most 7
rows per level and log8(i) levels; each item is stored once per level. (The shape of a Fenwick tree; the doubling
snapshots of a log-structured store would cost as few bytes but leave up to half of all additions to be read.)
"""

from __future__ import annotations

from dataclasses import replace
from operator import is_
from typing import TYPE_CHECKING, Any, Final

from persistence.contracts.checkpoint import CHECKPOINT_FORMAT, Addition, Checkpoint, Mark
from runtime.types.command import Send

if TYPE_CHECKING:
    from collections.abc import Sequence

    from runtime.engine.cells import Cells

GROUP: Final = 8
"""Additions per level: trades rows read (7 per level) against copies of each item (one per level)."""
WORTHWHILE_ITEMS: Final = 8
"""A shorter list is stored whole: an addition's own bookkeeping would cost as much."""
WORTHWHILE_TEXT: Final = 256
"""Likewise for text, in characters."""
WORTHWHILE_KEYS: Final = 2
"""Likewise for dicts: of more keys than are written, whose values may be of any size."""


def checkpoint_of(cells: Cells, checkpoint_id: str, ts: str) -> Checkpoint:
    """Return the checkpoint of the cells as they are; it shares their dicts, to be encoded before they change."""
    return {
        "v": CHECKPOINT_FORMAT,
        "id": checkpoint_id,
        "ts": ts,
        "channel_values": cells.stored,
        "channel_versions": cells.versions,
        "versions_seen": cells.seen,
        "updated_channels": None if cells.updated is None else sorted(cells.updated),
    }


def tracked(value: Any, untracked: frozenset[str]) -> Any:
    """Return a Send without what it gives under the names of keys that are never stored; anything else as it is."""
    if type(value) is not Send or not isinstance(value.arg, dict) or untracked.isdisjoint(value.arg):
        return value
    return replace(value, arg=without(value.arg, untracked))


def without(values: dict[str, Any], untracked: frozenset[str]) -> dict[str, Any]:
    """Return values without those of keys that are never stored."""
    return {key: each for key, each in values.items() if key not in untracked}


def tracked_writes(writes: Sequence[tuple[str, Any]], untracked: frozenset[str]) -> Sequence[tuple[str, Any]]:
    """Return what is recorded of writes: all but those to keys that are never stored."""
    if not untracked:
        return writes
    return [(key, tracked(value, untracked)) for key, value in writes if key not in untracked]


def take_changes(cells: Cells, kept: dict[str, Any]) -> dict[str, Any]:
    """Return what storage lacks: changed channels with their value or addition; they then count as stored.

    ``kept`` is what ``keep`` returned, by channel, and remembers what was stored last.
    """
    changes: dict[str, Any] = {}
    for key in cells.changed:
        value, kind = cells.stored[key], type(cells.stored[key])
        channel = cells.channels.get(key)  # None: of a key that the graph does not have
        if channel is not None and kind in (list, str) and channel.appends:
            changes[key] = _grown(cells, key, value, kept)
        elif channel is not None and kind is dict and channel.merges:
            changes[key] = _merged(cells, key, value, kept)
        else:
            changes[key] = value
            if key in cells.lineage:  # it was overwritten with a value of another type
                del cells.lineage[key]
                kept.pop(key, None)
    cells.changed = set()
    return changes


def _grown(cells: Cells, key: str, value: Any, kept: dict[str, Any]) -> Any:
    """Return the addition that turns the stored value into this one, or the whole value."""
    version = cells.versions[key]
    marks = cells.lineage.get(key)
    before = kept.get(key)
    kept[key] = value
    least = WORTHWHILE_ITEMS if type(value) is list else WORTHWHILE_TEXT
    if marks and before is not None and len(before) >= least and _extends(value, before):
        index = marks[-1].index + 1
        bases = _bases(marks, index)
        if bases:
            cells.lineage[key] = (*bases, Mark(index, version, len(value)))
            return Addition(bases[-1], index, value[bases[-1].length :])
    cells.lineage[key] = (Mark(0, version, len(value)),)
    return value


def _merged(cells: Cells, key: str, value: dict[Any, Any], kept: dict[str, Any]) -> Any:
    """Return likewise for a dict; ``kept`` has, by mark, the keys that were written since."""
    version, marks, written = cells.versions[key], cells.lineage.get(key), cells.channels[key].take_keys()
    since: dict[int, set[Any]] = kept.get(key, {})
    if marks and written is not None:
        index = marks[-1].index + 1
        bases = _bases(marks, index)
        since = {mark.index: since[mark.index] | written for mark in bases if mark.index in since}
        keys = since.get(bases[-1].index) if bases else None
        if keys is not None and WORTHWHILE_KEYS <= len(value) > len(keys):
            cells.lineage[key] = (*bases, Mark(index, version, len(value)))
            kept[key] = {**since, index: set()}
            return Addition(bases[-1], index, {each: value[each] for each in value if each in keys})
    cells.lineage[key] = (Mark(0, version, len(value)),)
    kept[key] = {0: set()}
    return value


def keep(cells: Cells) -> dict[str, Any]:
    """Return, by channel, what must be known of the values that storage has to store only what they gain.

    The append-only value itself, or the keys written since each mark that a merged dict can rest on: none yet.
    """
    kept: dict[str, Any] = {}
    for key, marks in cells.lineage.items():
        value = cells.stored.get(key)
        if type(value) is dict:
            kept[key] = {marks[-1].index: set()}
        elif value is not None:
            kept[key] = value
    return kept


def _bases(marks: tuple[Mark, ...], index: int) -> tuple[Mark, ...]:
    """Return the marks that addition number ``index`` rests on, the one before it last; none if that is not there."""
    base_index = resting_on(index)
    bases = tuple(mark for mark in marks if mark.index <= base_index)
    return bases if bases and bases[-1].index == base_index else ()


def resting_on(index: int) -> int:
    """Return p(index): the addition that this one builds on."""
    step = 1
    while index % (step * GROUP) == 0:
        step *= GROUP
    return index - step


def _extends(value: Any, before: Any) -> bool:
    if type(value) is not type(before) or len(value) < len(before):
        return False
    if type(value) is str:
        return value.startswith(before)
    return value is before or all(map(is_, before, value))
