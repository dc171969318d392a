"""Identifiers: checkpoints sort by time and along a branch, tasks and questions are the same every time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.interrupts import interrupt_id
from runtime.types.ids import CheckpointIds, task_id, ticks_of, utc_now

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[3]
NOW = 1_750_000_000_000_000_000
"""Some time in 2025, in nanoseconds."""

steps = st.integers(-2, 20_000)
clocks = st.lists(st.integers(-5_000_000_000, 5_000_000_000), min_size=1, max_size=30)
"""What a clock adds between two looks: nothing, less than a tick, seconds, or a step back."""


def clock(moves: list[int]) -> Iterator[int]:
    now = NOW
    for move in moves:
        now += move
        yield now


@given(clocks, st.data())
def test_ids_increase_whatever_the_clock_does(moves: list[int], data: st.DataObject) -> None:
    ticking = clock(moves)
    mint = CheckpointIds(lambda: next(ticking)).mint
    minted = [mint(data.draw(steps)) for _ in moves]
    assert minted == sorted(set(minted))


@given(clocks, clocks)
def test_a_branch_increases_across_processes_with_clocks_of_their_own(mine: list[int], theirs: list[int]) -> None:
    """Two processes take turns on a thread; one clock may be seconds behind the other."""
    here, there = clock(mine), clock(theirs)
    processes = CheckpointIds(lambda: next(here)), CheckpointIds(lambda: next(there))
    branch: list[str] = []
    for turn in range(min(len(mine), len(theirs)) * 2):
        branch.append(processes[turn % 2].mint(turn, branch[-1] if branch else None))
    assert branch == sorted(set(branch))


@given(st.lists(st.integers(NOW, NOW + 10_000), min_size=2, max_size=50))
def test_siblings_of_one_parent_differ(times: list[int]) -> None:
    ticking = iter(times)
    mint = CheckpointIds(lambda: next(ticking)).mint
    parent = CheckpointIds(lambda: NOW + 10**9).mint(3)
    siblings = [mint(4, parent) for _ in times]
    assert len(set(siblings)) == len(siblings)
    assert min(siblings) > parent


def test_a_clock_that_moves_on_shows_in_the_id() -> None:
    times = iter([NOW, NOW + 100])
    mint = CheckpointIds(lambda: next(times)).mint
    first, second = mint(0), mint(0)
    assert ticks_of(second) - ticks_of(first) == 1


@given(st.integers(0, 2**40), st.integers(0, 2**40))
def test_text_order_is_time_order(one: int, other: int) -> None:
    texts = [CheckpointIds(lambda at=at: NOW + at * 100).mint(0) for at in (one, other)]  # type: ignore[misc]
    assert (texts[0] < texts[1]) == (one < other)


@given(steps)
def test_the_step_is_in_the_fourth_group(step: int) -> None:
    group = CheckpointIds().mint(step).split("-")[3]
    assert int(group, 16) == 0x8000 | step & 0x3FFF


@pytest.mark.parametrize(("step", "group"), [(-2, "bffe"), (-1, "bfff"), (0, "8000"), (2, "8002")])
def test_the_first_steps_read_as_elsewhere(step: int, group: str) -> None:
    assert CheckpointIds().mint(step).split("-")[3] == group


def test_an_id_is_a_uuid_of_version_6_with_a_random_node() -> None:
    minted = CheckpointIds().mint(0)
    assert [len(group) for group in minted.split("-")] == [8, 4, 4, 4, 12]
    assert minted[14] == "6"
    assert int(minted.split("-")[4], 16) >> 40 & 1 == 1


def test_an_id_tells_its_time() -> None:
    minted = CheckpointIds(lambda: NOW).mint(0)
    seconds = (ticks_of(minted) - 0x01B21DD213814000) / 10_000_000
    assert seconds == NOW / 10**9


@pytest.mark.parametrize("text", ["", "1", "not-a-uuid", "x" * 36, "zzzzzzzz-zzzz-6zzz-8000-000000000000"])
def test_an_id_of_another_form_has_no_time(text: str) -> None:
    assert ticks_of(text) == 0


def test_a_parent_of_another_form_does_not_stop_a_thread() -> None:
    minted = CheckpointIds(lambda: NOW).mint(1, "zz-not-ours")
    assert ticks_of(minted) == NOW // 100 + 0x01B21DD213814000


def test_two_processes_never_mint_the_same_id() -> None:
    program = (
        "from runtime.types.ids import CheckpointIds; import json; m = CheckpointIds(lambda: 10**18).mint;"
        "print(json.dumps([m(0) for _ in range(3)]))"
    )
    told = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, check=True)
    there = json.loads(told.stdout)
    mint = CheckpointIds(lambda: 10**18).mint
    here = [mint(0) for _ in range(3)]
    assert not set(here) & set(there)
    assert [ticks_of(one) for one in here] == [ticks_of(one) for one in there]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_process_never_mints_the_id_of_the_one_it_comes_from() -> None:
    program = (
        "from runtime.types.ids import CheckpointIds; import os; m = CheckpointIds(lambda: 10**18).mint;"
        "child = os.fork(); child and os.waitpid(child, 0); print(m(0), flush=True); os._exit(0)"
    )
    told = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, check=True).stdout.split()
    assert len(told) == len(set(told)) == 2


# ---- tasks and questions ---------------------------------------------------------------------------------------------

names = st.text(st.characters(codec=None), min_size=1, max_size=5)
places: st.SearchStrategy[tuple[Any, ...]] = st.tuples(
    st.sampled_from([CheckpointIds().mint(step) for step in range(3)]), names, st.integers(-1, 9), names
)


@given(places, st.lists(names, max_size=3))
def test_a_task_id_is_the_same_every_time(place: tuple[Any, ...], triggers: list[str]) -> None:
    assert task_id(*place, "pull", *triggers) == task_id(*place, "pull", *triggers)


@given(st.data())
def test_each_part_of_a_place_makes_a_task_another_one(data: st.DataObject) -> None:
    place = ["1f05e7a0-0000-6000-8000-000000000001", "node", 3, "node", "__pregel_push", "0"]
    other = [
        data.draw(st.sampled_from(["1f05e7a0-0000-6000-8000-000000000002", "not hex"])),
        "parent|node",
        4,
        "edge",
        "__pregel_pull",
        "1",
    ]
    changed = data.draw(st.integers(0, len(place) - 1))
    moved = [*place[:changed], other[changed], *place[changed + 1 :]]
    assert task_id(*moved) != task_id(*place)  # type: ignore[arg-type]


def test_sends_of_a_superstep_have_ids_of_their_own() -> None:
    place = ("1f05e7a0-0000-6000-8000-000000000001", "n", 3, "n", "__pregel_push")
    assert len({task_id(*place, str(index)) for index in range(100)}) == 100


def test_a_task_id_reads_as_a_uuid() -> None:
    assert [len(group) for group in task_id("c", "", 0, "n", "k").split("-")] == [8, 4, 4, 4, 12]


@given(names, st.integers(0, 5), st.integers(0, 5))
def test_each_question_of_a_task_has_an_id_of_its_own(ns: str, one: int, other: int) -> None:
    first, second = interrupt_id(ns, one), interrupt_id(ns, other)
    assert (first == second) == (one == other)
    assert len(first) == 32
    assert int(first, 16) >= 0


def test_questions_of_different_tasks_differ() -> None:
    assert interrupt_id("a:1", 0) != interrupt_id("a:2", 0)


# ---- timestamps ------------------------------------------------------------------------------------------------------


@given(st.lists(st.integers(0, 10**7), min_size=1, max_size=20))
def test_a_timestamp_is_the_time(moves: list[int]) -> None:
    clock_of_its_own = type(utc_now)()
    with pytest.MonkeyPatch.context() as patch:
        now = NOW
        for move in moves:
            now += move * 1000
            patch.setattr(time, "time_ns", lambda now=now: now)
            shown = datetime.fromisoformat(clock_of_its_own())
            assert shown == datetime.fromtimestamp(NOW // 10**9, UTC) + timedelta(microseconds=(now - NOW) // 1000)


def test_timestamps_have_one_length() -> None:
    assert len(utc_now()) == len("2025-01-01T00:00:00.000000+00:00")
