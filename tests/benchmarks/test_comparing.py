"""What counts as slower, on made-up timings."""

from __future__ import annotations

import math

import pytest

from benchmarks.comparing import BETTER, MACHINE, NOISE, WORSE, Change, changes
from benchmarks.results import STEP, Answer, Case, Report, Sample, Series, Spread

LOOP = "a loop in Python"


def report(loop: float = 1.0, **values: list[float]) -> Report:
    """Return a report of one case of times, on a machine whose loop takes so long."""
    series = {label: Series(found, list(found)) for label, found in values.items()}
    return Report(
        {"date": "then"}, {}, [Answer("question", "title", cases=[Case("case", STEP, None, series)])], {LOOP: [loop]}
    )


@pytest.mark.parametrize(
    ("new", "verdict"),
    [
        ([1.0, 1.1], BETTER),
        ([4.0, 5.0], WORSE),
        ([2.5, 1.0], NOISE),
        ([3.1, 4.0], NOISE),  # apart, but by less than the repeats are
        ([9.0], NOISE),  # taken once: nobody knows
    ],
)
def test_a_change_counts_only_where_the_repeats_lie_clear_of_each_other(new: list[float], verdict: str) -> None:
    """Old was 2 to 3."""
    (change,) = changes(report(slow=[2.0, 3.0]), report(slow=new))
    assert change.verdict == verdict


@pytest.mark.parametrize(
    ("loop", "new", "verdict"),
    [(2.0, [18.0, 18.0], MACHINE), (2.0, [30.0, 30.0], WORSE), (0.5, [6.0, 6.0], MACHINE), (0.5, [2.0, 2.0], BETTER)],
)
def test_what_the_machine_explains_is_told_apart(loop: float, new: list[float], verdict: str) -> None:
    """Old was 10. A machine that takes twice as long for everything excuses a factor of 1.8, not of 3."""
    (change,) = changes(report(x=[10.0, 10.0]), report(loop, x=new))
    assert change.verdict == verdict


def test_bytes_do_not_become_more_because_the_machine_is_slow() -> None:
    """Only times are excused, and only times need several samples."""
    old, new = (
        Report({}, {}, [Answer("q", "t", cases=[Case("c", "bytes", None, {"x": Series([size], [])})])], {LOOP: [loop]})
        for size, loop in ((100.0, 1.0), (150.0, 9.0))
    )
    assert [change.verdict for change in changes(old, new)] == [WORSE]


def test_a_steady_trifle_is_no_change() -> None:
    """Nobody would act on three in a hundred."""
    assert Change("q", "c", "x", STEP, Spread(100, 100, 100), Spread(103, 103, 103)).verdict == NOISE
    assert Change("q", "c", "x", STEP, Spread(0, 0, 0), Spread(1, 1, 1)).factor == math.inf


def test_medians_and_tails_of_latencies_are_compared_too() -> None:
    """A tail may grow while the mean stays."""

    def of(tail: float) -> Report:
        samples = [Sample(5.0, 5.0).having([1.0, 2.0, tail])] * 3
        return Report({}, {}, [Answer("q", "t", cases=[Case("c", STEP, None, {"x": Series.of(samples)})])])

    found = {change.unit: change.verdict for change in changes(of(3.0), of(9.0))}
    assert found == {STEP: NOISE, "µs p50": NOISE, "µs p99": WORSE}


def test_only_what_both_reports_measured_is_compared() -> None:
    """A side that was not there before has no past."""
    assert [change.label for change in changes(report(slow=[1.0]), report(slow=[1.0], fast=[1.0]))] == ["slow"]
