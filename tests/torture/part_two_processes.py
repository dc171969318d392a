"""Two processes run the same threads at once: nothing forks, what was acknowledged stays, and the loser is told."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Final

import anyio

from tests.crash.zygote import Zygote
from tests.torture.appending import peers, processes
from tests.torture.appending.clients import LOSSES, PLAIN, Work, graph_of
from tests.torture.appending.finding import judged
from tests.torture.appending.kits import OURS
from tests.torture.appending.operations import Operation, facts, operations
from tests.torture.appending.places import SHARED, Kind, Places, places
from tests.torture.appending.processes import StartingLine
from tests.torture.catalog import Report, part

MODES: Final = ("sync", "async", "exit")
LOOPS: Final = ("asyncio", "trio")
MODULES: Final = ("tests.torture.appending.processes", "tests.torture.appending.peers")


@part(
    "two-processes",
    "Two processes on the same threads: no fork that nobody asked for, no acknowledged update lost, losers are told.",
    full=200,
    short=6,
)
def two_processes(cases: int, seed: int) -> Report:
    """Each case is a round of both, on one backend and mode after the other; every eighth also runs LangGraph."""
    violations: list[str] = []
    told: Counter[str] = Counter()
    theirs: list[bool] = []
    with places() as made, Zygote(made.file("errors"), MODULES) as zygote:
        every = itertools.cycle(itertools.product(SHARED, MODES))
        for number, (kind, mode) in enumerate(itertools.islice(every, cases)):
            said, history = _round(made, zygote, kind, mode, seed + number)
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


def _work(seed: int, mode: str, process: int) -> Work:
    return Work(seed, mode, clients=2, threads=2, operations=6, process=process)


def _round(made: Places, zygote: Zygote, kind: Kind, mode: str, seed: int) -> tuple[list[str], list[Operation]]:
    line, logs = StartingLine(made.file("line")), [made.file("log"), made.file("log")]
    with made.place(kind) as place:
        with line.kept(2):
            running = [
                processes.start(zygote, place, _work(seed, mode, number), log, loop=loop, line=line)
                for number, (log, loop) in enumerate(zip(logs, LOOPS, strict=True))
            ]
        for each in running:
            each.succeed()
        history = operations(logs)

        async def judge() -> list[str]:
            async with place.opened() as saver:
                return await judged(graph_of(OURS, saver), _work(seed, mode, 0).names(), history)

        said = anyio.run(judge)
    return [*itertools.chain(*(facts(log)["unexpected"] for log in logs)), *said], history


def _their_round(made: Places, zygote: Zygote, mode: str, seed: int) -> list[str]:
    """Return what LangGraph's saver did wrong; its clients only invoke and update."""
    line, logs, path = StartingLine(made.file("line")), [made.file("log"), made.file("log")], made.file("theirs")
    works = [Work(seed, mode, 1, 1, 4, PLAIN, process=number, faults=True) for number in range(2)]
    with line.kept(2):
        running = [peers.start(zygote, path, work, log, line=line) for work, log in zip(works, logs, strict=True)]
    for each in running:
        each.succeed()
    return peers.judge(path, works[0], operations(logs))
