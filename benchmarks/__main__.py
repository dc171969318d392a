"""``python -m benchmarks``: run the questions, print the ratios."""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

import benchmarks
from benchmarks import machine, peers, report, results
from benchmarks.harness import QUESTIONS, Question, Session

if TYPE_CHECKING:
    from collections.abc import Callable

ORDER = (
    "chain",
    "sqlite-one",
    "sqlite-many",
    "postgres-one",
    "postgres-many",
    "memory-saver",
    "raw",
    "storage",
    "waiting",
    "growth",
    "fanout",
    "shapes",
    "first-event",
)


def main(argv: list[str] | None = None) -> int:
    """Run the benchmarks from the command line; 1 if a contender failed."""
    register()
    options = parse(argv)
    old = results.load(options.compare) if options.compare else None
    console = Console(width=None if sys.stdout.isatty() else 140)
    with tempfile.TemporaryDirectory(prefix="benchmarks-", dir=options.directory) as directory:
        session = Session(peers.sides(options.side), Path(directory), quick=options.quick, repeats=options.repeats)
        found = results.Report(
            machine.facts(Path(directory)), {side.label: list(side.settings) for side in session.sides}, session.answers
        )
        report.show_header(console, found)
        run(console, session, [QUESTIONS[name] for name in options.only or ORDER], partial(save, found, options.json))
    report.show_summary(console, found)
    if old:
        report.show_changes(console, old, found)
    return 1 if any(answer.failures for answer in found.answers) else 0


def register() -> None:
    """Import every ``bench_*`` module, so that its questions are known."""
    for module in pkgutil.iter_modules(benchmarks.__path__):
        if module.name.startswith("bench_"):
            importlib.import_module(f"benchmarks.{module.name}")


def parse(argv: list[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=benchmarks.__doc__)
    parser.add_argument("--only", action="append", choices=ORDER, metavar="NAME", help=f"one of {', '.join(ORDER)}")
    parser.add_argument("--quick", action="store_true", help="smaller sizes and fewer repeats")
    parser.add_argument("--repeats", type=int, help="samples per case, whatever the question says")
    parser.add_argument("--side", action="append", metavar="LABEL", help="take part only: LangGraph, actorgraph, ...")
    parser.add_argument("--json", type=Path, metavar="FILE", help="save the results")
    parser.add_argument("--compare", type=Path, metavar="FILE", help="print what changed since saved results")
    parser.add_argument("--directory", type=Path, help="where databases are made; its disk is what is measured")
    return parser.parse_args(argv)


def save(found: results.Report, path: Path | None) -> None:
    """Save what was found so far, if that was asked for."""
    if path:
        found.save(path)


def run(console: Console, session: Session, questions: list[Question], keep: Callable[[], None]) -> None:
    """Ask the questions, showing progress; print and keep each answer as it comes."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, auto_refresh=False) as progress:
        bar = progress.add_task("", total=len(questions))
        session.tell = lambda text: progress.update(bar, description=text, refresh=True)
        for question in questions:
            report.show_answer(console, session.ask(question))
            keep()
            progress.advance(bar)


if __name__ == "__main__":
    sys.exit(main())
