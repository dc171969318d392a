"""Folding channels: initial values, Overwrite, and operators that work in place."""

from __future__ import annotations

import collections.abc
import operator
import typing
from typing import Annotated, Any

import pytest

from runtime.channels import MISSING, BinaryOperatorAggregate, DeltaChannel, LastValue
from runtime.channels.reducers import initial_of
from runtime.errors import InvalidUpdateError
from runtime.types.command import Overwrite


@pytest.mark.parametrize(
    ("typ", "initial"),
    [
        (list, []),
        (list[int], []),
        (dict[str, int], {}),
        (set, set()),
        (int, 0),
        (str, ""),
        (tuple, ()),
        (collections.abc.Sequence, []),
        (typing.Sequence[int], []),
        (collections.abc.Set, set()),
        (collections.abc.MutableMapping[str, int], {}),
        (Annotated[Annotated[list[int], "inner"], "outer"], []),
    ],
)
def test_a_type_that_can_be_empty_starts_empty(typ: Any, initial: object) -> None:
    assert initial_of(typ) == initial
    assert BinaryOperatorAggregate(typ, operator.add).get() == initial


@pytest.mark.parametrize("typ", [list | None, Any, collections.abc.Iterable[int], typing.Literal["a"]])
def test_a_type_that_cannot_be_empty_starts_without_a_value(typ: Any) -> None:
    channel = BinaryOperatorAggregate(typ, operator.add, "log")
    assert not channel.is_available()
    assert channel.checkpoint() is MISSING
    channel.check([[1]])
    assert channel.update([[1]])
    assert channel.get() == [1]
    assert channel.update([[2], [3]])
    assert channel.get() == [1, 2, 3]


def test_the_first_write_is_not_folded_where_there_is_no_value() -> None:
    folded: list[tuple[Any, Any]] = []

    def fold(left: Any, right: Any) -> Any:
        folded.append((left, right))
        return left + right

    BinaryOperatorAggregate(list | None, fold).update([[1], [2]])
    assert folded == [([1], [2])]


def test_a_superstep_without_a_write_changes_nothing() -> None:
    channel = BinaryOperatorAggregate(list, operator.add)
    channel.check([])
    assert not channel.update([])
    assert DeltaChannel(lambda value, writes: [*value, *writes]).update([]) is False


OVERWRITES = [
    Overwrite([9]),
    {"__overwrite__": [9]},
    {"type": "__overwrite__", "value": [9]},
]


def delta() -> DeltaChannel[Any]:
    return DeltaChannel(lambda value, writes: [*value, *(item for write in writes for item in write)], key="log")


@pytest.mark.parametrize("overwrite", OVERWRITES)
@pytest.mark.parametrize(
    "channel", [BinaryOperatorAggregate(list, operator.add, "log"), delta()], ids=["fold", "delta"]
)
def test_an_overwrite_replaces_the_value_and_every_other_write(channel: Any, overwrite: Any) -> None:
    channel = channel.copy()
    channel.update([[0]])
    assert channel.update([[1], overwrite, [2]])
    assert channel.get() == [9]
    channel.update([[3]])
    assert channel.get() == [9, 3]


@pytest.mark.parametrize(
    "channel", [BinaryOperatorAggregate(list, operator.add, "log"), delta()], ids=["fold", "delta"]
)
def test_two_overwrites_in_one_superstep_are_refused(channel: Any) -> None:
    channel = channel.copy()
    channel.update([[0]])
    for refuse in (channel.check, channel.update):
        with pytest.raises(InvalidUpdateError, match="At key 'log': Can receive only one Overwrite"):
            refuse([Overwrite([1]), Overwrite([2])])
    assert channel.get() == [0]


def test_an_overwrite_as_the_first_write_is_its_value() -> None:
    channel = BinaryOperatorAggregate(list | None, operator.add)
    channel.update([Overwrite([1])])
    assert channel.get() == [1]


@pytest.mark.parametrize("write", [{"a": 1}, {"type": "other", "value": 1}, {"type": "__overwrite__", "b": 1}])
def test_dicts_that_only_look_like_an_overwrite_are_folded(write: dict[str, Any]) -> None:
    channel = BinaryOperatorAggregate(dict, operator.or_)
    channel.update([{"kept": 0}])
    channel.update([write])
    assert channel.get() == {"kept": 0, **write}


