"""The graph that appends: the same for this project and for LangGraph, whose names are the same."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Final, TypedDict

from anyio.lowlevel import checkpoint

PARTS: Final = 5
"""How many numbers a whole run appends: its input, one node, two at once, and the last."""


class State(TypedDict, total=False):
    """What the graph works on."""

    items: Annotated[list[int], operator.add]
    first: int
    """The number that the run's input appended; its nodes append the next ones."""
    asks: bool


@dataclass(frozen=True)
class Kit:
    """What a runtime offers under the names that both have."""

    builder: Callable[[Any], Any]
    start: str
    end: str
    command: Callable[..., Any]
    interrupt: Callable[[Any], Any]


def build(kit: Kit, reached: Callable[[str], None]) -> Any:
    """Return a builder of the graph; ``reached`` is called as each node starts."""

    def appending(name: str, number: int) -> Callable[[State], Any]:
        async def node(state: State) -> State:
            reached(name)
            await checkpoint()
            if name == "last" and state["asks"]:
                return {"items": [kit.interrupt("Which number?")]}
            return {"items": [state["first"] + number]}

        return node

    builder = kit.builder(State)
    for number, name in enumerate(("one", "left", "right", "last"), start=1):
        builder.add_node(name, appending(name, number))
    builder.add_edge(kit.start, "one")
    builder.add_edge("one", "left")
    builder.add_edge("one", "right")
    builder.add_edge(["left", "right"], "last")
    builder.add_edge("last", kit.end)
    return builder
