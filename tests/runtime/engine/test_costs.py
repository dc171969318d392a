"""A superstep costs what it touches, not what the graph has; a wide one costs no more a task than a narrow one."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypedDict

import pytest

from runtime.engine.applying import Siblings, apply
from runtime.engine.cells import Cells
from runtime.engine.checkpointing import checkpoint_of, take_changes
from runtime.engine.plan import Plan
from runtime.engine.scheduling import due
from runtime.engine.tasks import Task
from runtime.graph import START, StateGraph
from runtime.types import Send
from runtime.types.constants import TASKS, branch_to
from tests.runtime.engine.counting import Watched, calls
from tests.runtime.engine.sketching import described, idle, moment, plan_of, pulled

LENGTH = 1000
"""Two chains of so many nodes; each node has a key of the state to itself."""


def two_chains(length: int) -> Plan:
    keys: dict[str, Any] = {f"{chain}{number}": int for chain in "ab" for number in range(length)}
    builder: StateGraph[Any, Any, Any, Any] = StateGraph(TypedDict("Wide", keys))
    for chain in "ab":
        builder.add_node(f"{chain}-0", idle).add_edge(START, f"{chain}-0")
        for number in range(1, length):
            builder.add_node(f"{chain}-{number}", idle).add_edge(f"{chain}-{number - 1}", f"{chain}-{number}")
    return plan_of(builder)


@pytest.fixture(scope="module")
def plan() -> Plan:
    """The plan, whose mappings are watched."""
    made = two_chains(LENGTH)
    made.nodes, made.state, made.internal = Watched(made.nodes), Watched(made.state), Watched(made.internal)
    made.subscribers = Watched(made.subscribers)
    return made


@dataclass
class Superstep:
    """What one superstep of the engine does."""

    cells: Cells
    tasks: list[Task]

    def finish(self) -> dict[str, Any]:
        """Admit, fold and record what the tasks wrote; return what storage gets."""
        siblings = Siblings(self.cells)
        for task in self.tasks:
            siblings.admit(task)
        apply(self.cells, self.tasks)
        checkpoint_of(self.cells, "id", "now")
        return take_changes(self.cells, {})


def standing_at(plan: Plan, number: int) -> Superstep:
    """Return the superstep of two nodes, one of each chain, with what they will have written."""
    cells = Cells(plan, "salt")
    apply(cells, [pulled(plan, f"{chain}-{number - 1}", (f"{chain}{number - 1}", 1)) for chain in "ab"])
    take_changes(cells, {})
    return Superstep(cells, [pulled(plan, f"{chain}-{number}", (f"{chain}{number}", 2)) for chain in "ab"])


def watch(cells: Cells) -> dict[str, Watched]:
    """Watch all that the engine keeps by name; forget what was looked at so far."""
    cells.channels, cells.stored, cells.versions = map(Watched, (cells.channels, cells.stored, cells.versions))
    watched = {f"plan.{name}": getattr(cells.plan, name) for name in ("nodes", "state", "internal", "subscribers")}
    watched |= {f"cells.{name}": getattr(cells, name) for name in ("channels", "stored", "versions")}
    for mapping in watched.values():
        mapping.seen.clear()
    return watched


@pytest.mark.parametrize("number", [1, 500, LENGTH - 2])
def test_a_superstep_of_two_nodes_looks_at_what_they_touch_among_two_thousand(plan: Plan, number: int) -> None:
    step = standing_at(plan, number)
    watched = watch(step.cells)
    nodes = {f"a-{number}", f"b-{number}"}
    following = {f"a-{number + 1}", f"b-{number + 1}"}
    keys = {f"a{number}", f"b{number}"}
    triggers = set(map(branch_to, nodes))

    assert {task.name for task in due(step.cells, moment())} == nodes
    assert watched["plan.nodes"].seen == nodes
    assert watched["plan.subscribers"].seen <= triggers | {f"a{number - 1}", f"b{number - 1}"}
    assert watched["cells.channels"].seen <= triggers | {TASKS}
    assert watched["plan.state"].seen == watched["plan.internal"].seen == set()

    for mapping in watched.values():
        mapping.seen.clear()
    assert step.finish().keys() == keys | set(map(branch_to, following))
    touched = keys | triggers | set(map(branch_to, following))
    for name, mapping in watched.items():
        assert mapping.seen <= touched, name
    assert {task.name for task in due(step.cells, moment())} == following


def test_what_is_not_known_is_looked_for_everywhere(plan: Plan) -> None:
    """So the test above can fail: whoever goes through a mapping is seen."""
    step = standing_at(plan, 5)
    watched = watch(step.cells)
    step.cells.updated = None
    assert len(due(step.cells, moment())) == 2
    assert len(watched["plan.nodes"].seen) == 2 * LENGTH + 1


def counted(plan: Plan, number: int) -> int:
    step = standing_at(plan, number)
    with calls() as so_far:
        due(step.cells, moment())
        step.finish()
        return so_far()


def test_a_superstep_takes_as_many_calls_in_a_large_graph_as_in_a_small_one() -> None:
    small, large = two_chains(10), two_chains(LENGTH)
    assert counted(small, 5) == counted(large, 5) == counted(large, LENGTH - 2)


# ---- many tasks at once ----------------------------------------------------------------------------------------------


def fan_out(width: int) -> int:
    """Count the calls of a superstep of so many Sends, each writing to several kinds of channel and on to one node."""
    builder = described("worker")
    builder.add_node("end", idle).add_edge("worker", "end")
    plan = plan_of(builder)
    cells = Cells(plan, "salt")
    apply(cells, [pulled(plan, START, *((TASKS, Send("worker", number)) for number in range(width)))])
    take_changes(cells, {})
    with calls() as so_far:
        sends = due(cells, moment())[:width]
        for task in sends:
            task.writes = [("items", [1]), ("topic", 1), ("any", 1), (TASKS, Send("end", 1)), *task.node.edge_writes]
        Superstep(cells, sends).finish()
        return so_far()


def test_each_task_of_a_wide_superstep_costs_the_same() -> None:
    costs = [fan_out(width) for width in (100, 200, 300, 400)]
    (more,) = {later - earlier for earlier, later in pairwise(costs)}
    assert 0 < more < costs[0] * 1.1