def extend(left: list[int], right: list[int]) -> list[int]:
    left.extend(right)
    return left


def test_an_operator_that_works_in_place_changes_no_value_that_was_read_before() -> None:
    channel = BinaryOperatorAggregate(list, extend)
    channel.update([[1]])
    before = channel.get()
    channel.update([[2], [3]])
    assert before == [1]
    assert channel.get() == [1, 2, 3]


def test_an_operator_that_works_in_place_changes_no_write() -> None:
    channel = BinaryOperatorAggregate(list | None, extend)
    writes = [[1], [2]]
    channel.update(writes)
    channel.update([[3]])
    assert writes == [[1], [2]]
    assert channel.get() == [1, 2, 3]


def test_an_overwrite_is_not_changed_by_a_later_fold() -> None:
    channel = BinaryOperatorAggregate(list, extend)
    given = [1]
    channel.update([Overwrite(given)])
    channel.update([[2]])
    assert given == [1]


@pytest.mark.parametrize("fold", [extend, operator.iadd])
def test_checking_with_an_operator_that_works_in_place_changes_nothing(fold: Any) -> None:
    channel = BinaryOperatorAggregate(list, fold)
    channel.update([[1]])
    channel.check([[2]])
    assert channel.get() == [1]


def test_a_reducer_of_batches_sees_all_writes_at_once() -> None:
    calls: list[tuple[Any, Any]] = []

    def reduce(value: Any, writes: Any) -> Any:
        calls.append((list(value), writes))
        value.extend(writes)
        return value

    channel = DeltaChannel(reduce)
    channel.update([1, 2])
    before = channel.get()
    channel.check([3])
    channel.update([3])
    assert calls == [([], [1, 2]), ([1, 2], [3]), ([1, 2], [3])]
    assert before == [1, 2]


def test_a_reducer_of_batches_starts_from_the_first_write_where_there_is_no_empty_value() -> None:
    channel = DeltaChannel(lambda value, writes: [*value, *(item for write in writes for item in write)], list | None)
    channel.update([[1]])
    assert channel.get() == [1]
    channel = channel.fresh()
    channel.update([[1], [2]])
    assert channel.get() == [1, 2]


def test_a_snapshot_frequency_below_one_is_refused() -> None:
    with pytest.raises(ValueError, match="snapshot_frequency must be at least 1"):
        DeltaChannel(lambda value, _: value, snapshot_frequency=0)


def test_channels_with_the_same_operator_are_equal_and_lambdas_count_as_the_same() -> None:
    add = BinaryOperatorAggregate(list, operator.add)
    assert add == BinaryOperatorAggregate(str, operator.add)
    assert add != BinaryOperatorAggregate(list, operator.or_)
    assert add == BinaryOperatorAggregate(list, lambda left, right: left + right)
    assert add != LastValue(list)
    reduce = delta().reducer
    assert DeltaChannel(reduce) == DeltaChannel(reduce, dict, 7)
    assert DeltaChannel(reduce) != delta()
    assert DeltaChannel(reduce) != add


def test_typing_keeps_annotations_with_different_lambdas_apart() -> None:
    one: Any = Annotated[list, BinaryOperatorAggregate(list, lambda left, right: left + right)]
    other: Any = Annotated[list, BinaryOperatorAggregate(list, lambda _, right: right)]
    assert one.__metadata__[0] is not other.__metadata__[0]


@pytest.mark.parametrize(("fold", "appends"), [(operator.add, True), (operator.or_, False), (extend, False)])
def test_operators_that_only_add_at_the_end_are_known(fold: Any, appends: bool) -> None:
    assert BinaryOperatorAggregate(list, fold).appends is appends


def test_a_reducer_may_say_that_it_only_adds_at_the_end() -> None:
    def fold(left: list[int], right: list[int]) -> list[int]:
        return [*left, *right]

    fold.appends = True  # type: ignore[attr-defined]
    assert BinaryOperatorAggregate(list, fold).appends
