"""README.md's table of what durability costs, made from the figures of one run that are kept beside this file."""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.durability.grid import BACKENDS, MODES
from benchmarks.peers import LANGGRAPH, OURS
from benchmarks.results import BARE, STEP, spread
from benchmarks.tables import noise, number

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.results import Answer, Case, Report, Series

MEASURED = Path(__file__).with_name("measured.json")
README = Path(__file__).parent.with_name("README.md")
BEGIN, END = "<!-- measured: written by `python -m benchmarks readme --write` -->", "<!-- end of measured -->"
NAMES = {"memory": "memory", "sqlite": "SQLite", "postgres": "PostgreSQL", "valkey": "Valkey"}
ONE = {"memory": "memory-saver", "sqlite": "sqlite-one", "postgres": "postgres-one"}
"""The questions that put one run at a time beside LangGraph."""
MANY = {"sqlite": "sqlite-many", "postgres": "postgres-many"}
LOADS = (1, 32, 1_000)
HEADS = [
    "saved in",
    "mode",
    "added to a superstep",
    "p50",
    "p99",
    *(f"{runs:,} at once" for runs in LOADS),
    "lost in a crash",
    "LangGraph, 1 run",
    "LangGraph, 200 runs",
]
BUSY = 0.5
"""A load above which a machine of few cores was not there for the benchmarks alone."""
ABSENT = "-"


def section(report: Report) -> str:
    """Return what stands between the marks in README.md."""
    return "\n".join((BEGIN, *paragraph(report), "", *table(report), END))


def inserted(readme: str, report: Report) -> str:
    """Return README.md with its section made anew. Raises ValueError if its marks are missing."""
    before, begin, rest = readme.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        message = f"README.md has no place for the table: it needs the lines {BEGIN} and {END}"
        raise ValueError(message)
    return f"{before}{section(report)}{after}"


def paragraph(report: Report) -> Iterator[str]:
    """Yield the lines that say on what machine, and how thoroughly, the figures were taken."""
    facts = report.machine
    load = float(facts.get("load", "0").split()[0])
    sweep = "the full sweep" if facts.get("sweep") == "full" else "a short sweep"
    yield f"From one run of {sweep} ({facts.get('date', '')[:10]}): {facts.get('cpu')}, {facts.get('memory')},"
    yield f"{facts.get('disk')}, {facts.get('system')}, {facts.get('python')}, SQLite {facts.get('sqlite')}."
    for name, values in report.yardsticks.items():
        yield f"There {name} took {number(spread(values).median)} µs ({noise(values)})."
    if load > BUSY:
        yield f"**The machine was busy with other work (load {load:.1f}): times are too long, ratios are rough.**"


def table(report: Report) -> Iterator[str]:
    """Yield the lines of the table: a row for each database and mode; a column that says nothing is left out."""
    rows = [HEADS, *body(report)]
    kept = [column for column in zip(*rows, strict=True) if any(cell not in {ABSENT, "all"} for cell in column[1:])]
    heads, *lines = zip(*kept, strict=True)
    yield f"| {' | '.join(heads)} |"
    yield f"|{'|'.join(['---', '---', *['--:'] * (len(heads) - 2)])}|"
    for line in lines:
        yield f"| {' | '.join(line)} |"


def body(report: Report) -> Iterator[list[str]]:
    """Yield the cells of each row."""
    answers = {answer.question: answer for answer in report.answers}
    cases = plain(answers.get("durability"))
    for backend in BACKENDS:
        found = {int(case.at["runs"]): case for case in cases if case.at["backend"] == backend}
        alone = found.get(1)
        for mode in MODES:
            if alone is None or mode not in alone.series:
                continue
            yield [
                NAMES[backend],
                f"`{mode}`",
                *costs(alone, mode),
                *(rate(found.get(runs), mode) for runs in LOADS),
                lost(answers.get("crash"), backend, mode),
                times(answers.get(ONE.get(backend, "")), mode),
                times(answers.get(MANY.get(backend, "")), mode),
            ]


def plain(answer: Answer | None) -> list[Case]:
    """Return the cases of small states and nodes that do nothing."""
    cases = [case for case in answer.cases if "backend" in case.at] if answer else []
    least = min((float(case.at["state"]) for case in cases), default=0.0)
    return [case for case in cases if (case.at["state"], case.at["node"]) == (least, 0)]


def costs(case: Case, mode: str) -> list[str]:
    """Return what a mode adds to a superstep on average, and the median and tail of its latency."""
    found, bare = case.series[mode], case.series.get(BARE)
    added = micros(spread(found.values).median - spread(bare.values).median) if bare else ABSENT
    tail = [micros(found.latency.at(quantile)) for quantile in (0.5, 0.99)] if found.latency else [ABSENT] * 2
    return [added, *tail]


def rate(case: Case | None, mode: str) -> str:
    """Return supersteps a second."""
    series: Series | None = case.series.get(mode) if case else None
    return f"{1e6 / spread(series.values).median:,.0f}/s" if series and case and case.unit == STEP else ABSENT


def lost(answer: Answer | None, backend: str, mode: str) -> str:
    """Return how many supersteps a kill cost on average, and at most."""
    for case in answer.cases if answer else ():
        if case.unit == "supersteps lost" and case.at.get("backend") == backend and mode in case.series:
            values = case.series[mode].values
            return f"{statistics.mean(values):.1f} ({max(values):.0f})"
    return "all" if backend == "memory" else ABSENT


def times(answer: Answer | None, mode: str) -> str:
    """Return how many times better than LangGraph, with the spread."""
    for case in answer.cases if answer else ():
        if case.name.split(", ")[-1] == mode and case.baseline == LANGGRAPH and (ratio := case.ratio(OURS)):
            return f"{ratio.median:.1f}x ({ratio.low:.1f} to {ratio.high:.1f})"
    return ABSENT


def micros(value: float) -> str:
    """Return microseconds; what is negative is noise."""
    return f"{number(max(value, 0.0))} µs"
