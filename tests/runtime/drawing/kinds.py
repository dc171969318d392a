"""Graphs of every kind, described once for this library and for LangGraph."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Annotated, Any, Literal, NamedTuple, TypedDict

from langgraph import graph as their_graph
from langgraph import types as their_types

from runtime import graph as our_graph
from runtime import types as our_types

START, END = our_graph.START, our_graph.END


class Library(NamedTuple):
    """Where the names come from."""

    graph: Any
    types: Any


OURS = Library(our_graph, our_types)
THEIRS = Library(their_graph, their_types)


class State(TypedDict):
    log: Annotated[list[str], operator.add]


def node(state: State) -> dict[str, Any]:
    return {}


def new(library: Library, *names: str) -> Any:
    """Return a graph with such nodes, and no edges but the one into the first."""
    graph = library.graph.StateGraph(State)
    for name in names:
        graph.add_node(name, node)
    return graph.add_edge(START, names[0]) if names else graph


def chain(library: Library) -> Any:
    return new(library, "a", "b").add_edge("a", "b").add_edge("b", END).compile()


def without_an_edge_to_the_end(library: Library) -> Any:
    return new(library, "a", "b").add_edge("a", "b").compile()


def fan_out_and_join(library: Library) -> Any:
    graph = new(library, "a", "b", "c", "d")
    return graph.add_edge("a", "b").add_edge("a", "c").add_edge(["b", "c"], "d").compile()


def join_of_different_lengths(library: Library) -> Any:
    graph = new(library, "a", "b", "c", "d").add_edge(START, "b")
    return graph.add_edge("b", "c").add_edge(["a", "c"], "d").add_edge("d", END).compile()


def loop_with_labels(library: Library) -> Any:
    graph = new(library, "agent", "tools").add_edge("tools", "agent")
    return graph.add_conditional_edges("agent", node, {"call": "tools", "stop": END}).compile()


def answers_that_are_no_text(library: Library) -> Any:
    return new(library, "a", "b").add_conditional_edges("a", node, {True: "b", False: END}).compile()


def names_as_answers(library: Library) -> Any:
    return new(library, "a", "b", "c").add_conditional_edges("a", node, ["b", "c", END]).compile()


def literal_of_the_router(library: Library) -> Any:
    def route(state: State) -> Any: ...

    route.__annotations__ = {"return": Literal["b", "c"]}
    return new(library, "a", "b", "c").add_conditional_edges("a", route).compile()


def router_at_the_start(library: Library) -> Any:
    graph = library.graph.StateGraph(State).add_node("a", node).add_node("b", node)
    return graph.add_conditional_edges(START, node, ["a", "b"]).compile()


def loop_on_itself(library: Library) -> Any:
    return new(library, "a").add_conditional_edges("a", node, {"again": "a", "done": END}).compile()


def two_routers(library: Library) -> Any:
    def other(state: State) -> Any: ...

    graph = new(library, "a", "b", "c").add_conditional_edges("a", node, {"x": "b"})
    return graph.add_conditional_edges("a", other, {"y": "c"}).compile()


def sends(library: Library) -> Any:
    def spread(state: State) -> Any: ...

    graph = new(library, "a", "worker", "reduce").add_conditional_edges("a", spread, ["worker"])
    return graph.add_edge("worker", "reduce").compile()


def commands_by_annotation(library: Library) -> Any:
    def decide(state: State) -> Any: ...

    decide.__annotations__ = {"return": library.types.Command[Literal["b", "__end__"]]}
    graph = library.graph.StateGraph(State).add_node("a", decide).add_node("b", node)
    return graph.add_edge(START, "a").compile()


def commands_with_labels(library: Library) -> Any:
    graph = library.graph.StateGraph(State)
    graph.add_node("a", node, destinations={"b": "because", "__end__": "finished"}).add_node("b", node)
    return graph.add_edge(START, "a").compile()


def commands_by_name(library: Library) -> Any:
    graph = library.graph.StateGraph(State).add_node("a", node, destinations=("b", "c"))
    return graph.add_node("b", node).add_node("c", node).add_edge(START, "a").compile()


def deferred(library: Library) -> Any:
    graph = library.graph.StateGraph(State)
    graph.add_node("a", node).add_node("b", node).add_node("late", node, defer=True, metadata={"team": "legal"})
    graph.add_edge(START, "a").add_edge(START, "b").add_edge("a", "late").add_edge("b", "late")
    return graph.add_edge("late", END).compile()


def breakpoints(library: Library) -> Any:
    graph = new(library, "a", "b", "c").add_edge("a", "b").add_edge("b", "c")
    return graph.compile(interrupt_before=["b", "c"], interrupt_after=["a", "b"])


def subgraph(library: Library) -> Any:
    graph = library.graph.StateGraph(State).add_node("a", node).add_node("sub", chain(library)).add_node("z", node)
    return graph.add_edge(START, "a").add_edge("a", "sub").add_edge("sub", "z").compile()


def subgraph_in_a_function(library: Library) -> Any:
    inner = chain(library)

    def call(state: State) -> Any:
        return inner.invoke(state)

    graph = library.graph.StateGraph(State).add_node("call", call)
    return graph.add_edge(START, "call").compile()


def subgraphs_of_two_levels(library: Library) -> Any:
    wide = new(library, "p", "q").add_edge(START, "q").compile()
    middle = library.graph.StateGraph(State).add_node("inner", wide).add_node("after", node)
    middle = middle.add_edge(START, "inner").add_edge("inner", "after").compile()
    graph = library.graph.StateGraph(State).add_node("a", node).add_node("sub", middle)
    return graph.add_edge(START, "a").add_edge("a", "sub").compile()


def subgraph_that_begins_in_a_loop(library: Library) -> Any:
    graph = library.graph.StateGraph(State).add_node("sub", loop_with_labels(library)).add_node("z", node)
    return graph.add_edge(START, "sub").add_edge("sub", "z").compile()


def subgraph_behind_a_router(library: Library) -> Any:
    graph = library.graph.StateGraph(State).add_node("a", node).add_node("sub", chain(library)).add_node("z", node)
    graph.add_edge(START, "a").add_conditional_edges("a", node, {"deep": "sub", "flat": "z"})
    return graph.add_edge("sub", "z").compile()


Kind = Callable[[Library], Any]

KINDS: tuple[Kind, ...] = (
    chain,
    without_an_edge_to_the_end,
    fan_out_and_join,
    join_of_different_lengths,
    loop_with_labels,
    answers_that_are_no_text,
    names_as_answers,
    literal_of_the_router,
    router_at_the_start,
    loop_on_itself,
    two_routers,
    sends,
    commands_by_annotation,
    commands_with_labels,
    commands_by_name,
    deferred,
    breakpoints,
    subgraph,
    subgraph_in_a_function,
    subgraphs_of_two_levels,
    subgraph_that_begins_in_a_loop,
    subgraph_behind_a_router,
)
