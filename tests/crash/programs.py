"""The graphs that are killed. Each node tells a witness when it starts and when it ends."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Protocol, TypedDict

from runtime.errors import EmptyInputError
from runtime.graph import END, START, CompiledStateGraph, StateGraph
from runtime.types import Command, interrupt


class Witness(Protocol):
    """Watches a graph from inside."""

    def note(self, *words: object) -> None:
        """Take down what happens."""
        ...

    async def recorded(self, node: str) -> None:
        """Return once a node's result is durable, if its mode makes it so before the superstep ends."""
        ...


class State(TypedDict, total=False):
    """What the graphs work on; long enough values get rows of their own, short ones live in the checkpoint."""

    topic: str
    poem: str
    joke: str
    log: Annotated[list[str], operator.add]


@dataclass(frozen=True)
class Program:
    """A graph, what starts it and what must come of it, whatever happens on the way."""

    name: str
    build: Callable[[Witness], StateGraph[Any]]
    given: Any
    nodes: dict[str, int]
    """Every node with the superstep it runs in."""
    result: dict[str, Any]
    answer: Any = None
    """What goes on after the pause that the program begins from; None if it begins at its start."""
    child: str = ""
    """The node that is a subgraph, if one is."""
    inner: dict[str, int] = field(default_factory=dict)
    """The subgraph's nodes, likewise."""

    @property
    def noted(self) -> set[str]:
        """Nodes that tell the witness."""
        return {*self.nodes, *self.inner} - {self.child}

    @property
    def first(self) -> Any:
        """What the run to be killed is given."""
        return self.given if self.answer is None else self.answer

    @property
    def last_step(self) -> int:
        """The step of the final checkpoint."""
        return max(self.nodes.values())


VERSE = "Some lines about {}, longer than what a checkpoint keeps inside itself. "


def _jokes(witness: Witness) -> StateGraph[Any]:
    async def change_topic(state: State) -> State:
        witness.note("start", "change_topic")
        witness.note("end", "change_topic")
        return {"topic": f"{state['topic']} and dogs", "log": ["change_topic"]}

    async def poem(state: State) -> State:
        witness.note("start", "poem")
        witness.note("end", "poem")
        return {"poem": VERSE.format(state["topic"]), "log": ["poem"]}

    async def joke(state: State) -> State:
        witness.note("start", "joke")
        await witness.recorded("poem")
        witness.note("end", "joke")
        return {"joke": f"{state['topic']} walk into a bar", "log": ["joke"]}

    def output(state: State) -> State:
        witness.note("start", "output")
        witness.note("end", "output")
        return {"log": [f"output: {state['joke']}"]}

    builder = StateGraph(State)
    builder.add_node("change_topic", change_topic)
    builder.add_node("poem", poem)
    builder.add_node("joke", joke)
    builder.add_node("output", output)
    builder.add_edge(START, "change_topic")
    builder.add_edge("change_topic", "poem")
    builder.add_edge("change_topic", "joke")
    builder.add_edge(["poem", "joke"], "output")
    builder.add_edge("output", END)
    return builder


def _chain(witness: Witness) -> StateGraph[Any]:
    builder = StateGraph(State)
    names = ("one", "two", "three", "four")

    def named(name: str) -> Callable[[State], Any]:
        async def node(state: State) -> State:
            witness.note("start", name)
            if name == "three":
                await witness.recorded("one")
            witness.note("end", name)
            # A list long enough to be stored as what it gained.
            return {"log": [f"{name} {number}" for number in range(6)]}

        return node

    for name in names:
        builder.add_node(name, named(name))
    for source, target in zip((START, *names), (*names, END), strict=True):
        builder.add_edge(source, target)
    return builder


def _question(witness: Witness) -> StateGraph[Any]:
    async def before(state: State) -> State:
        witness.note("start", "before")
        witness.note("end", "before")
        return {"log": ["before"]}

    async def ask(state: State) -> State:
        witness.note("start", "ask")
        answer = interrupt("Which colour?")
        witness.note("answered", "ask")
        witness.note("end", "ask")
        return {"topic": answer, "log": ["ask"]}

    async def after(state: State) -> State:
        witness.note("start", "after")
        witness.note("end", "after")
        return {"log": [f"after {state['topic']}"]}

    builder = StateGraph(State)
    builder.add_node("before", before)
    builder.add_node("ask", ask)
    builder.add_node("after", after)
    for source, target in ((START, "before"), ("before", "ask"), ("ask", "after"), ("after", END)):
        builder.add_edge(source, target)
    return builder


def _nested(witness: Witness) -> StateGraph[Any]:
    def told(name: str) -> Callable[[State], Any]:
        async def node(state: State) -> State:
            witness.note("start", name)
            if name == "inner_two":
                await witness.recorded("aside")
            witness.note("end", name)
            return {"topic": f"{state['topic']}, {name}"} if name.startswith("inner") else {"log": [name]}

        return node

    inner = StateGraph(State)
    inner.add_node("inner_one", told("inner_one"))
    inner.add_node("inner_two", told("inner_two"))
    for source, target in ((START, "inner_one"), ("inner_one", "inner_two"), ("inner_two", END)):
        inner.add_edge(source, target)
    builder = StateGraph(State)
    builder.add_node("before", told("before"))
    builder.add_node("child", inner.compile())
    builder.add_node("aside", told("aside"))
    builder.add_node("after", told("after"))
    builder.add_edge(START, "before")
    builder.add_edge("before", "child")
    builder.add_edge("before", "aside")
    builder.add_edge(["child", "aside"], "after")
    builder.add_edge("after", END)
    return builder


JOKES = Program(
    "jokes",
    _jokes,
    {"topic": "cats"},
    {"change_topic": 1, "poem": 2, "joke": 2, "output": 3},
    {
        "topic": "cats and dogs",
        "poem": VERSE.format("cats and dogs"),
        "joke": "cats and dogs walk into a bar",
        "log": ["change_topic", "joke", "poem", "output: cats and dogs walk into a bar"],
    },
)

CHAIN = Program(
    "chain",
    _chain,
    {"topic": "numbers"},
    {"one": 1, "two": 2, "three": 3, "four": 4},
    {
        "topic": "numbers",
        "log": [f"{name} {number}" for name in ("one", "two", "three", "four") for number in range(6)],
    },
)

QUESTION = Program(
    "question",
    _question,
    {"topic": "colours"},
    {"before": 1, "ask": 2, "after": 3},
    {"topic": "blue", "log": ["before", "ask", "after blue"]},
    Command(resume="blue"),
)

NESTED = Program(
    "nested",
    _nested,
    {"topic": "boxes"},
    {"before": 1, "child": 2, "aside": 2, "after": 3},
    {"topic": "boxes, inner_one, inner_two", "log": ["before", "aside", "before", "after"]},
    child="child",
    inner={"inner_one": 1, "inner_two": 2},
)

PROGRAMS: Mapping[str, Program] = {program.name: program for program in (JOKES, CHAIN, QUESTION, NESTED)}

CONFIG: dict[str, Any] = {"configurable": {"thread_id": "t"}}


async def go_on(graph: CompiledStateGraph, program: Program, durability: Any) -> Any:
    """Do what whoever started the run would do after a crash, not knowing how far it came."""
    try:
        return await graph.ainvoke(None, CONFIG, durability=durability)
    except EmptyInputError:
        return await graph.ainvoke(program.given, CONFIG, durability=durability)
