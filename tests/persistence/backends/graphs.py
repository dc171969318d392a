"""A chain of nodes that leaves a trail, for runs on any saver."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

import anyio

from runtime.graph import START, StateGraph

if TYPE_CHECKING:
    from persistence.contracts.saver import BaseCheckpointSaver


class Trail(TypedDict):
    """What the nodes wrote, in order."""

    trail: Annotated[list[int], operator.add]


def chain(saver: BaseCheckpointSaver, nodes: int, *, seconds: float = 0) -> Any:
    """Compile a chain in which node n appends n, after so many seconds."""
    builder = StateGraph(Trail)
    previous = START
    for number in range(nodes):

        async def node(_: Trail, number: int = number) -> dict[str, Any]:
            if seconds:
                await anyio.sleep(seconds)
            return {"trail": [number]}

        builder.add_node(f"n{number}", node).add_edge(previous, f"n{number}")
        previous = f"n{number}"
    return builder.compile(checkpointer=saver)


def single(saver: BaseCheckpointSaver, node: Any) -> Any:
    """Compile a graph of one node."""
    return StateGraph(Trail).add_node("node", node).add_edge(START, "node").compile(checkpointer=saver)


def thread(name: str) -> dict[str, Any]:
    """Return the config of a thread."""
    return {"configurable": {"thread_id": name}}
