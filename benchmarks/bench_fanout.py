"""What one wide superstep costs."""

from __future__ import annotations

import operator
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

from benchmarks.graphs import config
from benchmarks.harness import Session, Stopwatch, question

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.peers import Side
    from benchmarks.results import Sample

    Build = Callable[[Side, int], Any]


class Gathered(TypedDict):
    """What the workers of a fan-out wrote."""

    results: Annotated[list[int], operator.add]


@question("fanout", "one superstep of many tasks, no checkpointer")
def fanout(session: Session) -> None:
    """Ask it with Sends to one node, and with many nodes that each write a channel of their own."""
    runs = session.pick(full=5, quick=3)
    measure(session, "Sends to one node", sends, session.pick(full=100, quick=50), runs)
    measure(session, "nodes, a channel each", parallel_nodes, session.pick(full=500, quick=100), max(1, runs // 5))


def measure(session: Session, name: str, build: Build, width: int, runs: int) -> None:
    """Compare the sides on one shape of graph."""
    contenders = {side.label: partial(side.run, wide, side, build, width, runs) for side in session.sides}
    session.compare(f"{width} {name}", "µs/task", contenders, repeats=5)


async def wide(
    side: Side, build: Build, width: int, runs: int, stopwatch: Callable[[], Stopwatch] = Stopwatch
) -> Sample:
    """Time a graph whose middle superstep has ``width`` tasks; microseconds per task."""
    graph = build(side, width)
    result = await graph.ainvoke({}, config("warm-up"))
    if len(result.get("results", result)) != width:
        message = f"a fan-out of {width} gathered {len(result.get('results', result))} results"
        raise RuntimeError(message)
    with stopwatch() as watch:
        for number in range(runs):
            await graph.ainvoke({}, config(number))
    return watch.micros.per(width * runs)


def sends(side: Side, width: int) -> Any:
    """Compile a router that sends ``width`` numbers to one node."""
    send = side.send

    async def work(number: int) -> dict[str, Any]:
        return {"results": [number]}

    async def spread(_state: dict[str, Any]) -> list[Any]:
        return [send("work", number) for number in range(width)]

    builder = side.state_graph(Gathered)
    builder.add_node("work", work)
    builder.add_conditional_edges(side.start, spread, ["work"])
    builder.add_edge("work", side.end)
    return builder.compile()


def parallel_nodes(side: Side, width: int) -> Any:
    """Compile ``width`` nodes that start together, each writing a channel of its own."""
    schema = TypedDict("Wide", {f"c{number}": int for number in range(width)})  # type: ignore[misc]
    builder = side.state_graph(schema)
    for number in range(width):
        builder.add_node(f"n{number}", writing(f"c{number}", number))
        builder.add_edge(side.start, f"n{number}")
        builder.add_edge(f"n{number}", side.end)
    return builder.compile()


def writing(channel: str, value: int) -> Any:
    """Return a node that writes one value to one channel."""

    async def write(_state: dict[str, Any]) -> dict[str, Any]:
        return {channel: value}

    return write
