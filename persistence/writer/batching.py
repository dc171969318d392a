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
    bases: dict[CheckpointKey, None] = field(default_factory=dict)
    """The checkpoints that must be there, in order, but for those that come with the units."""
    _coming: set[CheckpointKey] = field(default_factory=set)
    _counted: int = 0
    """How many of the checkpoints are in that set: it is only made where bases are asked for."""
    leased: list[Rows] = field(default_factory=list)
    """The units that show a lease."""
    beat: Beat | None = None
    """The owner that lives."""

    def add(self, rows: Rows) -> None:
        """Append a unit's rows."""
        if rows.based:
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
        self.bases.update(dict.fromkeys(key for key in rows.bases() if key not in self._coming))


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
