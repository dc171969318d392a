"""A process is frozen in the middle of its work, another takes its threads over, and then it wakes up."""

from __future__ import annotations

import itertools
import os
import random
import signal
from collections import Counter
from typing import Final

import anyio

from persistence.writer.limits import Limits
from tests.crash.zygote import STOPPED, Zygote
from tests.torture.appending import processes
from tests.torture.appending.clients import FAULTS, LOSSES, Work, graph_of
from tests.torture.appending.finding import judged
from tests.torture.appending.kits import OURS
from tests.torture.appending.operations import Operation, facts, operations
from tests.torture.appending.places import SHARED, Kind, Places, places
from tests.torture.catalog import Report, part

MODES: Final = ("sync", "async", "exit")
LOOPS: Final = ("asyncio", "trio")
LIMITS: Final = Limits(attempts=3, first_delay=0.001, longest_delay=0.01, lease_seconds=0.3)
SETTINGS: Final = {"sqlite": {"busy_timeout": 0.05}, "postgres": {"command_timeout": 0.5}}
"""A process that froze in the middle of a transaction holds its locks: the other must not wait for long."""


@part(
    "frozen",
    "A process that froze while another went on with its threads writes nothing over the other's work, and is told.",
    full=200,
    short=4,
)
def frozen(cases: int, seed: int) -> Report:
    """Each case freezes a process at some place, runs another on the same threads to its end, and wakes the first."""
    dice, violations, told, froze = random.Random(seed), list[str](), Counter[str](), 0
    with places() as made, Zygote(made.file("errors"), ["tests.torture.appending.processes"]) as zygote:
        every = itertools.cycle(itertools.product(SHARED, MODES))
        for number, (kind, mode) in enumerate(itertools.islice(every, cases)):
            at = dice.randint(1, 150)
            stopped, said, history = _round(made, zygote, kind, mode, seed + number, at)
            froze += stopped
            violations += [f"{kind}, {mode}, round {number}, place {at}: {each}" for each in said]
            told.update(each.error.partition(":")[0] for each in history)
    lost, failed = (sum(told[name] for name in names) for names in (LOSSES, FAULTS))
    return Report(cases, violations, f"{froze} froze; {lost} calls were told of the other, {failed} of locks.")


def _round(
    made: Places, zygote: Zygote, kind: Kind, mode: str, seed: int, at: int
) -> tuple[bool, list[str], list[Operation]]:
    logs = [made.file("log"), made.file("log")]
    works = [Work(seed, mode, 2, 2, 6, process=number, faults=True) for number in range(2)]
    with made.watched(kind, **SETTINGS[kind]) as place:
        first = processes.start(
            zygote, place, works[0], logs[0], loop=LOOPS[seed % 2], fatal=at, by=signal.SIGSTOP, limits=LIMITS
        )
        ended = first.wait()
        second = processes.start(zygote, place, works[1], logs[1], loop=LOOPS[seed // 2 % 2], limits=LIMITS)
        second.succeed()
        if ended == STOPPED:
            os.kill(first.pid, signal.SIGCONT)
            first.succeed()
        history = operations(logs)

        async def judge() -> list[str]:
            async with place.opened() as saver:
                return await judged(graph_of(OURS, saver), works[0].names(), history, made.epochs(place))

        said = anyio.run(judge)
    told = [facts(log) for log in logs]
    unopened = [
        Operation("invoke", "", error=f"BackendError: {each['unopened']}") for each in told if "unopened" in each
    ]
    return ended == STOPPED, [*itertools.chain(*(each["unexpected"] for each in told)), *said], history + unopened
