"""Pictures and descriptions of graphs."""

import operator
from typing import Annotated, Literal

from langgraph.graph import END, START, StateGraph
from langgraph.types import Command
from typing_extensions import TypedDict


class State(TypedDict):
    log: Annotated[list, operator.add]


def route(state) -> Literal["b", "c"]:
    return "b"


def jump(state) -> Command[Literal["b", "__end__"]]:
    return Command(goto="b")


inner = StateGraph(State).add_node("x", lambda s: s).add_node("y", lambda s: s).add_edge(START, "x").add_edge("x", "y").add_edge("y", END).compile()
builder = StateGraph(State).add_node("a", lambda s: s).add_node("b", inner).add_node("c", lambda s: s).add_node(jump)
builder.add_edge(START, "a").add_conditional_edges("a", route).add_edge("c", "jump").add_edge("b", END)
graph = builder.compile()
drawn = graph.get_graph()
print(sorted(drawn.nodes), sorted((e.source, e.target, e.conditional) for e in drawn.edges))
print(sorted(graph.get_graph(xray=True).nodes))
print(drawn.draw_mermaid(with_styles=False))
print(graph.get_graph(xray=True).draw_mermaid(with_styles=False))
labelled = StateGraph(State).add_node("b", lambda s: s).add_node("a", lambda s: s).add_edge(START, "b").add_edge("a", END)
labelled.add_conditional_edges("b", lambda s: "stop", {"go on": "a", "stop": END})
print(labelled.compile().get_graph().draw_mermaid().partition("\tclassDef")[0])
print(drawn.first_node().id, drawn.last_node().id)
json = drawn.to_json()
print(sorted(json), len(json["nodes"]), len(json["edges"]))
print(graph.get_input_jsonschema()["type"], sorted(graph.get_output_jsonschema()["properties"]))
print([name for name, _ in graph.get_subgraphs()], sorted(graph.nodes), sorted(graph.channels)[:1] != [])
print(builder.nodes.keys(), sorted(builder.edges), list(builder.branches))
