"""Folding: in path order whatever the order of completion, all or nothing, and at the price of what was touched."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, TypedDict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.channels import MISSING, LastValue
from runtime.engine import scheduling
from runtime.engine.applying import Siblings, apply, fold
from runtime.engine.cells import Cells
from runtime.engine.scheduling import due, due_nodes
from runtime.engine.tasks import Task
from runtime.errors import InvalidUpdateError
from runtime.graph import END, START
from runtime.types import Overwrite, Send
from runtime.types.constants import NO_WRITES, TASKS, branch_to
from tests.runtime.engine.sketching import Everything, described, everything_in, moment, plan_of, pulled, sent

NAMES = ("a", "b", "c")
JOINED = "join:a+b:j"


def the_plan() -> Any:
    builder = described(*NAMES, "j", "last", deferred=["last"])
    builder.add_edge(["a", "b"], "j")
    builder.add_edge("a", "c")
    return plan_of(builder)


PLAN = the_plan()

small = st.integers(5, 8)
writes = st.one_of(
    st.tuples(st.sampled_from(["last", "picky", "any", "flash", "untracked"]), small),
    st.tuples(st.sampled_from(["items", "refusing"]), st.lists(small, max_size=2) | st.just(Overwrite([0]))),
    st.tuples(st.just("topic"), small | st.lists(small)),
    st.tuples(st.just(JOINED), st.sampled_from(["a", "b", "stranger"])),
    st.tuples(st.just(branch_to("last")), st.none()),
    st.tuples(st.just(branch_to("c")), st.none()),
    st.tuples(st.just(TASKS), st.just(Send("c", 1))),
    st.tuples(st.sampled_from(["no such key", NO_WRITES]), st.none()),
)
groups = st.lists(writes, max_size=3)


@st.composite
def tasks(draw: st.DrawFn) -> list[Task]:
    """Tasks of one superstep: nodes by name, Sends by index."""
    made = []
    for name in draw(st.lists(st.sampled_from([*NAMES, "j", "last"]), unique=True)):
        made.append(pulled(PLAN, name, *draw(groups)))
    for index in range(draw(st.integers(0, 2))):
        made.append(sent(PLAN, draw(st.sampled_from(NAMES)), index, *draw(groups)))
    return made


def played(steps: list[list[Task]]) -> Cells:
    """Return cells after some supersteps; those that were refused did not happen."""
    cells = Cells(PLAN, "salt")
    for step in steps:
        try:
            apply(cells, step)
        except (InvalidUpdateError, ValueError):
            continue
    return cells


@settings(max_examples=50)
@given(st.lists(tasks(), max_size=3), tasks())
def test_what_is_refused_changes_nothing(before: list[list[Task]], step: list[Task]) -> None:
    cells = played(before)
    held = everything_in(cells)
    try:
        apply(cells, step)
    except (InvalidUpdateError, ValueError):
        assert everything_in(cells) == held


@settings(max_examples=50)
@given(st.lists(tasks(), max_size=2), tasks(), st.randoms(use_true_random=False))
def test_the_order_of_completion_does_not_matter(before: list[list[Task]], step: list[Task], random: Any) -> None:
    outcomes: list[Any] = []
    for _ in range(2):
        cells = played(before)
        try:
            apply(cells, step)
        except (InvalidUpdateError, ValueError) as error:
            outcomes.append(str(error))
        else:
            outcomes.append(everything_in(cells))
        random.shuffle(step)
    assert outcomes[0] == outcomes[1]


@settings(max_examples=50)
@given(st.lists(tasks(), max_size=2), tasks(), st.randoms(use_true_random=False))
def test_tasks_that_were_admitted_one_by_one_go_together(
    before: list[list[Task]], step: list[Task], random: Any
) -> None:
    cells = played(before)
    siblings, admitted = Siblings(cells), list[Task]()
    random.shuffle(step)
    for task in step:
        try:
            siblings.admit(task)
        except (InvalidUpdateError, ValueError):
            continue
        admitted.append(task)
    apply(cells, admitted)


@settings(max_examples=50)
@given(st.lists(tasks(), max_size=2), tasks())
def test_a_task_is_admitted_if_and_only_if_it_goes_with_those_before_it(
    before: list[list[Task]], step: list[Task]
) -> None:
    """The reducers of this plan refuse a write or not, whatever else is written.

    Only whether it is refused: of two faults in different channels either may be found first.
    """
    siblings, admitted = Siblings(played(before)), list[Task]()
    for task in step:
        refused = outcome(lambda together=[*admitted, task]: apply(played(before), together)) is not None
        assert (outcome(lambda task=task: siblings.admit(task)) is not None) == refused
        if not refused:
            admitted.append(task)


def outcome(act: Any) -> type[BaseException] | None:
    try:
        act()
    except (InvalidUpdateError, ValueError) as error:
        return type(error)
    return None


@settings(max_examples=50)
@given(st.lists(tasks(), max_size=2), tasks())
def test_admitting_changes_nothing(before: list[list[Task]], step: list[Task]) -> None:
    cells = played(before)
    held = everything_in(cells)
    siblings = Siblings(cells)
    for task in step:
        outcome(lambda task=task: siblings.admit(task))
    assert everything_in(cells) == held


def test_what_is_remembered_of_siblings_does_not_grow_with_their_number() -> None:
    siblings = Siblings(Cells(PLAN, "salt"))
    for index in range(100):
        writes = [("items", [index]), ("any", index), ("topic", index), (TASKS, Send("c", index)), (JOINED, "a")]
        siblings.admit(sent(PLAN, "a", index, *writes))
    assert all(len(values) <= 1 for values in siblings._written.values())


@settings(max_examples=50)
@given(st.lists(tasks(), max_size=4))
def test_cells_that_are_stored_and_loaded_go_on_as_before(steps: list[list[Task]]) -> None:
    """All but what is never stored."""
    cells = played(steps)
    assert cells.changed <= cells.stored.keys() <= cells.versions.keys()
    loaded = Cells(PLAN, "salt")
    loaded.restore(
        {
            "v": 4,
            "id": "",
            "ts": "",
            "channel_values": cells.stored,
            "channel_versions": cells.versions,
            "versions_seen": cells.seen,
            "updated_channels": None if cells.updated is None else sorted(cells.updated),
        },
        cells.lineage,
    )
    assert [task.path for task in due(loaded, moment())] == [task.path for task in due(cells, moment())]
    assert (loaded.stored, loaded.versions, loaded.triggered) == (cells.stored, cells.versions, cells.triggered)
    for key in loaded.stored.keys() - loaded.triggered:
        assert loaded.channels[key].checkpoint() == cells.channels[key].checkpoint()


# ---- faults that were found ------------------------------------------------------------------------------------------


def test_a_node_that_was_triggered_and_sent_to_at_once_starts_its_join_over() -> None:
    cells = Cells(PLAN, "salt")
    apply(cells, [pulled(PLAN, "a"), pulled(PLAN, "b", (TASKS, Send("j", 1)))])
    first = due(cells, moment())
    assert [task.path[0] for task in first if task.name == "j"] == ["__pregel_push", "__pregel_pull"]
    apply(cells, [pulled(PLAN, "j"), sent(PLAN, "j", 0)])
    assert cells.peek(JOINED) != {"a", "b"}
    apply(cells, [pulled(PLAN, "a"), pulled(PLAN, "b")])
    assert "j" in [node.name for node in due_nodes(cells)]


def test_a_source_that_runs_beside_its_join_counts_for_the_next_time() -> None:
    cells = Cells(PLAN, "salt")
    apply(cells, [pulled(PLAN, "a"), pulled(PLAN, "b")])
    apply(cells, [pulled(PLAN, "j"), pulled(PLAN, "a")])
    assert "j" not in [node.name for node in due_nodes(cells)]
    apply(cells, [pulled(PLAN, "b")])
    assert "j" in [node.name for node in due_nodes(cells)]


def test_a_deferred_node_that_is_triggered_while_it_runs_runs_again() -> None:
    cells = Cells(PLAN, "salt")
    apply(cells, [pulled(PLAN, "j", (branch_to("last"), None))])
    assert [node.name for node in due_nodes(cells)] == ["last"]
    apply(cells, [pulled(PLAN, "last", (branch_to("last"), None))])
    assert [node.name for node in due_nodes(cells)] == ["last"]
    apply(cells, [pulled(PLAN, "last")])
    assert due_nodes(cells) == []


@pytest.mark.parametrize("key", ["picky", "refusing"])
def test_code_of_the_program_that_refuses_a_write_leaves_no_cell_torn(key: str) -> None:
    cells = Cells(PLAN, "salt")
    held = everything_in(cells)
    bad = 7 if key == "picky" else [7]
    with pytest.raises(ValueError, match="no sevens") as caught:
        apply(cells, [pulled(PLAN, "a", ("last", 1), (key, bad), ("items", [1]))])
    assert caught.value.__notes__ == [
        f"While folding the superstep's writes into channel {key!r}; nothing of it was stored."
    ]
    assert everything_in(cells) == held


class Countdown(LastValue[int]):
    """A program's own channel: every superstep without a write takes one off."""

    __slots__ = ()
    volatile = True

    def update(self, values: Sequence[int]) -> bool:
        self.value = values[-1] if values else self.value - 1 or MISSING
        return True


