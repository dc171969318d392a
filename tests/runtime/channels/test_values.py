"""Single-value channels: what one superstep's writes do, and what is left for the next."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from runtime.channels import (
    MISSING,
    AnyValue,
    BaseChannel,
    EphemeralValue,
    LastValue,
    LastValueAfterFinish,
    UntrackedValue,
)
from runtime.errors import EmptyChannelError, InvalidUpdateError


def test_last_value_keeps_what_was_written() -> None:
    channel = LastValue(int, "n")
    assert not channel.is_available()
    assert channel.update([1])
    assert not channel.update([])
    assert channel.get() == 1


def test_last_value_takes_one_write_per_superstep() -> None:
    channel = LastValue(int, "n")
    channel.update([1])
    with pytest.raises(
        InvalidUpdateError, match=r"At key 'n': Can receive only one value per step.*INVALID_CONCURRENT"
    ):
        channel.update([2, 3])
    assert channel.get() == 1


def test_none_is_a_value() -> None:
    channel = LastValue(object, "n")
    channel.update([None])
    assert channel.is_available()
    assert channel.get() is None
    assert channel.from_checkpoint(channel.checkpoint()).get() is None


def test_an_empty_channel_says_which_one_it_is() -> None:
    with pytest.raises(EmptyChannelError, match="'n' is empty"):
        LastValue(int, "n").get()


def test_any_value_takes_the_last_and_is_cleared_by_a_superstep_without_one() -> None:
    channel = AnyValue(int, "n")
    channel.check([1, 2])
    assert channel.update([1, 2])
    assert channel.get() == 2
    assert channel.update([])
    assert not channel.is_available()
    assert not channel.update([])


def test_ephemeral_value_lives_for_one_superstep() -> None:
    channel = EphemeralValue(int, key="n")
    assert channel.update([1])
    assert channel.get() == 1
    assert channel.update([])
    assert not channel.is_available()
    assert not channel.update([])


def test_ephemeral_value_takes_one_write_unless_unguarded() -> None:
    with pytest.raises(InvalidUpdateError):
        EphemeralValue(int, key="n").update([1, 2])
    channel = EphemeralValue(int, guard=False, key="n")
    channel.check([1, 2])
    assert channel.update([1, 2])
    assert channel.get() == 2


def test_untracked_value_is_kept_between_supersteps_and_never_stored() -> None:
    channel = UntrackedValue(int, key="n")
    assert channel.update([1])
    assert not channel.update([])
    assert channel.get() == 1
    assert channel.copy().get() == 1
    assert channel.checkpoint() is MISSING
    assert not channel.stored


def test_untracked_value_does_not_take_over_what_was_stored_before_it_became_untracked() -> None:
    assert not UntrackedValue(int, key="n").from_checkpoint(5).is_available()


def test_untracked_value_takes_one_write_unless_unguarded() -> None:
    with pytest.raises(InvalidUpdateError):
        UntrackedValue(int, key="n").update([1, 2])
    channel = UntrackedValue(int, guard=False, key="n")
    channel.check([1, 2])
    channel.update([1, 2])
    assert channel.get() == 2


def test_a_deferred_value_is_readable_only_at_the_end_of_the_run() -> None:
    channel = LastValueAfterFinish(int, "n")
    channel.check([1, 2])
    assert channel.update([1, 2])
    assert not channel.is_available()
    assert channel.finish()
    assert channel.get() == 2
    assert not channel.update([])
    assert channel.get() == 2


def test_a_write_puts_a_deferred_value_off_again() -> None:
    channel = LastValueAfterFinish(int, "n")
    channel.update([1])
    channel.finish()
    assert channel.update([2])
    assert not channel.is_available()


def test_a_deferred_value_is_gone_once_read() -> None:
    channel = LastValueAfterFinish(int, "n")
    assert not channel.finish()
    channel.update([1])
    assert not channel.consume()
    assert channel.finish()
    assert not channel.finish()
    assert channel.consume()
    assert channel.checkpoint() is MISSING
    assert not channel.finish()


def test_a_deferred_value_is_stored_with_whether_the_run_was_ending() -> None:
    channel = LastValueAfterFinish(int, "n")
    channel.update([1])
    assert not channel.from_checkpoint(channel.checkpoint()).is_available()
    channel.finish()
    assert channel.from_checkpoint(channel.checkpoint()).get() == 1


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        (LastValue(int, "a"), LastValue(str, "b"), True),
        (LastValue(int), AnyValue(int), False),
        (LastValueAfterFinish(int), LastValueAfterFinish(str), True),
        (LastValueAfterFinish(int), LastValue(int), False),
        (EphemeralValue(int), EphemeralValue(str), True),
        (EphemeralValue(int), EphemeralValue(int, guard=False), False),
        (EphemeralValue(int), LastValue(int), False),
        (UntrackedValue(int), UntrackedValue(int, guard=False), False),
        (UntrackedValue(int), UntrackedValue(str), True),
        (UntrackedValue(int), LastValue(int), False),
    ],
)
def test_channels_that_fold_alike_are_equal(one: BaseChannel[Any, Any], other: object, equal: bool) -> None:
    assert (one == other) is equal


def test_a_kind_of_channel_must_say_how_it_folds() -> None:
    channel: BaseChannel[Any, Any] = BaseChannel(int, "n")
    assert not channel.is_available()
    assert not channel.consume()
    assert not channel.finish()
    for unsaid in (channel.fresh, lambda: channel.update([1]), lambda: channel.restore(1), lambda: channel.check([1])):
        with pytest.raises(TypeError, match="BaseChannel"):
            unsaid()


def test_channels_and_the_absent_value_show_themselves() -> None:
    assert repr(LastValue(int, "n")) == "LastValue(key='n', value=MISSING)"
    assert not MISSING


def test_there_is_one_absent_value() -> None:
    assert copy.deepcopy(MISSING) is MISSING
