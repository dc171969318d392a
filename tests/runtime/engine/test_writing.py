"""What nodes, routers, callers and Commands return, as writes."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple, TypedDict

import msgspec
import pytest

from runtime.engine.applying import apply
from runtime.engine.cells import Cells
from runtime.engine.plan import BranchPlan
from runtime.engine.writing import (
    branch_writes,
    command_writes,
    fresh_values,
    input_writes,
    require_node,
    result_writes,
    route_writes,
    update_writes,
)
from runtime.errors import ErrorCode, InvalidUpdateError, ParentCommand, UnknownNodeError
from runtime.graph import END, START, StateGraph
from runtime.schema.introspect import introspect
from runtime.types import Command, Interrupt, Overwrite, Send
from runtime.types.constants import ROOT, TASKS, branch_to
from tests.runtime.engine.sketching import described, idle, plan_of, pulled

PLAN = plan_of(described("a", "b").add_edge("a", "b"))
BARE = plan_of(described("a", schema=Annotated[list, operator.add]))
EDGE = (branch_to("b"), None)


class Guarded(msgspec.Struct):
    """A state that validates what is written."""

    number: int = 0


class Renamed(msgspec.Struct, rename="camel"):
    """A state whose keys have other names outside."""

    first_name: str = ""
    log: Annotated[list[str], operator.add] = []


RENAMED = plan_of(described("a", schema=Renamed))
GUARDED = plan_of(described("a", schema=Guarded))


def returned(result: Any, received: Any = None) -> list[tuple[str, Any]]:
    """Return the writes of node a, its edge among them."""
    return result_writes(PLAN, PLAN.nodes["a"], result, received)


# ---- what a node returns ---------------------------------------------------------------------------------------------


@dataclass
class Record:
    last: int
    items: list[int]
    other: int = 0


class Pair(NamedTuple):
    last: int
    items: list[int]


class Subclass(dict[str, Any]):
    """A mapping of a program's own."""


@pytest.mark.parametrize(
    ("result", "writes"),
    [
        (None, []),
        ({}, []),
        ({"last": 1, "items": [2], "unknown": 3}, [("last", 1), ("items", [2])]),
        (Subclass(last=1, unknown=3), [("last", 1)]),
        (Record(1, [2]), [("last", 1), ("items", [2])]),
        (Pair(1, [2]), [("last", 1), ("items", [2])]),
        ([("last", 1), ("last", 2)], [("last", 1), ("last", 2)]),
        ([], []),
        ((), []),
        (Command(update={"last": 1}), [("last", 1)]),
        (Command(update=Record(1, [2])), [("last", 1), ("items", [2])]),
        (Command(goto="b"), [EDGE]),
        (Command(goto=END), []),
        (Command(goto=["a", Send("b", 1)]), [(branch_to("a"), None), (TASKS, Send("b", 1))]),  # type: ignore[list-item]
        ([Command(update={"last": 1}), {"items": [2]}], [("last", 1), ("items", [2])]),
        ((Command(goto="a"), None), [(branch_to("a"), None)]),
    ],
)
def test_a_result_becomes_writes_and_the_edges_come_last(result: Any, writes: Any) -> None:
    assert returned(result) == [*writes, EDGE]


@pytest.mark.parametrize("result", [1, "text", [1], [("last", 1), 2], object, {"last"}, [{"last": 1}]], ids=repr)
def test_anything_else_is_refused_with_the_nodes_name(result: Any) -> None:
    with pytest.raises(InvalidUpdateError, match="Expected dict, got .* Node 'a' must return") as caught:
        returned(result)
    assert ErrorCode.INVALID_GRAPH_NODE_RETURN_VALUE.value in str(caught.value)


@pytest.mark.parametrize("result", [{"items": [1]}, Record(1, [1]), [("items", [1])], Command(update={"items": [1]})])
def test_what_a_node_keeps_of_its_result_it_does_not_change_in_the_state(result: Any) -> None:
    writes = dict(returned(result))
    kept = writes["items"]
    own = next(
        part
        for part in (result, getattr(result, "update", None))
        if isinstance(part, (dict, Record, list)) and not callable(part)
    )
    items = own["items"] if isinstance(own, dict) else own.items if isinstance(own, Record) else own[0][1]
    items.append(2)
    assert kept == [1]


