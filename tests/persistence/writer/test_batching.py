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
from persistence.writer.fencing import check_heads
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
