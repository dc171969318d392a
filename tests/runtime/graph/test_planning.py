"""From description to plan."""

from __future__ import annotations

import pytest

from runtime.errors import GraphDefinitionError
from runtime.graph import END, START, StateGraph
from runtime.types.constants import branch_to
from tests.runtime.engine.sketching import Everything, described, plan_of


def test_two_joins_that_would_share_a_name_are_refused() -> None:
    builder = described("a+b", "c", "a", "b+c", "d")
    builder.add_edge(["a+b", "c"], "d")
    builder.add_edge(["a", "b+c"], "d")
    with pytest.raises(GraphDefinitionError, match=r"same name 'join:a\+b\+c:d'"):
        builder.compile()


def test_a_source_named_twice_counts_once() -> None:
    builder = described("a", "b")
    builder.add_edge(["a", "a"], "b")
    plan = plan_of(builder)
    assert plan.nodes["a"].joins == ("join:a+a:b",)
    assert plan.internal["join:a+a:b"].names == {"a"}  # type: ignore[attr-defined]


def test_edges_to_the_end_need_no_channel() -> None:
    builder: StateGraph[object, object, object, object] = StateGraph(Everything)
    builder.add_node("a", lambda _state: None).add_node("b", lambda _state: None).add_node("c", lambda _state: None)
    builder.add_edge(START, "a").add_edge(START, "b").add_edge("a", END).add_edge(["a", "b"], END).add_edge("a", "c")
    plan = plan_of(builder)
    assert [(node.ends, node.targets, node.joins) for node in plan.nodes.values()] == [
        (False, (branch_to("a"), branch_to("b")), ()),
        (True, (branch_to("c"),), ()),
        (True, (), ()),
        (False, (), ()),
    ]


def test_nodes_and_edges_keep_the_order_of_their_description() -> None:
    builder = described("z", "m", "a")
    plan = plan_of(builder)
    assert [(node.name, node.index) for node in plan.nodes.values()] == [(START, 0), ("z", 1), ("m", 2), ("a", 3)]
    assert plan.nodes[START].targets == tuple(map(branch_to, "zma"))
    assert plan.known() == ["a", "m", "z"]
