"""Laws that hold for every channel, whatever is written."""

from __future__ import annotations

import copy
import functools
import operator
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from runtime.channels import (
    MISSING,
    AnyValue,
    BaseChannel,
    BinaryOperatorAggregate,
    DeltaChannel,
    EphemeralValue,
    LastValue,
    LastValueAfterFinish,
    NamedBarrierValue,
    NamedBarrierValueAfterFinish,
    Topic,
    UntrackedValue,
)
from runtime.types.command import Overwrite

Channel = BaseChannel[Any, Any]


def refusing(left: list[int], right: list[int]) -> list[int]:
    """Concatenate in place; no sevens."""
    if 7 in right:
        msg = "no sevens"
        raise ValueError(msg)
    left.extend(right)
    return left


def batch(value: list[int], writes: Sequence[list[int]]) -> list[int]:
    return functools.reduce(refusing, writes, value)


integers = st.integers(0, 9)
lists = st.lists(integers, max_size=3)
foldable = lists | lists.map(Overwrite)

CHANNELS: list[tuple[Channel, st.SearchStrategy[Any]]] = [
    (LastValue(int, "k"), integers),
    (LastValueAfterFinish(int, "k"), integers),
    (AnyValue(int, "k"), integers),
    (EphemeralValue(int, key="k"), integers),
    (EphemeralValue(int, guard=False, key="k"), integers),
    (UntrackedValue(int, key="k"), integers),
    (UntrackedValue(int, guard=False, key="k"), integers),
    (BinaryOperatorAggregate(list, operator.add, "k"), foldable),
    (BinaryOperatorAggregate(list, refusing, "k"), foldable),
    (BinaryOperatorAggregate(list | None, refusing, "k"), foldable),
    (DeltaChannel(batch, key="k"), foldable),
    (DeltaChannel(batch, list | None, key="k"), foldable),
    (Topic(int, key="k"), integers | lists),
    (Topic(int, accumulate=True, key="k"), integers | lists),
    (NamedBarrierValue(str, {"a", "b"}, "k"), st.sampled_from("abz")),
    (NamedBarrierValueAfterFinish(str, {"a", "b"}, "k"), st.sampled_from("abz")),
]

each_channel = pytest.mark.parametrize(("template", "writes"), CHANNELS, ids=lambda value: type(value).__name__)


def supersteps(writes: st.SearchStrategy[Any]) -> st.SearchStrategy[list[list[Any]]]:
    return st.lists(st.lists(writes, max_size=3), max_size=4)


def played(template: Channel, steps: list[list[Any]], finished: bool) -> Channel:
    """Return a channel after some supersteps; those it refuses did not happen."""
    channel = template.fresh()
    for step in steps:
        try:
            channel.update(copy.deepcopy(step))
        except Exception:  # noqa: BLE001 - reducers raise what they like
            continue
    if finished:
        channel.finish()
    return channel


def held(channel: Channel) -> Any:
    return copy.deepcopy((channel.peek(), channel.checkpoint(), channel.is_available()))


def outcome(act: Any) -> type[BaseException] | None:
    try:
        act()
    except Exception as error:  # noqa: BLE001 - its type is the outcome
        return type(error)
    return None


@each_channel
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_a_check_refuses_exactly_what_an_update_refuses_and_changes_nothing(
    template: Channel, writes: st.SearchStrategy[Any], data: st.DataObject
) -> None:
    channel = played(template, data.draw(supersteps(writes)), data.draw(st.booleans()))
    step = data.draw(st.lists(writes, max_size=4))
    given, before = copy.deepcopy(step), held(channel)
    checked = outcome(lambda: channel.check(step))
    assert held(channel) == before
    assert step == given
    assert outcome(lambda: channel.update(step)) == checked
    assert step == given
    if checked is not None:
        assert held(channel) == before


@each_channel
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_a_copy_holds_the_same_and_goes_its_own_way(
    template: Channel, writes: st.SearchStrategy[Any], data: st.DataObject
) -> None:
    channel = played(template, data.draw(supersteps(writes)), data.draw(st.booleans()))
    twin, before = channel.copy(), held(channel)
    assert held(twin) == before
    assert (twin, twin.key, twin.typ) == (channel, "k", template.typ)
    outcome(lambda: twin.update([data.draw(writes)]))
    twin.finish()
    twin.consume()
    assert held(channel) == before