def test_an_instance_that_was_changed_in_place_writes_all_its_fields() -> None:
    record = Record(1, [2])
    assert update_writes(PLAN, "a", record, record) == [("last", 1), ("items", [2])]


def test_a_bare_state_takes_the_result_as_it_is() -> None:
    assert result_writes(BARE, BARE.nodes["a"], [1]) == [(ROOT, [1])]
    assert result_writes(BARE, BARE.nodes["a"], {"a": 1}) == [(ROOT, {"a": 1})]
    assert result_writes(BARE, BARE.nodes["a"], None) == []


def test_a_command_to_the_parent_is_passed_up() -> None:
    command: Command[Any] = Command(graph=Command.PARENT, update={"last": 1})
    with pytest.raises(ParentCommand) as caught:
        returned(command)
    assert caught.value.command is command


def test_a_value_that_the_schema_refuses_names_the_node() -> None:
    assert result_writes(GUARDED, GUARDED.nodes["a"], {"number": 1}) == [("number", 1)]
    with pytest.raises(msgspec.ValidationError) as caught:
        result_writes(GUARDED, GUARDED.nodes["a"], {"number": "one"})
    assert any("Node 'a' wrote a value that state key 'number'" in text for text in caught.value.__notes__)


# ---- routes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["nobody", START, ""])
def test_a_route_to_nobody_names_the_known_nodes(name: str) -> None:
    for target in (name, Send(name, 1)):
        with pytest.raises(UnknownNodeError, match="Known nodes: a, b"):
            route_writes(PLAN, [target], "here")
    with pytest.raises(UnknownNodeError, match=f"breakpoint: there is no node {name!r}"):
        require_node(PLAN, name, "breakpoint")


def test_a_send_to_the_end_is_refused() -> None:
    with pytest.raises(InvalidUpdateError, match="here: cannot Send to END"):
        route_writes(PLAN, [Send(END, 1)], "here")


@pytest.mark.parametrize("target", [1, None, {"a": 1}])
def test_a_route_is_a_name_or_a_send(target: Any) -> None:
    with pytest.raises(InvalidUpdateError, match="expected a node name or Send"):
        command_writes(PLAN, "a", Command(goto=[target]))


def branch(ends: Any = None) -> BranchPlan:
    return BranchPlan("way", None, PLAN.nodes["a"].schema, ends)


@pytest.mark.parametrize(
    ("answer", "ends", "writes"),
    [
        ("b", None, [EDGE]),
        (["a", "b"], None, [(branch_to("a"), None), EDGE]),
        (("b", Send("a", 1)), None, [EDGE, (TASKS, Send("a", 1))]),
        (END, None, []),
        ([], None, []),
        ("yes", {"yes": "b", "no": END}, [EDGE]),
        ("no", {"yes": "b", "no": END}, []),
        (True, {True: "b", False: "a"}, [EDGE]),
        (Send("a", 1), {"yes": "b"}, [(TASKS, Send("a", 1))]),
    ],
)
def test_an_answer_of_a_router_becomes_routes(answer: Any, ends: Any, writes: Any) -> None:
    assert branch_writes(PLAN, "a", branch(ends), answer) == writes


@pytest.mark.parametrize(
    ("answer", "ends", "message"),
    [
        ("maybe", {"yes": "b"}, r"Conditional edge 'way' of node 'a' returned 'maybe', .*: \['yes'\]"),
        ({"un": "hashable"}, {"yes": "b"}, "which its path_map does not have"),
        (None, None, "did not return a valid destination, got None"),
        (START, None, "did not return a valid destination, got '__start__'"),
        ("nobody", None, "there is no node 'nobody'"),
    ],
)
def test_an_answer_that_leads_nowhere_is_refused(answer: Any, ends: Any, message: str) -> None:
    with pytest.raises(UnknownNodeError, match=message):
        branch_writes(PLAN, "a", branch(ends), answer)


def test_a_graph_without_nodes_knows_none() -> None:
    plan = plan_of(described("a"))
    del plan.nodes["a"]
    with pytest.raises(UnknownNodeError, match="Known nodes: none"):
        require_node(plan, "a", "here")


# ---- what a router sees ----------------------------------------------------------------------------------------------


