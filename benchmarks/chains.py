"""One way of timing a chain of nodes, shared by the questions that differ only in what keeps its checkpoints."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio

from benchmarks.files import fresh_path
from benchmarks.graphs import chain, check_trail, config, fresh_trail
from benchmarks.harness import Stopwatch

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from benchmarks.peers import Side
    from benchmarks.results import Sample


@dataclass(frozen=True)
class Load:
    """How long the chain is, how often it runs, and whether the runs are concurrent."""

    nodes: int
    runs: int
    together: bool = False

    @property
    def steps(self) -> int:
        """Supersteps in all."""
        return self.nodes * self.runs


async def timed_chain(
    side: Side,
    load: Load,
    saver: object = None,
    options: Mapping[str, Any] | None = None,
    stopwatch: Callable[[], Stopwatch] = Stopwatch,
) -> Sample:
    """Time runs of a chain, each on a thread of its own, after one that is not timed; microseconds per superstep."""
    graph = chain(side, load.nodes, saver)

    async def run(thread: object) -> None:
        check_trail(await graph.ainvoke(fresh_trail(), config(thread), **(options or {})), load.nodes)

    await run("warm-up")
    with stopwatch() as watch:
        if load.together:
            async with anyio.create_task_group() as group:
                for number in range(load.runs):
                    group.start_soon(run, number)
        else:
            for number in range(load.runs):
                await run(number)
    return watch.micros.per(load.steps)


async def on_sqlite(side: Side, load: Load, path: str, durability: str) -> Sample:
    """Time a chain on a SQLite file; opening and closing it are not in the timing."""
    async with side.sqlite(path) as saver:
        return await timed_chain(side, load, saver, {"durability": durability})


def on_new_sqlite(
    sides: Sequence[Side], load: Load, directory: Path, durability: str
) -> dict[str, Callable[[], Sample]]:
    """Return each side's contender, which makes itself a new file for every sample."""

    def sample(side: Side) -> Sample:
        return side.run(on_sqlite, side, load, fresh_path(directory), durability)

    return {side.label: partial(sample, side) for side in sides}
