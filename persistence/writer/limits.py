"""Every number of the persistence actor, each with its reason."""

from __future__ import annotations

from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

MIB = 2**20

REASONS: Mapping[str, str] = MappingProxyType(
    {
        "channel_items": "a slow database slows its runs down; short of that, waiting costs more than it saves",
        "channel_bytes": "memory held by waiting units, whatever their number; one larger unit passes when it is alone",
        "batch_items": "past some hundreds a commit gains no more throughput and only makes the first sender wait",
        "batch_bytes": "keeps one transaction, and the lock it holds, short",
        "attempts": "with the delays below a fault may last about ten seconds before units fail",
        "first_delay": "about one busy commit of another process",
        "longest_delay": "a database that comes back is noticed within this time",
        "commit_seconds": "an answer that takes longer is not waited for; the commit is tried again, which is safe",
        "lease_seconds": "a silent process loses its threads after this time; a pause of its machine is mostly shorter",
        "remembered_losses": "failed checkpoints whose late children are still refused; older runs have heard by then",
    }
)


@dataclass(frozen=True, slots=True)
class Limit:
    """One number and why it is there."""

    name: str
    value: float
    reason: str


@dataclass(frozen=True, slots=True)
class Limits:
    """What a persistence actor may hold, send at once and try; see ``REASONS``."""

    channel_items: int = 8192
    channel_bytes: int = 64 * MIB
    batch_items: int = 256
    batch_bytes: int = 16 * MIB
    attempts: int = 10
    first_delay: float = 0.02
    longest_delay: float = 2.0
    commit_seconds: float = 60.0
    lease_seconds: float = 15.0
    remembered_losses: int = 1024

    def __post_init__(self) -> None:
        """Refuse limits that would let nothing through. Raises ValueError."""
        for limit in self.explained():
            if not limit.value > 0:
                message = f"Limit {limit.name} must be positive, it is {limit.value}: {limit.reason}."
                raise ValueError(message)

    def explained(self) -> tuple[Limit, ...]:
        """Return every limit with its reason."""
        return tuple(Limit(field.name, getattr(self, field.name), REASONS[field.name]) for field in fields(self))


DEFAULT_LIMITS = Limits()
