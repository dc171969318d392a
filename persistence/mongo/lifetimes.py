"""How long threads stay: all documents of a thread have one date, so that it vanishes as a whole.

The date lies on a grid: between two of its lines what is written has the date already, and a thread's older documents
are dated anew some times in a lifetime, not with every superstep. Readers stop seeing a thread by their clock; a while
later the server deletes it by its own.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, Self

from pymongo import ASCENDING, DeleteMany, IndexModel, UpdateMany

from persistence.mongo.chunks import in_parts
from persistence.stores.ttl import expiry, minutes

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from persistence.contracts.store import TTLConfig

Document = dict[str, Any]

LINES: Final = 16
"""Of the grid, in a lifetime: a thread stays up to a sixteenth longer than was asked for."""

GRACE: Final = 60
"""Seconds by which clocks may differ: nobody may still see a thread of which the server has deleted a part."""

VANISHES: Final = "vanishes_at"

INDEXES: Final = (
    IndexModel([(VANISHES, ASCENDING)], name="vanishing", expireAfterSeconds=GRACE),
    IndexModel([("thread_id", ASCENDING), (VANISHES, ASCENDING)], name="of_a_lifetime"),
)


@dataclass(frozen=True, slots=True)
class Lifetimes:
    """How long what is written stays, where threads may vanish; ``seconds``: after the last write, None for ever."""

    seconds: float | None = None
    refreshes: bool = False
    """Whether reading starts it again."""

    @classmethod
    def given(cls, ttl: TTLConfig | float | None) -> Self | None:
        """Return what a config says, or a number of seconds; None if nothing shall vanish.

        Raises:
            ValueError, TypeError: It says something unknown or impossible.
        """
        if ttl is None:
            return None
        if not isinstance(ttl, dict):
            return cls(_seconds(ttl))
        refreshes, lifetime = expiry(ttl).refresh_on_read, minutes(ttl.get("default_ttl"))
        return None if lifetime is None else cls(lifetime * 60, refreshes)

    def until(self) -> datetime | None:
        """Return the date of what is written now; None if it stays, or no date is so late."""
        if self.seconds is None:
            return None
        step = self.seconds / LINES
        try:
            found = datetime.fromtimestamp(math.ceil((time.time() + self.seconds) / step) * step, UTC)
        except (OverflowError, ValueError):
            return None
        return found - timedelta(microseconds=found.microsecond % 1000)  # as the server keeps it


def alive() -> Document:
    """Return the condition for what has not vanished by this machine's clock."""
    return {"$or": [{VANISHES: None}, {VANISHES: {"$gt": datetime.now(UTC)}}]}


def dated(threads: Iterable[str], until: datetime | None) -> list[Any]:
    """Return what is to be done before something with this date is written to some threads.

    What has expired is no part of them any more, and everything else gets the date too: the last writer decides.
    """
    change = {"$unset": {VANISHES: ""}} if until is None else {"$set": {VANISHES: until}}
    found: list[Any] = []
    for part in in_parts(sorted(set(threads))):
        where: Document = {"thread_id": {"$in": part}}
        found.append(DeleteMany({**where, VANISHES: {"$lte": datetime.now(UTC)}}))
        found.append(UpdateMany({**where, VANISHES: {"$ne": until}}, change))
    return found


def refreshed(documents: Sequence[Document], until: datetime | None) -> list[Any]:
    """Return what makes the threads of documents that were read stay longer: nothing, mostly."""
    if until is None:
        return []
    dates = [(document["thread_id"], document.get(VANISHES)) for document in documents]
    early = {name for name, date in dates if isinstance(date, datetime) and date.replace(tzinfo=UTC) < until}
    if not early:
        return []
    where = {"thread_id": {"$in": sorted(early)}, VANISHES: {"$gt": datetime.now(UTC), "$lt": until}}
    return [UpdateMany(where, {"$set": {VANISHES: until}})]


def _seconds(ttl: object) -> float:
    if isinstance(ttl, bool) or not isinstance(ttl, int | float):
        message = f"ttl is a config of minutes or a number of seconds, not {ttl!r:.80}."
        raise TypeError(message)
    if not (ttl > 0 and math.isfinite(ttl)):
        message = f"ttl must be a positive number of seconds, not {ttl!r}."
        raise ValueError(message)
    return float(ttl)
