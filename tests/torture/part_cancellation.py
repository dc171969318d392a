"""Calls are cancelled before steps of the event loop, over all ways of cancelling, savers, modes and kinds of calls."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from persistence.sqlite import opening
from tests.cancellation.cancelling import TWICE, WAYS, Way, visit
from tests.cancellation.trials import Answer, Asked, Left, Run, Session, Streamed, Update
from tests.cancellation.working import Work
from tests.crash.places import throwaway_folder
from tests.torture.catalog import Report, part

CALLS: dict[str, Callable[[str, Any], Any]] = {
    "ainvoke": lambda mode, saver: Run(Work.fan, mode, saver),
    "astream": lambda mode, saver: Streamed(Work.fan, mode, saver),
    "aclose": lambda mode, saver: Left(Work.nest, mode, saver),
    "subgraph": lambda mode, saver: Run(Work.nest, mode, saver),
    "subgraph streamed": lambda mode, saver: Streamed(Work.nest, mode, saver),
    "threads": lambda mode, saver: Run(Work.threads, mode, saver),
    "questions": lambda mode, saver: Asked(Work.questions, mode, saver),
    "answer": lambda mode, saver: Answer(Work.ask, mode, saver),
    "update": lambda mode, saver: Update(Work.ask, mode, saver),
}


class Sweep(NamedTuple):
    """One kind of call, made in one way and cancelled in one way."""

    call: str
    way: Way
    saver: str
    mode: str

    def visit(self, folder: Path, most: int, chance: random.Random) -> int:
        """Cancel before so many of its steps, chosen by chance, or before each if there are no more; return how many.

        Raises:
            AssertionError: what was left is not what was promised; the message names the step.

        """
        chosen: list[int] = []
        tried = 0

        def moments(steps: int) -> Iterator[int]:
            nonlocal tried
            chosen.extend(chance.sample(range(1, steps + 1), min(most, steps)))
            for tried, moment in enumerate(sorted(chosen), 1):  # noqa: B007 - read by the caller
                yield moment

        visit(self.way, self.saver, folder, self.trial(folder), moments)
        return tried

    def trial(self, folder: Path) -> Callable[[Any], Any]:
        """Return what makes its calls."""
        if self.call == "open to close":
            return lambda _other: Session(folder)
        return lambda saver: CALLS[self.call](self.mode, saver)

    def __str__(self) -> str:
        return f"{self.call}, {self.way.name}, {self.saver}, {self.mode}"


SWEEPS = [
    Sweep(*one) for one in product(CALLS, WAYS + TWICE, ["memory", "sqlite", "narrow"], ["sync", "async", "exit"])
] + [Sweep("open to close", way, "memory", "sync") for way in WAYS + TWICE]

AT_LEAST = 3
"""Points of a sweep; for fewer, opening a saver would take longer than trying it."""


@part(
    "cancellation",
    "Cancelled before any step: no open transaction, task or thread is left, what was acknowledged is there, and "
    "resuming completes with each effect once.",
    full=6_000,
    short=160,
)
def cancellation(cases: int, seed: int) -> Report:
    """Spread the cases over the sweeps, in an order that the seed gives."""
    chance = random.Random(seed)
    sweeps = chance.sample(SWEEPS, len(SWEEPS))
    tried, violations = 0, list[str]()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(opening, "GROWN_LOG", 0)  # there are many databases, and no log need be of working size
        while sweeps and tried < cases:
            fair = -(-(cases - tried) // len(sweeps))
            sweep = sweeps.pop()
            with throwaway_folder() as folder:
                try:
                    tried += sweep.visit(folder, max(fair, AT_LEAST), chance)
                except Exception as error:  # noqa: BLE001 - whatever goes wrong is what is looked for
                    violations.append(f"{sweep}: {type(error).__name__}: {error}")
    return Report(tried, violations, f"({len(SWEEPS) - len(sweeps)} kinds of calls.)")