class Late(LastValue[int]):
    """A program's own channel: it is told of the end of the run, and shows nothing for it."""

    __slots__ = ()
    deferred = True

    def peek(self) -> Any:
        return MISSING

    def finish(self) -> bool:
        return True


class Own(TypedDict, total=False):
    countdown: Annotated[int, Countdown]
    late: Annotated[int, Late]


def test_channels_of_a_programs_own_hear_of_time_and_of_the_end() -> None:
    plan = plan_of(described("a", schema=Own))
    cells = Cells(plan, "salt")
    apply(cells, [pulled(plan, "a", ("countdown", 2))])
    for left in (1, MISSING):
        apply(cells, [pulled(plan, "a")])
        assert cells.peek("countdown") is left or cells.peek("countdown") == left
        assert cells.updated == ({"countdown"} if left == 1 else set())
    assert cells.versions["late"] == "00000003.salt"


def test_nothing_new_makes_no_new_version() -> None:
    cells = Cells(PLAN, "salt")
    apply(cells, [pulled(PLAN, "a", ("topic", []))])
    assert "topic" not in cells.versions


# ---- order -----------------------------------------------------------------------------------------------------------


def test_nodes_come_by_name_and_sends_after_them_by_index() -> None:
    cells = Cells(PLAN, "salt")
    step = [
        sent(PLAN, "a", 1, ("items", [5])),
        pulled(PLAN, "c", ("items", [3])),
        sent(PLAN, "c", 0, ("items", [4])),
        pulled(PLAN, "b", ("items", [2])),
        pulled(PLAN, "a", ("items", [1])),
    ]
    apply(cells, step)
    assert cells.peek("items") == [1, 2, 3, 4, 5]


