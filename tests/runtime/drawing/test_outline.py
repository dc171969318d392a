"""What ``get_graph()`` says of a graph: the same as LangGraph does, but where it leaves something out."""

from __future__ import annotations

import json
from functools import partial
from typing import Any, Literal

import pytest

from runtime.drawing import Edge, Graph, Node
from runtime.errors import GraphDefinitionError
from runtime.func import entrypoint
from runtime.graph import END, START, StateGraph
from runtime.types import Command
from tests.runtime.drawing.kinds import (
    KINDS,
    OURS,
    THEIRS,
    Kind,
    State,
    chain,
    new,
    node,
    subgraph,
    subgraphs_of_two_levels,
)


def nodes(graph: Any) -> set[tuple[str, str, str]]:
    return {(each, found.name, json.dumps(found.metadata or {}, sort_keys=True)) for each, found in graph.nodes.items()}


def edges(graph: Any) -> set[tuple[str, str, str | None, bool]]:
    return {
        (edge.source, edge.target, None if edge.data is None else str(edge.data), edge.conditional)
        for edge in graph.edges
    }


@pytest.mark.parametrize("xray", [False, 1, True])
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_nodes_and_edges_are_langgraphs(kind: Kind, xray: bool | int) -> None:
    ours, theirs = kind(OURS).get_graph(xray=xray), kind(THEIRS).get_graph(xray=xray)
    assert nodes(ours) == nodes(theirs)
    assert edges(ours) == edges(theirs)
    assert len(ours.edges) == len(theirs.edges)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_first_and_last_node_are_langgraphs(kind: Kind) -> None:
    def name(found: Any) -> str | None:
        return None if found is None else found.id

    ours, theirs = kind(OURS).get_graph(xray=True), kind(THEIRS).get_graph(xray=True)
    assert name(ours.first_node()) == name(theirs.first_node())
    assert name(ours.last_node()) == name(theirs.last_node())


async def test_aget_graph_is_get_graph() -> None:
    graph = subgraph(OURS)
    assert await graph.aget_graph(xray=True) == graph.get_graph(xray=True)
    assert await graph.aget_graph({"configurable": {}}) == graph.get_graph()


def test_nodes_hold_what_runs() -> None:
    found = chain(OURS).get_graph()
    assert found.nodes["a"] == Node("a", "a", node, None)
    assert found.nodes[START] == Node(START, START)
    assert list(found.nodes) == [START, "a", "b", END]
    assert found.edges == [Edge(START, "a"), Edge("a", "b"), Edge("b", END)]


def test_as_json() -> None:
    graph = StateGraph(State).add_node("a", node, metadata={"k": 1}).add_edge(START, "a")
    found = graph.add_conditional_edges("a", node, {"done": END}).compile(interrupt_after=["a"]).get_graph().to_json()
    assert json.loads(json.dumps(found)) == found
    assert found["nodes"][0] == {"id": START}
    assert found["nodes"][1]["id"] == "a"
    assert found["nodes"][1]["metadata"] == {"k": 1, "__interrupt": "after"}
    assert found["nodes"][1]["data"]["id"][-1] == "node"
    assert found["edges"] == [
        {"source": START, "target": "a"},
        {"source": "a", "target": END, "data": "done", "conditional": True},
    ]


def test_a_workflow_is_a_graph_of_one_node() -> None:
    @entrypoint()
    def workflow(given: str) -> str:
        return given

    found: Graph = workflow.get_graph()
    assert found.edges == [Edge(START, "workflow"), Edge("workflow", END)]


def test_a_partial_is_told_by_its_function() -> None:
    graph = StateGraph(State).add_node("a", partial(node)).add_edge(START, "a").compile()
    assert graph.get_graph().to_json()["nodes"][1]["data"]["id"][-1] == "node"


def test_a_subgraph_without_an_end_stays_a_node() -> None:
    endless = new(OURS, "p", "q").add_edge("p", "q").add_edge("q", "p").compile()
    graph = StateGraph(State).add_node("sub", endless).add_edge(START, "sub").compile()
    assert list(graph.get_graph(xray=True).nodes) == [START, "sub", END]


