"""The rules of failure: backing off, halving, and never a step without the step before it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from persistence.contracts.backend import DeleteThread, Request, Rows
from persistence.contracts.checkpoint import ERROR, TaskWrites
from persistence.errors import BackendError
from persistence.memory import InMemorySaver
from persistence.writer.failing import Losses, delay, halves
from persistence.writer.limits import Limits
from tests.persistence.writer.samples import unit

LIMITS = Limits(first_delay=0.1, longest_delay=1.0, remembered_losses=3)
encode = InMemorySaver().encode


def test_delays_double_up_to_the_limit() -> None:
    assert [delay(attempt, LIMITS) for attempt in range(1, 7)] == [0.1, 0.2, 0.4, 0.8, 1.0, 1.0]


@given(st.lists(st.integers(), min_size=2))
def test_halves_keep_order_and_lose_nothing(batch: list[int]) -> None:
    older, newer = halves(batch)
    assert [*older, *newer] == batch
    assert older
    assert newer


def lost(*requests: Request, newest: int = 10) -> Losses:
    losses = Losses(LIMITS)
    for request in requests:
        losses.add(request, newest, BackendError("disk"))
    return losses


def test_a_lost_checkpoint_bars_its_children_and_writes_to_it_for_ever() -> None:
    losses = lost(encode(unit("t", "2", parent="1")))
    late = 99
    assert losses
    assert "checkpoint 2" in str(losses.barring(encode(unit("t", "3", parent="2")), late))
    assert losses.barring(encode(unit("t", writes_to="2")), late)
    assert losses.barring(encode(unit("t", "fork", parent="1")), late) is None
    assert losses.barring(encode(unit("other", "3", parent="2")), late) is None
    assert losses.barring(encode(unit("t", "3", parent="2", ns="child")), late) is None
    assert losses.barring(DeleteThread("t"), late) is None


def test_lost_writes_bar_the_next_checkpoint_only_if_it_was_sent_before_the_news() -> None:
    losses = lost(encode(unit("t", writes_to="1")), newest=10)
    assert losses.barring(encode(unit("t", writes_to="1", task_id="sibling")), 9) is None
    assert "writes to checkpoint 1" in str(losses.barring(encode(unit("t", "2", parent="1")), 10))
    assert losses.barring(encode(unit("t", "again", parent="1")), 11) is None
    assert not losses


def test_a_checkpoint_stored_after_all_is_a_parent_again() -> None:
    made = encode(unit("t", "2", parent="1"))
    losses = lost(made)
    losses.forget(made)
    losses.forget(DeleteThread("t"))
    losses.forget(encode(unit("t", writes_to="1")))
    assert losses.barring(encode(unit("t", "3", parent="2")), 99) is None


def test_one_unit_may_write_to_several_checkpoints() -> None:
    several = unit("t", writes_to="1")
    several.writes += [
        TaskWrites("1", "task", "", [("a", 1), ("b", 2)]),
        TaskWrites("2", "task", "", [(ERROR, "x"), ("a", 1)]),
    ]
    losses = lost(encode(several))
    assert len(losses) == 2
    assert losses.barring(encode(unit("t", "3", parent="1")), 1)
    assert losses.barring(encode(unit("t", "3", parent="2")), 1)


def test_memory_of_losses_is_bounded() -> None:
    requests: list[Rows] = [encode(unit(f"t{number}", "2", parent="1")) for number in range(10)]
    losses = lost(*requests, DeleteThread("t"))
    assert len(losses) == 3
    assert losses.barring(encode(unit("t9", "3", parent="2")), 99)
