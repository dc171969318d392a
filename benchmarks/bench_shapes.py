"""Graphs of the shapes that LangGraph times itself with, and how soon a stream says something."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from benchmarks.graphs import config
from benchmarks.harness import Session, Stopwatch, question
from benchmarks.results import Sample
from benchmarks.shapes import SHAPES, Shape

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.peers import Side

STREAMS = 5
"""Streams in one sample: the start of a single one is over too soon to be timed."""
SAVED = {False: "", True: ", InMemorySaver"}


@question("shapes", "graphs of LangGraph's own benchmark shapes")
def shapes(session: Session) -> None:
    """Ask it for each shape, without a checkpointer and with one in memory."""
    for name, (build, full, quick) in SHAPES.items():
        for size in session.pick(full=full, quick=quick):
            for saved, told in SAVED.items():
                runs = 1 if size >= 100 else 5  # noqa: PLR2004 - a long run needs no repetition
                contenders = {
                    side.label: partial(side.run, timed, side, build, size, saved, runs) for side in session.sides
                }
                session.compare(f"{name} {size}{told}", "µs/run", contenders, repeats=4)


@question("first-event", "time to the first event of a stream, no checkpointer")
def first_event(session: Session) -> None:
    """Ask it for each shape at its smallest."""
    for name, (build, full, _) in SHAPES.items():
        contenders = {side.label: partial(side.run, first, side, build, full[0]) for side in session.sides}
        session.compare(f"{name} {full[0]}", "µs", contenders, repeats=4)


async def timed(
    side: Side,
    build: Callable[..., Shape],
    size: int,
    saved: bool,  # noqa: FBT001 - a case's second axis
    runs: int,
    stopwatch: Callable[[], Stopwatch] = Stopwatch,
) -> Sample:
    """Time whole runs, each on a thread of its own, after one that is not timed."""
    shape = build(side, size, side.memory() if saved else None)
    _check(shape, await shape.graph.ainvoke(shape.given, config("warm-up")))
    with stopwatch() as watch:
        for number in range(runs):
            await shape.graph.ainvoke(shape.given, config(number))
    return watch.micros.per(runs)


async def first(
    side: Side, build: Callable[..., Shape], size: int, stopwatch: Callable[[], Stopwatch] = Stopwatch
) -> Sample:
    """Time from the call of ``astream`` to its first update; the rest of the stream is read outside the timing."""
    shape = build(side, size)
    values, cpus = [], []
    for number in range(-1, STREAMS):  # the first one warms up
        watch = stopwatch()
        with watch:
            stream = shape.graph.astream(shape.given, config(number), stream_mode="updates")
            await anext(stream)
        _ = [chunk async for chunk in stream]
        values.append(watch.micros.value)
        cpus.append(watch.micros.cpu or 0.0)
    return Sample(sum(values[1:]), sum(cpus[1:])).per(STREAMS)


def _check(shape: Shape, result: object) -> None:
    if not shape.right(result):
        message = f"a wrong result: {result!r:.200}"
        raise RuntimeError(message)
