"""Cells: what a stored checkpoint brings back, whoever wrote it, and what becomes of work for nodes that are gone."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from persistence.contracts.checkpoint import Checkpoint
from persistence.errors import CorruptDataError
from runtime.engine.applying import apply, fold
from runtime.engine.cells import Cells, version_number
from runtime.engine.plan import Plan, trigger_channel
from runtime.engine.scheduling import due, due_nodes
from runtime.errors import OrphanedTaskError
from runtime.graph import START
from runtime.types import Send
from runtime.types.constants import TASKS, branch_to
from tests.runtime.engine.sketching import described, moment, plan_of, pulled, sent

PLAN = plan_of(described("a", "b", "late", deferred=["late"]))


def stored(**parts: Any) -> Checkpoint:
    """Return a checkpoint as it is read from storage."""
    checkpoint: Any = {
        "v": 4,
        "id": "id",
        "ts": "now",
        "channel_values": {},
        "channel_versions": {},
        "versions_seen": {},
        "updated_channels": None,
        **parts,
    }
    return checkpoint  # type: ignore[no-any-return]


def restored(plan: Plan, *, reading: bool = False, **parts: Any) -> Cells:
    cells = Cells(plan, "new")
    cells.restore(stored(**parts), None, reading=reading)
    return cells


def names(cells: Cells) -> list[str]:
    return [task.name for task in due(cells, moment())]


# ---- checkpoints of any origin ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "number"),
    [
        (3, 3),
        (3.0, 3),
        ("00000003.salt", 3),
        ("00000000000000000000000000000003.0123456789012345", 3),
        ("3", 3),
        ("salt", 0),
        ("", 0),
    ],
)
def test_versions_of_every_known_form_count(version: Any, number: int) -> None:
    assert version_number(version) == number


@given(st.lists(st.integers(0, 10**6) | st.integers(0, 10**6).map(lambda n: f"{n:032}.0.5"), min_size=1))
def test_the_next_version_is_newer_than_all_that_are_stored(versions: list[Any]) -> None:
    cells = restored(PLAN, channel_versions={f"k{index}": version for index, version in enumerate(versions)})
    assert version_number(cells.next_version()) > max(map(version_number, versions))


def test_versions_of_two_runs_differ() -> None:
    assert Cells(PLAN, "one").next_version() != Cells(PLAN, "other").next_version()


def test_what_was_updated_need_not_be_known() -> None:
    """Older formats do not tell; then every node is looked at."""
    parts: dict[str, Any] = {"channel_values": {branch_to("b"): None}, "channel_versions": {branch_to("b"): 2}}
    assert names(restored(PLAN, **parts)) == ["b"]
    assert names(restored(PLAN, **parts, updated_channels=[])) == []
    assert names(restored(PLAN, **parts, versions_seen={"b": {branch_to("b"): 2}})) == []
    assert names(restored(PLAN, **parts, versions_seen={"b": {branch_to("b"): 1}})) == ["b"]
    assert names(restored(PLAN, **parts, versions_seen={"b": {"another": 2}})) == ["b"]


def test_several_nodes_are_due_by_name() -> None:
    values = {branch_to("b"): None, branch_to("a"): None}
    parts: dict[str, Any] = {"channel_values": values, "channel_versions": dict.fromkeys(values, 1)}
    assert names(restored(PLAN, **parts, updated_channels=list(values))) == ["a", "b"]


def test_an_updated_trigger_that_is_empty_starts_nothing() -> None:
    assert names(restored(PLAN, updated_channels=[branch_to("a")])) == []
    assert names(restored(PLAN, updated_channels=[branch_to("a"), branch_to("b")])) == []


def test_keys_that_the_graph_has_no_more_are_left_out() -> None:
    cells = restored(PLAN, channel_values={"last": 1, "gone": 2}, channel_versions={"last": 1, "gone": 1})
    assert cells.peek("last") == 1
    assert "gone" not in cells.channels


def test_a_deferred_trigger_comes_back_with_what_it_waits_for() -> None:
    waiting = restored(PLAN, channel_values={branch_to("late"): (None, False)})
    assert names(waiting) == []
    apply(waiting, [pulled(PLAN, "a")])
    assert names(waiting) == ["late"]
    ready = restored(PLAN, channel_values={branch_to("late"): (None, True)})
    assert names(ready) == ["late"]


def test_an_update_on_a_checkpoint_of_unknown_changes_knows_its_own() -> None:
    cells = restored(PLAN, channel_values={"last": 1}, channel_versions={"last": 1})
    fold(cells, [[(branch_to("b"), None)]], {}, bump=False)
    assert cells.updated == {branch_to("b")}


def test_an_emptied_channel_of_the_state_keeps_its_version_and_has_no_value() -> None:
    cells = Cells(PLAN, "salt")
    apply(cells, [pulled(PLAN, "a", ("flash", 1))])
    apply(cells, [pulled(PLAN, "a")])
    assert "flash" not in cells.stored
    assert cells.versions["flash"] == "00000002.salt"


def test_an_untracked_value_is_never_stored() -> None:
    cells = Cells(PLAN, "salt")
    apply(cells, [pulled(PLAN, "a", ("untracked", 1))])
    assert cells.peek("untracked") == 1
    assert "untracked" not in cells.stored | dict.fromkeys(cells.changed)


# ---- work for nodes that are gone ------------------------------------------------------------------------------------

GONE: dict[str, Any] = {"channel_values": {branch_to("gone"): None}, "channel_versions": {branch_to("gone"): 1}}
SENT: dict[str, Any] = {"channel_values": {TASKS: [Send("gone", 1), Send("a", 2)]}, "channel_versions": {TASKS: 1}}


@pytest.mark.parametrize("work", [GONE, SENT], ids=["triggered", "sent"])
def test_pending_work_of_a_node_that_is_gone_is_told(work: dict[str, Any]) -> None:
    with pytest.raises(OrphanedTaskError, match=r"node 'gone'.*its nodes: a, b, late.*node_aliases=\{'gone'"):
        restored(PLAN, **work)


@pytest.mark.parametrize("work", [GONE, SENT], ids=["triggered", "sent"])
def test_a_reader_sees_the_rest(work: dict[str, Any]) -> None:
    assert names(restored(PLAN, reading=True, **work)) == ([] if work is GONE else ["a"])


def test_a_reader_may_be_left_with_no_sends_at_all() -> None:
    assert names(restored(PLAN, reading=True, channel_values={TASKS: [Send("gone", 1)]})) == []


@pytest.mark.parametrize("work", [GONE, SENT], ids=["triggered", "sent"])
def test_an_alias_hands_the_work_on(work: dict[str, Any]) -> None:
    plan = plan_of(described("a", "b"), node_aliases={"gone": "b"})
    cells = restored(
        plan,
        **work,
        versions_seen={"gone": {branch_to("gone"): 0}},
        updated_channels=list(work["channel_values"]),
    )
    assert "b" in names(cells)
    assert cells.seen == {"b": {branch_to("b"): 0}}


def test_an_alias_leaves_other_names_alone() -> None:
    plan = plan_of(described("a", "b"), node_aliases={"gone": "b"})
    cells = restored(plan, channel_values={branch_to("a"): None, "last": 1}, channel_versions={branch_to("a"): 1})
    assert names(cells) == ["a"]
    assert cells.peek("last") == 1


def test_a_send_to_nobody_cannot_be_planned() -> None:
    cells = Cells(PLAN, "salt")
    fold(cells, [[(TASKS, Send("gone", 1))]], {}, bump=False)
    with pytest.raises(OrphanedTaskError, match="'gone'"):
        due(cells, moment())


# ---- what is due -----------------------------------------------------------------------------------------------------


def test_sends_come_first_in_the_order_they_were_sent() -> None:
    cells = Cells(PLAN, "salt")
    apply(cells, [pulled(PLAN, START), sent(PLAN, "a", 0, (TASKS, Send("b", 1)), (TASKS, Send("a", 2)))])
    tasks = due(cells, moment())
    assert [(task.name, task.send_index) for task in tasks] == [("b", 0), ("a", 1), ("a", -1), ("b", -1)]
    assert [node.name for node in due_nodes(cells)] == ["a", "b"]


def test_sends_are_done_after_one_superstep() -> None:
    cells = Cells(PLAN, "salt")
    apply(cells, [pulled(PLAN, "a", (TASKS, Send("b", 1)))])
    assert names(cells) == ["b"]
    apply(cells, [sent(PLAN, "b", 0)])
    assert names(cells) == []


def test_a_nodes_own_trigger_is_a_channel_of_its_kind() -> None:
    assert trigger_channel("n", defer=True).deferred
    assert trigger_channel("n", defer=False).volatile


def test_a_value_that_its_channel_does_not_take_is_named() -> None:
    with pytest.raises(
        CorruptDataError, match="Checkpoint id: what is stored for channel '__pregel_tasks' does not fit a Topic"
    ) as fault:
        restored(PLAN, channel_values={TASKS: range(10**15)})
    assert fault.value.checkpoint_id == "id"


@pytest.mark.parametrize("version", [float("inf"), "9" * 5000 + ".salt", "x"], ids=["infinite", "long", "text"])
def test_versions_that_nobody_can_count_to_count_for_nothing(version: object) -> None:
    assert version_number(version) == 0
