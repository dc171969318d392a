"""What a benchmark run found: records that are printed, saved as JSON and compared with an older run.

A ratio is taken between repeats that ran next to each other, then summarised; the machine's slow minutes then weigh on
both sides alike.
"""

from __future__ import annotations

import math
import statistics
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

STEP = "µs/step"
"""The unit whose reciprocal is worth printing too."""
BARE = "no checkpointer"
"""The contender that keeps nothing: what it takes is no cost of durability."""


def digits(value: float) -> float:
    """Return a value to six digits: more are no information, and a large part of a kept report."""
    return float(f"{value:.6g}")


class Spread(msgspec.Struct, frozen=True):
    """The middle and the ends of some values."""

    median: float
    low: float
    high: float


def spread(values: Sequence[float]) -> Spread:
    """Return median, minimum and maximum. Raises ValueError if there is no value."""
    if not values:
        message = "no values to summarise; the case recorded nothing"
        raise ValueError(message)
    return Spread(statistics.median(values), min(values), max(values))


QUANTILES = (0.0, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 1.0)
"""Where a distribution is kept: enough to draw it, and to tell its tail."""


class Distribution(msgspec.Struct, frozen=True):
    """How long single supersteps took: values at ``QUANTILES``, over all repeats."""

    count: int
    values: list[float]

    @classmethod
    def of(cls, values: Sequence[float]) -> Distribution:
        """Summarise values; a quantile is the smallest value that so many do not exceed."""
        ordered = sorted(values)
        return cls(len(ordered), [digits(ordered[max(0, math.ceil(q * len(ordered)) - 1)]) for q in QUANTILES])

    def at(self, quantile: float) -> float:
        """Return one of the kept quantiles."""
        return self.values[QUANTILES.index(quantile)]


class Sample(msgspec.Struct, frozen=True):
    """One measurement: the value in the case's unit and, if it is a time, the CPU time the process spent meanwhile."""

    value: float
    cpu: float | None = None
    latencies: Sequence[float] = ()
    """Microseconds of each operation by itself, where they were watched."""

    def per(self, count: int) -> Sample:
        """Return this sample's share of one among ``count`` operations."""
        return Sample(self.value / count, None if self.cpu is None else self.cpu / count, self.latencies)

    def having(self, latencies: Sequence[float]) -> Sample:
        """Return this sample with the latencies of its operations."""
        return Sample(self.value, self.cpu, tuple(latencies))


class Series(msgspec.Struct, frozen=True):
    """All samples of one contender in one case, in the order they were taken."""

    values: list[float]
    cpu: list[float]
    latency: Distribution | None = None
    """Of all operations of all samples, where they were watched."""
    medians: list[float] = []
    """The median latency of each sample: how far they lie apart is the noise of the one above."""
    tails: list[float] = []
    """The 99th percentile of each sample, likewise."""

    @classmethod
    def of(cls, samples: Sequence[Sample]) -> Series:
        """Turn samples into a series."""
        watched = [Distribution.of(sample.latencies) for sample in samples if sample.latencies]
        return cls(
            [digits(sample.value) for sample in samples],
            [digits(sample.cpu) for sample in samples if sample.cpu is not None],
            Distribution.of([one for sample in samples for one in sample.latencies]) if watched else None,
            [found.at(0.5) for found in watched],
            [found.at(0.99) for found in watched],
        )


class Case(msgspec.Struct):
    """One thing measured for several contenders. Lower is better, always."""

    name: str
    unit: str
    baseline: str | None = None
    """The contender that the others are divided into; None where a ratio would mean nothing."""
    series: dict[str, Series] = msgspec.field(default_factory=dict)
    at: dict[str, str | float] = msgspec.field(default_factory=dict)
    """The case's place on the axes of a plot, by the name of the axis."""

    def ratio(self, label: str) -> Spread | None:
        """Return how many times better than the baseline a contender is; None if nothing can be said."""
        pair = self._pair(label)
        return spread(ratios(pair[0].values, pair[1].values)) if pair else None

    def cpu_ratio(self, label: str) -> Spread | None:
        """Return the same for CPU time, which other programs on the machine disturb less; None if it was not taken."""
        pair = self._pair(label)
        return spread(ratios(pair[0].cpu, pair[1].cpu)) if pair and pair[0].cpu and pair[1].cpu else None

    def _pair(self, label: str) -> tuple[Series, Series] | None:
        theirs = self.series.get(self.baseline or "")
        ours = self.series.get(label)
        return None if theirs is None or ours is None or label == self.baseline else (theirs, ours)


class Answer(msgspec.Struct):
    """What one question found."""

    question: str
    title: str
    seconds: float = 0.0
    cases: list[Case] = msgspec.field(default_factory=list)
    notes: list[str] = msgspec.field(default_factory=list)
    failures: list[str] = msgspec.field(default_factory=list)


class Report(msgspec.Struct):
    """A whole run of the benchmarks: the machine, the contenders' settings and the answers."""

    machine: dict[str, str]
    settings: dict[str, list[str]]
    answers: list[Answer]
    yardsticks: dict[str, list[float]] = {}
    """What the machine itself took, in microseconds, each time before a question."""

    def save(self, path: Path) -> None:
        """Write the report as JSON."""
        path.write_bytes(msgspec.json.encode(self) + b"\n")


def load(path: Path) -> Report:
    """Read a report that ``Report.save`` wrote. Raises msgspec.ValidationError if it is something else."""
    return msgspec.json.decode(path.read_bytes(), type=Report)


def ratios(numerators: Sequence[float], denominators: Sequence[float]) -> list[float]:
    """Divide repeat by repeat; repeats that only one side has are left out."""
    return [a / b for a, b in zip(numerators, denominators, strict=False)]


def exponent(sizes: Sequence[float], costs: Sequence[float]) -> float:
    """Return k of the best ``cost = c * size ** k``: the slope of a least-squares line through the logarithms."""
    slope, _ = statistics.linear_regression([math.log(x) for x in sizes], [math.log(y) for y in costs])
    return slope
