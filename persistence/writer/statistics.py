"""What the persistence actor tells about itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from persistence.writer.limits import Limit


@dataclass(frozen=True, slots=True)
class WriterStatistics:
    """How full the channel is and what the actor has done since it was opened."""

    limits: tuple[Limit, ...]
    depth_items: int
    depth_bytes: int
    peak_items: int
    peak_bytes: int
    waiting_senders: int
    batches: int
    """Transactions committed."""
    units: int
    """Requests made durable."""
    largest_batch: int
    commit_seconds_total: float
    commit_seconds_last: float
    commit_seconds_max: float
    retries: int
    failures: int
    """Requests that failed for good, those that built on them included."""