def test_levels() -> None:
    graph = subgraphs_of_two_levels(OURS)
    assert "sub" in graph.get_graph(xray=0).nodes
    assert "sub:inner" in graph.get_graph(xray=1).nodes
    assert "sub:inner:p" in graph.get_graph(xray=2).nodes


# ---- where LangGraph leaves something out --------------------------------------------------------------------------


def test_a_router_that_says_nothing_may_go_anywhere() -> None:
    graph = StateGraph(State).add_node("a", node).add_node("b", node).add_edge(START, "a")
    found = graph.add_conditional_edges("a", lambda state: "b").compile().get_graph()
    assert [edge for edge in found.edges if edge.source == "a"] == [
        Edge("a", END, None, conditional=True),
        Edge("a", "a", None, conditional=True),
        Edge("a", "b", None, conditional=True),
    ]


def test_an_edge_to_the_end_is_shown_beside_others() -> None:
    graph = StateGraph(State).add_node("a", node).add_node("b", node).add_edge(START, "a").add_edge("a", END)
    found = graph.add_conditional_edges("a", node, ["b"]).compile().get_graph()
    assert Edge("a", END) in found.edges


def test_what_happens_anyway_is_not_conditional() -> None:
    graph = StateGraph(State).add_node("a", node).add_node("b", node).add_edge(START, "a").add_edge("a", "b")
    found = graph.add_conditional_edges("a", node, {"x": "b", "y": END}).compile().get_graph()
    assert Edge("a", "b") in found.edges


def test_breakpoints_at_every_node() -> None:
    graph = StateGraph(State).add_node("a", node).add_node("b", node).add_edge(START, "a").add_edge("a", "b")
    found = graph.compile(interrupt_before="*").get_graph()
    assert [found.nodes[name].metadata for name in ("a", "b")] == [{"__interrupt": "before"}] * 2


def test_a_join_may_be_the_end() -> None:
    graph = StateGraph(State).add_node("a", node).add_node("b", node).add_edge(START, "a").add_edge(START, "b")
    found = graph.add_edge(["a", "b"], END).compile().get_graph()
    assert {Edge("a", END), Edge("b", END)} <= set(found.edges)


def test_several_answers_that_lead_to_one_node_are_one_label() -> None:
    graph = StateGraph(State).add_node("a", node).add_node("b", node).add_edge(START, "a")
    found = graph.add_conditional_edges("a", node, {"x": "b", "y": "b"}).compile().get_graph()
    assert Edge("a", "b", "x, y", conditional=True) in found.edges


def test_edges_of_nodes_that_nobody_is_known_to_lead_to() -> None:
    graph = StateGraph(State)
    for name in "abc":
        graph.add_node(name, node)
    found = graph.add_edge(START, "a").add_edge("b", "c").compile().get_graph()
    assert Edge("b", "c") in found.edges


def test_commands_among_other_return_types() -> None:
    def decide(state: State) -> Command[Literal["b"]] | dict[Literal["log"], Any]:
        return Command(goto="b")

    graph = StateGraph(State).add_node("a", decide).add_node("b", node).add_edge(START, "a")
    found = graph.compile().get_graph()
    assert [edge.target for edge in found.edges if edge.source == "a"] == ["b"]


def test_a_command_may_leave_the_graph() -> None:
    """Its target, a node of the graph around this one, is not named; a name that is unknown here is a mistake."""

    def decide(state: State) -> Command[Literal["elsewhere"]]:
        return Command(goto="elsewhere", graph=Command.PARENT)

    builder = StateGraph(State).add_node("a", decide).add_edge(START, "a")
    with pytest.raises(GraphDefinitionError, match=r"unknown node 'elsewhere'.*a graph around this one are not named"):
        builder.compile()
    found = StateGraph(State).add_node("a", decide, destinations=()).add_edge(START, "a").compile().get_graph()
    assert found.edges == [Edge(START, "a"), Edge("a", END)]


def test_the_picture_is_of_what_was_compiled() -> None:
    graph = StateGraph(State).add_node("a", node).add_edge(START, "a")
    compiled = graph.compile()
    graph.add_node("b", node).add_edge("a", "b")
    assert "b" not in compiled.get_graph().nodes
