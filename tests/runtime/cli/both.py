"""Graphs that are built alike for LangGraph and for this project, and what is done to each."""

from __future__ import annotations

import dataclasses
import enum
import operator
from collections.abc import Callable
from types import SimpleNamespace
from typing import Annotated, Any, TypedDict

import anyio
import anyio.lowlevel
import langgraph.channels as peer_channels
import langgraph.func as peer_func
import langgraph.graph as peer_graph
import langgraph.types as peer_types
from langchain_core.messages import AIMessage, HumanMessage
from pydantic import BaseModel

import runtime.channels as our_channels
import runtime.func as our_func
import runtime.graph as our_graph
import runtime.types as our_types

Build = Callable[[SimpleNamespace], Any]


def _library(graph: Any, types: Any, channels: Any, func: Any) -> SimpleNamespace:
    return SimpleNamespace(
        StateGraph=graph.StateGraph,
        START=graph.START,
        MessagesState=graph.MessagesState,
        Send=types.Send,
        Overwrite=types.Overwrite,
        Command=types.Command,
        interrupt=types.interrupt,
        DeltaChannel=channels.DeltaChannel,
        entrypoint=func.entrypoint,
        task=func.task,
    )


PEER = _library(peer_graph, peer_types, peer_channels, peer_func)
OURS = _library(our_graph, our_types, our_channels, our_func)

broken = {"now": True}
"""Whether nodes that fail do so."""
good_runs: list[str] = []
"""Runs of a node that does not."""


class State(TypedDict, total=False):
    log: Annotated[list[str], operator.add]
    go: str


def _says(what: str) -> Callable[[Any], Any]:
    return lambda state: {"log": [what]}


def asking(lib: SimpleNamespace) -> Any:
    """Two questions in one node, a third in the next."""

    def ask(state: State) -> Any:
        return {"log": [f"{lib.interrupt('first?')} {lib.interrupt('second?')}"]}

    builder = lib.StateGraph(State).add_node("ask", ask)
    builder.add_node("more", lambda state: {"log": [lib.interrupt({"third": state["log"]})]})
    return builder.add_edge(lib.START, "ask").add_edge("ask", "more")


def fanned(lib: SimpleNamespace) -> Any:
    """Many at once, of which one asks; a join, and a node that waits for the end."""

    def work(item: Any) -> Any:
        return {"log": [f"work {item}" + (lib.interrupt(f"{item}?") if item == 1 else "")]}

    builder = lib.StateGraph(State).add_node("work", work)
    for name in ("left", "right", "joined"):
        builder.add_node(name, _says(name))
    builder.add_node("last", _says("last"), defer=True)
    builder.add_edge(lib.START, "left").add_edge(lib.START, "right").add_edge(["left", "right"], "joined")
    builder.add_conditional_edges("left", lambda state: [lib.Send("work", n) for n in range(3)], ["work"])
    return builder.add_edge("joined", "last").add_edge("work", "last")


def nested(lib: SimpleNamespace) -> Any:
    """Questions two levels down, in a node of its own and in a function that calls twice."""
    innermost = lib.StateGraph(State).add_node("deep", lambda state: {"log": [lib.interrupt("deep?")]})
    innermost.add_edge(lib.START, "deep")
    inner = lib.StateGraph(State).add_node("before", _says("before")).add_node("below", innermost.compile())
    inner.add_node("after", lambda state: {"log": [lib.interrupt("after?")]})
    inner.add_edge(lib.START, "before").add_edge("before", "below").add_edge("below", "after")
    compiled, other = inner.compile(), innermost.compile()

    async def calling(state: State) -> Any:
        once = await other.ainvoke({"log": ["once"]})
        twice = await other.ainvoke({"log": ["twice"]})
        return {"log": [*once["log"], *twice["log"]]}

    builder = lib.StateGraph(State).add_node("sub", compiled).add_node("calling", calling)
    return builder.add_edge(lib.START, "sub").add_edge("sub", "calling")


