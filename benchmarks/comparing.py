"""What became of older figures: better, worse, or no more than the noise and the machine explain."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import msgspec

from benchmarks.results import Spread, spread

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.results import Report, Series

BETTER, WORSE, NOISE, MACHINE = "better", "worse", "within noise", "as the machine"
LEAST = 1.05
"""A difference that nobody would act on is none, however steady."""


class Change(msgspec.Struct, frozen=True):
    """One figure of a contender in an old and a new report. Lower is better, always."""

    question: str
    case: str
    label: str
    unit: str
    old: Spread
    new: Spread
    drift: float = 1.0
    """How many times longer the yardsticks take on the new machine, or at the new time."""
    once: bool = False
    """Whether a time was taken only once, so that nobody knows its noise."""

    @property
    def factor(self) -> float:
        """New median over old: below 1 is an improvement."""
        return self.new.median / self.old.median if self.old.median else math.inf

    @property
    def verdict(self) -> str:
        """Say whether the repeats lie apart, by more than half of either, and than the machine explains."""
        noise = max(self.old.high - self.old.low, self.new.high - self.new.low) / 2
        if self.once:
            return NOISE
        if self.new.low - self.old.high > noise:
            return _beyond(WORSE, self.factor, self.drift)
        if self.old.low - self.new.high > noise:
            return _beyond(BETTER, 1 / self.factor if self.factor else math.inf, 1 / self.drift)
        return NOISE


def _beyond(verdict: str, times: float, drift: float) -> str:
    if times <= LEAST:
        return NOISE
    return MACHINE if times <= drift else verdict


def changes(old: Report, new: Report) -> list[Change]:
    """Pair what both reports measured, in the new report's order: values, and median and tail of latencies."""
    before = {
        (answer.question, case.name, label): series
        for answer in old.answers
        for case in answer.cases
        for label, series in case.series.items()
    }
    speed = drift(old, new)
    return [
        change
        for answer in new.answers
        for case in answer.cases
        for label, series in case.series.items()
        if (past := before.get((answer.question, case.name, label))) is not None
        for change in _of((answer.question, case.name, label), case.unit, past, series, speed)
    ]


def drift(old: Report, new: Report) -> float:
    """Return how many times longer the yardstick takes that changed most for the worse; 1 if there is none."""
    factors = [
        spread(values).median / spread(past).median
        for name, values in new.yardsticks.items()
        if values and (past := old.yardsticks.get(name))
    ]
    return max(factors, default=1.0)


def _of(place: tuple[str, str, str], unit: str, old: Series, new: Series, speed: float) -> Iterator[Change]:
    once = len(old.values) < 2 or len(new.values) < 2  # noqa: PLR2004 - a lone value has no range
    timed = bool(old.cpu or new.cpu)
    slow = speed if timed else 1.0
    yield Change(*place, unit, spread(old.values), spread(new.values), slow, once and timed)
    for name, past, values in (("p50", old.medians, new.medians), ("p99", old.tails, new.tails)):
        if past and values:
            yield Change(*place, f"µs {name}", spread(past), spread(values), slow, once)
