"""Leases: runs of several processes on one thread take turns, and a run whose thread was taken over cannot write."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from types import SimpleNamespace
from typing import Any

import anyio
import pytest

from persistence.contracts.backend import Beat
from persistence.contracts.lease import LeaseRow
from persistence.errors import LeaseLostError
from persistence.postgres import PostgresSaver
from persistence.sqlite import SqliteSaver
from persistence.writer.limits import Limits
from runtime.errors import FencedError, GraphRecursionError, ThreadBusyError, ThreadConflictError
from runtime.run import leasing
from runtime.types import Command, interrupt
from tests.stories.graphs import CONFIG, chain, history, note

Savers = tuple[Any, Any]


@pytest.fixture(params=["sqlite", "postgres"])
def make(request: pytest.FixtureRequest, tmp_path: Any) -> Callable[[Limits], Any]:
    """Return a function that makes savers on one database, as processes have them."""
    if request.param == "sqlite":
        return lambda limits: SqliteSaver(tmp_path / "shared.sqlite", limits=limits)
    url = request.getfixturevalue("postgres_url")
    return lambda limits: PostgresSaver(url, pool_size=2, limits=limits)


@pytest.fixture
async def savers(make: Any) -> AsyncIterator[Savers]:
    """Two savers on one database."""
    async with make(Limits()) as one, make(Limits()) as other:
        yield one, other


class Door:
    """A node that waits to be let through."""

    def __init__(self) -> None:
        self.reached = anyio.Event()
        self.open = anyio.Event()
        self.passed = 0

    async def __call__(self, _state: Any) -> dict[str, Any]:
        self.reached.set()
        await self.open.wait()
        self.passed += 1
        return {"log": ["slow"]}


async def silence(saver: Any, by: Any) -> None:
    """Let an owner seem dead: its beats stop, and the database forgets those it had."""
    saver._actor.holdings.seconds = 1e9
    await by._submit(Beat(saver.lease_owner, 0))


def line(snapshots: list[Any]) -> bool:
    """Tell whether a history has no fork."""
    return [one.parent_config for one in snapshots] == [*[one.config for one in snapshots[1:]], None]


@pytest.mark.parametrize("durability", ["sync", "async"])
async def test_a_run_of_another_process_waits_its_turn(savers: Savers, durability: Any) -> None:
    door = Door()
    first = chain("one", ("slow", door)).compile(savers[0])
    second = chain("one", "slow").compile(savers[1])
    answers: list[Any] = []

    async def wait_its_turn() -> None:
        answers.append(await second.ainvoke({"log": ["second"]}, CONFIG, durability=durability))

    async with anyio.create_task_group() as group:
        group.start_soon(lambda: first.ainvoke({"log": ["first"]}, CONFIG, durability=durability))
        await door.reached.wait()
        await savers[0].aget_tuple(CONFIG)  # what it has sent so far is stored now
        group.start_soon(wait_its_turn)
        await savers[1].aget_tuple(CONFIG)
        await anyio.sleep(0.05)
        assert answers == []
        door.open.set()
    assert answers == [{"log": ["first", "one", "slow", "second", "one", "slow"]}]
    assert line(await history(first))
    assert (await savers[0].alease("t"))[1:] == (
        2,
        savers[1].lease_owner,
        "LangGraph",
        False,
        pytest.approx(15, abs=15),
    )


async def test_an_update_from_another_process_waits_its_turn(savers: Savers) -> None:
    door = Door()
    first = chain("one", ("slow", door)).compile(savers[0])
    second = chain("one", "slow").compile(savers[1])
    async with anyio.create_task_group() as group:
        group.start_soon(lambda: first.ainvoke({}, CONFIG, durability="sync"))
        await door.reached.wait()
        group.start_soon(lambda: second.aupdate_state(CONFIG, {"log": ["edit"]}, "slow"))
        await anyio.sleep(0.05)
        door.open.set()
    assert (await first.aget_state(CONFIG)).values == {"log": ["one", "slow", "edit"]}
    assert line(await history(first))


async def test_a_busy_thread_is_refused_where_that_was_asked_for(savers: Savers) -> None:
    door = Door()
    first = chain(("slow", door)).compile(savers[0])
    second = chain("slow").compile(savers[1])
    async with anyio.create_task_group() as group:
        group.start_soon(lambda: first.ainvoke({}, CONFIG, durability="sync"))
        await door.reached.wait()
        with pytest.raises(
            ThreadBusyError, match="run of another saver of this process, which was opened at .*epoch 1"
        ):
            await second.ainvoke({}, CONFIG, multitask_strategy="reject")
        door.open.set()
    assert (await second.ainvoke({}, CONFIG, multitask_strategy="reject"))["log"] == ["slow", "slow"]


@pytest.mark.parametrize("durability", ["sync", "async"])
async def test_a_run_that_was_taken_over_writes_nothing_more(savers: Savers, durability: Any) -> None:
    door = Door()
    frozen = chain("one", ("slow", door), "last").compile(savers[0])
    heir = chain("one", "slow", "last").compile(savers[1])
    fenced: list[FencedError] = []

    async def run() -> None:
        with pytest.raises(FencedError) as caught:
            await frozen.ainvoke({}, CONFIG, durability=durability)
        fenced.append(caught.value)

    async with anyio.create_task_group() as group:
        group.start_soon(run)
        await door.reached.wait()
        await savers[0].aget_tuple(CONFIG)
        await silence(savers[0], savers[1])
        assert await heir.ainvoke(None, CONFIG) == {"log": ["one", "slow", "last"]}
        before = [each async for each in savers[1].alist(CONFIG)]
        door.open.set()
    assert door.passed == 1
    assert "thread 't'" in str(fenced[0])
    assert isinstance(fenced[0].__cause__, LeaseLostError)
    assert [each async for each in savers[1].alist(CONFIG)] == before
    assert line(await history(heir))
    assert await savers[1].aheld_leases() == []


async def test_a_fenced_thread_does_not_fail_what_is_committed_with_it(savers: Savers) -> None:
    """Fifty runs of one process meet in its commits; every other one was taken over."""
    doors = [Door() for _ in range(50)]
    graphs = [chain("one", ("slow", door), "last").compile(savers[0]) for door in doors]
    heir = chain("one", "slow", "last").compile(savers[1])
    ended: list[tuple[int, bool]] = []

    async def run(number: int) -> None:
        try:
            await graphs[number].ainvoke({}, {"configurable": {"thread_id": str(number)}}, durability="sync")
        except FencedError:
            ended.append((number, False))
        else:
            ended.append((number, True))

    async with anyio.create_task_group() as group:
        for number in range(50):
            group.start_soon(run, number)
        for door in doors:
            await door.reached.wait()
        await silence(savers[0], savers[1])
        for number in range(0, 50, 2):
            await heir.ainvoke(None, {"configurable": {"thread_id": str(number)}})
        for door in doors:
            door.open.set()
    assert sorted(ended) == [(number, number % 2 == 1) for number in range(50)]
    for number in range(50):
        found = await heir.aget_state({"configurable": {"thread_id": str(number)}})
        assert found.values == {"log": ["one", "slow", "last"]}
        assert found.next == ()


async def test_one_question_answered_by_two_processes_is_answered_once(savers: Savers) -> None:
    ran = 0

    async def ask(_state: Any) -> dict[str, Any]:
        nonlocal ran
        answer = interrupt("?")
        ran += 1
        return {"log": [answer]}

    graphs = [chain(("ask", ask)).compile(saver) for saver in savers]
    await graphs[0].ainvoke({}, CONFIG)
    outcomes: list[Any] = []

    async def answer(graph: Any, said: str) -> None:
        try:
            outcomes.append(await graph.ainvoke(Command(resume=said), CONFIG))
        except Exception as error:  # noqa: BLE001 - what the loser is told depends on how late it came
            outcomes.append(error)

    async with anyio.create_task_group() as group:
        group.start_soon(answer, graphs[0], "a")
        group.start_soon(answer, graphs[1], "b")
    assert ran == 1
    logs = [outcome["log"] for outcome in outcomes if isinstance(outcome, dict)]
    assert (await graphs[0].aget_state(CONFIG)).values["log"] in logs
    assert line(await history(graphs[0]))


async def fail(_state: Any) -> None:
    message = "no"
    raise RuntimeError(message)


async def ask(_state: Any) -> dict[str, Any]:
    return {"log": [interrupt("?")]}


async def again(_state: Any) -> Command[Any]:
    return Command(goto="last")


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
@pytest.mark.parametrize(
    ("last", "error", "units"),
    [(ask, None, 4), (fail, RuntimeError, 4), (again, GraphRecursionError, 8), (note("last"), None, 4)],
    ids=["pause", "failure", "limit", "end"],
)
async def test_a_thread_is_free_once_its_run_is_over(
    savers: Savers, durability: Any, last: Any, error: Any, units: int
) -> None:
    """What frees it travels with the run's last unit, but where nothing is left to save."""
    graph = chain("one", ("last", last)).compile(savers[0])
    before = savers[0].statistics().units
    config = {**CONFIG, "recursion_limit": 5}
    if error is None:
        await graph.ainvoke({}, config, durability=durability)
    else:
        with pytest.raises(error):
            await graph.ainvoke({}, config, durability=durability)
    assert await savers[1].aheld_leases() == []
    lease = await savers[1].alease("t")
    assert (lease.epoch, lease.owner) == (1, savers[0].lease_owner)
    assert savers[0].statistics().units - before == (1 if durability == "exit" else units)


