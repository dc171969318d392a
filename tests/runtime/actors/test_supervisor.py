"""The supervisor: every task gets exactly one outcome, workers are reused, limits are kept."""

from __future__ import annotations

import asyncio
import math
from random import Random
from typing import Any

import anyio
import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.actors import mailbox
from runtime.actors.outcomes import CANCELLED, COMPLETED, Cancelled, Completed, Failed, Outcome, Paused
from runtime.actors.supervisor import BREATH, Supervisor
from runtime.engine.tasks import Task
from runtime.errors import NodeCancelledError
from runtime.run.conductor import Conductor
from runtime.types import interrupt
from tests.runtime.actors.staging import stage, task_of

LOOPS = ["asyncio", "trio"]


class Boom(Exception):  # noqa: N818 - what happens
    """A node has failed."""


class Play:
    """Supersteps of one node, performed."""

    def __init__(self, run: Conductor, limit: int | None = None) -> None:
        self.run = run
        self.limit = limit
        self.reports: list[tuple[Task, Outcome, int]] = []
        self.supervisor: Any = None

    async def report(self, task: Task, outcome: Outcome, left: int) -> None:
        self.reports.append((task, outcome, left))
        await anyio.sleep(0)

    async def perform(self, *supersteps: list[Task]) -> None:
        async with anyio.create_task_group() as nursery:
            self.supervisor = Supervisor(self.run, nursery, self.limit)
            try:
                for tasks in supersteps:
                    await self.supervisor.perform(tasks, self.report)
            finally:
                self.supervisor.close()

    def sends(self, count: int, given: Any = None, name: str = "node") -> list[Task]:
        return [task_of(self.run, name, given, index) for index in range(count)]

    @property
    def outcomes(self) -> list[Outcome]:
        return [outcome for _, outcome, _ in self.reports]


async def settle() -> None:
    """Let every task go as far as it can."""
    for _ in range(20):
        await anyio.sleep(0)


# ---- every task, one outcome -----------------------------------------------------------------------------------------


class Meeting:
    """How many are at work at once."""

    def __init__(self) -> None:
        self.present = 0
        self.most = 0

    async def attend(self, steps: int) -> None:
        self.present += 1
        self.most = max(self.most, self.present)
        try:
            for _ in range(steps):
                await anyio.sleep(0)
        finally:
            self.present -= 1


behaviours = st.tuples(
    st.sampled_from(["return", "return", "return", "fail", "pause", "wait", "die", "swallow", "group"]),
    st.integers(0, 4),
)


async def behave(meeting: Meeting, kind: str, steps: int) -> None:
    if kind == "swallow":
        with anyio.CancelScope(shield=True):
            await meeting.attend(steps)
        return
    if kind == "group":
        async with anyio.create_task_group() as group:
            group.start_soon(meeting.attend, steps)
            group.start_soon(anyio.sleep, 0)
        return
    await meeting.attend(steps)
    if kind == "fail":
        raise Boom
    if kind == "pause":
        interrupt("q")
    if kind == "wait":
        await anyio.sleep_forever()
    if kind == "die":
        raise KeyboardInterrupt


