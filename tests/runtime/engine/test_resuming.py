"""What is stored of a superstep finds its tasks again; answers reach the questions they are meant for."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.engine.resuming import answer, is_id_map, match, null_writes, own_answers, stored_answers, take, waiting
from runtime.engine.tasks import HandlerTask, Task
from runtime.errors import StoredNodeError, UnknownInterruptError
from runtime.graph import StateGraph
from runtime.interrupts import interrupt_id
from runtime.types import Interrupt
from runtime.types.constants import ERROR, ERROR_SOURCE_NODE, INTERRUPT, NO_WRITES, NULL_TASK_ID, RESUME
from tests.runtime.engine.sketching import Everything, described, idle, moment, plan_of

PLAN = plan_of(described("a", "b"))


def task(name: str = "a") -> Task:
    return Task(PLAN.nodes[name], moment())


def asking(name: str, *questions: str, answers: tuple[Any, ...] = ()) -> Task:
    """Return a task that waits for answers."""
    made = task(name)
    made.answers = list(answers)
    made.interrupts = tuple(
        Interrupt(question, interrupt_id(made.ns, len(answers) + index)) for index, question in enumerate(questions)
    )
    return made


# ---- matching --------------------------------------------------------------------------------------------------------


def test_writes_that_no_task_owns_are_a_commands() -> None:
    pending = [(NULL_TASK_ID, "k", 1), ("other", "k", 2), (NULL_TASK_ID, RESUME, 3), (NULL_TASK_ID, INTERRUPT, 4)]
    assert null_writes(pending) == [("k", 1)]
    assert null_writes(None) == []


def test_what_is_stored_of_a_task_finds_it_by_id() -> None:
    one, other = task("a"), task("b")
    match([one, other], [(one.id, "last", 1), (one.id, "items", [1]), ("stranger", "last", 2)])
    assert one.writes == [("last", 1), ("items", [1])]
    assert not other.finished
    match([other], None)
    assert not other.finished


def test_a_task_without_writes_has_finished_too() -> None:
    one = task()
    take(one, [(NO_WRITES, None)])
    assert one.writes == []


def test_a_failure_a_question_and_answers_do_not_make_a_task_finished() -> None:
    one = task()
    take(one, [(ERROR, "boom"), (INTERRUPT, [Interrupt("q", "1")]), (RESUME, ["A", "B"])])
    assert (one.error, one.interrupts, one.answers, one.finished) == ("boom", (Interrupt("q", "1"),), ["A", "B"], False)


def test_single_questions_and_answers_may_be_stored_bare() -> None:
    one = task()
    take(one, [(INTERRUPT, Interrupt("q", "1")), (RESUME, "A")])
    assert (one.interrupts, one.answers) == ((Interrupt("q", "1"),), ["A"])


def test_a_handler_that_had_finished_stands_in_again() -> None:
    builder: StateGraph[Any, Any, Any, Any] = StateGraph(Everything)
    builder.add_node("a", idle, error_handler=idle)
    builder.set_entry_point("a")
    plan = plan_of(builder)
    handler = plan.nodes["a"].handler
    assert handler is not None
    caught = [(ERROR, "boom"), (ERROR_SOURCE_NODE, "a")]
    for stored, finished in (([], False), ([("last", 1)], True)):
        failed = Task(plan.nodes["a"], moment())
        handling = HandlerTask(failed, handler, StoredNodeError("boom"))
        match([failed], [(failed.id, *one) for one in caught] + [(handling.id, *one) for one in stored])
        assert (failed.caught, failed.finished) == (True, finished)
        assert failed.effective.writes == (stored if finished else None)


# ---- questions and answers -------------------------------------------------------------------------------------------


def test_a_question_without_an_answer_waits() -> None:
    one = asking("a", "q")
    assert [question.value for question in waiting(one)] == ["q"]
    answer([one], "A")
    assert waiting(one) == ()
    assert waiting(task()) == ()


def test_a_finished_task_waits_for_nothing() -> None:
    one = asking("a", "q")
    one.writes = []
    assert waiting(one) == ()


@pytest.mark.parametrize("falsy", [0, "", False, [], {}])
def test_falsy_answers_are_answers(falsy: Any) -> None:
    one = asking("a", "q")
    answered = answer([one], falsy)
    assert (answered, one.answers) == (([one], [falsy]) if falsy != {} else ([], []))


def test_one_answer_for_several_questions_is_refused() -> None:
    one, other = asking("a", "q"), asking("b", "q")
    with pytest.raises(UnknownInterruptError, match="multiple pending interrupts") as caught:
        answer([one, other], "A")
    assert caught.value.reason == "ambiguous"
    assert caught.value.pending_ids == (one.interrupts[0].id, other.interrupts[0].id)
    assert (one.answers, other.answers) == ([], [])


def test_an_answer_to_no_question_is_nobodys() -> None:
    assert answer([task()], "A") == []


@given(st.booleans())
def test_an_unknown_id_is_refused_whatever_stands_beside_it(mixed: bool) -> None:
    one = asking("a", "q")
    given = {"0" * 32: "A", **({one.interrupts[0].id: "B"} if mixed else {})}
    with pytest.raises(UnknownInterruptError, match="No pending interrupt has the id '0000") as caught:
        answer([one], given)
    assert (caught.value.reason, caught.value.interrupt_ids) == ("not_pending", ("0" * 32,))
    assert caught.value.pending_ids == (one.interrupts[0].id,)
    assert one.answers == []


def test_some_questions_may_be_answered_first() -> None:
    one, other = asking("a", "q"), asking("b", "q")
    assert answer([one, other], {other.interrupts[0].id: "B"}) == [other]
    assert (one.answers, other.answers) == ([], ["B"])


def test_two_answers_to_one_task_make_one_task_of_it() -> None:
    made = asking("a", "q0", "q1")
    assert answer([made], {question.id: question.value for question in made.interrupts}) == [made]
    assert made.answers == ["q0", "q1"]


@given(st.permutations(["q0", "q1", "q2"]), st.integers(0, 2))
def test_answers_to_questions_asked_at_once_reach_theirs_in_any_order(order: list[str], before: int) -> None:
    """They are stored and matched again after each answer, as runs do."""
    made = asking("a", "q0", "q1", "q2", answers=tuple(f"old{index}" for index in range(before)))
    questions = {question.value: question for question in made.interrupts}
    for value in order:
        assert answer([made], {questions[value].id: f"to {value}"}) == [made]
        assert questions[value].id not in {question.id for question in waiting(made)}
        again = task("a")
        take(again, [(INTERRUPT, list(made.interrupts)), (RESUME, stored_answers(made))])
        made = again
    assert waiting(made) == ()
    answers = dict(zip((interrupt_id(made.ns, index) for index in range(9)), made.answers, strict=False))
    answers |= own_answers(made)
    assert {question.value: answers[question.id] for question in questions.values()} == {
        value: f"to {value}" for value in questions
    }


def test_answers_to_a_subgraphs_questions_are_not_the_nodes_own() -> None:
    made = task()
    made.interrupts = (Interrupt("q", "f" * 32),)
    assert answer([made], {"f" * 32: "A"}) == [made]
    assert (made.answers, made.below) == ([], {"f" * 32: "A"})
    assert own_answers(made) == {}
    again = task()
    take(again, [(RESUME, stored_answers(made))])
    assert (again.answers, again.below) == ([], {"f" * 32: "A"})


@pytest.mark.parametrize(
    ("resume", "is_map"),
    [
        ({}, True),
        ({"0123456789abcdef" * 2: 1}, True),
        ({"0123456789ABCDEF" * 2: 1}, False),
        ({"short": 1}, False),
        ({"0" * 32: 1, "name": 2}, False),
        ({1: 1}, False),
        ("0" * 32, False),
        (None, False),
    ],
)
def test_a_map_of_answers_has_nothing_but_ids_as_keys(resume: Any, is_map: bool) -> None:
    assert is_id_map(resume) is is_map
