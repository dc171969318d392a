"""pydantic-graph: steps in a row over a shared state. It keeps nothing, so it is asked only where nobody does."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from importlib import metadata
from importlib.util import find_spec
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import anyio

from benchmarks.harness import Stopwatch

if TYPE_CHECKING:
    from benchmarks.chains import Load
    from benchmarks.results import Sample

LABEL = "pydantic-graph"


@dataclass
class State:
    """A counter."""

    count: int = 0


def settings() -> list[str]:
    """Return how it takes part; empty where it is not installed, or older than its builder."""
    if find_spec("pydantic_graph") is None or not hasattr(importlib.import_module("pydantic_graph"), "GraphBuilder"):
        return []
    return [
        f"pydantic-graph {metadata.version('pydantic-graph')}, asyncio: GraphBuilder, state as a dataclass",
        "it keeps nothing itself: for durability its guide names other engines",
    ]


def sample(load: Load) -> Sample:
    """Time graphs that are built once, after one run that is not timed; microseconds per step."""
    return anyio.run(_timed, load)


def chain(nodes: int) -> Any:
    """Build the steps, and one that returns what they counted."""
    builder = importlib.import_module("pydantic_graph").GraphBuilder(state_type=State, output_type=int)

    async def advance(context: Any) -> None:
        context.state.count += 1

    async def result(context: Any) -> int:
        return int(context.state.count)

    steps = [builder.step(advance, node_id=f"n{number}") for number in range(nodes)]
    row = [builder.start_node, *steps, builder.step(result, node_id="result"), builder.end_node]
    builder.add(*(builder.edge_from(before).to(after) for before, after in pairwise(row)))
    return builder.build()


async def _timed(load: Load) -> Sample:
    graph = chain(load.nodes)

    async def run() -> None:
        if await graph.run(state=State()) != load.nodes:
            message = f"a graph of {load.nodes} steps returned something else"
            raise RuntimeError(message)

    await run()
    with Stopwatch() as watch:
        for _ in range(load.runs):
            await run()
    return watch.micros.per(load.steps)
