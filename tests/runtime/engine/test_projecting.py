"""What others see of the cells: nodes, observers and callers."""

from __future__ import annotations

import operator
from dataclasses import dataclass, field
from typing import Annotated, Any, TypedDict

from runtime.engine.applying import apply
from runtime.engine.cells import Cells
from runtime.engine.projecting import node_input, updates_of_task, values_of, values_with
from runtime.engine.tasks import HandlerTask, Moment, Task
from runtime.graph import START
from runtime.types import Send
from runtime.types.constants import ROOT
from runtime.types.managed import IsLastStep, RemainingSteps
from tests.runtime.engine.sketching import Everything, described, moment, plan_of, pulled, sent

PLAN = plan_of(described("a", "b"))
BARE = plan_of(described("a", schema=Annotated[list, operator.add]))


class Managed(TypedDict, total=False):
    last: int
    remaining: RemainingSteps
    is_last: IsLastStep


@dataclass
class Built:
    last: int = 7
    items: Annotated[list[int], operator.add] = field(default_factory=list)


def filled(plan: Any = PLAN) -> Cells:
    cells = Cells(plan, "salt")
    apply(cells, [pulled(plan, "a", ("last", 1), ("items", [1]), (ROOT, [1]))])
    return cells


def given(cells: Cells, **options: Any) -> Any:
    plan = cells.plan
    return node_input(cells, Task(plan.nodes["a"], Moment("id", "", 2, 3), **options))


def test_a_node_sees_what_is_there() -> None:
    assert given(filled()) == {"last": 1, "items": [1], "refusing": []}


def test_a_node_changes_nothing_that_others_see() -> None:
    cells = filled()
    for _ in range(2):
        seen = given(cells)
        assert seen["items"] == [1]
        seen["items"].append(2)
    assert values_of(cells, ["items"]) == {"items": [1]}


def test_a_sent_node_sees_what_was_sent() -> None:
    send = Send("a", {"any": "thing"})
    seen = given(filled(), send=send, index=0)
    assert seen == {"any": "thing"}
    seen["more"] = 1
    assert send.arg == {"any": "thing"}


def test_a_handler_sees_what_the_failed_node_saw() -> None:
    failed = Task(PLAN.nodes["a"], moment(), send=Send("a", "sent"), index=0)
    assert node_input(filled(), HandlerTask(failed, PLAN.nodes["b"], ValueError())) == "sent"


def test_a_call_sees_its_arguments_and_a_workflow_its_input() -> None:
    called = Task(PLAN.nodes["a"], moment())
    called.given = ((1,), {"two": 2})
    assert node_input(filled(), called) == ((1,), {"two": 2})
    plan = plan_of(described("a"))
    plan.nodes["a"].source = START
    cells = Cells(plan, "salt")
    apply(cells, [pulled(plan, "a", (START, "input"))])
    assert given(cells) == "input"


def test_a_bare_state_is_its_value_or_none() -> None:
    assert given(filled(BARE)) == [1]
    assert given(Cells(plan_of(described("a", schema=str | None)), "salt")) is None
    assert values_of(filled(BARE), []) == [1]
    assert values_of(Cells(plan_of(described("a", schema=str | None)), "salt"), []) is None


def test_managed_values_are_computed_where_the_node_stands() -> None:
    assert given(filled(plan_of(described("a", schema=Managed)))) == {"last": 1, "remaining": 1, "is_last": True}


def test_a_class_is_built_from_the_values_there_are() -> None:
    assert given(Cells(plan_of(described("a", schema=Built)), "salt")) == Built(7, [])
    assert given(filled(plan_of(described("a", schema=Built)))) == Built(1, [1])


def test_values_are_shown_by_key_where_there_are_any() -> None:
    cells = filled()
    assert values_of(cells, ["last", "flash", "no such key"]) == {"last": 1}
    values_of(cells, ["items"])["items"].append(9)
    assert values_of(cells, ["items"]) == {"items": [1]}


def test_writes_can_be_shown_before_they_are_folded() -> None:
    cells = filled()
    tasks = [
        sent(PLAN, "a", 0, ("items", [4])),
        pulled(PLAN, "b", ("items", [3]), ("last", 2)),
        pulled(PLAN, "a", ("items", [2]), ("refusing", [7])),
    ]
    assert values_with(cells, ["items", "last", "refusing"], tasks) == {
        "items": [1, 2, 3, 4],
        "last": 2,
        "refusing": [],
    }
    assert values_of(cells, ["items", "last"]) == {"items": [1], "last": 1}
    assert values_with(cells, ["last"], [Task(PLAN.nodes["a"], moment())]) == {"last": 1}


def test_what_cannot_be_folded_is_left_out() -> None:
    clash = [pulled(PLAN, "a", ("last", 2), ("items", [2])), pulled(PLAN, "b", ("last", 3))]
    assert values_with(filled(), ["last", "items"], clash) == {"last": 1, "items": [1, 2]}


def test_an_update_is_shown_by_key() -> None:
    cells = filled()
    assert updates_of_task(cells, pulled(PLAN, "a", ("last", 1), ("items", [2]))) == {"last": 1, "items": [2]}
    assert updates_of_task(cells, pulled(PLAN, "a", ("last", 1), ("items", [2])), ["items"]) == {"items": [2]}
    assert updates_of_task(cells, pulled(PLAN, "a", ("last", 1)), ["items"]) is None
    assert updates_of_task(cells, pulled(PLAN, "a")) is None
    assert updates_of_task(cells, Task(PLAN.nodes["a"], moment())) is None


def test_several_writes_to_one_key_are_shown_one_by_one() -> None:
    task = pulled(PLAN, "a", ("items", [1]), ("last", 2), ("items", [3]))
    assert updates_of_task(filled(), task) == [{"items": [1]}, {"last": 2}, {"items": [3]}]


def test_an_update_of_a_bare_state_is_its_last_value() -> None:
    cells = filled(BARE)
    assert updates_of_task(cells, pulled(BARE, "a", (ROOT, [1]), (ROOT, [2]))) == [2]
    assert updates_of_task(cells, pulled(BARE, "a")) is None


def test_a_workflow_shows_one_value() -> None:
    plan = plan_of(described("a"))
    plan.single = "last"
    cells = filled(plan)
    assert values_of(cells, ["items"]) == 1
    assert updates_of_task(cells, pulled(plan, "a", ("last", 5))) == 5


def test_every_kind_of_key_can_be_shown() -> None:
    cells = Cells(PLAN, "salt")
    writes = {"last": 1, "items": [1], "refusing": [1], "picky": 1, "any": 1, "flash": 1, "topic": [1], "untracked": 1}
    apply(cells, [pulled(PLAN, "a", *writes.items())])
    assert values_of(cells, Everything.__annotations__) == writes
