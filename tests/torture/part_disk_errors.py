"""A disk that fails under running clients: syncs that fail, no room and then room again, made by the kernel."""

from __future__ import annotations

import random
from typing import Final, NamedTuple

import anyio

from persistence.writer.limits import Limits
from tests.crash.tracing import traced, why_not
from tests.crash.zygote import Forked, Zygote
from tests.torture.appending import processes
from tests.torture.appending.clients import Work, graph_of
from tests.torture.appending.finding import judged
from tests.torture.appending.kits import OURS
from tests.torture.appending.operations import facts, operations
from tests.torture.appending.places import Place, Places, places
from tests.torture.catalog import Report, UnavailableError, part

MODES: Final = ("sync", "async", "exit")
LOOPS: Final = ("asyncio", "trio")
SYNCS: Final = "fsync,fdatasync"
WRITES: Final = "pwrite64,ftruncate"
LIMITS: Final = Limits(attempts=3, first_delay=0.001, longest_delay=0.01)


class Fault(NamedTuple):
    """What the kernel answers to some of a process's calls."""

    calls: str
    error: str
    first: int
    last: int

    def options(self, path: str) -> list[str]:
        """Return strace's options that make it happen to a database and its log, and to no other file."""
        when = f"{self.first}..{self.last}" if self.last > self.first else f"{self.first}"
        files = [word for file in (path, f"{path}-wal", f"{path}-journal") for word in ("-P", file)]
        return [*files, "-e", f"trace={self.calls}", "-e", f"inject={self.calls}:error={self.error}:when={when}"]


@part(
    "disk-errors",
    "Syncs fail, the disk is full, and then it is well: nothing is acknowledged that is not there, and threads go on.",
    full=150,
    short=4,
)
def disk_errors(cases: int, seed: int) -> Report:
    """Each case is a process of clients whose database meets an error at some call, or at many in a row."""
    if untraced := why_not():
        raise UnavailableError(untraced)
    dice, violations, met, unopened = random.Random(seed), list[str](), 0, 0
    with places() as made, Zygote(made.file("errors"), ["tests.torture.appending.processes"]) as zygote:
        for number in range(cases):
            fault = _fault(dice, number)
            mode, loop = MODES[number % 3], LOOPS[number // 3 % 2]
            with made.place("sqlite") as place:
                said, failures, refused = _round(
                    made, zygote, place, Work(seed + number, mode, faults=True), loop, fault
                )
            violations += [f"{mode}, {loop}, {fault}: {each}" for each in said]
            met += failures
            unopened += refused
    return Report(cases, violations, f"{met:,} calls were told of an error, {unopened} savers did not open.")


def _fault(dice: random.Random, number: int) -> Fault:
    first = dice.randint(1, 60)
    if number % 2:
        return Fault(SYNCS, "EIO", first, first + dice.choice((0, 0, 1, 5, 40)))
    return Fault(WRITES, "ENOSPC", first, first + dice.choice((0, 10, 80)))


def _round(
    made: Places, zygote: Zygote, place: Place, work: Work, loop: str, fault: Fault
) -> tuple[list[str], int, bool]:
    log, gate = made.file("log"), made.file("gate")

    def start() -> Forked:
        return processes.start(zygote, place, work, log, loop=loop, limits=LIMITS, gate=str(gate), finishes=True)

    traced(start, gate, fault.options(place.where)).succeed()
    history = operations([log])

    async def judge() -> list[str]:
        async with place.opened() as saver:
            return await judged(graph_of(OURS, saver), work.names(), history)

    told = facts(log)
    failures = sum("BackendError" in each.error for each in history)
    return [*told["unexpected"], *anyio.run(judge)], failures, "unopened" in told
