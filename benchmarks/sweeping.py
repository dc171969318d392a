"""Asking questions one after the other, with a progress bar, tables as they come, and what is kept of it."""

from __future__ import annotations

import importlib
import pkgutil
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

import benchmarks
from benchmarks import machine, peers, results, tables
from benchmarks.harness import QUESTIONS, Question, Session
from benchmarks.page.files import write_page

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ORDER = (
    "durability",
    "crash",
    "group-commit",
    "storage",
    "growth",
    "peers",
    "chain",
    "sqlite-one",
    "sqlite-many",
    "postgres-one",
    "postgres-many",
    "threads",
    "memory-saver",
    "raw",
    "waiting",
    "fanout",
    "shapes",
    "first-event",
)
APART = frozenset({"threads"})
"""Asked by name only: storing a million checkpoints takes as long as all others together."""
WIDTH = 160
"""Columns of the tables where the output is no terminal."""


@dataclass(frozen=True)
class Wishes:
    """How questions are to be asked, and what is to become of the answers."""

    full: bool = False
    repeats: int | None = None
    sides: Sequence[str] | None = None
    directory: Path | None = None
    json: Path | None = None
    compare: Path | None = None
    html: Path | None = None
    urls: Mapping[str, str] = field(default_factory=dict)


def register() -> None:
    """Import every ``bench_*`` module, so that its questions are known."""
    for module in pkgutil.iter_modules(benchmarks.__path__):
        if module.name.startswith("bench_"):
            importlib.import_module(f"benchmarks.{module.name}")


def chosen(names: Sequence[str] | None, *, full: bool) -> list[Question]:
    """Return the questions of these names; of none, those of the short or of the full sweep."""
    register()
    usual = [name for name in ORDER if name not in APART and (full or QUESTIONS[name].short)]
    return [QUESTIONS[name] for name in names or usual]


def sweep(questions: Sequence[Question], wishes: Wishes) -> int:
    """Ask questions, print and keep what was found; 1 if a contender failed."""
    old = results.load(wishes.compare) if wishes.compare else None
    console = Console(width=None if sys.stdout.isatty() else WIDTH)
    with (
        tempfile.TemporaryDirectory(prefix="benchmarks-", dir=wishes.directory) as folder,
        Session(
            peers.sides(wishes.sides),
            Path(folder),
            urls=wishes.urls,
            quick=not wishes.full,
            repeats=wishes.repeats,
        ) as session,
    ):
        facts = machine.facts(Path(folder)) | {"sweep": "full" if wishes.full else "short"}
        found = results.Report(facts, {side.label: list(side.settings) for side in session.sides}, session.answers)
        tables.show_header(console, found)
        _ask(console, session, questions, found, wishes.json)
    tables.show_summary(console, found)
    tables.show_yardsticks(console, found)
    if old:
        tables.show_changes(console, old, found)
    if wishes.html:
        write_page(found, wishes.html)
        console.print(f"report: {wishes.html}")
    return 1 if any(answer.failures for answer in found.answers) else 0


def _ask(
    console: Console, session: Session, questions: Sequence[Question], found: results.Report, kept: Path | None
) -> None:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, auto_refresh=False) as progress:
        bar = progress.add_task("questions", total=len(questions))
        cases = progress.add_task("")
        session.tell = lambda text: progress.update(cases, description=text, refresh=True)
        session.expect = lambda count: progress.update(cases, total=count, completed=0, refresh=True)
        session.advance = lambda: progress.advance(cases)
        for question in questions:
            progress.update(cases, total=None, completed=0)
            _take_yardsticks(session, found)
            answer = session.ask(question)
            _take_yardsticks(session, found)
            tables.show_answer(console, answer)
            if kept:
                found.save(kept)
            progress.advance(bar)


def _take_yardsticks(session: Session, found: results.Report) -> None:
    for name, taken in machine.yardsticks(session.directory).items():
        found.yardsticks.setdefault(name, []).append(taken)
