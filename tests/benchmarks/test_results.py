"""The arithmetic of the benchmarks, on made-up timings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from benchmarks.results import Answer, Case, Report, Sample, Series, exponent, load, spread

if TYPE_CHECKING:
    from pathlib import Path


def case(**values: list[float]) -> Case:
    """Return a case with these series; ``slow`` is the baseline."""
    return Case("case", "µs/step", "slow", {label: Series(found, []) for label, found in values.items()})


def report(**values: list[float]) -> Report:
    """Return a report of one such case."""
    return Report({"date": "then"}, {}, [Answer("question", "title", cases=[case(**values)])])


def test_a_ratio_is_taken_between_neighbouring_repeats() -> None:
    """A machine that halves its speed midway leaves the ratio alone."""
    found = case(slow=[10.0, 20.0, 10.0], fast=[2.0, 4.0, 2.0]).ratio("fast")
    assert found is not None
    assert (found.median, found.low, found.high) == (5.0, 5.0, 5.0)


def test_a_ratio_tells_its_spread() -> None:
    """Median and ends of the quotients, not the quotient of the medians."""
    found = case(slow=[10.0, 10.0, 30.0], fast=[10.0, 5.0, 5.0]).ratio("fast")
    assert found is not None
    assert (found.median, found.low, found.high) == (2.0, 1.0, 6.0)


@pytest.mark.parametrize("label", ["slow", "absent"])
def test_no_ratio_for_the_baseline_itself_or_for_a_stranger(label: str) -> None:
    """There is nothing to say about either."""
    assert case(slow=[1.0], fast=[1.0]).ratio(label) is None


def test_cpu_time_has_a_ratio_of_its_own() -> None:
    """Both clocks may disagree; where one was not taken there is nothing to say."""
    both = Case("case", "s", "slow", {"slow": Series([9.0], [6.0]), "fast": Series([3.0], [3.0])})
    assert both.cpu_ratio("fast") == spread([2.0])
    assert case(slow=[1.0], fast=[1.0]).cpu_ratio("fast") is None


def test_no_ratio_without_a_baseline() -> None:
    """Alone on the machine, a side has nobody to be compared with."""
    assert Case("case", "x", None, {"fast": Series([1.0], [])}).ratio("fast") is None


def test_spread_of_nothing_is_refused() -> None:
    """An empty case is a mistake of the question, not a number."""
    with pytest.raises(ValueError, match="no values"):
        spread([])


def test_a_sample_is_shared_out_with_its_cpu_time() -> None:
    """Both clocks are divided."""
    assert Sample(100.0, 50.0).per(10) == Sample(10.0, 5.0)
    assert Sample(100.0).per(10) == Sample(10.0)


@pytest.mark.parametrize("power", [0.0, 1.0, 2.0])
def test_exponent_finds_the_power(power: float) -> None:
    """An exact power law is recovered."""
    sizes = [10.0, 100.0, 1000.0]
    assert exponent(sizes, [3.0 * size**power for size in sizes]) == pytest.approx(power)


def test_a_report_survives_json(tmp_path: Path) -> None:
    """What is saved is what is loaded."""
    saved = report(slow=[2.0, 3.0], fast=[1.0, 1.5])
    saved.save(tmp_path / "report.json")
    assert load(tmp_path / "report.json") == saved