def keeping(lib: SimpleNamespace) -> Any:
    """A subgraph that keeps its state between runs of the thread."""

    def ask(state: State) -> Any:
        return {"log": [f"{len(state['log'])} {lib.interrupt('kept?')}"]}

    inner = lib.StateGraph(State).add_node("ask", ask).add_edge(lib.START, "ask")
    compiled = inner.compile(checkpointer=True)

    async def calling(state: State) -> Any:
        return {"log": [str((await compiled.ainvoke({"log": ["called"]}))["log"])]}

    return lib.StateGraph(State).add_node("calling", calling).add_edge(lib.START, "calling")


def failing(lib: SimpleNamespace) -> Any:
    """One of two fails; and a router fails after its node has written."""

    def fail(state: State) -> Any:
        if broken["now"]:
            msg = "broken"
            raise ValueError(msg)
        return {"log": ["mended"]}

    async def slowly(state: State) -> Any:
        for _ in range(20):  # its sibling is done by then
            await anyio.lowlevel.checkpoint()
        return fail(state)

    def route(state: State) -> str:
        fail(state)
        return "end"

    async def good(state: State) -> Any:
        good_runs.append("good")
        return {"log": ["good"]}

    builder = lib.StateGraph(State).add_node("bad", slowly).add_node("good", good).add_node("end", _says("end"))
    builder.add_node("routed", _says("routed"))
    builder.add_conditional_edges("routed", route, ["end"])
    builder.add_conditional_edges(lib.START, lambda state: state["go"].split(), ["good", "bad", "routed"])
    return builder


def parallel(lib: SimpleNamespace) -> Any:
    """Two nodes ask at once."""
    builder = lib.StateGraph(State)
    for name in ("one", "two"):
        builder.add_node(name, lambda state, name=name: {"log": [f"{name} {lib.interrupt(name)}"]})
        builder.add_edge(lib.START, name)
    return builder


def overwriting(lib: SimpleNamespace) -> Any:
    """One replaces what there is, while the other asks."""
    builder = lib.StateGraph(State).add_node("one", lambda state: {"log": lib.Overwrite(["over"])})
    builder.add_node("two", lambda state: {"go": lib.interrupt("two?")})
    return builder.add_edge(lib.START, "one").add_edge(lib.START, "two")


def chatting(lib: SimpleNamespace) -> Any:
    """A conversation that asks before it answers."""

    def answer(state: Any) -> Any:
        said = lib.interrupt(state["messages"][-1])
        return {"messages": [AIMessage(said, id=f"a{len(state['messages'])}")]}

    return lib.StateGraph(lib.MessagesState).add_node("answer", answer).add_edge(lib.START, "answer")


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclasses.dataclass
class Line:
    article: str
    colour: Colour


class Customer(BaseModel):
    name: str
    tags: set[str] = set()


class Order(BaseModel):
    customer: Customer
    lines: Annotated[list[Line], operator.add] = []
    paid: bool = False


def ordering(lib: SimpleNamespace) -> Any:
    """A state of models, dataclasses and enums."""

    def fill(state: Order) -> Any:
        return {"lines": [Line("chair", Colour.RED)], "customer": Customer(name=state.customer.name, tags={"new"})}

    def pay(state: Order) -> Any:
        return {"paid": lib.interrupt(state.lines[0])}

    builder = lib.StateGraph(Order).add_node("fill", fill).add_node("pay", pay)
    return builder.add_edge(lib.START, "fill").add_edge("fill", "pay")


def _extended(value: list[str], writes: Any) -> list[str]:
    return [*value, *(item for write in writes for item in write)]


def folding(lib: SimpleNamespace) -> Any:
    """A channel of which LangGraph stores the writes alone."""
    state: Any = TypedDict("state", {"log": Annotated[list[str], lib.DeltaChannel(_extended)]})
    builder = lib.StateGraph(state).add_node("one", _says("one"))
    builder.add_node("two", lambda state: {"log": [lib.interrupt("two?")]})
    return builder.add_edge(lib.START, "one").add_edge("one", "two")


def human(text: str) -> dict[str, Any]:
    """Return the input of a conversation."""
    return {"messages": [HumanMessage(text, id=text)]}


def ordering_ours() -> Any:
    """Return the graph that knows the classes."""
    return ordering(OURS)


def folding_ours() -> Any:
    """Return the graph that knows the reducer."""
    return folding(OURS)


def asking_ours() -> Any:
    """Return the graph that knows its edges."""
    return asking(OURS)