@pytest.mark.parametrize("backend", LOOPS)
@given(
    todo=st.lists(st.lists(behaviours, min_size=1, max_size=8), min_size=1, max_size=3),
    limit=st.none() | st.integers(1, 3),
    cancel_after=st.integers(0, 25),
    small=st.booleans(),
    random=st.randoms(use_true_random=False),
)
@settings(max_examples=100)
def test_each_task_gets_one_outcome_whatever_happens(
    backend: str, todo: list[list[tuple[str, int]]], limit: int | None, cancel_after: int, small: bool, random: Random
) -> None:
    """Nodes return, fail, pause, wait for ever, and die; and everything is cancelled from outside at some moment."""
    meeting, played = Meeting(), list[Play]()

    async def node(given: tuple[str, int]) -> None:
        await behave(meeting, *given)

    async def main() -> None:
        play = Play(stage(node=node, other=node), limit)
        played.append(play)
        steps = []
        for superstep in todo:
            names = random.choices(["node", "other"], k=len(superstep))
            steps.append(
                [
                    task_of(play.run, name, given, n)
                    for n, (name, given) in enumerate(zip(names, superstep, strict=True))
                ]
            )
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as group:
                group.start_soon(cancel, scope)
                await play.perform(*steps)
                group.cancel_scope.cancel()

    async def cancel(scope: anyio.CancelScope) -> None:
        for _ in range(cancel_after):
            await anyio.sleep(0)
        scope.cancel()

    with pytest.MonkeyPatch.context() as patch:
        if small:
            patch.setattr(mailbox.Mailbox.__init__, "__defaults__", (2,))
        try:
            anyio.run(main, backend=backend)
        except (KeyboardInterrupt, BaseExceptionGroup) as error:
            leaves = list(flat(error))
            assert all(isinstance(leaf, KeyboardInterrupt) for leaf in leaves), leaves
    (play,) = played
    check_reports(play, todo)
    assert meeting.present == 0
    assert meeting.most <= (limit or math.inf)


def flat(error: BaseException) -> Any:
    if isinstance(error, BaseExceptionGroup):
        for part in error.exceptions:
            yield from flat(part)
    else:
        yield error


def check_reports(play: Play, todo: list[list[tuple[str, int]]]) -> None:
    """Whole supersteps were reported, each task once, with the number of those left; and outcomes fit behaviours."""
    reports = list(play.reports)
    for superstep in todo:
        if not reports:
            return
        mine, reports = reports[: len(superstep)], reports[len(superstep) :]
        assert sorted(task.send_index for task, _, _ in mine) == list(range(len(superstep)))
        assert [left for _, _, left in mine] == list(range(len(superstep)))[::-1]
        for task, outcome, _ in mine:
            assert task.send is not None
            kind, _ = task.send.arg
            allowed: dict[str, tuple[type, ...]] = {
                "fail": (Failed,),
                "die": (Failed,),
                "pause": (Paused,),
                "wait": (),
            }
            assert isinstance(outcome, (Cancelled, *allowed.get(kind, (Completed,)))), (kind, outcome)
            assert task.finished == isinstance(outcome, Completed)
    assert not reports


# ---- what failure means ----------------------------------------------------------------------------------------------


async def test_the_first_failure_cancels_those_at_work_and_answers_those_not_begun() -> None:
    async def node(given: str) -> None:
        if given == "fail":
            raise Boom
        await anyio.sleep_forever()

    play = Play(stage(node=node), limit=3)
    tasks = [task_of(play.run, "node", given, index) for index, given in enumerate(["wait", "fail", "wait", "wait"])]
    await play.perform(tasks)
    by_index = {task.send_index: outcome for task, outcome, _ in play.reports}
    assert isinstance(by_index[1], Failed)
    assert [by_index[index] for index in (0, 2, 3)] == [CANCELLED] * 3
    assert play.reports[0][1] is by_index[1]


async def test_what_finished_beside_a_failure_is_reported_as_finished() -> None:
    async def node(given: str) -> None:
        if given == "fail":
            raise Boom

    play = Play(stage(node=node))
    await play.perform([task_of(play.run, "node", given, index) for index, given in enumerate(["", "fail", ""])])
    assert [type(outcome) for outcome in play.outcomes].count(Failed) == 1
    assert play.outcomes[0] is COMPLETED


async def test_a_pause_cancels_nobody() -> None:
    async def node(given: str) -> None:
        if given == "ask":
            interrupt("q")
        await settle()

    play = Play(stage(node=node))
    await play.perform([task_of(play.run, "node", given, index) for index, given in enumerate(["", "ask", ""])])
    assert sorted(type(outcome).__name__ for outcome in play.outcomes) == ["Completed", "Completed", "Paused"]


