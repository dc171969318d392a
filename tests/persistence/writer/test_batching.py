"""Batches: merged for few statements, in an order that changes nothing; heads compared as if one by one."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from persistence.contracts.backend import CheckpointKey, DeleteThread, Request, Rows
from persistence.errors import CheckpointConflictError
from persistence.memory import InMemorySaver
from persistence.memory.tables import Tables
from persistence.writer.batching import Merged, segments
from persistence.writer.fencing import Base, check_bases, check_heads
from tests.persistence.writer.samples import unit

encode = InMemorySaver().encode


def test_runs_of_units_are_merged_and_everything_else_keeps_its_place() -> None:
    first, second, third = (encode(unit("t", f"{number}", writes_to="0", value=[1])) for number in range(3))
    found = segments([first, second, DeleteThread("t"), third])
    assert [type(segment) for segment in found] == [Merged, DeleteThread, Merged]
    merged = found[0]
    assert isinstance(merged, Merged)
    assert merged.checkpoints == [first.checkpoint, second.checkpoint]
    assert merged.blobs == [*first.blobs, *second.blobs]
    assert merged.writes == [*first.writes, *second.writes]
    assert not merged.fenced
    assert segments([]) == []


def fenced(number: int, expected: str | None) -> Rows:
    return encode(replace(unit("t", f"{number}"), expected_head=expected))


def test_once_a_unit_expects_a_head_all_checkpoints_before_it_count() -> None:
    units = [fenced(1, None), encode(unit("t", writes_to="1")), fenced(2, "1"), fenced(3, None)]
    (merged,) = segments(units)
    assert isinstance(merged, Merged)
    assert [(row[2], expected) for row, expected in merged.fenced] == [("1", None), ("2", "1"), ("3", None)]


@given(st.lists(st.tuples(st.integers(0, 5), st.none() | st.sampled_from(["", "0", "1", "2", "3"])), max_size=8))
def test_a_batch_is_refused_if_and_only_if_one_of_its_units_would_be(moves: list[tuple[int, str | None]]) -> None:
    requests: list[Request] = [fenced(number, expected) for number, expected in moves]
    tables, refused = Tables(), False
    try:
        for request in requests:
            tables.apply(request)
    except CheckpointConflictError:
        refused = True
    stored: set[CheckpointKey] = set()
    merged = [segment for segment in segments(requests) if isinstance(segment, Merged)]
    rows = merged[0].fenced if merged else []
    # A batch that stores one id twice is not compared: the second is the first one tried again.
    if len({row[2] for row, _ in rows}) < len(rows):
        return
    if refused:
        with pytest.raises(CheckpointConflictError):
            check_heads(rows, lambda _thread, _ns: None, stored.__contains__)
    else:
        check_heads(rows, lambda _thread, _ns: None, stored.__contains__)


PLACES = st.sampled_from(["", "n"])
ANCHORS = st.none() | st.tuples(PLACES, st.sampled_from(["", "0", "1", "2"]))


@given(
    st.lists(st.tuples(PLACES, st.integers(0, 2), ANCHORS), unique_by=lambda move: move[:2]),
    st.sets(st.tuples(PLACES, st.integers(0, 2)), max_size=2),
)
def test_likewise_if_something_is_not_there_that_a_unit_rests_on(
    moves: list[tuple[str, int, tuple[str, str] | None]], there: set[tuple[str, int]]
) -> None:
    def made(ns: str, number: int, anchor: tuple[str, str] | None) -> Rows:
        return encode(replace(unit("t", f"{number}"), checkpoint_ns=ns, anchor=anchor))

    before, tables, refused = Tables(), Tables(), False
    for place in there:
        for each in (before, tables):
            each.apply(made(*place, None))
    requests: list[Request] = [made(*move) for move in moves]
    try:
        for request in requests:
            tables.apply(request)
    except CheckpointConflictError:
        refused = True
    for segment in segments(requests):
        assert isinstance(segment, Merged)
        if refused:
            with pytest.raises(CheckpointConflictError, match="'t', namespace '(n|)'(:.* is gone| has moved on)"):
                check_bases(segment.bases, before.head, before.holds)
        else:
            check_bases(segment.bases, before.head, before.holds)


def test_the_same_unit_once_more_needs_nothing_twice() -> None:
    below = encode(replace(unit("t", "1"), checkpoint_ns="n", anchor=("", "")))
    (merged,) = segments([below, encode(unit("t", "2")), below])
    assert isinstance(merged, Merged)
    assert list(merged.bases) == [Base(("t", "", ""), ("t", "n", "1"))]
