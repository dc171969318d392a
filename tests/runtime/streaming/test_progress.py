"""How far a streamed run is on disk: what counts, what is waited for, and what a failed write does."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.streaming.progress import Progress


class Receipt:
    """A receipt that is done when told to."""

    def __init__(self) -> None:
        self.arrived = anyio.Event()
        self.error: Exception | None = None

    @property
    def done(self) -> bool:
        """Whether it was committed or has failed."""
        return self.arrived.is_set()

    async def wait(self) -> None:
        """Return once it is; raise its error."""
        await self.arrived.wait()
        if self.error is not None:
            raise self.error


class Recorder:
    """A journal, as progress sees it."""

    marks: Any = None
    keeps_exit = True

    def __init__(self, durability: str = "async") -> None:
        self.durability = durability

    async def settled(self, ack: Any) -> None:
        """Return once it is durable."""
        await ack.wait()


def following(durability: str = "async", **options: Any) -> Progress:
    """Return the progress of a run that is kept."""
    made = Progress()
    recorder = Recorder(durability)
    vars(recorder).update(options)
    made.follow(recorder)
    return made


@given(order=st.permutations(range(6)), lost=st.sets(st.integers(0, 5)))
def test_a_checkpoint_counts_once_all_before_it_are_there(order: list[int], lost: set[int]) -> None:
    made, receipts = following(), [Receipt() for _ in range(6)]
    for number, receipt in enumerate(receipts):
        made.sent(str(number), receipt)
    for number in order:
        receipts[number].error = ValueError() if number in lost else None
        receipts[number].arrived.set()
        there = next((at for at, one in enumerate(receipts) if not one.done or one.error is not None), 6)
        assert made.upto == (str(there - 1) if there else None)


async def test_what_comes_next_is_waited_for() -> None:
    made, receipt, reached = following(), Receipt(), anyio.Event()

    async def wait(number: int) -> None:
        await made.reach(number)
        reached.set()

    await made.reach(0)
    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(wait, made.due())
            await anyio.wait_all_tasks_blocked()
            made.sent("1", receipt)
            await anyio.wait_all_tasks_blocked()
            assert not reached.is_set()
            receipt.arrived.set()
    assert made.upto == "1"
    await made.reach(1)


async def test_what_was_recorded_needs_no_further_checkpoint() -> None:
    made, receipt = following(), Receipt()
    made.sent("1", receipt)
    assert (made.due(), made.due(recorded=True)) == (2, 1)
    assert following("exit").due(recorded=True) == 1


async def test_the_end_of_the_run_ends_every_wait() -> None:
    made = following()
    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(made.reach, 3)
            await anyio.wait_all_tasks_blocked()
            made.end()
    await made.reach(7)
    assert made.upto is None


async def test_a_checkpoint_that_was_not_stored_fails_who_waits_for_it() -> None:
    made, first, second = following(), Receipt(), Receipt()
    for name, receipt in (("1", first), ("2", second)):
        made.sent(name, receipt)
    first.arrived.set()
    second.error = ValueError("disk full")
    second.arrived.set()
    await made.reach(1)
    for number in (2, 3):
        made.end()
        with pytest.raises(ValueError, match="disk full"):
            await made.reach(number)
    assert made.upto == "1"


def test_whether_a_run_keeps_anything_itself() -> None:
    assert not Progress().follows
    assert following("exit").follows
    assert not following("exit", keeps_exit=False).follows
    assert following("sync", keeps_exit=False).follows
