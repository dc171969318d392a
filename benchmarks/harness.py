"""Timing, interleaving and the list of questions.

Contenders of a case take turns (A B A B ...) after a warm-up that is thrown away, so drift of the machine meets all of
them. The heap is collected and frozen before each sample: an engine pays for the garbage it makes, not for its rival's.
"""

from __future__ import annotations

import gc
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self, TypeAlias, TypeVar

from benchmarks.durability.places import Places
from benchmarks.results import Answer, Case, Sample, Series

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from benchmarks.peers import Side

MICRO = 1e6
T = TypeVar("T")


class Stopwatch:
    """Times a ``with`` block: wall clock, and CPU time of all threads of the process."""

    def __init__(self) -> None:
        """Make a stopwatch that has not run."""
        self._wall = self._cpu = 0.0

    def __enter__(self) -> Self:
        """Start."""
        self._cpu = time.process_time()
        self._wall = time.perf_counter()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop; the reading is kept."""
        self._wall = time.perf_counter() - self._wall
        self._cpu = time.process_time() - self._cpu

    @property
    def micros(self) -> Sample:
        """The reading in microseconds."""
        return Sample(self._wall * MICRO, self._cpu * MICRO)

    @property
    def seconds(self) -> Sample:
        """The reading in seconds."""
        return Sample(self._wall, self._cpu)


@contextmanager
def settled_heap() -> Iterator[None]:
    """Collect garbage and hide the survivors from the collector while the block runs; the collector stays on."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def interleave(
    contenders: Mapping[str, Callable[[], Sample]], *, repeats: int, warmups: int, tick: Callable[[], None]
) -> tuple[dict[str, list[Sample]], dict[str, Exception]]:
    """Run the contenders in turns; return their samples, and the error of each that failed and was dropped."""
    samples: dict[str, list[Sample]] = {label: [] for label in contenders}
    failures: dict[str, Exception] = {}
    for turn in range(-warmups, repeats):
        for label, contender in contenders.items():
            if label in failures:
                continue
            try:
                with settled_heap():
                    sample = contender()
            except Exception as error:  # noqa: BLE001 - one contender's failure must not hide the others' numbers
                failures[label] = error
                continue
            if turn >= 0:
                samples[label].append(sample)
            tick()
    return {label: found for label, found in samples.items() if label not in failures and found}, failures


@dataclass
class Session:
    """One run of the benchmarks: who takes part, how thoroughly, and where files may be written."""

    sides: Sequence[Side]
    directory: Path
    urls: Mapping[str, str] = field(default_factory=dict)
    """Servers that exist already, by database."""
    quick: bool = False
    repeats: int | None = None
    tell: Callable[[str], None] = lambda _: None
    """Says what is being measured."""
    expect: Callable[[int], None] = lambda _: None
    """Says how many cases the current question has."""
    advance: Callable[[], None] = lambda: None
    """Says that a case is done."""
    answers: list[Answer] = field(default_factory=list)
    places: Places = field(init=False)

    def __post_init__(self) -> None:
        """Know where databases are made."""
        self.places = Places(self.directory, self.urls)

    def __enter__(self) -> Self:
        """Start no server yet."""
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the servers that were started."""
        self.places.close()

    def ask(self, question: Question) -> Answer:
        """Run one question and keep its answer."""
        answer = Answer(question.name, question.title)
        self.answers.append(answer)
        started = time.perf_counter()
        question.run(self)
        answer.seconds = time.perf_counter() - started
        return answer

    def pick(self, *, full: T, quick: T) -> T:
        """Choose a size."""
        return quick if self.quick else full

    def compare(
        self,
        name: str,
        unit: str,
        contenders: Mapping[str, Callable[[], Sample]],
        *,
        repeats: int,
        warmups: int = 1,
        at: Mapping[str, str | float] | None = None,
    ) -> Case:
        """Measure a case for every contender; the first named is what the others are compared with.

        What is to be done once, because it cannot be done again, is done once whatever was asked for.
        """
        turns = repeats if repeats == 1 else self.repeats or (max(2, repeats // 2) if self.quick else repeats)
        self.tell(f"{self._answer.question}: {name}")
        samples, failures = interleave(
            contenders, repeats=turns, warmups=warmups, tick=lambda: self.tell(f"{self._answer.question}: {name}")
        )
        self._answer.failures += [f"{name}, {label}: {describe(error)}" for label, error in failures.items()]
        case = Case(name, unit, next(iter(contenders), None), at=dict(at or {}))
        case.series = {label: Series.of(found) for label, found in samples.items()}
        self._answer.cases.append(case)
        self.advance()
        return case

    def record(
        self,
        name: str,
        unit: str,
        values: Mapping[str, Sequence[float]],
        baseline: str | None = None,
        at: Mapping[str, str | float] | None = None,
    ) -> Case:
        """Keep values computed from other cases."""
        series = {label: Series(list(found), []) for label, found in values.items() if found}
        case = Case(name, unit, baseline, series, dict(at or {}))
        self._answer.cases.append(case)
        return case

    def attempt(self, name: str, work: Callable[[], T]) -> T | None:
        """Do something that is no race between contenders; None if it failed, which is reported."""
        try:
            return work()
        except Exception as error:  # noqa: BLE001 - one failure must not hide the other numbers
            self._answer.failures.append(f"{name}: {describe(error)}")
            return None

    def note(self, text: str) -> None:
        """Say something beside the numbers of the current question."""
        self._answer.notes.append(text)

    @property
    def _answer(self) -> Answer:
        return self.answers[-1]


def describe(error: BaseException) -> str:
    """Return an error's type and first line; groups show their first member."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"


Asking: TypeAlias = "Callable[[Session], None]"


@dataclass(frozen=True)
class Question:
    """A registered benchmark."""

    name: str
    title: str
    run: Asking
    short: bool = False
    """Whether the short sweep asks it too."""


QUESTIONS: dict[str, Question] = {}


def question(
    name: str, title: str, *, short: bool = False
) -> Callable[[Callable[[Session], None]], Callable[[Session], None]]:
    """Register a function that answers a question by calling ``session.compare``."""

    def register(run: Asking) -> Asking:
        QUESTIONS[name] = Question(name, title, run, short)
        return run

    return register
