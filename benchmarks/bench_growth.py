"""How the cost of a superstep grows with what surrounds it.

The exponent is the slope of cost over size on logarithmic axes: 0 costs the same at any size, 1 grows in step with it.
"""

from __future__ import annotations

import shutil
from functools import partial
from typing import TYPE_CHECKING, Any, TypedDict

from benchmarks.files import fresh_path
from benchmarks.graphs import Counter, chain, config, increment, looping
from benchmarks.harness import Session, Stopwatch, question
from benchmarks.results import STEP, exponent

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from pathlib import Path

    from benchmarks.peers import Side
    from benchmarks.results import Sample

NODES = 20
SHORT = 2
INPUT_CHECKPOINTS = 2
"""Checkpoints that a run makes besides one for each superstep of its node."""
THREAD = "growing"


@question("growth", "cost of a superstep as its surroundings grow", short=True)
def growth(session: Session) -> None:
    """Ask it for channels, nodes, history and other threads."""
    measure(session, "channels", over_channels, session.pick(full=(10, 100, 1000), quick=(10, 100)))
    measure(session, "nodes", over_nodes, session.pick(full=(10, 100, 500, 2000), quick=(10, 100)))
    past = Past(session.directory)
    measure(session, "checkpoints of history", past.follow, session.pick(full=(10, 200, 2000), quick=(10, 100)))
    measure(session, "threads", past.beside, session.pick(full=(10, 200, 2000), quick=(10, 100)))


def measure(
    session: Session, name: str, work: Callable[[Side, int], Awaitable[Sample]], sizes: Sequence[int]
) -> dict[str, float]:
    """Compare the sides at each size; return and record each side's exponent."""
    sides = [side for side in session.sides if side.backend == "asyncio"]
    cases = []
    for size in sizes:
        contenders = {side.label: partial(side.run, work, side, size) for side in sides}
        at: dict[str, str | float] = {"over": name, "size": size}
        cases.append(session.compare(f"{size} {name}", STEP, contenders, repeats=3, warmups=0, at=at))
    found = {}
    for side in sides:
        costs = [min(case.series[side.label].values) for case in cases if side.label in case.series]
        if len(costs) == len(sizes):
            found[side.label] = exponent(sizes, costs)
    session.record(
        f"exponent over {name}", "n^k", {label: [value] for label, value in found.items()}, at={"over": name}
    )
    told = ", ".join(f"{label} {value:+.2f}" for label, value in found.items())
    session.note(f"cost grows over {name} as n^k with k = {told}; 0 is flat, 1 in step")
    return found


async def over_channels(side: Side, channels: int) -> Sample:
    """Time a chain whose state has many channels, of which each node reads all and writes one."""
    others = [f"c{number}" for number in range(channels - 1)]
    schema = TypedDict("Wide", dict.fromkeys(["count", *others], int))  # type: ignore[misc]
    graph = chain(side, NODES, schema=schema, node=increment)
    state = dict.fromkeys(["count", *others], 0)
    return await timed(graph, state, NODES, runs=3)


async def over_nodes(side: Side, nodes: int) -> Sample:
    """Time a chain of many nodes from its first to its last."""
    graph = chain(side, nodes, schema=Counter, node=increment)
    return await timed(graph, {"count": 0}, nodes, runs=max(1, 100 // nodes))


class Past:
    """Databases that have seen something, made once per side and size; every sample works on a copy."""

    def __init__(self, directory: Path) -> None:
        """Remember where to put the files."""
        self._directory = directory
        self._made: dict[tuple[str, str, int], str] = {}

    async def follow(self, side: Side, checkpoints: int) -> Sample:
        """Time short runs on a thread that already has a history; loading and saving included."""
        return await self._after("history", self._live, side, checkpoints)

    async def beside(self, side: Side, threads: int) -> Sample:
        """Time short runs on a thread beside others."""
        return await self._after("threads", self._settle, side, threads)

    async def _after(
        self, what: str, make: Callable[[Side, int, Any], Awaitable[None]], side: Side, size: int
    ) -> Sample:
        key = (what, side.label, size)
        if key not in self._made:
            self._made[key] = fresh_path(self._directory)
            async with side.sqlite(self._made[key]) as saver:
                await make(side, size, saver)
        path = fresh_path(self._directory)
        shutil.copyfile(self._made[key], path)
        async with side.sqlite(path) as saver:
            graph = chain(side, SHORT, saver, schema=Counter, node=increment)
            return await timed(graph, {"count": 0}, SHORT, runs=10, options={"durability": "async"})

    @staticmethod
    async def _live(side: Side, checkpoints: int, saver: Any) -> None:
        loop = looping(side, Counter, increment, checkpoints - INPUT_CHECKPOINTS, saver)
        await loop.ainvoke({"count": 0}, config(THREAD), durability="async")

    @staticmethod
    async def _settle(side: Side, threads: int, saver: Any) -> None:
        graph = chain(side, SHORT, saver, schema=Counter, node=increment)
        for number in range(threads):
            await graph.ainvoke({"count": 0}, config(f"other {number}"), durability="exit")


async def timed(
    graph: Any, state: dict[str, Any], steps: int, *, runs: int, options: dict[str, Any] | None = None
) -> Sample:
    """Time runs of a graph; microseconds per superstep."""
    options = options or {}
    result = await graph.ainvoke(state, config(THREAD), **options)
    if result["count"] != steps:
        message = f"a run of {steps} supersteps ended at {result['count']}"
        raise RuntimeError(message)
    with Stopwatch() as watch:
        for _ in range(runs):
            await graph.ainvoke(state, config(THREAD), **options)
    return watch.micros.per(steps * runs)
