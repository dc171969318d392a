"""Tables for the terminal."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from rich.panel import Panel
from rich.table import Table

from benchmarks.comparing import BETTER, MACHINE, NOISE, WORSE, Change, changes
from benchmarks.results import BARE, STEP, Spread, spread

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from benchmarks.results import Answer, Case, Report, Series

COLOURS = {BETTER: "green", WORSE: "red", MACHINE: "yellow"}


def show_header(console: Console, report: Report) -> None:
    """Print the machine and every side's settings."""
    lines = [f"[bold]{name}[/] {value}" for name, value in report.machine.items()]
    for label, settings in report.settings.items():
        lines.append(f"[bold]{label}[/] {settings[0]}")
        lines += [f"  - {setting}" for setting in settings[1:]]
    console.print(Panel("\n".join(lines), title="actorgraph benchmarks", expand=False))


def show_answer(console: Console, answer: Answer) -> None:
    """Print what one question found."""
    watched = [case for case in answer.cases if any(series.latency for series in case.series.values())]
    if watched:
        console.print(latencies(answer, watched))
    rest = [case for case in answer.cases if case not in watched]
    if rest or not watched:
        console.print(medians(answer, rest))
    for note in answer.notes:
        console.print(f"  {note}", style="dim")
    for failure in answer.failures:
        console.print(f"  failed: {failure}", style="red")


def latencies(answer: Answer, cases: Sequence[Case]) -> Table:
    """Return the table of cases whose operations were watched one by one."""
    table = Table(title=f"{answer.question}: {answer.title}  ({answer.seconds:.0f} s)", title_justify="left")
    for heading in ("case", "mode"):
        table.add_column(heading, no_wrap=True)
    for heading in ("p50 µs", "p95", "p99", "max", "noise of p50", "steps/s", "noise", "µs added", "raw commits"):
        table.add_column(heading, justify="right")
    for case in cases:
        for position, (label, series) in enumerate(case.series.items()):
            table.add_row(case.name if position == 0 else "", label, *latency_cells(case, label, series))
        table.add_section()
    return table


def latency_cells(case: Case, label: str, series: Series) -> list[str]:
    """Return a row of the table of latencies as text."""
    found = spread(series.values)
    whose, _, mode = label.rpartition(": ")
    bare, raw = case.series.get(f"{whose}: {BARE}" if whose else BARE), case.series.get("raw commit")
    engine = not label.startswith("raw") and mode != BARE
    added = number(found.median - spread(bare.values).median) if bare and engine else ""
    times_raw = f"{found.median / spread(raw.values).median:.1f}x" if raw and engine else ""
    tail = ["", "", "", "", ""]
    if series.latency is not None:
        tail = [number(series.latency.at(quantile)) for quantile in (0.5, 0.95, 0.99, 1.0)]
        tail.append(noise(series.medians))
    return [*tail, f"{1e6 / found.median:,.0f}" if found.median else "", noise(series.values), added, times_raw]


def noise(values: Sequence[float]) -> str:
    """Return how far repeats lie from their median, at most."""
    if len(values) < 2:  # noqa: PLR2004 - a lone value has no noise to show
        return "?"
    found = spread(values)
    return f"±{max(found.high - found.median, found.median - found.low) / found.median:.0%}" if found.median else ""


def medians(answer: Answer, cases: Sequence[Case]) -> Table:
    """Return the table of cases that are one value a repeat."""
    table = Table(title=f"{answer.question}: {answer.title}  ({answer.seconds:.0f} s)", title_justify="left")
    for heading in ("case", "side"):
        table.add_column(heading)
    for heading in ("median", "min .. max", "cpu", "steps/s", "times better", "times less cpu"):
        table.add_column(heading, justify="right")
    for case in cases:
        for position, (label, series) in enumerate(case.series.items()):
            table.add_row(case.name if position == 0 else "", label, *cells(case, label, series))
        table.add_section()
    return table


