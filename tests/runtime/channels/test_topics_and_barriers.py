"""Collecting and joining channels."""

from __future__ import annotations

import pytest

from runtime.channels import (
    MISSING,
    LastValue,
    NamedBarrierValue,
    NamedBarrierValueAfterFinish,
    Topic,
)
from runtime.errors import EmptyChannelError, InvalidUpdateError


def test_a_topic_holds_the_writes_of_the_preceding_superstep() -> None:
    topic = Topic(str, key="t")
    assert topic.volatile
    assert not topic.appends
    assert not topic.update([])
    assert topic.update(["a", "a"])
    assert topic.get() == ["a", "a"]
    assert topic.update(["b"])
    assert topic.get() == ["b"]
    assert topic.update([])
    with pytest.raises(EmptyChannelError):
        topic.get()


def test_an_accumulating_topic_holds_every_write() -> None:
    topic = Topic(str, accumulate=True, key="t")
    assert not topic.volatile
    assert topic.appends
    topic.update(["a"])
    assert topic.update(["b"])
    assert not topic.update([])
    assert topic.get() == ["a", "b"]


def test_a_written_list_is_flattened_by_one_level() -> None:
    topic = Topic(object)
    topic.update(["a", ["b", ["c"]], ("d", "e")])
    assert topic.get() == ["a", "b", ["c"], ("d", "e")]


@pytest.mark.parametrize("accumulate", [True, False])
def test_an_empty_list_written_to_an_empty_topic_changes_nothing(accumulate: bool) -> None:
    topic = Topic(str, accumulate=accumulate)
    topic.check([[]])
    assert not topic.update([[]])
    assert not topic.is_available()


def test_what_a_reader_does_to_the_list_does_not_reach_the_topic() -> None:
    topic = Topic(str, accumulate=True)
    topic.update(["a"])
    list(topic.get()).append("b")
    got = topic.get()
    assert isinstance(got, list)
    got.append("b")
    assert topic.get() == ["a"]


def test_topics_of_the_same_kind_are_equal() -> None:
    assert Topic(str) == Topic(int)
    assert Topic(str) != Topic(str, accumulate=True)
    assert Topic(str) != LastValue(str)


def test_a_barrier_opens_once_every_name_was_written() -> None:
    barrier = NamedBarrierValue(str, {"a", "b"}, "join")
    assert barrier.update(["a", "a"])
    assert not barrier.is_available()
    assert not barrier.update(["a"])
    assert not barrier.consume()
    assert barrier.update(["b"])
    assert barrier.get() is None
    assert barrier.consume()
    assert not barrier.is_available()


def test_a_barrier_refuses_a_name_it_does_not_wait_for_and_stays_as_it_was() -> None:
    barrier = NamedBarrierValue(str, {"a", "b"}, "join")
    for refuse in (barrier.check, barrier.update):
        with pytest.raises(InvalidUpdateError, match=r"At key 'join': 'z' is not one of the awaited \['a', 'b'\]"):
            refuse(["a", "z"])
    assert barrier.checkpoint() is MISSING


def test_a_barrier_is_stored_as_the_names_seen() -> None:
    barrier = NamedBarrierValue(str, {"a", "b"}, "join")
    barrier.update(["a"])
    assert barrier.checkpoint() == {"a"}
    again = barrier.from_checkpoint(barrier.checkpoint())
    again.update(["b"])
    assert again.is_available()


def test_a_deferred_barrier_opens_at_the_end_of_the_run() -> None:
    barrier = NamedBarrierValueAfterFinish(str, {"a", "b"}, "join")
    barrier.update(["a"])
    assert not barrier.finish()
    barrier.update(["b"])
    assert not barrier.is_available()
    assert not barrier.consume()
    assert barrier.finish()
    assert not barrier.finish()
    assert barrier.get() is None
    assert barrier.from_checkpoint(barrier.checkpoint()).is_available()
    assert barrier.consume()
    assert barrier.checkpoint() is MISSING


def test_barriers_are_equal_for_the_same_names_and_kind() -> None:
    assert NamedBarrierValue(str, {"a"}) == NamedBarrierValue(int, {"a"})
    assert NamedBarrierValue(str, {"a"}) != NamedBarrierValue(str, {"b"})
    assert NamedBarrierValue(str, {"a"}) != NamedBarrierValueAfterFinish(str, {"a"})
    assert NamedBarrierValue(str, {"a"}) != LastValue(str)


@pytest.mark.parametrize(
    "stored", [range(10**15), "ab", 1, None, [1]], ids=["range", "text", "number", "None", "numbers"]
)
def test_what_was_never_stored_is_not_taken_back(stored: object) -> None:
    """Whoever can change rows can store anything; what can only be gone through could be gone through for ever."""
    barriers = NamedBarrierValue(str, {"a"}), NamedBarrierValueAfterFinish(str, {"a"})
    for channel, given in ((barriers[0], stored), (barriers[1], (stored, True)), (barriers[1], stored)):
        with pytest.raises((TypeError, ValueError)):
            channel.from_checkpoint(given)
    if type(stored) is not list:
        with pytest.raises(TypeError, match="a list is wanted"):
            Topic(str).from_checkpoint(stored)
