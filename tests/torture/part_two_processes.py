"""Two processes run the same threads at once: nothing forks, what was acknowledged stays, and the loser is told."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Final

from tests.crash.zygote import Zygote
from tests.torture.appending import peers
from tests.torture.appending.clients import LOSSES, PLAIN, Work
from tests.torture.appending.operations import operations
from tests.torture.appending.places import SHARED, Places, places
from tests.torture.appending.processes import StartingLine
from tests.torture.appending.racing import race
from tests.torture.catalog import Report, part

MODES: Final = ("sync", "async", "exit")
MODULES: Final = ("tests.torture.appending.processes", "tests.torture.appending.peers")


@part(
    "two-processes",
    "Two processes on the same threads: no fork that nobody asked for, no acknowledged update lost, losers are told.",
    full=200,
    short=4,
)
def two_processes(cases: int, seed: int) -> Report:
    """Each case is a round of both, on one backend and mode after the other; every eighth also runs LangGraph."""
    violations: list[str] = []
    told: Counter[str] = Counter()
    theirs: list[bool] = []
    with places() as made, Zygote(made.file("errors"), MODULES) as zygote:
        every = itertools.cycle(itertools.product(SHARED, MODES))
        for number, (kind, mode) in enumerate(itertools.islice(every, cases)):
            said, history = race(made, zygote, kind, Work(seed + number, mode, clients=2, threads=2, operations=6))
            violations += [f"{kind}, {mode}, round {number}: {each}" for each in said]
            told.update(each.error.partition(":")[0] for each in history)
            if number % 8 == 0:
                theirs.append(bool(_their_round(made, zygote, mode, seed + number)))
    losers = sum(told[name] for name in LOSSES)
    note = (
        f"Losers told: {losers}. With LangGraph's SQLite saver, threads forked or acknowledged updates were lost in "
        f"{sum(theirs)} of {len(theirs)} rounds."
    )
    return Report(cases, violations, note)


def _their_round(made: Places, zygote: Zygote, mode: str, seed: int) -> list[str]:
    """Return what LangGraph's saver did wrong; its clients only invoke and update."""
    line, logs, path = StartingLine(made.file("line")), [made.file("log"), made.file("log")], made.file("theirs")
    works = [Work(seed, mode, 1, 1, 4, PLAIN, process=number, faults=True) for number in range(2)]
    with line.kept(2):
        running = [peers.start(zygote, path, work, log, line=line) for work, log in zip(works, logs, strict=True)]
    for each in running:
        each.succeed()
    return peers.judge(path, works[0], operations(logs))
