"""Time for stores that moves when told to."""

from __future__ import annotations

START = 1_780_000_000.0


class Clock:
    """Seconds."""

    def __init__(self) -> None:
        """Begin some day in 2026."""
        self.now = START

    def __call__(self) -> float:
        """Return the time."""
        return self.now

    def advance(self, *, minutes: float) -> None:
        """Let time pass."""
        self.now += minutes * 60
