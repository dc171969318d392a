"""The page: machine, pictures, figures. One file that refers to nothing outside itself and runs no script."""

from __future__ import annotations

from html import escape
from itertools import groupby
from typing import TYPE_CHECKING

from benchmarks.page.drawing import Figure
from benchmarks.page.figures import figures
from benchmarks.results import spread
from benchmarks.tables import noise, number, times

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.results import Answer, Report

STYLE = """
:root { color-scheme: light; font-family: Verdana, "DejaVu Sans", Helvetica, Arial, sans-serif; line-height: 1.45; }
body { margin: 0 auto; padding: 12px; max-width: 1320px; color: #222; background: #fff; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.15rem; margin: 1.6rem 0 .6rem; border-bottom: 1px solid #ddd; }
.pictures { display: grid; gap: 14px; grid-template-columns: repeat(auto-fill, minmax(min(100%, 370px), 1fr)); }
figure { margin: 0; } figure svg { display: block; width: 100%; height: auto; }
figcaption, .note { font-size: .8rem; color: #555; overflow-wrap: anywhere; }
.failure { color: #b00020; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 2px 12px; font-size: .85rem; }
dt { color: #555; } dd { margin: 0; overflow-wrap: anywhere; }
details { margin: .4rem 0; } summary { cursor: pointer; }
.wide { overflow-x: auto; } table { border-collapse: collapse; font-size: .8rem; }
th, td { padding: 2px 8px; text-align: right; border-bottom: 1px solid #eee; white-space: nowrap; }
th:nth-child(-n+2), td:nth-child(-n+2) { text-align: left; }
"""


def page(report: Report) -> str:
    """Return a report as HTML."""
    drawn = figures(report)
    body = [
        "<h1>What durability costs</h1>",
        _facts(report),
        *(part for _, group in groupby(drawn, lambda figure: figure.section) for part in _section(list(group))),
        "<h2>All figures</h2>",
        *(part for answer in report.answers for part in _answer(answer)),
    ]
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<link rel="icon" href="data:,">\n'
        f"<title>What durability costs</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
        + "\n".join(body)
        + "\n</body>\n</html>\n"
    )


def _facts(report: Report) -> str:
    rows = [f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in report.machine.items()]
    for name, values in report.yardsticks.items():
        rows.append(f"<dt>{escape(name)}</dt><dd>{number(spread(values).median)} µs, noise {noise(values)}</dd>")
    for label, settings in report.settings.items():
        rows.append(f"<dt>{escape(label)}</dt><dd>{escape('; '.join(settings))}</dd>")
    return f"<dl>{''.join(rows)}</dl>"


def _section(drawn: list[Figure]) -> Iterator[str]:
    yield f"<h2>{escape(drawn[0].section)}</h2>"
    yield '<div class="pictures">'
    for figure in drawn:
        yield f'<figure id="{escape(figure.name)}">\n{figure.svg}'
        yield f"<figcaption>{escape(figure.caption)}</figcaption></figure>"
    yield "</div>"


def _answer(answer: Answer) -> Iterator[str]:
    yield f"<details><summary>{escape(answer.question)}: {escape(answer.title)}</summary>"
    yield '<div class="wide"><table><tr><th>case</th><th>contender</th><th>median</th><th>unit</th><th>noise</th>'
    yield "<th>p50 µs</th><th>p95</th><th>p99</th><th>max</th><th>times better</th></tr>"
    for case in answer.cases:
        for label, series in case.series.items():
            tail = series.latency
            latencies = [number(tail.at(q)) for q in (0.5, 0.95, 0.99, 1.0)] if tail else [""] * 4
            cells = [
                case.name,
                label,
                number(spread(series.values).median),
                case.unit,
                noise(series.values),
                *latencies,
                times(case.ratio(label)),
            ]
            yield f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}</tr>"
    yield "</table></div>"
    for note in answer.notes:
        yield f'<p class="note">{escape(note)}</p>'
    for failure in answer.failures:
        yield f'<p class="note failure">failed: {escape(failure)}</p>'
    yield "</details>"
