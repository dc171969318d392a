"""What a run held is free when it ends: a large state must not wait for the garbage collector."""

from __future__ import annotations

import gc
import operator
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Annotated, Any, TypedDict

import anyio
import pytest

from persistence.memory import InMemorySaver
from runtime.graph import END, START, CompiledStateGraph, StateGraph
from runtime.types import interrupt


class State(TypedDict):
    """A log."""

    log: Annotated[list[str], operator.add]


@contextmanager
def garbage() -> Iterator[list[str]]:
    """Yield a list of what only the collector can free, filled at the end."""
    found: list[str] = []
    gc.collect()
    gc.freeze()  # what there is by now need not be looked at
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        yield found
        gc.collect()
        found += [type(one).__qualname__ for one in gc.garbage if type(one).__module__.startswith("runtime")]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
        gc.unfreeze()


async def _writes(_state: State) -> State:
    await anyio.lowlevel.checkpoint()
    return {"log": ["written"]}


async def _fails(_state: State) -> None:
    await anyio.lowlevel.checkpoint()
    raise ValueError


async def _asks(_state: State) -> State:
    return {"log": [interrupt("?")]}


def _chain(*nodes: Any) -> StateGraph[Any]:
    builder = StateGraph(State)
    names = [f"node{number}" for number in range(len(nodes))]
    for name, node in zip(names, nodes, strict=True):
        builder.add_node(name, node)
    for source, target in zip([START, *names], [*names, END], strict=True):
        builder.add_edge(source, target)
    return builder


LAST = {"writes": _writes, "fails": _fails, "asks": _asks, "nests": _chain(_writes, _writes).compile()}
"""What the last node does."""


async def _run(graph: CompiledStateGraph, how: str, config: Any) -> None:
    if how == "read":
        with suppress(ValueError):
            async for _ in graph.astream({"log": []}, config, stream_mode=["updates", "values"]):
                pass
    elif how == "left":
        async with graph.astream({"log": []}, config) as stream:
            await anext(stream)
    elif how == "cancelled":
        with anyio.CancelScope() as scope:
            scope.cancel()
            await graph.ainvoke({"log": []}, config)
    else:
        with suppress(ValueError):
            await graph.ainvoke({"log": []}, config)


@pytest.mark.parametrize("how", ["awaited", "read", "left", "cancelled"])
@pytest.mark.parametrize("last", LAST.values(), ids=LAST)
async def test_nothing_of_a_run_is_left_to_the_garbage_collector(last: Any, how: str) -> None:
    graph = _chain(_writes, last).compile(checkpointer=InMemorySaver())
    await _run(graph, how, {"configurable": {"thread_id": "before"}})
    with garbage() as found:
        await _run(graph, how, {"configurable": {"thread_id": "t"}})
        await anyio.lowlevel.checkpoint()
    assert found == []
