"""The graphs under measurement, written once for every side."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

import anyio

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.peers import Side

LIMIT = 5_000
"""Supersteps that no benchmark needs; an engine that never ends is stopped by it."""
DURABILITIES = ("exit", "async", "sync")


class Trail(TypedDict):
    """A counter and the list of its values."""

    count: int
    trail: Annotated[list[int], operator.add]


class Counter(TypedDict):
    """A counter alone: state whose size never changes."""

    count: int


class Log(TypedDict):
    """A growing list of texts, and how many there are."""

    count: int
    lines: Annotated[list[str], operator.add]


def config(thread: object) -> dict[str, Any]:
    """Return a run's config."""
    return {"configurable": {"thread_id": str(thread)}, "recursion_limit": LIMIT}


async def advance(state: dict[str, Any]) -> dict[str, Any]:
    """Count one up and remember what the count was."""
    return {"count": state["count"] + 1, "trail": [state["count"]]}


async def increment(state: dict[str, Any]) -> dict[str, Any]:
    """Count one up."""
    return {"count": state["count"] + 1}


def chain(side: Side, nodes: int, saver: object = None, *, schema: Any = Trail, node: Any = advance) -> Any:
    """Compile a chain of nodes that each count one up: one superstep a node."""
    builder = side.state_graph(schema)
    previous = side.start
    for number in range(nodes):
        name = f"n{number}"
        builder.add_node(name, node)
        builder.add_edge(previous, name)
        previous = name
    builder.add_edge(previous, side.end)
    return builder.compile(checkpointer=saver)


def fresh_trail() -> dict[str, Any]:
    """Return the input of a chain over ``Trail``."""
    return {"count": 0, "trail": []}


def check_trail(result: dict[str, Any], nodes: int) -> None:
    """Make sure that a chain did its work. Raises RuntimeError if not."""
    if result["count"] != nodes or len(result["trail"]) != nodes:
        message = f"a chain of {nodes} nodes ended at {result['count']} with {len(result['trail'])} entries"
        raise RuntimeError(message)


def looping(side: Side, schema: Any, node: Any, target: int, saver: object = None) -> Any:
    """Compile one node that runs again until ``count`` has reached the target."""
    end = side.end

    async def more(state: dict[str, Any]) -> str:
        return "again" if state["count"] < target else end

    builder = side.state_graph(schema)
    builder.add_node("again", node)
    builder.add_edge(side.start, "again")
    builder.add_conditional_edges("again", more, ["again", end])
    return builder.compile(checkpointer=saver)


def waiting(side: Side, seconds: float, arrived: Callable[[], None]) -> Any:
    """Compile one node that waits, and says when it has begun to."""

    async def wait(state: dict[str, Any]) -> dict[str, Any]:
        arrived()
        await anyio.sleep(seconds)
        return {"count": state["count"] + 1}

    builder = side.state_graph(Counter)
    builder.add_node("wait", wait)
    builder.add_edge(side.start, "wait")
    builder.add_edge("wait", side.end)
    return builder.compile()
