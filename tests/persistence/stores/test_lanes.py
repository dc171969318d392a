"""Lanes: what waits is done together, and everybody gets an answer of their own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from persistence.errors import BackendError, PersistenceClosedError
from persistence.stores import lanes
from persistence.stores.lanes import Failed, Lane

pytestmark = pytest.mark.anyio


class Desk:
    """Does work when it may, and remembers in which groups."""

    def __init__(self) -> None:
        self.groups: list[list[Any]] = []
        self.open = anyio.Event()
        self.entered = anyio.Event()

    async def __call__(self, works: Sequence[Any]) -> list[Any]:
        self.groups.append(list(works))
        self.entered.set()
        await self.open.wait()
        await anyio.lowlevel.checkpoint()
        if "defect" in works:
            raise ZeroDivisionError
        if "outage" in works:
            raise BackendError("the disk is gone")
        return [Failed(BackendError("not this one")) if work == "bad" else f"did {work}" for work in works]


@asynccontextmanager
async def running(desk: Desk) -> AsyncIterator[Lane[Any]]:
    lane: Lane[Any] = Lane(desk)
    async with anyio.create_task_group() as nursery:
        nursery.start_soon(lane.run)
        yield lane
        desk.open.set()
        lane.close()
    assert lane.stopped.is_set()


async def test_what_waits_is_done_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lanes, "GROUP", 4)
    desk, answers = Desk(), dict[int, str]()
    async with running(desk) as lane:

        async def ask(number: int) -> None:
            answers[number] = await (lane.ask(number) if number % 2 else lane.order(number))

        async with anyio.create_task_group() as nursery:
            nursery.start_soon(ask, 0)
            await desk.entered.wait()
            for number in range(1, 8):
                nursery.start_soon(ask, number)
            await anyio.wait_all_tasks_blocked()
            desk.open.set()
    assert [len(group) for group in desk.groups] == [1, 4, 3]
    assert answers == {number: f"did {number}" for number in range(8)}


async def test_a_failure_is_its_own_or_everybodys() -> None:
    desk, ends = Desk(), dict[str, Any]()

    async def ask(lane: Lane[Any], work: str, name: str) -> None:
        try:
            ends[name] = await lane.ask(work)
        except Exception as error:  # noqa: BLE001 - the outcome under test
            ends[name] = error

    async with running(desk) as lane:
        desk.open.set()
        for works in (["a", "bad", "b"], ["outage", "c"], ["defect"]):
            async with anyio.create_task_group() as nursery:
                for work in works:
                    nursery.start_soon(ask, lane, work, work)
    assert (ends["a"], ends["b"]) == ("did a", "did b")
    assert str(ends["bad"]) == "not this one"
    assert str(ends["outage"]) == str(ends["c"]) == "the disk is gone"
    assert ends["outage"] is not ends["c"]
    assert {ends["c"].__cause__, ends["outage"].__cause__} < {ends["c"], ends["outage"], None}
    assert isinstance(ends["defect"], ZeroDivisionError)


async def test_a_question_that_is_given_up_is_not_asked() -> None:
    desk = Desk()
    async with running(desk) as lane, anyio.create_task_group() as nursery:
        nursery.start_soon(lane.ask, "first")
        await desk.entered.wait()
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as asking:
                asking.start_soon(lane.ask, "second")
                await anyio.wait_all_tasks_blocked()
                scope.cancel()
        assert scope.cancelled_caught
        desk.open.set()
    assert desk.groups == [["first"]]


async def test_who_finds_it_full_waits_for_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lanes, "ROOM", 3)
    desk, answers = Desk(), list[Any]()
    async with running(desk) as lane:

        async def ask(work: int) -> None:
            answers.append(await (lane.ask(work) if work % 2 else lane.order(work)))

        async with anyio.create_task_group() as nursery:
            nursery.start_soon(ask, 0)
            await desk.entered.wait()
            for work in range(1, 9):
                nursery.start_soon(ask, work)
            await anyio.wait_all_tasks_blocked()
            full = lane.statistics()
            assert (full.limit, full.depth, full.peak, full.waiting_callers) == (3, 3, 3, 5)
            assert (full.groups, full.works, full.largest_group) == (1, 1, 1)
            desk.open.set()
        assert sorted(answers) == [f"did {work}" for work in range(9)]
        done = lane.statistics()
        assert (done.depth, done.peak, done.waiting_callers, done.works) == (0, 3, 0, 9)
        assert done.largest_group == 3
    assert max(len(group) for group in desk.groups) == 3


@pytest.mark.parametrize("how", ["ask", "order"])
async def test_who_gives_up_before_there_is_room_asked_for_nothing(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lanes, "ROOM", 1)
    desk = Desk()
    async with running(desk) as lane, anyio.create_task_group() as nursery:
        nursery.start_soon(lane.ask, "first")
        await desk.entered.wait()
        nursery.start_soon(lane.ask, "second")
        await anyio.wait_all_tasks_blocked()
        async with anyio.create_task_group() as asking:
            asking.start_soon(getattr(lane, how), "third")
            await anyio.wait_all_tasks_blocked()
            assert lane.statistics().waiting_callers == 1
            asking.cancel_scope.cancel()
        assert lane.statistics().waiting_callers == 0
        desk.open.set()
    assert desk.groups == [["first"], ["second"]]


async def test_who_gives_up_a_question_makes_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lanes, "ROOM", 1)
    desk = Desk()
    async with running(desk) as lane, anyio.create_task_group() as nursery:
        nursery.start_soon(lane.ask, "first")
        await desk.entered.wait()
        async with anyio.create_task_group() as asking:
            asking.start_soon(lane.ask, "second")
            await anyio.wait_all_tasks_blocked()
            nursery.start_soon(lane.ask, "third")
            await anyio.wait_all_tasks_blocked()
            asking.cancel_scope.cancel()
        await anyio.wait_all_tasks_blocked()
        assert (lane.statistics().depth, lane.statistics().waiting_callers) == (1, 0)
        desk.open.set()
    assert desk.groups == [["first"], ["third"]]


async def test_closing_turns_away_who_waits_for_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lanes, "ROOM", 1)
    desk, ends = Desk(), dict[str, Any]()

    async def order(lane: Lane[Any], work: str) -> None:
        try:
            ends[work] = await lane.order(work)
        except PersistenceClosedError:
            ends[work] = "turned away"

    async with running(desk) as lane, anyio.create_task_group() as nursery:
        for work in "abcd":
            nursery.start_soon(order, lane, work)
            await anyio.wait_all_tasks_blocked()
        lane.close()
        desk.open.set()
    assert ends == {"a": "did a", "b": "did b", "c": "turned away", "d": "turned away"}


async def test_an_order_is_carried_out_before_a_cancel_arrives() -> None:
    desk, ends = Desk(), list[str]()

    async def order(lane: Lane[Any]) -> None:
        try:
            await lane.order("it")
        except BaseException:
            ends.append("cancelled, and done" if lane.groups == 1 and desk.open.is_set() else "too early")
            raise

    async with running(desk) as lane:
        async with anyio.create_task_group() as nursery:
            nursery.start_soon(order, lane)
            await desk.entered.wait()
            nursery.cancel_scope.cancel()
            with anyio.CancelScope(shield=True):
                await anyio.wait_all_tasks_blocked()
                assert ends == []
                desk.open.set()
        assert desk.groups == [["it"]]


async def test_a_closed_lane_takes_nothing_and_finishes_what_it_took() -> None:
    desk, answers = Desk(), list[Any]()

    async def ask(lane: Lane[Any], work: str) -> None:
        answers.append(await lane.ask(work))

    async with running(desk) as lane, anyio.create_task_group() as nursery:
        nursery.start_soon(ask, lane, "a")
        await desk.entered.wait()
        nursery.start_soon(ask, lane, "b")
        await anyio.wait_all_tasks_blocked()
        lane.close()
        with pytest.raises(PersistenceClosedError, match="closing"):
            await lane.ask("c")
        desk.open.set()
    assert answers == ["did a", "did b"]


@pytest.mark.parametrize("anyio_backend", [pytest.param(("asyncio", {}), id="asyncio")])
async def test_nobody_is_left_waiting_when_the_task_is_torn_down() -> None:
    """Only asyncio can: its cancel pierces shields."""
    import asyncio  # noqa: PLC0415 - what tears tasks down when a loop is shut down

    desk, errors = Desk(), list[str]()
    lane: Lane[Any] = Lane(desk)

    async def ask(work: str) -> None:
        with pytest.raises(PersistenceClosedError, match="not known to be done"):
            await lane.ask(work)
        errors.append(work)

    task = asyncio.create_task(lane.run())
    async with anyio.create_task_group() as nursery:
        nursery.start_soon(ask, "taken")
        await desk.entered.wait()
        nursery.start_soon(ask, "waiting")
        await anyio.wait_all_tasks_blocked()
        task.cancel()
        await lane.stopped.wait()
    assert sorted(errors) == ["taken", "waiting"]
    with pytest.raises(asyncio.CancelledError):
        await task
