"""What is stored after a history, read through the graph's own doors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from tests.torture.appending.judging import Found, Step, objections
from tests.torture.appending.operations import Operation


async def found(graph: Any, thread: str) -> Found:
    """Return what is stored of a thread."""
    config = {"configurable": {"thread_id": thread, "checkpoint_ns": ""}}
    steps: dict[str, Step] = {}
    troubles: list[str] = []
    try:
        async for one in graph.aget_state_history(config):
            step = _step(one)
            steps[step.id] = step
        live = await graph.aget_state(config)
    except Exception as error:  # noqa: BLE001 - whatever it is, it should not be
        troubles.append(f"it cannot be read: {type(error).__name__}: {error}")
    else:
        stored = steps[max(steps)].items if steps else ()
        if tuple(live.values.get("items", ()))[: len(stored)] != stored:
            troubles.append(f"its newest checkpoint holds {stored}, and its state is {live.values}")
    return Found(steps, tuple(troubles))


def _step(one: Any) -> Step:
    parent = one.parent_config["configurable"]["checkpoint_id"] if one.parent_config else None
    items = tuple(one.values.get("items", ()))
    return Step(one.config["configurable"]["checkpoint_id"], parent, items, one.metadata.get("epoch"))


async def judged(graph: Any, threads: Iterable[str], history: Sequence[Operation]) -> list[str]:
    """Return what storage did to threads that it may not do."""
    return [each for thread in threads for each in objections(thread, history, await found(graph, thread))]
