"""A wall clock that somebody sets, again and again, by up to hours and in both directions."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Final

from runtime.types.ids import IDS

HOUR: Final = 3_600_000_000_000
EVERY: Final = 9
"""Readings between two settings."""


class JumpingClock:
    """Reads the machine's clock, and is wrong by an amount that changes."""

    def __init__(self, seed: int, now_ns: Callable[[], int] = time.time_ns) -> None:
        self._dice = random.Random(seed)
        self._now = now_ns
        self._read = 0
        self._wrong = 0

    def __call__(self) -> int:
        """Return nanoseconds since 1970, or so."""
        if self._read % EVERY == 0:
            self._wrong = self._dice.choice((-HOUR, -1_000_000, 0, 1_000, HOUR, self._dice.randint(-HOUR, HOUR)))
        self._read += 1
        return self._now() + self._wrong


def let_clock_jump(seed: int) -> None:
    """Have this process read such a clock wherever it asks for the time of day."""
    clock = JumpingClock(seed)
    IDS._now = clock
    time.time_ns = clock
    time.time = lambda: clock() / 1e9