async def test_a_thread_is_free_after_a_cancel_a_breakpoint_and_an_edit(savers: Savers) -> None:
    door = Door()
    graph = chain("one", ("slow", door), "last").compile(savers[0])
    async with anyio.create_task_group() as group:
        group.start_soon(lambda: graph.ainvoke({}, CONFIG))
        await door.reached.wait()
        group.cancel_scope.cancel()
    assert await savers[1].aheld_leases() == []
    await graph.aupdate_state(CONFIG, {"log": ["edit"]}, "slow")
    assert await savers[1].aheld_leases() == []
    await graph.ainvoke({"log": ["again"]}, CONFIG, interrupt_before=["one"])
    assert await savers[1].aheld_leases() == []
    door.open.set()
    assert (await graph.ainvoke(None, CONFIG))["log"] == ["one", "edit", "again", "one", "slow", "last"]
    assert (await savers[1].alease("t")).epoch == 4


async def test_a_run_inside_a_run_does_not_wait_for_it(savers: Savers) -> None:
    """It is on the same thread, through another saver; that the thread moves on, each of them hears."""
    inner = chain("call").compile(savers[1])

    async def call(_state: Any) -> dict[str, Any]:
        await inner.ainvoke({"log": ["within"]}, CONFIG)
        return {"log": ["outer"]}

    outer = chain(("call", call)).compile(savers[0])
    with anyio.fail_after(10), pytest.raises(ThreadConflictError, match="moved"):
        await outer.ainvoke({}, CONFIG, durability="sync")
    assert (await inner.aget_state(CONFIG)).values["log"] == ["within", "call"]
    assert await savers[0].aheld_leases() == []


