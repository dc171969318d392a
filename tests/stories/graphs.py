"""Small graphs and readings that many stories use."""

from __future__ import annotations

import operator
from collections.abc import Awaitable, Callable, Iterable
from typing import Annotated, Any, TypedDict

import anyio

from runtime.graph import END, START, StateGraph

CONFIG: dict[str, Any] = {"configurable": {"thread_id": "t"}}


class Log(TypedDict, total=False):
    """A number that is replaced and a log that grows."""

    a: int
    log: Annotated[list[str], operator.add]


def note(name: str) -> Callable[[Any], Awaitable[dict[str, Any]]]:
    """Return a node that adds its name to the log."""

    async def node(_state: Any) -> dict[str, Any]:
        return {"log": [name]}

    return node


def chain(*nodes: str | tuple[str, Any], schema: type = Log) -> StateGraph:
    """Build START -> nodes in a row -> END; a bare name is a node that notes itself."""
    builder = StateGraph(schema)
    names = [START]
    for one in nodes:
        name, node = one if isinstance(one, tuple) else (one, note(one))
        builder.add_node(name, node)
        names.append(name)
    for source, target in zip(names, [*names[1:], END], strict=True):
        builder.add_edge(source, target)
    return builder


def fan(
    *nodes: str | tuple[str, Any], first: str | None = "st", last: str | None = "join", schema: type = Log
) -> StateGraph:
    """Build START -> first -> nodes side by side -> last (a join of all) -> END."""
    builder = StateGraph(schema)
    source = START
    if first is not None:
        builder.add_node(first, note(first))
        builder.add_edge(START, first)
        source = first
    names = []
    for one in nodes:
        name, node = one if isinstance(one, tuple) else (one, note(one))
        builder.add_node(name, node)
        builder.add_edge(source, name)
        names.append(name)
    if last is not None:
        builder.add_node(last, note(last))
        builder.add_edge(names, last)
        builder.add_edge(last, END)
    return builder


class Gate:
    """A node that fails, but only after siblings have finished and been recorded."""

    def __init__(self, *siblings: str) -> None:
        """Name the siblings to wait for."""
        self.waiting_for = set(siblings)
        self.open = anyio.Event()
        self.mended = False
        self.runs = 0
        self.error: Exception = ValueError("boom")

    async def fail(self, _state: Any) -> dict[str, Any]:
        """Be the node; once mended, note that."""
        self.runs += 1
        if self.mended:
            return {"log": ["bad"]}
        await self.open.wait()
        raise self.error

    async def run(self, graph: Any, values: Any, config: Any, **options: Any) -> None:
        """Run the graph, opening the gate when the siblings' updates have been seen."""
        with anyio.fail_after(10):
            async for update in graph.astream(values, config, stream_mode="updates", **options):
                self.waiting_for -= set(update)
                if not self.waiting_for:
                    self.open.set()


async def history(graph: Any, config: Any = CONFIG, **options: Any) -> list[Any]:
    """Return the thread's snapshots, newest first."""
    return [snapshot async for snapshot in graph.aget_state_history(config, **options)]


async def collect(stream: Any) -> list[Any]:
    """Return everything a stream yields."""
    return [chunk async for chunk in stream]


def steps(snapshots: Iterable[Any]) -> list[tuple[int, str, tuple[str, ...]]]:
    """Return (step, source, next) of each snapshot."""
    return [(one.metadata["step"], one.metadata["source"], one.next) for one in snapshots]


def at(snapshots: Iterable[Any], *names: str) -> Any:
    """Return the newest snapshot whose ``next`` is exactly these nodes."""
    return next(one for one in snapshots if one.next == names)


def thread(name: str) -> dict[str, Any]:
    """Return the config of a thread."""
    return {"configurable": {"thread_id": name}}
