"""What is stored after a history, read through the graph's own doors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from tests.torture.appending.epochs import NONE, Epochs
from tests.torture.appending.judging import Found, Step, objections
from tests.torture.appending.operations import Operation


async def found(graph: Any, thread: str, epochs: Epochs = NONE) -> Found:
    """Return what is stored of a thread, with the epochs that were noted of it."""
    config = {"configurable": {"thread_id": thread, "checkpoint_ns": ""}}
    steps: dict[str, Step] = {}
    troubles = epochs.troubles(thread)
    try:
        async for one in graph.aget_state_history(config):
            step = _step(one, thread, epochs)
            steps[step.id] = step
        live = await graph.aget_state(config)
    except Exception as error:  # noqa: BLE001 - whatever it is, it should not be
        troubles.append(f"it cannot be read: {type(error).__name__}: {error}")
    else:
        stored = steps[max(steps)].items if steps else ()
        if tuple(live.values.get("items", ()))[: len(stored)] != stored:
            troubles.append(f"its newest checkpoint holds {stored}, and its state is {live.values}")
    return Found(steps, tuple(troubles))


def _step(one: Any, thread: str, epochs: Epochs) -> Step:
    parent = one.parent_config["configurable"]["checkpoint_id"] if one.parent_config else None
    own = one.config["configurable"]["checkpoint_id"]
    return Step(own, parent, tuple(one.values.get("items", ())), epochs.of(thread, own))


async def judged(graph: Any, threads: Iterable[str], history: Sequence[Operation], epochs: Epochs = NONE) -> list[str]:
    """Return what storage did to threads that it may not do."""
    return [each for thread in threads for each in objections(thread, history, await found(graph, thread, epochs))]