async def test_a_thread_that_another_process_deletes_stays_deleted(savers: Savers) -> None:
    door = Door()
    graph = chain("one", ("slow", door), "last").compile(savers[0])

    async def run() -> None:
        with pytest.raises(FencedError, match="deleted"):
            await graph.ainvoke({}, CONFIG, durability="sync")

    async with anyio.create_task_group() as group:
        group.start_soon(run)
        await door.reached.wait()
        await savers[1].adelete_thread("t")
        door.open.set()
    assert [each async for each in savers[1].alist(CONFIG)] == []
    assert await savers[1].alease("t") is None


@pytest.mark.slow
async def test_an_owner_whose_nodes_take_their_time_is_heard(make: Any) -> None:
    """Nothing is written for several times as long as a silent owner would live."""
    limits, door = Limits(lease_seconds=0.3), Door()
    async with make(limits) as one, make(limits) as other:
        graph = chain(("slow", door)).compile(one)
        async with anyio.create_task_group() as group:
            group.start_soon(lambda: graph.ainvoke({}, CONFIG, durability="sync"))
            await door.reached.wait()
            for _ in range(20):
                lease = await other.alease("t")
                assert lease is not None
                assert lease.held
                assert not other.is_dead(lease)
                await anyio.sleep(0.05)
            door.open.set()
        assert await other.aheld_leases() == []


