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
    queue_seconds_total: float
    """How long units waited in the channel until their batch was taken, added up: the mean is this by ``units``.

    What a sender waited for room before that is not in it: see ``waiting_senders``."""
    queue_seconds_last: float
    """How long the oldest unit of the newest batch had waited."""
    queue_seconds_max: float
    commit_seconds_total: float
    commit_seconds_last: float
    commit_seconds_max: float
    retries: int
    failures: int
    """Requests that failed for good, those that built on them included."""
