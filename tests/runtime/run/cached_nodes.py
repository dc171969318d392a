"""Small graphs with a node that is cached, for tests of caching."""

from __future__ import annotations

import operator
from typing import Annotated, Any, TypedDict

from runtime.graph import END, START, StateGraph
from runtime.types import CachePolicy

CONFIG: dict[str, Any] = {"configurable": {"thread_id": "t"}}
CACHED = {"__metadata__": {"cached": True}}
"""What an update shows that is reused."""


class State(TypedDict, total=False):
    a: Any
    b: Any
    log: Annotated[list[str], operator.add]


class Note:
    """A node that counts its runs and notes their number."""

    def __init__(self) -> None:
        self.runs = 0

    async def __call__(self, state: Any) -> Any:
        self.runs += 1
        return {"log": [f"run {self.runs}"]}


def single(node: Any, policy: CachePolicy | None = None, *, schema: Any = State, **options: Any) -> StateGraph:
    """Build START -> n -> END."""
    builder = StateGraph(schema)
    builder.add_node("n", node, cache_policy=CachePolicy() if policy is None else policy, **options)
    builder.add_edge(START, "n")
    builder.add_edge("n", END)
    return builder


async def updates(graph: Any, given: Any, config: Any = None) -> list[Any]:
    """Return a run's updates."""
    return [chunk async for chunk in graph.astream(given, config, stream_mode="updates")]