async def test_closing_a_saver_takes_its_owner_off_the_list(make: Any) -> None:
    async with make(Limits()) as other:
        async with make(Limits()) as one:
            await chain("one").compile(one).ainvoke({}, CONFIG)
            lease = await other.alease("t")
            assert lease is not None
            assert lease.seconds_left > 10
        lease = await other.alease("t")
    assert lease is not None
    assert (lease.epoch, lease.held, lease.seconds_left) == (1, False, 0)


@pytest.mark.parametrize("durability", ["sync", "async"])
async def test_who_loses_the_race_for_a_thread_takes_the_next_turn(savers: Savers, durability: Any) -> None:
    """Both find it free. In ``async`` the loser's nodes may be at work by then, so that its caller must hear of it."""
    graphs = [chain("one", "two").compile(saver) for saver in savers]
    await graphs[0].ainvoke({"log": ["0"]}, CONFIG)
    for turn in range(1, 7):
        fenced: list[FencedError] = []

        async def run(graph: Any, turn: int, fenced: list[FencedError]) -> None:
            try:
                await graph.ainvoke({"log": [str(turn)]}, CONFIG, durability=durability)
            except FencedError as error:
                fenced.append(error)

        async with anyio.create_task_group() as group:
            for graph in graphs:
                group.start_soon(run, graph, turn, fenced)
        assert len(fenced) <= (durability == "async")
        done = 2 - len(fenced)
        log = (await graphs[0].aget_state(CONFIG)).values["log"]
        assert log[-3 * done :] == [str(turn), "one", "two"] * done
        assert log.count(str(turn)) == done
    assert line(await history(graphs[0]))


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
async def test_who_would_rather_be_refused_does_not_work_in_vain(savers: Savers, durability: Any) -> None:
    """Both find the thread free; which of them has it is settled before a node is at work, or anything is told."""
    started: list[tuple[int, int]] = []

    def node(number: int) -> Any:
        async def one(state: Any) -> dict[str, Any]:
            started.append((number, len(state["log"])))
            await anyio.lowlevel.checkpoint()
            return {"log": [str(number)]}

        return one

    graphs = [chain(("one", node(number))).compile(saver) for number, saver in enumerate(savers)]
    refused: list[int] = []

    async def run(number: int, config: Any) -> None:
        try:
            async for _ in graphs[number].astream(
                {"log": []}, config, durability=durability, multitask_strategy="reject", stream_mode="debug"
            ):
                pass
        except ThreadBusyError:
            refused.append(number)

    for turn in range(6):
        refused.clear()
        started.clear()
        config = {"configurable": {"thread_id": str(turn)}}
        async with anyio.create_task_group() as group:
            for number in range(2):
                group.start_soon(run, number, config)
        done = [number for number in range(2) if number not in refused]
        assert done
        assert sorted(number for number, _ in started) == done
        assert sorted((await graphs[0].aget_state(config)).values["log"]) == [str(number) for number in done]
        assert line(await history(graphs[0], config))


