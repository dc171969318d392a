"""Processes are killed: at every place of the commit path, at every write of the kernel, and among many others."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import anyio

from tests.crash.examining import Reference
from tests.crash.killing import Killing
from tests.crash.launching import Launcher
from tests.crash.programs import PROGRAMS
from tests.crash.tracing import why_not
from tests.crash.zygote import Zygote
from tests.torture.appending import peers, processes
from tests.torture.appending.clients import PLAIN, Work, graph_of
from tests.torture.appending.finding import judged
from tests.torture.appending.kits import OURS
from tests.torture.appending.operations import Operation, buried, facts, operations
from tests.torture.appending.places import SHARED, Kind, Places, places
from tests.torture.catalog import Report, part
from tests.torture.failing import case

MODES: Final = ("sync", "async", "exit")
LOOPS: Final = ("asyncio", "trio")
MODULES: Final = ("tests.torture.appending.processes", "tests.torture.appending.peers")
MOST_PLACES: Final = 90
"""More than any of the programs passes."""
MOST_WRITES: Final = 45


@part(
    "kills",
    "A run killed at any place of its commit path or at any write goes on; what was durable does not run again.",
    full=500,
    short=16,
)
def kills(cases: int, seed: int) -> Report:
    """Each case is a kill; every fourth is made by the kernel, at a write to the database's files."""
    dice, violations = random.Random(seed), list[str]()
    untraced = why_not()
    with places() as made, Launcher(made.file("errors")) as launcher:
        killed = at_writes = 0
        killings: dict[tuple[str, str, str], tuple[Killing, Reference]] = {}
        while killed < cases:
            name, mode, loop = dice.choice(sorted(PROGRAMS)), dice.choice(MODES), dice.choice(LOOPS)
            by_kernel = killed % 4 == 3 and not untraced
            place = dice.randint(1, MOST_WRITES if by_kernel else MOST_PLACES)
            over = False
            with case(f"{name}, {mode}, {loop}, {'write' if by_kernel else 'place'} {place}", violations):
                if (name, mode, loop) not in killings:
                    killings[name, mode, loop] = _killing(made, launcher, name, mode, loop)
                killing, reference = killings[name, mode, loop]
                killing.clear()  # what a broken case has left
                kill = killing.at_write if by_kernel else killing.at
                over = anyio.run(kill, place, reference, backend=loop) is None
            if over:  # before it came to the place
                continue
            killed += 1
            at_writes += by_kernel
    return Report(killed, violations, f"{at_writes} at writes{f', as {untraced}' if untraced else ''}.")


def _killing(made: Places, launcher: Launcher, name: str, mode: str, loop: str) -> tuple[Killing, Reference]:
    folder = made.file("kills")
    folder.mkdir()
    return Killing(launcher, folder, PROGRAMS[name], mode, loop), anyio.run(Reference.of, PROGRAMS[name])


@part(
    "kills-list-append",
    "Clients killed at any place, twice in a row: what they had been told is there, and the threads go on.",
    full=500,
    short=4,
)
def kills_list_append(cases: int, seed: int) -> Report:
    """Each case is a kill; two processes are killed and a third goes on, then all is judged. LangGraph likewise."""
    dice, violations = random.Random(seed), list[str]()
    killed, rounds, theirs = 0, 0, list[bool]()
    with places() as made, Zygote(made.file("errors"), MODULES) as zygote:
        while killed < cases:
            kind, mode, number = SHARED[rounds % 2], MODES[rounds // 2 % 3], rounds
            places_of_death = [dice.randint(1, 250), dice.randint(1, 250), 0]
            name, deaths = f"{kind}, {mode}, round {number}, {places_of_death}", 1
            with case(name, violations):
                deaths, said = _round(made, zygote, kind, mode, seed + number, places_of_death)
                violations += [f"{name}: {each}" for each in said]
            killed += deaths
            rounds += 1
            if rounds % 6 == 1:
                with case(f"LangGraph, {mode}, round {number}", violations):
                    theirs.append(bool(_their_round(made, zygote, mode, seed + number, dice)))
    note = f"LangGraph's SQLite saver: acknowledged updates lost or threads forked in {sum(theirs)} of {len(theirs)}."
    return Report(killed, violations, note)


def _round(
    made: Places, zygote: Zygote, kind: Kind, mode: str, seed: int, deaths: Sequence[int]
) -> tuple[int, list[str]]:
    killed, said, history = 0, list[str](), list[Operation]()
    with made.watched(kind) as place:
        for number, fatal in enumerate(deaths):
            work = Work(seed, mode, clients=3, threads=2, operations=5, process=number)
            log = made.file("log")
            child = processes.start(zygote, place, work, log, loop=LOOPS[(seed + number) % 2], fatal=fatal)
            if child.was_killed():
                killed += 1
            else:
                said += facts(log)["unexpected"]
            history += _over(log, kind)

        async def judge() -> list[str]:
            async with place.opened() as saver:
                return await judged(graph_of(OURS, saver), work.names(), history, made.epochs(place))

        return killed, said + anyio.run(judge)


def _over(log: Path, kind: Kind) -> list[Operation]:
    """Return what a dead process did. A server may still be at work on what it was sent last, a file is not."""
    found = operations([log])
    return found if kind == "postgres" else buried(found, time.monotonic_ns())


def _their_round(made: Places, zygote: Zygote, mode: str, seed: int, dice: random.Random) -> list[str]:
    path, history = made.file("theirs"), list[Operation]()
    for number, fatal in enumerate((dice.randint(1, 60), dice.randint(1, 60), 0)):
        work, log = Work(seed, mode, 1, 1, 5, PLAIN, process=number), made.file("log")
        peers.start(zygote, path, work, log, fatal=fatal, line=None).was_killed()
        history += buried(operations([log]), time.monotonic_ns())
    return peers.judge(path, work, history)
