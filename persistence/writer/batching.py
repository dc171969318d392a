"""What goes into one transaction, grouped for as few statements as order allows; pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from persistence.contracts.backend import (
    Beat,
    BlobRow,
    CheckpointKey,
    CheckpointRow,
    CopyThread,
    DeleteRuns,
    DeleteThread,
    Prune,
    Request,
    Rows,
    WriteRow,
)
from persistence.writer.fencing import Base

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(slots=True)
class Merged:
    """The rows of consecutive units, by table.

    Merging keeps their meaning: within a table the order of the units is kept, and no table's rows depend on another's.
    """

    checkpoints: list[CheckpointRow] = field(default_factory=list)
    blobs: list[BlobRow] = field(default_factory=list)
    writes: list[WriteRow] = field(default_factory=list)
    upserts: list[WriteRow] = field(default_factory=list)
    fenced: list[tuple[CheckpointRow, str | None]] = field(default_factory=list)
    """If a unit expects a head: every checkpoint in order, with the head it expects."""
    bases: dict[Base, None] = field(default_factory=dict)
    """What must be there beside heads, in order, but for what comes with the units."""
    _coming: set[CheckpointKey] = field(default_factory=set)
    _counted: int = 0
    """How many of the checkpoints are in that set: it is only made where bases are asked for."""
    leased: list[Rows] = field(default_factory=list)
    """The units that show a lease."""
    beat: Beat | None = None
    """The owner that lives."""

    def add(self, rows: Rows) -> None:
        """Append a unit's rows."""
        if rows.rests:
            self._note_bases(rows)
        if rows.checkpoint is not None:
            if rows.expected_head is not None or self.fenced:
                if not self.fenced:
                    self.fenced += [(row, None) for row in self.checkpoints]
                self.fenced.append((rows.checkpoint, rows.expected_head))
            self.checkpoints.append(rows.checkpoint)
        if rows.lease is not None:
            self.leased.append(rows)
        self.blobs += rows.blobs
        self.writes += rows.writes
        self.upserts += rows.upserts

    def _note_bases(self, rows: Rows) -> None:
        self._coming.update(row[:3] for row in self.checkpoints[self._counted :])
        self._counted = len(self.checkpoints)
        own = None if rows.checkpoint is None else rows.checkpoint[:3]
        if own in self._coming:  # the same unit once more
            return
        for key in rows.bases():
            if key not in self._coming:
                self.bases[Base(key, own, "" if key[2] else self._newest_coming(key))] = None

    def _newest_coming(self, where: CheckpointKey) -> str:
        return max((key[2] for key in self._coming if key[:2] == where[:2]), default="")


Segment = Merged | DeleteThread | CopyThread | Prune | DeleteRuns


def segments(batch: Sequence[Request]) -> list[Segment]:
    """Return a batch as what to do one after the other: runs of units merged, everything else alone."""
    found: list[Segment] = []
    merged: Merged | None = None
    for request in batch:
        if isinstance(request, Rows | Beat):
            if merged is None:
                merged = Merged()
                found.append(merged)
            if isinstance(request, Rows):
                merged.add(request)
            else:
                merged.beat = request
        else:
            merged = None
            found.append(request)
    return found
