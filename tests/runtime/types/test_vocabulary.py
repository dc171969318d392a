"""What nodes and callers say beside plain state."""

from __future__ import annotations

from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

import runtime.types
from runtime.errors import ErrorCode, GraphInterrupt, NodeInterrupt, RuntimeLibraryError, create_error_message
from runtime.types import Command, Interrupt, Overwrite, Send, StateUpdate, TimeoutPolicy, interrupt
from runtime.types.asking import ASKER
from runtime.types.command import ParentMarker
from runtime.types.managed import IsLastStepManager, ManagedValue, RemainingStepsManager


def test_a_send_is_a_value_even_where_its_input_has_no_hash() -> None:
    assert Send("n", {"a": [1]}) == Send("n", {"a": [1]}) != Send("n", {"a": [2]})
    assert len({Send("n", {"a": [1]}), Send("n", {"a": [1]}), Send("m", {"a": [1]})}) == 2
    assert repr(Send("n", 1)) == "Send(node='n', arg=1)"
    assert repr(Send("n", 1, timeout=2)).startswith("Send(node='n', arg=1, timeout=TimeoutPolicy(run_timeout=2")
    swapped: Any = {"a": 1}
    with pytest.raises(TypeError, match=r"the node's name first.*got Send\(\{'a': 1\}, \.\.\.\)"):
        Send(swapped, "n")


@pytest.mark.parametrize("timeout", [2, timedelta(seconds=2), TimeoutPolicy(run_timeout=2)])
def test_a_send_takes_a_timeout_of_any_form(timeout: Any) -> None:
    policy = Send("n", None, timeout=timeout).timeout
    assert isinstance(policy, TimeoutPolicy)
    assert policy.run_seconds == 2


def test_a_command_shows_what_it_says() -> None:
    assert repr(Command()) == "Command()"
    assert repr(Command(update={"a": 1}, goto="n")) == "Command(update={'a': 1}, goto='n')"
    assert repr(Command(graph=Command.PARENT, resume=0)) == "Command(graph='__parent__', resume=0)"
    marker: ParentMarker = Command.PARENT
    assert marker == "__parent__"


def test_records_cannot_be_changed() -> None:
    for record, field in ((Send("n", 1), "node"), (Command(), "goto"), (Overwrite(1), "value")):
        with pytest.raises(AttributeError):
            setattr(record, field, 2)


def test_an_interrupt_is_hashed_by_its_id() -> None:
    question = Interrupt({"un": "hashable"}, "1")
    assert question in {question: 1}
    assert question == Interrupt({"un": "hashable"}, "1")
    assert repr(question) == "Interrupt(value={'un': 'hashable'}, id='1', response_schema=None)"


def test_a_question_needs_somebody_to_ask() -> None:
    with pytest.raises(RuntimeError, match="outside of a node"):
        interrupt("q")


def test_a_question_goes_to_the_asker_of_its_context() -> None:
    token = ASKER.set(SimpleNamespace(ask=lambda value, response_schema: (value, response_schema)))
    try:
        assert interrupt("q", response_schema=int) == ("q", int)
    finally:
        ASKER.reset(token)


def test_the_old_form_of_a_question_is_one_too() -> None:
    question = NodeInterrupt("q")
    assert isinstance(question, GraphInterrupt)
    assert not isinstance(question, Exception)
    assert [one.value for one in question.interrupts] == ["q"]
    assert GraphInterrupt().interrupts == ()


@pytest.mark.parametrize(("step", "last", "left"), [(0, False, 3), (1, False, 2), (2, True, 1)])
def test_managed_values_say_how_far_the_limit_is(step: int, last: bool, left: int) -> None:
    view = SimpleNamespace(step=step, stop=3)
    assert IsLastStepManager.get(view) is last
    assert RemainingStepsManager.get(view) == left
    with pytest.raises(TypeError):
        ManagedValue.get(view)


def test_an_update_is_a_tuple_with_names() -> None:
    assert StateUpdate({"a": 1}) == ({"a": 1}, None, None)


def test_errors_carry_a_code_to_search_for() -> None:
    message = create_error_message(message="No.", error_code=ErrorCode.GRAPH_RECURSION_LIMIT)
    assert message == "No. [GRAPH_RECURSION_LIMIT]"
    assert issubclass(RuntimeLibraryError, Exception)


def test_the_vocabulary_is_complete() -> None:
    assert sorted(runtime.types.__all__) == runtime.types.__all__