@pytest.mark.parametrize("durability", ["sync", "async"])
async def test_a_reader_who_was_told_nothing_is_told_of_the_next_turn(
    make: Any, savers: Savers, durability: Any
) -> None:
    """A third had the threads last, so that it is settled first whose turn it is."""
    graphs = [chain("one").compile(saver) for saver in savers]
    configs = [{"configurable": {"thread_id": str(number)}} for number in range(6)]
    async with make(Limits()) as third:
        for config in configs:
            await chain("one").compile(third).ainvoke({}, config)

    async def read(graph: Any, name: str, config: Any) -> None:
        async with graph.astream(
            {"log": [name]}, config, stream_mode=["checkpoints", "values"], durability=durability
        ) as stream:
            values = [chunk async for mode, chunk in stream if mode == "values"]
            assert values[-1]["log"][-2:] == [name, "one"]
            await stream.durable()
            told.append(stream.durable_upto)

    for config in configs:
        told = list[Any]()
        async with anyio.create_task_group() as group:
            for name, graph in zip("ab", graphs, strict=True):
                group.start_soon(read, graph, name, config)
        log = (await graphs[0].aget_state(config)).values["log"]
        assert log in (["one", "a", "one", "b", "one"], ["one", "b", "one", "a", "one"])
        stored = await history(graphs[0], config)
        assert line(stored)
        assert {one.config["configurable"]["checkpoint_id"] for one in stored} > set(told)


async def test_a_reader_who_was_told_something_is_not_told_it_anew(savers: Savers) -> None:
    """Both find the thread free, and tell of their input before it is stored. Who loses then says so."""
    graphs = [chain("one").compile(saver) for saver in savers]
    fenced = 0

    async def read(graph: Any, config: Any) -> None:
        nonlocal fenced
        chunks: list[Any] = []
        try:
            async for chunk in graph.astream({"log": ["in"]}, config, stream_mode="debug", durability="sync"):
                chunks.append(chunk)
        except FencedError:
            fenced += 1
        saved = [chunk["payload"]["metadata"]["source"] for chunk in chunks if chunk["type"] == "checkpoint"]
        assert saved.count("input") <= 1

    for turn in range(6):
        config = {"configurable": {"thread_id": str(turn)}}
        before = fenced
        async with anyio.create_task_group() as group:
            for graph in graphs:
                group.start_soon(read, graph, config)
        log = (await graphs[0].aget_state(config)).values["log"]
        assert log == ["in", "one"] * (2 - (fenced - before))
        assert line(await history(graphs[0], config))


def test_a_run_that_sends_more_after_its_last_unit_lets_go_again() -> None:
    """Whether the first has been stored by then or not. Needs no event loop."""
    lease, stored = leasing.RunLease("me", "g", None), SimpleNamespace(done=True, error=None)
    lease.sent(lease.shown(ends=True), stored)
    assert not lease.held
    lease.sent(lease.shown(), stored)
    assert lease.held
    lease.sent(lease.shown(ends=True), stored)
    assert not lease.held


def test_a_silent_owner_is_dead_wherever_its_databases_clock_was_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock was set back, so that by it the owner lives on; a beat makes what is left rise. Needs no event loop."""
    now = 0.0
    monkeypatch.setattr(anyio, "current_time", lambda: now)
    saver = SqliteSaver("never opened")

    def dead(left: float, epoch: int = 1) -> bool:
        return watch.dead(saver, LeaseRow("t", epoch, "somebody", "g", held=True, seconds_left=left))

    watch = leasing._Watch()
    assert not dead(10)
    now = 9
    assert not dead(10)
    now = 11
    assert dead(10)
    assert not dead(10, epoch=2)  # another run has it
    now = 20
    assert not dead(3)
    assert not dead(12)  # it was heard
    now = 31
    assert not dead(2)
    now = 33
    assert dead(2)
    assert dead(0)
