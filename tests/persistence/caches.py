"""A graph that tells whether a cache spared it work."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict

from runtime.graph import START, StateGraph

if TYPE_CHECKING:
    from persistence.contracts.cache import BaseCache
    from runtime.types import CachePolicy


class State(TypedDict):
    """A number."""

    n: int


class Doubling:
    """A node that doubles, and notes what it doubled."""

    def __init__(self) -> None:
        self.ran: list[int] = []

    def compiled(self, cache: BaseCache, policy: CachePolicy) -> Any:
        """Return the graph, with a cache."""
        builder = StateGraph(State).add_node("double", self._double, cache_policy=policy)
        return builder.add_edge(START, "double").compile(cache=cache)

    async def _double(self, state: State) -> dict[str, int]:
        self.ran.append(state["n"])
        return {"n": state["n"] * 2}
