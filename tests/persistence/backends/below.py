"""Graphs in graphs that stop at a gate: what is below it makes its first checkpoint once others were at the thread."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

import anyio

from runtime.func import task
from runtime.graph import START, StateGraph
from runtime.types import RetryPolicy, Send, interrupt

if TYPE_CHECKING:
    from collections.abc import Callable


class Outer(TypedDict, total=False):
    """What the graph around knows of what was done below."""

    told: Annotated[list[str], operator.add]


class Inner(TypedDict, total=False):
    """What is kept below, if it is."""

    told: Annotated[list[str], operator.add]
    done: Annotated[list[str], operator.add]


class Gate:
    """Holds the runs that come to it, while it is shut."""

    def __init__(self) -> None:
        """Stand open."""
        self.reached = anyio.Event()
        self.open = anyio.Event()
        self.open.set()

    def shut(self) -> None:
        """Hold whoever comes."""
        self.reached, self.open = anyio.Event(), anyio.Event()

    async def __call__(self) -> None:
        """Wait until it is open."""
        self.reached.set()
        await self.open.wait()


def _chain(schema: Any, node: Any, saver: Any = None, **options: Any) -> Any:
    return StateGraph(schema).add_node("n", node, **options).add_edge(START, "n").compile(checkpointer=saver)


def _leaf(*, keeps: bool | None = None) -> Any:
    return _chain(Inner, lambda _: {"done": ["done"]}, keeps)


async def _work(below: Any) -> dict[str, Any]:
    return {"told": [str((await below.ainvoke({}))["done"])]}


def kept(saver: Any, gate: Gate) -> Any:
    """A node calls a graph that keeps its state."""
    below = _leaf(keeps=True)

    async def node(_: Outer) -> dict[str, Any]:
        await gate()
        return await _work(below)

    return _chain(Outer, node, saver)


def fresh(saver: Any, gate: Gate) -> Any:
    """A node calls a graph that starts afresh."""
    below = _leaf()

    async def node(_: Outer) -> dict[str, Any]:
        await gate()
        return await _work(below)

    return _chain(Outer, node, saver)


def retried(saver: Any, gate: Gate) -> Any:
    """Likewise, and the node tries again whatever happens."""
    below = _leaf()

    async def node(_: Outer) -> dict[str, Any]:
        await gate()
        return await _work(below)

    always = RetryPolicy(max_attempts=3, initial_interval=0.0, jitter=False, retry_on=Exception)
    return _chain(Outer, node, saver, retry_policy=always)


def nested(saver: Any, gate: Gate) -> Any:
    """A graph below a graph that is below; what is between has begun already."""
    below = _leaf(keeps=True)

    async def node(_: Inner) -> dict[str, Any]:
        await gate()
        return {"done": [str((await below.ainvoke({}))["done"])]}

    return _chain(Outer, _chain(Inner, node), saver)


def called(saver: Any, gate: Gate) -> Any:
    """The call of a task does it."""
    below = _leaf()

    @task
    async def call() -> dict[str, Any]:
        await gate()
        return await _work(below)

    async def node(_: Outer) -> Any:
        return await call()

    return _chain(Outer, node, saver)


def as_node(saver: Any, gate: Gate) -> Any:
    """A graph is the node, and comes after another one of the same superstep: run them one after the other."""

    async def first(_: Outer) -> dict[str, Any]:
        await gate()
        return {"told": ["first"]}

    builder = StateGraph(Outer).add_node("a", first).add_node("b", _leaf())
    return builder.add_edge(START, "a").add_edge(START, "b").compile(checkpointer=saver)


def asking(saver: Any, gate: Gate) -> Any:
    """What is below has begun already, and then asks."""

    async def node(_: Inner) -> dict[str, Any]:
        await gate()
        return {"done": [str(interrupt("?"))]}

    return _chain(Outer, _chain(Inner, node), saver)


def again(saver: Any, gate: Gate) -> Any:
    """What keeps its state is called twice, and then by a second node."""
    below, other = _leaf(keeps=True), _leaf(keeps=True)

    async def one(_: Outer) -> dict[str, Any]:
        first = await _work(below)
        await gate()
        second = await _work(other)
        return {"told": first["told"] + second["told"]}

    async def two(_: Outer) -> dict[str, Any]:
        return await _work(below)

    builder = StateGraph(Outer).add_node("one", one).add_node("two", two)
    return builder.add_edge(START, "one").add_edge("one", "two").compile(checkpointer=saver)


def mixed(saver: Any, gate: Gate) -> Any:
    """Many at once, in calls and below, some of which keep their state, and a handler of what fails."""
    keeping, between = _leaf(keeps=True), nested(None, gate)

    @task
    async def call(number: int) -> dict[str, Any]:
        return await _work(_leaf()) if number % 2 else {"told": ["called"]}

    async def many(_: Outer) -> dict[str, Any]:
        found = [await call(number) for number in range(3)]
        return {"told": [text for each in found for text in each["told"]]}

    async def fails(_: Outer) -> None:
        await _work(_leaf())
        message = "boom"
        raise ValueError(message)

    async def handles(_: Outer) -> dict[str, Any]:
        return await _work(keeping)

    def fan_out(_: Outer) -> list[Send]:
        return [Send("sent", {}) for _ in range(3)]

    async def sent(_: Outer) -> dict[str, Any]:
        return await _work(_leaf())

    builder = StateGraph(Outer).add_node("many", many).add_node("fails", fails, error_handler=handles)
    builder.add_node("sent", sent).add_node("between", between).add_edge(START, "many").add_edge(START, "fails")
    builder.add_conditional_edges("many", fan_out, ["sent"]).add_edge("sent", "between")
    return builder.compile(checkpointer=saver)


SHAPES: dict[str, Callable[[Any, Gate], Any]] = {
    shape.__name__: shape for shape in (kept, fresh, retried, nested, called, as_node, asking, again, mixed)
}
"""By name, what makes a graph of each shape on a saver."""
