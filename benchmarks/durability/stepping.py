"""One sample: runs of a chain whose nodes write a state of some size, and what each superstep added to its node.

The latency of a superstep is the time from its node's end to the next node's start, or to the result where there is no
next one: what the engine and the database take, without the node's own time. The value of a sample is the whole time
divided by the supersteps, nodes and the start of each run included; its reciprocal is the throughput.
"""

from __future__ import annotations

import time
from contextvars import ContextVar
from itertools import count
from typing import TYPE_CHECKING, Any, TypedDict

import anyio

from benchmarks import peers
from benchmarks.durability.backends import Counting
from benchmarks.graphs import chain, config
from benchmarks.harness import MICRO, Stopwatch
from benchmarks.results import Sample
from persistence.writer.saver import GroupCommitSaver

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Mapping

    from benchmarks.durability.grid import Cell
    from benchmarks.peers import Side

ENOUGH = 0.2
"""Seconds that runs one after the other go on in a sample."""
_MARKS: ContextVar[list[float]] = ContextVar("marks")
"""When each node of the current run began and ended."""
THREADS = count()
"""Threads of all samples: those of one database must not meet."""


class Payload(TypedDict):
    """A counter, and the text that every node replaces."""

    count: int
    payload: str


async def measure(side: Side, cell: Cell, saver: object = None, durability: str | None = None) -> Sample:
    """Time the cell's runs, after one that is not timed; microseconds per superstep, with their latencies."""
    node, given = writing(cell)
    graph = chain(side, cell.steps, saver, schema=Payload, node=node)
    options = {"durability": durability} if durability else {}
    latencies: list[float] = []

    async def run() -> None:
        latencies.extend(await _watched(graph, given, cell.steps, options))

    await run()
    latencies.clear()
    with Stopwatch() as watch:
        runs = await together(run, cell.runs) if cell.runs > 1 else await in_turn(run)
    return watch.micros.per(runs * cell.steps).having(latencies)


def writing(cell: Cell) -> tuple[Any, Payload]:
    """Return a node that takes the cell's time and replaces the text, and a run's input."""
    texts = [str(number) * max(1, cell.state_bytes) for number in range(2)]  # made here: that is not the engine's work
    seconds = cell.node_ms / 1_000

    async def node(state: Any) -> dict[str, Any]:
        marks = _MARKS.get()
        marks.append(time.perf_counter())
        if seconds:
            await anyio.sleep(seconds)
        done = state["count"] + 1
        marks.append(time.perf_counter())
        return {"count": done, "payload": texts[done % 2]}

    return node, {"count": 0, "payload": texts[0]}


def stored_bytes(cell: Cell) -> int:
    """Return how many bytes this project hands to the database for a superstep of a cell."""
    counting = Counting()

    async def run() -> None:
        async with GroupCommitSaver(counting) as saver:
            await measure_once(peers.actorgraph(), cell, saver)

    anyio.run(run)
    return counting.bytes // cell.steps


async def measure_once(side: Side, cell: Cell, saver: object) -> None:
    """Run once where every superstep is kept."""
    node, given = writing(cell)
    graph = chain(side, cell.steps, saver, schema=Payload, node=node)
    await _watched(graph, given, cell.steps, {"durability": "sync"})


async def _watched(graph: Any, given: Payload, steps: int, options: Mapping[str, Any]) -> list[float]:
    """Run once, on a thread of its own; return the latency of each superstep in microseconds."""
    marks: list[float] = []
    _MARKS.set(marks)
    result = await graph.ainvoke(given, config(next(THREADS)), **options)
    marks.append(time.perf_counter())
    if result["count"] != steps or len(marks) != 2 * steps + 1:
        message = f"a run of {steps} supersteps ended at {result['count']} after {len(marks) // 2} nodes"
        raise RuntimeError(message)
    return [(after - end) * MICRO for end, after in zip(marks[1::2], marks[2::2], strict=True)]


async def in_turn(run: Callable[[], Awaitable[object]]) -> int:
    """Run one after the other for a while; return how often."""
    runs = 0
    enough = time.perf_counter() + ENOUGH
    while time.perf_counter() < enough:
        await run()
        runs += 1
    return runs


async def together(run: Callable[[], Coroutine[Any, Any, object]], runs: int) -> int:
    """Run so many at once; return how many."""
    async with anyio.create_task_group() as group:
        for _ in range(runs):
            group.start_soon(run)
    return runs