@pytest.mark.parametrize(
    "error", [KeyboardInterrupt(), SystemExit(3), BaseExceptionGroup("", [SystemExit(4)])], ids=repr
)
@pytest.mark.parametrize("width", [1, 3])
async def test_an_error_that_is_to_end_the_program_is_a_failure_of_its_node(error: BaseException, width: int) -> None:
    """A node alone in its superstep runs in the caller's task and ends that; beside others it is told as an outcome."""

    async def node(given: int) -> None:
        if given == 0:
            raise error

    play = Play(stage(node=node))
    tasks = [task_of(play.run, "node", index, index) for index in range(width)]
    if width > 1:
        await play.perform(tasks)
    else:
        with pytest.raises(BaseException) as caught:  # noqa: PT011 - maybe in a nursery's group
            await play.perform(tasks)
        assert list(flat(caught.value)) == list(flat(error))
    (failure,) = [outcome for outcome in play.outcomes if isinstance(outcome, Failed)]
    assert list(flat(failure.error)) == list(flat(error))
    assert len(play.reports) == width


@pytest.mark.parametrize("anyio_backend", [pytest.param(("asyncio", {}), id="asyncio")])
@pytest.mark.parametrize("width", [1, 3])
async def test_a_node_that_cancels_itself_has_failed(width: int) -> None:
    async def node(given: int) -> None:
        if given == 0:
            raise asyncio.CancelledError
        await anyio.sleep_forever()

    play = Play(stage(node=node))
    await play.perform([task_of(play.run, "node", index, index) for index in range(width)])
    (failure,) = [outcome for outcome in play.outcomes if isinstance(outcome, Failed)]
    assert isinstance(failure.error, NodeCancelledError)
    assert failure.error.node == "node"
    assert "'node' raised CancelledError although nobody had cancelled it" in str(failure.error)


async def test_a_report_that_fails_ends_the_superstep_and_the_others_are_reported_all_the_same() -> None:
    async def node(given: str) -> None:
        if given == "wait":
            await anyio.sleep_forever()

    play = Play(stage(node=node))
    told: list[Outcome] = []

    async def report(task: Task, outcome: Outcome, left: int) -> None:
        told.append(outcome)
        raise Boom

    play.report = report  # type: ignore[method-assign]
    with pytest.raises(BaseException) as caught:  # noqa: PT011 - a nursery's group around it
        await play.perform([task_of(play.run, "node", given, index) for index, given in enumerate(["", "wait", ""])])
    assert all(isinstance(leaf, Boom) for leaf in flat(caught.value))
    assert len(told) == 3


# ---- what it costs ---------------------------------------------------------------------------------------------------


async def test_workers_are_reused_from_superstep_to_superstep() -> None:
    seen: list[int] = []
    everyone = [anyio.Event(), anyio.Event(), anyio.Event()]
    arrived = [0, 0, 0]

    async def node(given: int) -> None:
        seen.append(play.supervisor.statistics().workers)
        arrived[given] += 1
        if arrived[given] == 10:
            everyone[given].set()
        await everyone[given].wait()

    play = Play(stage(node=node))
    with anyio.fail_after(5):
        await play.perform(*(play.sends(10, superstep) for superstep in range(3)))
    assert max(seen) == 10
    assert arrived == [10, 10, 10]


async def test_a_lone_task_starts_no_worker_and_no_mailbox() -> None:
    async def node(_given: Any) -> None:
        await anyio.sleep(0)

    play = Play(stage(node=node))
    await play.perform(*(play.sends(1) for _ in range(5)))
    assert play.supervisor._actors["node"]._mailbox is None
    assert play.supervisor.statistics().workers == 0


async def test_nodes_that_never_wait_share_one_worker_and_let_others_run() -> None:
    turns: list[str] = []

    async def node(given: int) -> None:
        turns.append("node")

    async def neighbour() -> None:
        while len(turns) < 110:
            turns.append("neighbour")
            await anyio.sleep(0)

    most: list[int] = []
    play = Play(stage(node=node))
    report = play.report

    async def counting(task: Task, outcome: Outcome, left: int) -> None:
        most.append(play.supervisor.statistics().workers)
        await report(task, outcome, left)

    play.report = counting  # type: ignore[method-assign]
    async with anyio.create_task_group() as group:
        group.start_soon(neighbour)
        await play.perform(play.sends(100))
    assert max(most) == 1
    longest = max(len(run) for run in "".join("n" if turn == "node" else " " for turn in turns).split())
    assert longest <= 2 * BREATH  # trio runs what is ready in any order


