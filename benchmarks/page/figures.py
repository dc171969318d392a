"""Which pictures a report has, each from the cases that it holds; a picture without its cases is left out."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING

from benchmarks.page.curves import lines, without_raw
from benchmarks.page.drawing import BELOW, ROW, Figure, Picture, colours, theirs
from benchmarks.page.latencies import latency
from benchmarks.page.scales import count, factor, linear, logarithmic, micros
from benchmarks.results import BARE, STEP, Series, spread

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from benchmarks.results import Answer, Case, Report

NOTHING = 10.0
"""Microseconds that the start of a run already varies by."""


def figures(report: Report) -> list[Figure]:
    """Return all pictures of a report, by section."""
    answers = {answer.question: answer for answer in report.answers}
    return [
        figure for question, draw in DRAWN.items() if question in answers for figure in draw(answers[question])
    ] + list(ratios(report))


def loss(answer: Answer) -> Iterator[Figure]:
    """Show what each mode costs against what it loses in a crash."""
    for lost in (case for case in answer.cases if case.unit == "supersteps lost"):
        backend = str(lost.at["backend"])
        costs: dict[str, float] = {}
        for case in answer.cases:
            if case.unit == STEP and case.at.get("backend") == backend:
                costs |= added(case)
        points = {label: (costs[label], series) for label, series in lost.series.items() if label in costs}
        if not points:
            continue
        hues = colours(list(points))
        picture = Picture(
            f"{backend}: cost against loss",
            logarithmic([cost for cost, _ in points.values()], micros),
            linear([value for _, series in points.values() for value in series.values], count),
            "added to each superstep",
            "supersteps lost in a crash",
            height=320,
        )
        for label, (cost, series) in points.items():
            x, mean = picture.x(cost), picture.y(statistics.mean(series.values))
            ends = spread(series.values)
            picture.bar((x, picture.y(ends.low)), (x, picture.y(ends.high)), hues[label], 1.5)
            picture.dot(x, mean, hues[label], hollow=theirs(label))
            picture.label(x, mean - 5, label, hues[label])
        yield Figure(
            "Cost against loss",
            f"{backend}-loss",
            picture,
            f"{lost.name.removeprefix('lost, ')} nodes; dots: mean of the kills, strokes: from least to most. "
            "Down and to the left is better.",
        )


def added(case: Case) -> dict[str, float]:
    """Return what each mode of a case adds to a superstep; less than ``NOTHING`` is noise, and shown as that."""
    bare = {label: series for label, series in case.series.items() if label.endswith(BARE)}
    found = {}
    for label, series in case.series.items():
        whose = label.rpartition(": ")[0]
        without = bare.get(f"{whose}: {BARE}" if whose else BARE)
        if without is not None and label not in bare:
            found[label] = max(NOTHING, spread(series.values).median - spread(without.values).median)
    return found


def groups(answer: Answer) -> Iterator[Figure]:
    """Show how commits are shared as the load grows."""
    section = "Group commit"

    def of(unit: str) -> list[tuple[float, dict[str, Series]]]:
        return [
            (float(case.at["runs"]), case.series) for case in answer.cases if case.unit == unit and "runs" in case.at
        ]

    def median(series: Series) -> float:
        return spread(series.values).median

    def wait(series: Series) -> float:
        return spread(series.medians).median if series.medians else 0.0

    runs: tuple[str, Callable[[float], str]] = ("runs at once", count)
    for name, unit, value, up, caption in (
        ("throughput", STEP, lambda series: 1e6 / median(series), ("supersteps/s", count), "Supersteps a second."),
        ("batch", "units per commit", median, ("units per commit", count), "Units that share a transaction."),
        ("depth", "deepest channel", median, ("units waiting", count), "Most units waiting in the channel."),
        ("wait", STEP, wait, ("latency", micros), "Median latency of a superstep."),
    ):
        found = of(unit)
        if name == "wait":
            found = [(load, without_raw(series)) for load, series in found]
        if found:
            picture = lines(f"{caption.rstrip('.')}", found, value, across=runs, up=up)
            yield Figure(section, f"group-{name}", picture, "On SQLite; +n ms: each commit takes that much longer.")


def storage(answer: Answer) -> Iterator[Figure]:
    """Show whether a step of a long thread stores more than one of a short thread."""
    for unit, name, label in (("bytes per step", "bytes", count), ("µs/read", "reload", micros)):
        found = [
            (float(case.at["steps"]), case.series) for case in answer.cases if case.unit == unit and "steps" in case.at
        ]
        if found:
            picture = lines(
                {"bytes": "Bytes per step", "reload": "Reading the latest state"}[name],
                found,
                lambda series: spread(series.values).median,
                across=("supersteps of the thread", count),
                up=(unit.replace("µs/", "per "), label),
            )
            yield Figure("Storage", f"storage-{name}", picture, "One thread on SQLite; each step appends 200 bytes.")


def growth(answer: Answer) -> Iterator[Figure]:
    """Show how the cost of a superstep grows, with the exponents in the legend."""
    for over in dict.fromkeys(str(case.at["over"]) for case in answer.cases if "over" in case.at):
        cases = [case for case in answer.cases if case.at.get("over") == over]
        powers = {
            label: series.values[0] for case in cases if case.unit == "n^k" for label, series in case.series.items()
        }
        found = [(float(case.at["size"]), case.series) for case in cases if "size" in case.at]
        if found:
            picture = lines(
                f"Over {over}",
                found,
                lambda series: min(series.values),
                across=(over, count),
                up=("per superstep", micros),
                told={label: f"{label}, n^{power:.2f}" for label, power in powers.items()},
            )
            yield Figure("Growth", f"growth-{over.replace(' ', '-')}", picture, "The exponent: 0 is flat, 1 in step.")


def ratios(report: Report) -> Iterator[Figure]:
    """Show how many times better each contender is than the one that a case names as its baseline."""
    for answer in report.answers:
        rows = [
            (case, label, ratio)
            for case in answer.cases
            for label in case.series
            if (ratio := case.ratio(label)) is not None and ratio.low > 0
        ]
        if not rows or answer.question in ("growth", "storage"):
            continue
        hues = colours([label for _, label, _ in rows])
        values = [end for _, _, ratio in rows for end in (ratio.low, ratio.high, 1.0)]
        picture = Picture(
            answer.question,
            logarithmic(values, factor),
            None,
            f"times better than {rows[0][0].baseline}, least to most",
            height=50 + BELOW + ROW * 2 * len(rows),
            left=12,
        )
        picture.bar((picture.x(1.0), picture.top), (picture.x(1.0), picture.height - BELOW), "#888888", 1.5)
        y = picture.top + 2
        for case, label, ratio in rows:
            picture.text(16, y + 12, f"{case.name}, {label}: {factor(ratio.median)}", size=10)
            y += 2 * ROW
            picture.bar((picture.x(ratio.low), y - 8), (picture.x(ratio.high), y - 8), hues[label], 5)
            picture.dot(picture.x(ratio.median), y - 8, "#000000", hollow=True)
        yield Figure("Peers", f"peers-{answer.question}", picture, answer.title)


DRAWN: dict[str, Callable[[Answer], Iterator[Figure]]] = {
    "durability": latency,
    "crash": loss,
    "group-commit": groups,
    "storage": storage,
    "growth": growth,
}
