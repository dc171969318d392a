"""When items expire: minutes to live, on the store's clock of seconds."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Final, NamedTuple

from persistence.contracts.store import TTLConfig

SWEEP_MINUTES: Final = 5.0
"""How often the sweeper runs if nobody says."""

_SECONDS: Final = 60.0
_KNOWN: Final = frozenset(TTLConfig.__annotations__)


class Expiry(NamedTuple):
    """A store's config, checked."""

    refresh_on_read: bool = True
    sweep_minutes: float = SWEEP_MINUTES


def expiry(config: TTLConfig | None) -> Expiry:
    """Return what a config says. Raises ValueError if it says something unknown or impossible."""
    given = config or {}
    unknown = given.keys() - _KNOWN
    if unknown:
        message = f"Unknown in a TTL config: {sorted(unknown)}. There are {', '.join(sorted(_KNOWN))}."
        raise ValueError(message)
    minutes(given.get("default_ttl"))
    return Expiry(given.get("refresh_on_read", True), sweep_interval(given.get("sweep_interval_minutes")))


def minutes(ttl: float | None) -> float | None:
    """Return a time to live. Raises TypeError or ValueError if no item can live for it."""
    if ttl is None:
        return None
    if isinstance(ttl, bool) or not isinstance(ttl, int | float):
        message = f"ttl is a number of minutes, or None for ever, not {ttl!r:.80}."
        raise TypeError(message)
    if not (ttl > 0 and math.isfinite(ttl)):
        message = f"ttl must be a positive number of minutes, or None for ever, not {ttl!r}."
        raise ValueError(message)
    return float(ttl)


def sweep_interval(given: float | None) -> float:
    """Return the minutes between sweeps. Raises ValueError if there is no such interval."""
    if given is None:
        return SWEEP_MINUTES
    found = minutes(given)
    return SWEEP_MINUTES if found is None else found


def deadline(now: float, ttl: float | None) -> float | None:
    """Return the second at which an item expires; None for ever."""
    return None if ttl is None else now + ttl * _SECONDS


def alive(expires_at: float | None, now: float) -> bool:
    """Whether an item has not expired."""
    return expires_at is None or expires_at > now


def moment(now: float) -> datetime:
    """Return a second of the clock as a time."""
    return datetime.fromtimestamp(now, UTC)
