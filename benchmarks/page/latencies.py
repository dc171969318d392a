"""Pictures of how long supersteps take: their distribution, and what becomes of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.page.curves import lines, without_raw
from benchmarks.page.drawing import BELOW, ROW, Figure, Picture, colours, theirs
from benchmarks.page.scales import count, logarithmic, micros, percentiles
from benchmarks.results import QUANTILES, spread

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from benchmarks.results import Answer, Case

LEAST_LEFT = 118
SMALL_LETTER = 5.8
"""About how wide a letter of the rows' names is."""


def latency(answer: Answer) -> Iterator[Figure]:
    """Show how latencies are distributed, and what they become under load, with state and with slow nodes."""
    cases = [case for case in answer.cases if "backend" in case.at]
    for backend in dict.fromkeys(str(case.at["backend"]) for case in cases):
        mine = [case for case in cases if case.at["backend"] == backend]
        least = {axis: min(float(case.at[axis]) for case in mine) for axis in ("state", "node", "runs")}
        plain = [case for case in mine if all(case.at[axis] == least[axis] for axis in ("state", "node"))]
        for case in plain:
            if case.at["runs"] == least["runs"]:
                yield distribution(backend, case)
        yield ranges(backend, "load", plain)
        beside = [case for case in mine if all(case.at[axis] == least[axis] for axis in ("state", "runs"))]
        if len({case.at["node"] for case in beside}) > 1:
            yield ranges(backend, "nodes", beside)
        for axis, told, label in (("state", "bytes of state", count), ("runs", "runs at once", count)):
            along = [case for case in mine if all(case.at[one] == least[one] for one in least if one != axis)]
            if len({case.at[axis] for case in along}) > 1:
                yield Figure(
                    "Latency and throughput",
                    f"{backend}-by-{axis}",
                    lines(
                        f"{backend}: supersteps a second",
                        [(float(case.at[axis]), without_raw(case.series)) for case in along],
                        lambda series: 1e6 / spread(series.values).median,
                        across=(told, label),
                        up=("supersteps/s", count),
                    ),
                    f"Throughput over {told}, all else at its least; nodes that do nothing.",
                )


def distribution(backend: str, case: Case) -> Figure:
    """Draw the quantiles of every contender's latencies."""
    found = {label: series.latency for label, series in case.series.items() if series.latency}
    hues = colours(list(found))
    values = [value for each in found.values() for value in each.values]
    picture = Picture(
        f"{backend}: latency of a superstep",
        logarithmic(values, micros),
        percentiles(),
        "from a node's end to the next one's start",
        "of all supersteps",
        height=320,
        legend=list(hues.items()),
    )
    for label, each in found.items():
        points = [(picture.x(value), picture.y(q)) for q, value in zip(QUANTILES, each.values, strict=True)]
        picture.line(points, hues[label], dashed=theirs(label) or label.startswith("raw"))
    return Figure("Latency and throughput", f"{backend}-distribution", picture, f"{case.name}. Further left is better.")


HEADINGS = {"load": 2, "nodes": 3}
"""Which part of a case's name tells one row from the other."""
CAPTIONS = {
    "load": "The same latencies as runs share the machine.",
    "nodes": "Beside nodes that take their time, `async` saves while they work.",
}


def ranges(backend: str, along: str, cases: Sequence[Case]) -> Figure:
    """Draw for each contender under each load, or beside slower nodes, where its latencies lie."""
    rows = [
        (case.name.split(", ")[HEADINGS[along]] if position == 0 else "", label, series.latency)
        for case in cases
        for position, (label, series) in enumerate(
            (label, series) for label, series in case.series.items() if series.latency and not label.startswith("raw")
        )
    ]
    hues = colours([label for _, label, _ in rows])
    values = [value for _, _, each in rows if each for value in (each.at(0.05), each.at(1.0))]
    left = max(LEAST_LEFT, 12 + int(SMALL_LETTER * max(len(label) for _, label, _ in rows)))
    picture = Picture(
        f"{backend}: latency {'under load' if along == 'load' else 'beside slow nodes'}",
        logarithmic(values, micros),
        None,
        "bar: p5 to p95, dot: median, stroke: p99",
        height=60 + BELOW + ROW * (len(rows) + len(cases)),
        left=left,
    )
    y = picture.top + 2
    for heading, label, each in rows:
        if heading:
            y += ROW
            picture.text(8, y + 4, heading)
            y += ROW
        else:
            y += ROW
        if each is None:
            continue
        picture.text(left - 6, y + 4, label, anchor="end", size=10)
        picture.bar((picture.x(each.at(0.05)), y), (picture.x(each.at(0.95)), y), hues[label], 6)
        picture.bar((picture.x(each.at(0.99)), y - 6), (picture.x(each.at(0.99)), y + 6), hues[label], 2)
        picture.dot(picture.x(each.at(0.5)), y, "#000000", hollow=True)
    return Figure("Latency and throughput", f"{backend}-{along}", picture, CAPTIONS[along])