def test_a_router_sees_the_state_with_its_own_nodes_writes() -> None:
    cells = Cells(PLAN, "salt")
    apply(cells, [pulled(PLAN, "a", ("items", [1]), ("last", 1))])
    schema = PLAN.nodes["a"].schema
    writes: list[tuple[str, Any]] = [("items", [2]), ("items", [3]), ("flash", 4), ("no such key", 5)]
    seen = fresh_values(cells, schema, writes, lambda value: value)
    assert {key: seen[key] for key in ("items", "last", "flash")} == {"items": [1, 2, 3], "last": 1, "flash": 4}
    assert cells.peek("items") == [1]
    assert fresh_values(cells, schema, [("items", Overwrite([9]))], lambda value: value)["items"] == [9]


def test_a_router_sees_no_key_that_the_graph_does_not_have() -> None:
    class Wider(TypedDict, total=False):
        last: int
        more: int

    cells = Cells(PLAN, "salt")
    apply(cells, [pulled(PLAN, "a", ("last", 1))])
    assert fresh_values(cells, introspect(Wider), [], lambda value: value) == {"last": 1}


# ---- input -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "writes"),
    [
        ({"last": 1, "unknown": 2}, [("last", 1)]),
        (Record(1, [2]), [("last", 1), ("items", [2])]),
        ({}, []),
    ],
)
def test_an_input_gives_the_keys_of_its_schema(given: Any, writes: Any) -> None:
    assert input_writes(PLAN, given, ()) == writes


@pytest.mark.parametrize("given", [1, "text", [("last", 1)], None])
def test_an_input_of_another_shape_is_refused(given: Any) -> None:
    with pytest.raises(InvalidUpdateError, match="Expected dict, got .* as the input of graph 'LangGraph' with keys"):
        input_writes(PLAN, given, ())


def test_the_callers_objects_stay_the_callers() -> None:
    for plan, given, key in ((PLAN, {"items": [1]}, "items"), (BARE, [1], ROOT)):
        writes = dict(input_writes(plan, given, ()))
        (given["items"] if isinstance(given, dict) else given).append(2)
        assert writes[key] == [1]


def test_an_input_is_validated_where_the_schema_does() -> None:
    with pytest.raises(msgspec.ValidationError):
        input_writes(GUARDED, {"number": "one"}, ())


def test_a_workflows_result_is_mapped_by_the_workflow() -> None:
    builder: StateGraph[Any, Any, Any, Any] = StateGraph(Record)
    builder.add_node("a", idle).set_entry_point("a")
    plan = plan_of(builder)
    plan.nodes["a"].mapper = lambda result: [("last", result)]
    assert result_writes(plan, plan.nodes["a"], 5) == [("last", 5)]


@pytest.mark.parametrize(
    "given", [{"firstName": "Ann"}, {"first_name": "Ann"}, {"firstName": "x", "first_name": "Ann"}]
)
def test_a_key_may_be_called_by_its_alias_and_its_own_name_wins(given: dict[str, Any]) -> None:
    assert input_writes(RENAMED, given, ()) == [("first_name", "Ann")]
    assert update_writes(RENAMED, "a", given) == [("first_name", "Ann")]
    assert result_writes(RENAMED, RENAMED.nodes["a"], given) == [("first_name", "Ann")]
    assert command_writes(RENAMED, "a", Command(update=given)) == [("first_name", "Ann")]


def test_what_is_called_by_an_alias_is_validated_too() -> None:
    with pytest.raises(msgspec.ValidationError, match=r"\$\.first_name"):
        input_writes(RENAMED, {"firstName": 1}, ())


def test_a_node_may_return_sends() -> None:
    one, other = Send("b", 1), Send("b", 2)
    assert returned(one) == [(TASKS, one), EDGE]
    assert returned([one, other]) == [(TASKS, one), (TASKS, other), EDGE]
    assert returned([Command(update={"items": [1]}), one]) == [("items", [1]), (TASKS, one), EDGE]
    with pytest.raises(UnknownNodeError, match="What node 'a' returned: there is no node 'nobody'"):
        returned(Send("nobody", 1))


@pytest.mark.parametrize(
    "directive", [Send("a", 1), Interrupt("q", id="1"), Overwrite([1])], ids=lambda each: type(each).__name__
)
def test_what_says_what_to_do_is_no_state(directive: Any) -> None:
    with pytest.raises(InvalidUpdateError, match="Expected dict"):
        input_writes(PLAN, directive, ())
    if not isinstance(directive, Send):
        with pytest.raises(InvalidUpdateError, match="Expected dict"):
            returned(directive)
