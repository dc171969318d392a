"""Axes: from a value to a place on the paper, and which values are written beside it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

MOST_TICKS = 6
SURE = 4.0
"""Where the maximum stands on an axis of percentiles: one more nine than is kept."""


@dataclass(frozen=True)
class Scale:
    """An axis: its ends, how values lie between them, and its ticks."""

    low: float
    high: float
    place: Callable[[float], float]
    """Puts a value on a line; equal distances there look equal."""
    ticks: Sequence[float]
    label: Callable[[float], str]

    def part(self, value: float) -> float:
        """Return how far along the axis a value lies, from 0 to 1; what lies outside is put on its end."""
        low, high = self.place(self.low), self.place(self.high)
        if high == low:
            return 0.5
        return min(1.0, max(0.0, (self.place(min(max(value, self.low), self.high)) - low) / (high - low)))


def logarithmic(values: Iterable[float], label: Callable[[float], str]) -> Scale:
    """Return an axis on which equal factors look equal, from a power of ten to another."""
    found = [value for value in values if value > 0] or [1.0]
    low = math.floor(math.log10(min(found)) + 1e-9)
    high = max(low + 1, math.ceil(math.log10(max(found)) - 1e-9))
    step = max(1, math.ceil((high - low) / MOST_TICKS))
    ticks = [10.0**power for power in range(low, high + 1, step)]
    return Scale(10.0**low, 10.0**high, math.log10, ticks, label)


def linear(values: Iterable[float], label: Callable[[float], str]) -> Scale:
    """Return an axis from zero to a round number."""
    top = max([*values, 0.0]) or 1.0
    magnitude = 10.0 ** math.floor(math.log10(top))
    step = next(size * magnitude / 2 for size in (0.4, 1.0, 2.0, 4.0) if top / (size * magnitude / 2) <= MOST_TICKS)
    count = math.ceil(top / step - 1e-9)
    return Scale(0.0, count * step, float, [number * step for number in range(count + 1)], label)


def percentiles() -> Scale:
    """Return an axis for quantiles on which each further nine takes as much room."""

    def place(quantile: float) -> float:
        return SURE if quantile >= 1 else -math.log10(1 - quantile)

    return Scale(0.0, 1.0, place, (0.0, 0.5, 0.9, 0.99, 0.999, 1.0), _percentile)


def _percentile(quantile: float) -> str:
    return "max" if quantile == 1 else f"p{quantile * 100:g}"


def micros(value: float) -> str:
    """Return microseconds as they are said."""
    for unit, size in (("s", 1e6), ("ms", 1e3)):
        if value >= size:
            return f"{value / size:,.3g} {unit}"
    return f"{value:.3g} µs"


def count(value: float) -> str:
    """Return a number as it is said on an axis."""
    for unit, size in (("M", 1e6), ("k", 1e3)):
        if abs(value) >= size:
            return f"{value / size:,.3g}{unit}"
    return f"{value:.3g}"


def factor(value: float) -> str:
    """Return a ratio."""
    return f"{value:.3g}x"