@pytest.mark.parametrize("limit", [1, 3, 10])
async def test_the_limit_is_reached_and_never_passed(limit: int) -> None:
    meeting = Meeting()

    async def node(_given: Any) -> None:
        await meeting.attend(5)

    play = Play(stage(node=node), limit)
    await play.perform(play.sends(30), play.sends(30))
    assert meeting.most == limit
    assert play.supervisor.statistics().limit == limit


async def test_more_sends_than_a_mailbox_holds_all_meet() -> None:
    """Without a limit nobody waits for room: each message that is taken makes room for one more."""
    count = mailbox.CAPACITY + 100
    arrived: list[int] = []
    everyone = anyio.Event()

    async def node(given: Any) -> None:
        arrived.append(given)
        if len(arrived) == count:
            everyone.set()
        await everyone.wait()

    play = Play(stage(node=node))
    with anyio.fail_after(15):
        await play.perform([task_of(play.run, "node", index, index) for index in range(count)])
    assert arrived == list(range(count))
    statistics = play.supervisor.statistics().actors["node"]
    assert (statistics.peak, statistics.received, statistics.waiting) == (mailbox.CAPACITY, count, 0)


async def test_a_full_mailbox_of_one_node_does_not_keep_another_waiting_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(mailbox.Mailbox.__init__, "__defaults__", (1,))
    done: list[str] = []

    async def node(given: str) -> None:
        done.append(given)

    play = Play(stage(node=node, other=node), limit=1)
    tasks = [task_of(play.run, name, name, index) for index, name in enumerate(["node", "node", "node", "other"])]
    with anyio.fail_after(5):
        await play.perform(tasks)
    assert sorted(done) == ["node", "node", "node", "other"]


# ---- cancels ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [1, 5])
async def test_a_cancel_from_outside_is_told_for_each_task(width: int) -> None:
    begun = anyio.Event()

    async def node(_given: Any) -> None:
        begun.set()
        await anyio.sleep_forever()

    play = Play(stage(node=node))
    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as group:
            group.start_soon(play.perform, play.sends(width))
            await begun.wait()
            scope.cancel()
    assert play.outcomes == [CANCELLED] * width


@pytest.mark.parametrize("width", [1, 5])
async def test_a_node_with_a_task_group_of_its_own_is_cancelled_like_any_other(width: int) -> None:
    """On trio its cancel arrives in an exception group."""
    begun = anyio.Event()

    async def node(_given: Any) -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(anyio.sleep_forever)
            group.start_soon(anyio.sleep_forever)
            begun.set()

    play = Play(stage(node=node))
    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as group:
            group.start_soon(play.perform, play.sends(width))
            await begun.wait()
            scope.cancel()
    assert play.outcomes == [CANCELLED] * width


@pytest.mark.parametrize("anyio_backend", [pytest.param(("trio", {}), id="trio")])
async def test_a_nursery_of_trio_inside_a_node_is_cancelled_like_any_other() -> None:
    async def node(given: str) -> None:
        if given == "fail":
            await settle()
            raise Boom
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.sleep_forever)
            nursery.start_soon(trio.sleep_forever)

    play = Play(stage(node=node))
    await play.perform([task_of(play.run, "node", given, index) for index, given in enumerate(["", "fail", ""])])
    assert sorted(type(outcome).__name__ for outcome in play.outcomes) == ["Cancelled", "Cancelled", "Failed"]


async def test_a_closed_supervisor_lets_its_workers_go() -> None:
    async def node(_given: Any) -> None:
        await anyio.sleep(0)

    play = Play(stage(node=node))
    await play.perform(play.sends(5))
    assert (play.supervisor.statistics().workers, play.supervisor.statistics().idle) == (0, 0)
