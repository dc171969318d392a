"""The questions of one attempt: in sequence by number, at once by value, and each answer to its own."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.engine.questions import Questions, own_ids, renamed
from runtime.engine.resuming import answer, carry_over, reopen, stored_answers, take, waiting
from runtime.engine.tasks import HandlerTask, Moment, Task
from runtime.errors import GraphInterrupt, UnknownInterruptError
from runtime.graph import StateGraph
from runtime.interrupts import interrupt_id
from runtime.types import Interrupt
from runtime.types.constants import INTERRUPT, RESUME
from runtime.types.ids import aside_id
from tests.runtime.engine.sketching import Everything, described, idle, moment, plan_of

PLAN = plan_of(described("a", "b"))


def task(name: str = "a", place: Moment | None = None) -> Task:
    return Task(PLAN.nodes[name], place or moment())


class Run:
    """A node that asks, run again and again as it is answered."""

    def __init__(self, *questions: Any, at_once: bool) -> None:
        self.values = list(questions)
        self.at_once = at_once
        self.task = task()
        self.got: dict[str, Any] = {}

    def attempt(self) -> Questions:
        """Ask everything that the node asks; those asked in sequence stop at the first without an answer."""
        questions = Questions(self.task)
        for value in self.values:
            try:
                self.got[repr(value)] = questions.ask(value, None, [], aside=self.at_once)
            except GraphInterrupt:
                if not self.at_once:
                    break
        self.task.interrupts = (*questions.settled, *questions.asked)
        return questions

    def store_and_load(self) -> None:
        again = task()
        take(again, [(INTERRUPT, list(self.task.interrupts)), (RESUME, stored_answers(self.task))])
        self.task = again


@given(st.integers(1, 5))
def test_questions_in_sequence_are_answered_in_sequence(count: int) -> None:
    run = Run(*range(count), at_once=False)
    for number in range(count):
        run.attempt()
        (question,) = waiting(run.task)
        assert (question.value, question.id) == (number, interrupt_id(run.task.ns, number))
        answer([run.task], f"to {number}")
        run.store_and_load()
    assert run.attempt().asked == []
    assert run.got == {repr(number): f"to {number}" for number in range(count)}


@given(st.permutations(["q0", "q1", "q2"]), st.randoms(use_true_random=False))
def test_questions_at_once_are_answered_whatever_the_order(order: list[str], random: Any) -> None:
    run = Run("q0", "q1", "q2", at_once=True)
    for value in order:
        random.shuffle(run.values)
        run.attempt()
        by_value = {question.value: question.id for question in waiting(run.task)}
        assert answer([run.task], {by_value[value]: f"to {value}"}) == [run.task]
        run.store_and_load()
    random.shuffle(run.values)
    assert run.attempt().asked == []
    assert run.got == {repr(value): f"to {value}" for value in order}


def test_equal_questions_at_once_are_questions_of_their_own() -> None:
    run = Run("same", "same", at_once=True)
    run.attempt()
    assert len({question.id for question in waiting(run.task)}) == 2


def test_questions_without_plain_equality_are_compared_by_what_they_look_like() -> None:
    run = Run(np.array([1, 2]), np.array([3, 4]), at_once=True)
    run.attempt()
    ids = [question.id for question in waiting(run.task)]
    run.values.reverse()
    run.attempt()
    assert [question.id for question in waiting(run.task)] == ids[::-1]


@pytest.mark.parametrize("at_once", [True, False])
def test_an_answer_given_while_nothing_waited_goes_to_the_next_question(at_once: bool) -> None:
    questions, loose = Questions(task()), ["A"]
    assert questions.ask("q", None, loose, aside=at_once) == "A"
    assert loose == []
    with pytest.raises(GraphInterrupt):
        questions.ask("r", None, loose, aside=at_once)


class Form(pydantic.BaseModel):
    number: int


@pytest.mark.parametrize("at_once", [True, False])
def test_an_answer_that_does_not_fit_is_forgotten_and_the_question_put_again(at_once: bool) -> None:
    made = task()

    def ask(loose: list[Any]) -> Any:
        return Questions(made).ask("q", Form, loose, aside=at_once)

    with pytest.raises(pydantic.ValidationError):
        ask([{"number": "many"}])
    with pytest.raises(GraphInterrupt) as caught:
        ask([])
    assert caught.value.interrupts[0].response_schema["properties"]["number"]["type"] == "integer"
    assert ask([{"number": 1}]) == Form(number=1)


def test_questions_of_a_subgraph_are_taken_over_once() -> None:
    questions = Questions(task())
    theirs = (Interrupt("q", "1"), Interrupt("r", "2"))
    questions.take_over(theirs)
    questions.take_over(theirs)
    assert questions.asked == list(theirs)


# ---- ids -------------------------------------------------------------------------------------------------------------


def test_own_questions_are_told_from_those_of_subgraphs() -> None:
    builder: StateGraph[Any, Any, Any, Any] = StateGraph(Everything)
    builder.add_node("a", idle, error_handler=idle).set_entry_point("a")
    plan = plan_of(builder)
    made = Task(plan.nodes["a"], moment())
    made.answers, made.interrupts = ["A"], (Interrupt("q", "1"),)
    handler = plan.nodes["a"].handler
    assert handler is not None
    handling = HandlerTask(made, handler, ValueError())
    expected = {kind(ns, n) for kind in (interrupt_id, aside_id) for ns in (made.ns, handling.ns) for n in (0, 1)}
    assert own_ids(made) == expected
    assert own_ids(task()) == set()


def test_a_question_is_found_again_in_another_execution() -> None:
    old, new = task(), task(place=moment(step=9))
    old.answers = ["A"]
    assert renamed(old, new) == {kind(old.ns, 0): kind(new.ns, 0) for kind in (interrupt_id, aside_id)}


def test_what_an_execution_has_is_carried_over_to_another() -> None:
    old, new = task(), task(place=moment(step=9))
    mine, theirs = aside_id(old.ns, 0), "f" * 32
    old.writes, old.answers = [("last", 1)], ["A"]
    old.interrupts = (Interrupt("q", mine), Interrupt("open", aside_id(old.ns, 1)), Interrupt("sub", theirs))
    old.below = {mine: "B", theirs: "C"}
    carry_over(old, new)
    assert (new.writes, new.answers) == ([("last", 1)], ["A"])
    assert new.below == {aside_id(new.ns, 0): "B", theirs: "C"}
    assert new.interrupts == (Interrupt("q", aside_id(new.ns, 0)),)


# ---- answering anew --------------------------------------------------------------------------------------------------


def answered(*values: str) -> Task:
    """Return a task whose questions in sequence were all answered, and which has finished."""
    run = Run(*values, at_once=False)
    for value in values:
        run.attempt()
        answer([run.task], f"old {value}")
    run.attempt()
    run.task.interrupts = (Interrupt(values[-1], interrupt_id(run.task.ns, len(values) - 1)),)
    run.task.writes = [("last", 1)]
    return run.task


def test_an_old_question_can_be_answered_anew() -> None:
    made = answered("q")
    assert reopen([made], "new") == [made]
    assert (made.answers, made.finished) == (["new"], False)


def test_what_followed_an_old_answer_has_not_happened() -> None:
    made = answered("q0", "q1", "q2")
    assert reopen([made], {interrupt_id(made.ns, 1): "new"}) == [made]
    assert made.answers == ["old q0", "new"]


def test_of_several_old_questions_one_must_be_named() -> None:
    one, other = answered("q"), task("b")
    other.interrupts = (Interrupt("r", interrupt_id(other.ns, 0)),)
    other.answers = ["B"]
    with pytest.raises(UnknownInterruptError, match="multiple pending"):
        reopen([one, other], "new")
    with pytest.raises(UnknownInterruptError, match="No pending interrupt"):
        reopen([one, other], {"0" * 32: "new"})
    assert reopen([one, other], {one.interrupts[0].id: "new"}) == [one]
    assert other.answers == ["B"]


def test_the_question_that_still_waits_is_the_one_that_is_meant() -> None:
    old, still = answered("q"), task("b")
    still.interrupts = (Interrupt("r", interrupt_id(still.ns, 0)),)
    assert reopen([old, still], "new") == [still]
    assert (old.answers, still.answers) == (["old q"], ["new"])


def test_two_questions_of_one_task_answered_anew_make_one_task_of_it() -> None:
    run = Run("q0", "q1", at_once=True)
    run.attempt()
    ids = [question.id for question in run.task.interrupts]
    assert reopen([run.task], dict.fromkeys(ids, "new")) == [run.task]
    run.attempt()
    assert run.got == {"'q0'": "new", "'q1'": "new"}


def test_a_pause_is_no_error_of_the_program() -> None:
    with contextlib.suppress(Exception), pytest.raises(GraphInterrupt):
        Questions(task()).ask("q", None, [], aside=False)
