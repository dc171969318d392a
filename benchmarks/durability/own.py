"""A user's own graph in each mode: ``MODULE:GRAPH`` and the input of its runs.

Its nodes are not ours to watch, so latencies come from streams of its tasks: from the last task's end in a superstep to
the first one's start in the next, or to the end of the stream. Throughput is that of plain runs.
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Any

from benchmarks import peers
from benchmarks.durability import limits
from benchmarks.durability.backends import Counting
from benchmarks.durability.grid import many
from benchmarks.durability.stepping import THREADS, in_turn, together
from benchmarks.graphs import config
from benchmarks.harness import MICRO, Stopwatch
from benchmarks.results import BARE, STEP
from persistence.writer.saver import GroupCommitSaver
from runtime.cli.loading import load_graph
from runtime.graph.recovery import with_saver

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.durability.grid import Grid
    from benchmarks.durability.places import Place
    from benchmarks.harness import Session
    from benchmarks.results import Sample

REPEATS = 3


def over(session: Session, grid: Grid, target: str, given: Any) -> None:
    """Measure a graph in every mode, on each database, with each number of runs at once."""
    side = peers.actorgraph()
    supersteps, stored = side.run(survey, target, given)
    session.note(f"{target}: {supersteps} supersteps a run, {stored:,} bytes stored in each")
    session.expect(len(grid.backends) * len(grid.runs))
    for backend in grid.backends:
        if absence := session.places.missing(backend):
            session.note(absence)
            continue
        for runs in grid.runs:
            with session.places.fresh(backend) as place:
                found: dict[str, Callable[[], Sample]] = {
                    BARE: partial(side.run, sample, target, given, runs, None, None)
                }
                found |= {mode: partial(side.run, sample, target, given, runs, place, mode) for mode in grid.modes}
                if runs == 1:
                    found |= limits.contenders(place, session.directory, stored)
                at: dict[str, str | float] = {"backend": backend, "state": stored, "node": 0, "runs": runs}
                name = f"{backend}, {target}, {many(runs)}"
                session.compare(name, STEP, found, repeats=REPEATS, at=at).baseline = None


async def survey(target: str, given: Any) -> tuple[int, int]:
    """Return how many supersteps a run has, and how many bytes one stores. Raises RuntimeError if there are none."""
    counting = Counting()
    async with GroupCommitSaver(counting) as saver:
        graph = await load_graph(target, saver)
        steps = len(await watched(graph, given, "sync"))
    if not steps:
        message = f"{target} did nothing with this input: there is no superstep to measure"
        raise RuntimeError(message)
    return steps, counting.bytes // steps


async def sample(target: str, given: Any, runs: int, place: Place | None, mode: str | None) -> Sample:
    """Time runs without a saver, or in a place; then watch as many."""
    if place is None:
        return await timed(with_saver(await load_graph(target, None), None), given, runs, mode)
    async with place.saver(peers.actorgraph()) as saver:
        return await timed(await load_graph(target, saver), given, runs, mode)


async def timed(graph: Any, given: Any, runs: int, mode: str | None) -> Sample:
    """Time plain runs, then watch streamed ones; microseconds per superstep, with their latencies."""
    latencies: list[float] = []

    async def plain() -> None:
        await graph.ainvoke(given, config(f"own {next(THREADS)}"), durability=mode)

    async def watching() -> None:
        latencies.extend(await watched(graph, given, mode))

    await watching()
    steps = len(latencies)
    latencies.clear()
    with Stopwatch() as watch:
        count = await together(plain, runs) if runs > 1 else await in_turn(plain)
    await (together(watching, runs) if runs > 1 else in_turn(watching))
    return watch.micros.per(count * steps).having(latencies)


async def watched(graph: Any, given: Any, mode: str | None) -> list[float]:
    """Run once, on a thread of its own; return the latency of each superstep in microseconds."""
    latencies: list[float] = []
    ended: float | None = None
    async with graph.astream(given, config(f"own {next(THREADS)}"), stream_mode="tasks", durability=mode) as stream:
        async for told in stream:
            now = time.perf_counter()
            if "triggers" not in told:
                ended = now
            elif ended is not None:
                latencies.append((now - ended) * MICRO)
                ended = None
    if ended is not None:
        latencies.append((time.perf_counter() - ended) * MICRO)
    return latencies
