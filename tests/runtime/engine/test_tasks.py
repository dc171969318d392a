"""Tasks: ids that storage finds again, paths that sort as they are folded."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from runtime.engine.plan import Plan
from runtime.engine.tasks import HandlerTask, Moment, Task, is_output, path_text
from runtime.types import Send
from runtime.types.constants import ERROR, ERROR_SOURCE_NODE, INTERRUPT, NO_WRITES, PULL, PUSH, RESUME, RETURN, TASKS
from tests.runtime.engine.sketching import PARENT, described, moment, plan_of

NAMES = ["a", "b", "b2", "ä", "__x", "Z"]
PLAN: Plan = plan_of(described(*NAMES))

made = st.sampled_from(NAMES).map(lambda name: Task(PLAN.nodes[name], moment())) | st.integers(0, 10**9).map(
    lambda index: Task(PLAN.nodes["a"], moment(), send=Send("a", None), index=index)
)


@given(st.lists(made))
def test_tasks_sort_as_the_text_of_their_paths(tasks: list[Task]) -> None:
    by_text = sorted(tasks, key=lambda task: task.path_text)
    assert [task.path for task in sorted(tasks, key=lambda task: task.order)] == [task.path for task in by_text]


@given(st.lists(made, unique_by=lambda task: task.path))
def test_tasks_of_a_superstep_have_ids_of_their_own(tasks: list[Task]) -> None:
    assert len({task.id for task in tasks}) == len(tasks)


def test_an_id_comes_from_where_and_when_the_task_stands() -> None:
    node = PLAN.nodes["a"]
    places = [
        Moment(PARENT, "", 1, 9),
        Moment(PARENT, "", 2, 9),
        Moment(PARENT, "up", 1, 9),
        Moment("another", "", 1, 9),
    ]
    ids = [Task(node, place).id for place in places]
    assert len(set(ids)) == len(ids)
    assert ids == [Task(node, place).id for place in places]


def test_a_namespace_ends_in_name_and_id() -> None:
    root, inner = Task(PLAN.nodes["a"], moment()), Task(PLAN.nodes["a"], moment(ns="up:1"))
    assert (root.ns, inner.ns) == (f"a:{root.id}", f"up:1|a:{inner.id}")


def test_an_id_can_be_given() -> None:
    task = Task(PLAN.nodes["a"], moment())
    task.rename("mine")
    assert (task.id, task.ns) == ("mine", "a:mine")


def test_a_task_shows_whether_it_has_finished() -> None:
    task = Task(PLAN.nodes["a"], moment(3))
    assert repr(task) == "<Task a step=3 due>"
    task.writes = []
    assert repr(task) == "<Task a step=3 finished>"


def test_a_task_that_wrote_nothing_is_recorded_all_the_same() -> None:
    task = Task(PLAN.nodes["a"], moment())
    task.writes = []
    assert task.stored_writes() == [(NO_WRITES, None)]
    task.writes = [("last", 1)]
    assert task.stored_writes() == [("last", 1)]


def test_a_path_is_stored_as_text() -> None:
    task = Task(PLAN.nodes["a"], moment(), send=Send("a", None), index=7)
    assert (task.path, task.path_text) == ((PUSH, 7, False), "~__pregel_push, 0000000007, False")
    pulled = Task(PLAN.nodes["a"], moment())
    assert (
        (pulled.path, pulled.path_text)
        == ((PULL, "a"), path_text((PULL, "a")))
        == (PLAN.nodes["a"].path, "~__pregel_pull, a")
    )


def test_a_call_is_what_a_node_makes_not_a_node() -> None:
    task = Task(PLAN.nodes["a"], moment())
    assert (task.around, task.depth) == (None, 0)


def test_control_writes_do_not_make_a_task_finished() -> None:
    assert [is_output(channel) for channel in (ERROR, ERROR_SOURCE_NODE, INTERRUPT, RESUME)] == [False] * 4
    assert [is_output(channel) for channel in (NO_WRITES, RETURN, TASKS, "last")] == [True] * 4


def test_a_handlers_task_stands_in_for_the_failed_one() -> None:
    failed = Task(PLAN.nodes["a"], moment(ns="up:1"))
    failed.below = {"q": 1}
    handling = HandlerTask(failed, PLAN.nodes["b"], ValueError("boom"))
    assert (handling.order, handling.triggers, handling.below) == (failed.order, failed.triggers, {"q": 1})
    assert handling.id == HandlerTask(failed, PLAN.nodes["b"], ValueError()).id
    assert handling.id not in (
        failed.id,
        HandlerTask(Task(PLAN.nodes["a"], moment()), PLAN.nodes["b"], ValueError()).id,
    )
    assert failed.effective is failed
    failed.stand_in = handling
    assert failed.effective is handling
    assert failed.finished
