"""From description to plan."""

from __future__ import annotations

import re
from typing import TypedDict

import pytest

from runtime.errors import GraphDefinitionError
from runtime.graph import END, START, StateGraph
from runtime.types.constants import RESERVED, TASKS, branch_to
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


@pytest.mark.parametrize("key", sorted({*RESERVED, START, TASKS, branch_to("a"), "join:a+b:c"}))
@pytest.mark.parametrize("where", ["state_schema", "input_schema"])
def test_a_state_key_that_would_be_taken_for_a_record_of_the_runtime_is_refused(where: str, key: str) -> None:
    schema = TypedDict("schema", {key: int})  # type: ignore[misc]
    builder: StateGraph[object, object, object, object] = StateGraph(
        **{"state_schema": Everything, "input_schema": None, where: schema}
    )
    for name in "abc":
        builder.add_node(name, lambda _state: None, input_schema=Everything)
    builder.add_edge(START, "a").add_edge(START, "b").add_edge(["a", "b"], "c")
    with pytest.raises(GraphDefinitionError, match=f"State key '{re.escape(key)}' is reserved"):
        builder.compile()


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
