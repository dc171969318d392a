"""How commits are shared as the load grows: units per transaction, depth of the channel, wait; also on slow disks.

A slow disk is this one with a pause after each commit, as its fsync would take. The raw rate beside it commits as many
rows of the same bytes at once as there are runs, up to the engine's own limit, without an engine.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from benchmarks import peers
from benchmarks.durability import limits
from benchmarks.durability.backends import Slowed
from benchmarks.durability.grid import Cell, many
from benchmarks.durability.stepping import measure, stored_bytes
from benchmarks.harness import Session, question
from benchmarks.results import STEP
from persistence.sqlite.backend import SqliteBackend
from persistence.writer.limits import DEFAULT_LIMITS
from persistence.writer.saver import GroupCommitSaver

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.durability.places import Place
    from benchmarks.results import Sample
    from persistence.writer.statistics import WriterStatistics

BUSY = 5.0
"""Seconds to wait for a lock that nobody holds here; the saver's own default."""
RAW = "raw batches"
BATCH, DEPTH, COMMIT = "units per commit", "deepest channel", "ms per commit"


@question("group-commit", "commits shared by runs on SQLite, as their number and the disk's slowness grow", short=True)
def group_commit(session: Session) -> None:
    """Ask it for some loads, on this disk and on slower ones."""
    loads = session.pick(full=(1, 8, 64, 256, 1_000), quick=(1, 16, 256))
    over(session, loads, session.pick(full=(0.0, 2.0, 10.0), quick=(0.0, 10.0)))


def over(session: Session, loads: Sequence[int], slowness: Sequence[float], repeats: int = 3) -> None:
    """Measure ``sync`` at each load and slowness, and ``async`` on this disk, with what the writer told of itself."""
    session.expect(len(loads))
    for runs in loads:
        cell = Cell("sqlite", 100, 0.0, runs)
        told: dict[str, list[WriterStatistics]] = {}
        with session.places.fresh("sqlite") as place:
            found = {
                named: partial(sample, cell, place, mode, pause, told.setdefault(named, []))
                for named, mode, pause in variants(slowness)
            }
            batch = min(runs, DEFAULT_LIMITS.batch_items)
            raw = partial(limits.sqlite_commit, session.directory, bytes(stored_bytes(cell)), batch)
            case = session.compare(many(runs), STEP, {**found, RAW: raw}, repeats=repeats, at={"runs": runs})
            case.baseline = None
        for what, value in ((BATCH, per_commit), (DEPTH, deepest), (COMMIT, commit_time)):
            session.record(
                f"{many(runs)}, {what}", what, {name: list(map(value, each)) for name, each in told.items()}, at=case.at
            )


def variants(slowness: Sequence[float]) -> list[tuple[str, str, float]]:
    """Return what takes part: name, mode, and milliseconds that each commit takes longer."""
    slow = [(f"sync, +{pause:g} ms" if pause else "sync", "sync", pause) for pause in slowness]
    return [*slow, ("async", "async", 0.0)]


def sample(cell: Cell, place: Place, mode: str, pause: float, told: list[WriterStatistics]) -> Sample:
    """Time the runs; note what the writer says afterwards."""
    side = peers.actorgraph()

    async def timed() -> Sample:
        database = SqliteBackend(place.address, synchronous="FULL", busy_timeout=BUSY)
        async with GroupCommitSaver(Slowed(database, pause / 1_000)) as saver:
            found = await measure(side, cell, saver, mode)
            told.append(saver.statistics())
            return found

    return side.run(timed)


def per_commit(told: WriterStatistics) -> float:
    """Return how many units a transaction held on average."""
    return told.units / told.batches if told.batches else 0.0


def deepest(told: WriterStatistics) -> float:
    """Return how many units waited at most."""
    return float(told.peak_items)


def commit_time(told: WriterStatistics) -> float:
    """Return how long a transaction took on average, in milliseconds."""
    return told.commit_seconds_total / told.batches * 1_000 if told.batches else 0.0
