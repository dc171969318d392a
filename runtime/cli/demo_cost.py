"""What saving costs per step, measured here and now."""

from __future__ import annotations

import statistics
import time
from typing import TYPE_CHECKING, Any, Final, TypedDict

from persistence.sqlite import SqliteSaver
from runtime.graph import END, START, StateGraph

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from runtime.graph import CompiledStateGraph
    from runtime.types.policy import Durability

STEPS: Final = 20
ROUNDS: Final = 9
"""Odd, so that the median is a measured value; enough to outvote a machine that is busy for a moment."""


class Count(TypedDict):
    """State of the chain."""

    count: int


async def _add_one(state: Count) -> Count:
    return {"count": state["count"] + 1}


def chain() -> StateGraph[Count]:
    """Return a graph of nodes in a row that do next to nothing, so that what is left is the runtime and the disk."""
    graph = StateGraph[Count](Count)
    before = START
    for number in range(STEPS):
        name = f"step_{number}"
        graph.add_node(name, _add_one)
        graph.add_edge(before, name)
        before = name
    graph.add_edge(before, END)
    return graph


async def measure(
    folder: Path, modes: Sequence[Durability], done: Callable[[], None] = lambda: None
) -> dict[str, float]:
    """Return microseconds per step: the median of uninterrupted runs, without a saver (``none``) and by mode."""
    async with SqliteSaver(folder / "cost.db") as saver:
        bare, saving = chain().compile(), chain().compile(checkpointer=saver)
        seen: dict[str, list[float]] = {"none": [], **{mode: [] for mode in modes}}
        # In turns, so that a busy moment of the machine falls on all modes alike. The first round only warms up.
        for turn in range(ROUNDS + 1):
            times = {"none": await _timed(bare, None, turn)}
            for mode in modes:
                times[mode] = await _timed(saving, mode, turn)
            if turn:
                for name, seconds in times.items():
                    seen[name].append(seconds / STEPS * 1e6)
            done()
    return {name: statistics.median(measured) for name, measured in seen.items()}


async def _timed(graph: CompiledStateGraph, mode: Durability | None, turn: int) -> float:
    config: Any = {"configurable": {"thread_id": f"{mode}-{turn}"}}
    begun = time.perf_counter()
    await graph.ainvoke({"count": 0}, config, durability=mode)
    return time.perf_counter() - begun
