"""The wall clocks of two processes jump back and forth by hours while both run the same threads."""

from __future__ import annotations

import itertools
from typing import Final

from tests.crash.zygote import Zygote
from tests.torture.appending.clients import Work
from tests.torture.appending.places import SHARED, places
from tests.torture.appending.racing import race
from tests.torture.catalog import Report, part

MODES: Final = ("sync", "async", "exit")


@part(
    "clocks",
    "Clocks set back and forth by hours, in two processes on the same threads: order, heads and forks do not change.",
    full=120,
    short=4,
)
def clocks(cases: int, seed: int) -> Report:
    """Each case is a round of both; a checkpoint is newer than its parent whatever the clock says."""
    violations: list[str] = []
    with places() as made, Zygote(made.file("errors"), ["tests.torture.appending.processes"]) as zygote:
        every = itertools.cycle(itertools.product(SHARED, MODES))
        for number, (kind, mode) in enumerate(itertools.islice(every, cases)):
            first = seed + number
            work = Work(first, mode, clients=2, threads=2, operations=6)
            said, _ = race(made, zygote, kind, work, clocks=(2 * first + 1, 2 * first + 2))
            violations += [f"{kind}, {mode}, round {number}: {each}" for each in said]
    return Report(cases, violations)