def cells(case: Case, label: str, series: Series) -> list[str]:
    """Return a row's numbers as text."""
    found = spread(series.values)
    cpu = number(spread(series.cpu).median) if series.cpu else ""
    rate = f"{1e6 / found.median:,.0f}" if case.unit == STEP and found.median else ""
    span = f"{number(found.low)} .. {number(found.high)}" if len(series.values) > 1 else ""
    return [
        f"{number(found.median)} {case.unit}",
        span,
        cpu,
        rate,
        times(case.ratio(label)),
        middle(case.cpu_ratio(label)),
    ]


def times(ratio: Spread | None) -> str:
    """Return a ratio with its spread as text."""
    if ratio is None:
        return ""
    if ratio.low == ratio.high:
        return f"{ratio.median:.2f}x"
    return f"{ratio.median:.2f}x ({ratio.low:.2f} .. {ratio.high:.2f})"


def middle(ratio: Spread | None) -> str:
    """Return a ratio without its spread as text."""
    return "" if ratio is None else f"{ratio.median:.2f}x"


def number(value: float) -> str:
    """Return a number with three digits that matter."""
    if abs(value) >= 100:  # noqa: PLR2004
        return f"{value:,.0f}"
    return f"{value:.3g}"


def show_summary(console: Console, report: Report) -> None:
    """Print every ratio once more, in one table."""
    table = Table(title="times better than the first side named", title_justify="left")
    for heading in ("question", "case", "side"):
        table.add_column(heading)
    for heading in ("ratio (min .. max)", "cpu ratio"):
        table.add_column(heading, justify="right")
    for answer in report.answers:
        for case in answer.cases:
            for label in case.series:
                ratio = case.ratio(label)
                if ratio is not None:
                    table.add_row(answer.question, case.name, label, times(ratio), middle(case.cpu_ratio(label)))
    if table.row_count:
        console.print(table)


def show_changes(console: Console, old: Report, new: Report) -> None:
    """Print what became better or worse than in an older report, beyond the noise."""
    found = changes(old, new)
    told = [change for change in found if change.verdict != NOISE]
    table = Table(title=f"since {old.machine.get('date')} ({old.machine.get('commit')})", title_justify="left")
    for heading in ("question", "case", "contender"):
        table.add_column(heading)
    for heading in ("old (min .. max)", "new (min .. max)", "new / old", ""):
        table.add_column(heading, justify="right")
    for change in sorted(told, key=_worst_first):
        table.add_row(
            change.question,
            change.case,
            change.label,
            f"{ranged(change.old)} {change.unit}",
            f"{ranged(change.new)} {change.unit}",
            f"{change.factor:.2f}",
            change.verdict,
            style=COLOURS[change.verdict],
        )
    if told:
        console.print(table)
    counts = Counter(change.verdict for change in found)
    console.print(
        f"Of {len(found)} figures that both have, {counts[WORSE]} became slower or larger beyond the noise, "
        f"{counts[BETTER]} better, {counts[MACHINE]} changed as the machine did, {counts[NOISE]} stayed within noise."
    )
    for name in new.yardsticks:
        if past := old.yardsticks.get(name):
            factor = spread(new.yardsticks[name]).median / spread(past).median
            console.print(f"The machine itself: {name} takes {factor:.2f} times what it took.", style="dim")


def _worst_first(change: Change) -> tuple[bool, float]:
    return change.verdict != WORSE, -change.factor


def ranged(found: Spread) -> str:
    """Return a median with its range as text."""
    return f"{number(found.median)} ({number(found.low)} .. {number(found.high)})"


def show_yardsticks(console: Console, report: Report) -> None:
    """Print what the machine itself took, and how much that varied."""
    for name, values in report.yardsticks.items():
        console.print(f"yardstick: {name} {number(spread(values).median)} µs, noise {noise(values)}", style="dim")
