"""What a crash loses in each mode, beside what the mode costs."""

from __future__ import annotations

import statistics
from functools import partial
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from benchmarks import peers
from benchmarks.bench_durability import contenders
from benchmarks.crash.killing import kill
from benchmarks.crash.victim import KILLED_BY, STEPS, Victim, examine
from benchmarks.durability.grid import MODES, Cell
from benchmarks.files import fresh_path
from benchmarks.harness import Session, question
from benchmarks.results import STEP

if TYPE_CHECKING:
    from collections.abc import Sequence

LOST, AGAIN = "supersteps lost", "supersteps run again"
NODE_MS = 1.0
"""A node that does a little: with none at all, ``async`` is a race that the queue always loses."""
TRIES = 4
"""For each kill: one that comes when the run is over counts for nothing."""
SEED = 20
"""Moments are random, and the same in every run of the benchmarks."""


@question(
    "crash",
    f"what a SIGKILL in the first {KILLED_BY} of {STEPS} supersteps loses, beside what each mode costs",
    short=True,
)
def crash(session: Session) -> None:
    """Ask it on each database that outlives its process."""
    kills = session.pick(full=12, quick=5)
    sides = [side for side in session.sides if side.backend == "asyncio"]
    for backend in session.pick(full=("sqlite", "postgres", "valkey"), quick=("sqlite",)):
        if absence := session.places.missing(backend):
            session.note(absence)
        else:
            over(session, Cell(backend, 8, NODE_MS, 1), sides, MODES, kills)
    session.note("Lost: work that was done when the process died and that its database does not know of.")


def over(session: Session, cell: Cell, sides: Sequence[peers.Side], modes: Sequence[str], kills: int) -> None:
    """Measure on one database what the modes cost without a crash, and what they lose in some."""
    where = f"{cell.backend}, {cell.node_ms:g} ms"
    for side in sides:
        with session.places.fresh(cell.backend) as place:
            costing = dict(contenders(side, cell, place, modes))
            if place.opens(side):
                named = f"cost, {where}" if side.label == peers.OURS else f"cost, {where}, {side.label}"
                session.compare(named, STEP, costing, repeats=3, at=cell.at | {"whose": side.label}).baseline = None
    lost: dict[str, list[float]] = {}
    again: dict[str, list[float]] = {}
    for side in sides:
        for mode in modes:
            label = mode if side.label == peers.OURS else f"{side.label}: {mode}"
            session.tell(f"crash: {where}, {label}")
            found = session.attempt(f"{where}, {label}", partial(killed, session, cell, side, mode, kills))
            if found:
                lost[label], again[label] = ([float(one) for one in column] for column in zip(*found, strict=True))
    session.record(f"lost, {where}", LOST, lost, at=cell.at)
    session.record(f"again, {where}", AGAIN, again, at=cell.at)
    for label, counts in lost.items():
        mean = statistics.mean(counts)
        session.note(f"{where}, {label}: {mean:.1f} supersteps lost on average, {max(counts):g} at most; {kills} kills")


def killed(session: Session, cell: Cell, side: peers.Side, mode: str, kills: int) -> list[tuple[int, int]]:
    """Kill some runs; return what each lost and ran again."""
    random = Random(SEED)  # noqa: S311 - moments, not secrets
    found: list[tuple[int, int]] = []
    for _ in range(TRIES * kills):
        if len(found) == kills:
            break
        with session.places.fresh(cell.backend) as place:
            if not place.opens(side):
                return []
            ledger = Path(fresh_path(session.directory)).with_suffix(".ledger")
            victim = Victim(side.label, place, mode, cell.node_ms, ledger)
            if kill(victim, random):  # else it was over before: that says nothing
                found.append(side.run(examine, victim))
            ledger.unlink()
    return found