@each_channel
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_what_is_stored_brings_the_channel_back(
    template: Channel, writes: st.SearchStrategy[Any], data: st.DataObject
) -> None:
    channel = played(template, data.draw(supersteps(writes)), data.draw(st.booleans()))
    stored = copy.deepcopy(channel.checkpoint())
    again = template.from_checkpoint(stored)
    assert again == channel
    assert held(again) == (held(channel) if template.stored else (MISSING, MISSING, False))


@each_channel
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_an_update_says_whether_a_reader_could_see_a_change(
    template: Channel, writes: st.SearchStrategy[Any], data: st.DataObject
) -> None:
    channel = played(template, data.draw(supersteps(writes)), data.draw(st.booleans()))
    before = held(channel)
    changed = None
    try:
        changed = channel.update(data.draw(st.lists(writes, max_size=3)))
    except Exception:  # noqa: BLE001 - see played()
        changed = False
    assert changed or held(channel) == before


@given(st.lists(lists, min_size=1), st.lists(lists))
def test_a_fold_is_a_fold(first: list[list[int]], second: list[list[int]]) -> None:
    channel = BinaryOperatorAggregate(list, operator.add)
    channel.update(first)
    channel.update(second)
    assert channel.get() == functools.reduce(operator.add, [*first, *second], [])


@given(st.lists(integers, min_size=1), st.lists(integers))
def test_a_fold_without_an_initial_value_starts_with_the_first_write(first: list[int], second: list[int]) -> None:
    channel = BinaryOperatorAggregate(int | None, operator.sub)
    channel.update(first)
    channel.update(second)
    assert channel.get() == functools.reduce(operator.sub, [*first, *second])


@given(st.lists(st.lists(lists)))
def test_a_reducer_of_batches_gives_the_same_however_writes_are_batched(steps: list[list[list[int]]]) -> None:
    def extend(value: list[int], writes: Sequence[list[int]]) -> list[int]:
        return [*value, *(item for write in writes for item in write)]

    stepwise, at_once = DeltaChannel(extend), DeltaChannel(extend)
    for step in steps:
        stepwise.update(step)
    at_once.update([write for step in steps for write in step])
    assert stepwise.get() == at_once.get()


class TopicModel(RuleBasedStateMachine):
    """A topic against a plain list."""

    @initialize(accumulate=st.booleans())
    def start(self, accumulate: bool) -> None:
        self.topic: Topic[int] = Topic(int, accumulate=accumulate)
        self.expected: list[int] = []

    @rule(writes=st.lists(integers | lists))
    def superstep(self, writes: list[int | list[int]]) -> None:
        flat = [item for write in writes for item in (write if isinstance(write, list) else [write])]
        self.topic.update(writes)
        self.expected = [*self.expected, *flat] if self.topic.accumulate else flat

    @rule()
    def stored_and_loaded(self) -> None:
        self.topic = self.topic.from_checkpoint(self.topic.checkpoint())

    @invariant()
    def holds_what_was_written(self) -> None:
        assert self.topic.is_available() is bool(self.expected)
        if self.expected:
            assert self.topic.get() == self.expected


class BarrierModel(RuleBasedStateMachine):
    """A barrier against a set of names still awaited."""

    names = frozenset("abc")

    @initialize(deferred=st.booleans())
    def start(self, deferred: bool) -> None:
        kind = NamedBarrierValueAfterFinish if deferred else NamedBarrierValue
        self.barrier = kind(str, self.names)
        self.awaited = set(self.names)
        self.finished = not deferred

    @rule(writes=st.lists(st.sampled_from("abc")))
    def superstep(self, writes: list[str]) -> None:
        assert self.barrier.update(writes) is bool(self.awaited.intersection(writes))
        self.awaited.difference_update(writes)

    @rule()
    def end_of_run(self) -> None:
        ends = not self.awaited and not self.finished
        assert self.barrier.finish() is ends
        self.finished = self.finished or ends

    @rule()
    def read(self) -> None:
        is_open = self.is_open()
        assert self.barrier.consume() is is_open
        if is_open:
            self.awaited = set(self.names)
            self.finished = not self.barrier.deferred

    @rule()
    def stored_and_loaded(self) -> None:
        self.barrier = self.barrier.from_checkpoint(self.barrier.checkpoint())

    @invariant()
    def opens_when_all_came(self) -> None:
        assert self.barrier.is_available() is self.is_open()

    def is_open(self) -> bool:
        return self.finished and not self.awaited


TopicModel.TestCase.settings = BarrierModel.TestCase.settings = settings(
    max_examples=30, stateful_step_count=20, deadline=None
)

TestTopicModel = TopicModel.TestCase
TestBarrierModel = BarrierModel.TestCase
