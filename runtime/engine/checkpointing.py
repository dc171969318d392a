"""From cells to a checkpoint and what storage needs of it.

Append-only channels are stored as what they gained. Addition number i rests on addition p(i), so that a value is read
back from few rows and no byte is stored often: with base 8, p(i) is i-1 within a group of 8, i-8 at each group's end,
i-64 at each 64th, and so on. Reading takes at most 7 rows per level and log8(i) levels; each item is stored once per
level. (The shape of a Fenwick tree; the doubling snapshots of a log-structured store would cost as few bytes but leave
up to half of all additions to be read.)
"""

from __future__ import annotations

from operator import is_
from typing import TYPE_CHECKING, Any, Final

from persistence.contracts.checkpoint import CHECKPOINT_FORMAT, Addition, Checkpoint, Mark

if TYPE_CHECKING:
    from runtime.engine.cells import Cells

GROUP: Final = 8
"""Additions per level: trades rows read (7 per level) against copies of each item (one per level)."""
WORTHWHILE_ITEMS: Final = 8
"""A shorter list is stored whole: an addition's own bookkeeping would cost as much."""
WORTHWHILE_TEXT: Final = 256
"""Likewise for text, in characters."""


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


def take_changes(cells: Cells, kept: dict[str, Any]) -> dict[str, Any]:
    """Return what storage lacks: changed channels with their value or addition; they then count as stored.

    ``kept`` remembers, by channel, the append-only value that was stored last.
    """
    changes: dict[str, Any] = {}
    for key in cells.changed:
        value = cells.stored[key]
        if type(value) in (list, str) and cells.channels[key].appends:
            changes[key] = _grown(cells, key, value, kept)
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
        base_index = resting_on(index)
        marks = tuple(mark for mark in marks if mark.index <= base_index)
        if marks and marks[-1].index == base_index:
            base = marks[-1]
            cells.lineage[key] = (*marks, Mark(index, version, len(value)))
            return Addition(base, index, value[base.length :])
    cells.lineage[key] = (Mark(0, version, len(value)),)
    return value


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
