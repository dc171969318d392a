"""What thousands of runs that only wait cost, in time and in memory."""

from __future__ import annotations

import tracemalloc
from functools import partial
from typing import TYPE_CHECKING

import anyio

from benchmarks.graphs import config, waiting
from benchmarks.harness import Session, Stopwatch, question
from benchmarks.results import Sample

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.peers import Side

MEASURED = 500
"""Runs in the memory case: enough for a stable quotient; tracemalloc makes more of them slow."""
LONG_ENOUGH = 60.0


@question("waiting", "runs that wait in a node, no checkpointer")
def waits(session: Session) -> None:
    """Ask it with 5,000 runs that wait 5 s, or 1,000 that wait 1 s."""
    runs, seconds = session.pick(full=(5_000, 5.0), quick=(1_000, 1.0))
    measure(session, runs, seconds)


def measure(session: Session, runs: int, seconds: float) -> None:
    """Compare the time beyond the wait, and the bytes a waiting run holds."""
    timed = {side.label: partial(side.run, beyond, side, runs, seconds) for side in session.sides}
    session.compare(f"{runs} runs x {seconds:g} s, beyond the wait", "s", timed, repeats=1, warmups=0)
    held = {side.label: partial(side.run, bytes_per_run, side, min(runs, MEASURED)) for side in session.sides}
    session.compare("held by a waiting run", "bytes", held, repeats=1)
    session.note("bytes: Python allocations by tracemalloc, in a pass of its own, while every run is waiting")


async def beyond(side: Side, runs: int, seconds: float, stopwatch: Callable[[], Stopwatch] = Stopwatch) -> Sample:
    """Start all runs, wait for all; return the seconds beyond what each of them waited."""
    graph = waiting(side, seconds, lambda: None)
    with stopwatch() as watch:
        async with anyio.create_task_group() as group:
            for number in range(runs):
                group.start_soon(graph.ainvoke, {"count": 0}, config(number))
    total = watch.seconds
    return Sample(total.value - seconds, total.cpu)


async def bytes_per_run(side: Side, runs: int) -> Sample:
    """Return the bytes allocated per run once all of them wait; then cancel them."""
    everyone = anyio.Event()
    here = 0

    def arrived() -> None:
        nonlocal here
        here += 1
        if here == runs + 1:
            everyone.set()

    await waiting(side, 0.0, arrived).ainvoke({"count": 0}, config("warm-up"))
    graph = waiting(side, LONG_ENOUGH, arrived)
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        async with anyio.create_task_group() as group:
            for number in range(runs):
                group.start_soon(graph.ainvoke, {"count": 0}, config(number))
            await everyone.wait()
            after, _ = tracemalloc.get_traced_memory()
            group.cancel_scope.cancel()
    finally:
        tracemalloc.stop()
    return Sample((after - before) / runs)