def test_everything_that_a_superstep_changes_gets_one_version() -> None:
    cells = Cells(PLAN, "salt")
    apply(cells, [pulled(PLAN, "a", ("last", 1), ("items", [1])), pulled(PLAN, "b", ("any", 1))])
    assert {cells.versions[key] for key in ("last", "items", "any", branch_to("c"))} == {"00000001.salt"}
    apply(cells, [pulled(PLAN, "b", ("last", 2))])
    assert (cells.versions["last"], cells.versions["items"]) == ("00000002.salt", "00000001.salt")


def test_an_update_in_which_nothing_ran_clears_nothing() -> None:
    cells = Cells(PLAN, "salt")
    apply(cells, [pulled(PLAN, "a", ("flash", 1), ("topic", [1, 2]))])
    fold(cells, [[("last", 3)]], {}, bump=False)
    assert (cells.peek("flash"), cells.peek("topic"), cells.peek("last")) == (1, [1, 2], 3)
    assert {branch_to("c"), "flash", "last"} <= (cells.updated or set())
    apply(cells, [pulled(PLAN, "b")])
    assert [cells.channels[key].is_available() for key in ("flash", "topic")] == [False, False]


def test_applying_nothing_lets_no_time_pass() -> None:
    cells = Cells(PLAN, "salt")
    apply(cells, [pulled(PLAN, "a", ("flash", 1))])
    apply(cells, [])
    assert cells.peek("flash") == 1


# ---- what it costs ---------------------------------------------------------------------------------------------------


def test_planning_looks_at_subscribers_of_what_changed_only(monkeypatch: pytest.MonkeyPatch) -> None:
    builder = described("n0")
    for number in range(1, 2000):
        builder.add_node(f"n{number}", lambda _state: None)
        builder.add_edge(f"n{number - 1}", f"n{number}")
    builder.add_edge("n1999", END)
    plan = plan_of(builder)
    looked_at: list[str] = []
    triggered = scheduling._triggered

    def counting(cells: Cells, node: Any) -> bool:
        looked_at.append(node.name)
        return triggered(cells, node)

    monkeypatch.setattr(scheduling, "_triggered", counting)
    cells = Cells(plan, "salt")
    fold(cells, [[(START, {})]], {}, bump=False)
    for name in (START, *(f"n{number}" for number in range(50))):
        looked_at.clear()
        (task,) = due(cells, moment())
        assert (task.name, looked_at) == (name, [name])
        apply(cells, [pulled(plan, name, ("last", 1))])


def test_a_checkpoint_stays_as_small_as_the_state_however_many_nodes_have_run() -> None:
    builder = described("n0")
    for number in range(1, 100):
        builder.add_node(f"n{number}", lambda _state: None)
        builder.add_edge(f"n{number - 1}", f"n{number}")
    plan = plan_of(builder)
    cells = Cells(plan, "salt")
    keys = set(Everything.__annotations__)
    for number in range(99):
        apply(cells, [pulled(plan, f"n{number}", ("last", number))])
        assert set(cells.versions) - keys == {branch_to(f"n{number + 1}")}
        assert set(cells.seen) == {f"n{number}"}
    apply(cells, [pulled(plan, "n99")])
    assert set(cells.versions) <= keys


@settings(max_examples=20)
@given(st.integers(1, 30))
def test_a_join_is_forgotten_once_it_has_fired(rounds: int) -> None:
    cells = Cells(PLAN, "salt")
    for _ in range(rounds):
        apply(cells, [pulled(PLAN, "a")])
        apply(cells, [pulled(PLAN, "b")])
        assert [node.name for node in due_nodes(cells)] == ["j"]
        apply(cells, [pulled(PLAN, "j")])
    assert JOINED not in cells.versions
    assert JOINED not in cells.channels
