"""Two savers on one database: a run that lost the race hears of it, and the thread is never forked in silence."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from typing import Any

import anyio
import pytest

from persistence.errors import BackendError, CheckpointConflictError
from persistence.memory import InMemorySaver
from persistence.sqlite import SqliteSaver
from persistence.sqlite.backend import SqliteBackend
from runtime.errors import ThreadConflictError
from runtime.types import RetryPolicy
from runtime.types.ids import IDS
from tests.stories.graphs import CONFIG, Log, chain, history, note

DURABILITIES = ["sync", "async", "exit"]


class Door:
    """A node that waits to be let through."""

    def __init__(self) -> None:
        self.reached = anyio.Event()
        self.open = anyio.Event()

    async def __call__(self, _state: Any) -> dict[str, Any]:
        self.reached.set()
        await self.open.wait()
        return {"log": ["slow"]}


@pytest.fixture
async def savers(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[SqliteSaver, SqliteSaver]]:
    """Two savers on one file, as two processes have them, where leases do not keep them apart."""
    monkeypatch.setattr(SqliteBackend, "leasing", False)
    path = str(tmp_path / "shared.sqlite")
    async with SqliteSaver(path) as one, SqliteSaver(path) as other:
        yield one, other


def line(snapshots: list[Any]) -> bool:
    """Tell whether a history has no fork: each checkpoint is the child of the one before it."""
    return [one.parent_config for one in snapshots] == [*[one.config for one in snapshots[1:]], None]


async def lose(graph: Any, door: Door, given: Any, overtake: Any, **options: Any) -> ThreadConflictError:
    """Run a graph up to its door, let something else happen, let it through; return its error."""
    errors: list[ThreadConflictError] = []

    async def run() -> None:
        with pytest.raises(ThreadConflictError) as caught:
            await graph.ainvoke(given, CONFIG, **options)
        errors.append(caught.value)

    with anyio.fail_after(10):
        async with anyio.create_task_group() as group:
            group.start_soon(run)
            await door.reached.wait()
            await overtake()
            door.open.set()
    return errors[0]


@pytest.mark.parametrize("durability", DURABILITIES)
@pytest.mark.parametrize("fresh", [True, False], ids=["fresh", "old"])
async def test_a_run_that_was_overtaken_saves_nothing_more(savers: Any, durability: str, fresh: bool) -> None:
    door, other = Door(), chain("first", "slow", "last").compile(savers[1])
    graph = chain("first", ("slow", door), "last").compile(savers[0])
    expected: list[str] = []
    if not fresh:
        await other.ainvoke({"log": ["old"]}, CONFIG)
        expected = ["old", "first", "slow", "last"]

    async def overtake() -> None:
        await savers[0].aget_tuple(CONFIG)  # reads wait for what was sent
        await other.ainvoke({"log": ["new"]}, CONFIG)

    error = await lose(graph, door, {}, overtake, durability=durability)
    assert "thread 't'" in str(error)
    assert "call again" in str(error)
    assert isinstance(error.__cause__, CheckpointConflictError)
    if durability != "exit":
        expected += ["first"]
    assert (await other.aget_state(CONFIG)).values["log"] == [*expected, "new", "first", "slow", "last"]
    assert line(await history(other))


async def test_of_two_first_runs_one_wins(savers: Any) -> None:
    doors = Door(), Door()
    graphs = [chain((name, door)).compile(saver) for name, door, saver in zip("ab", doors, savers, strict=True)]
    outcomes: list[Any] = []

    async def run(graph: Any) -> None:
        try:
            outcomes.append(await graph.ainvoke({"log": [graph.name]}, CONFIG, durability="exit"))
        except ThreadConflictError as error:
            outcomes.append(error)

    with anyio.fail_after(10):
        async with anyio.create_task_group() as group:
            for graph in graphs:
                group.start_soon(run, graph)
            for door in doors:
                await door.reached.wait()
                door.open.set()
    (won,) = [one for one in outcomes if isinstance(one, dict)]
    assert (await graphs[0].aget_state(CONFIG)).values == won
    assert line(await history(graphs[0]))


async def test_a_worker_that_wakes_up_late_does_not_write_over_its_successor(savers: Any) -> None:
    """It was frozen in the middle of a run; another worker took over from its last checkpoint and finished."""
    frozen = Door()
    graph = chain("first", ("slow", frozen), "last").compile(savers[0])
    successor = chain("first", "slow", "last").compile(savers[1])
    await lose(graph, frozen, {}, lambda: successor.ainvoke(None, CONFIG), durability="sync")
    assert (await successor.aget_state(CONFIG)).values["log"] == ["first", "slow", "last"]
    assert line(await history(successor))


async def test_a_run_hears_of_an_update_made_meanwhile(savers: Any) -> None:
    door = Door()
    graph = chain("first", ("slow", door)).compile(savers[0])
    editor = chain("first", "slow").compile(savers[1])
    await lose(graph, door, {}, lambda: editor.aupdate_state(CONFIG, {"a": 7}, "first"), durability="sync")
    state = await editor.aget_state(CONFIG)
    assert (state.values["a"], state.next) == (7, ("slow",))


async def test_an_update_hears_of_a_run_made_meanwhile(savers: Any) -> None:
    door = Door()

    async def router(_state: Any) -> str:
        await door(None)
        return "last"

    builder = chain("first", "last")
    builder.add_conditional_edges("first", router, ["last"])
    editor, runner = builder.compile(savers[0]), chain("first", "last").compile(savers[1])
    await runner.ainvoke({}, CONFIG)
    with anyio.fail_after(10):
        async with anyio.create_task_group() as group:

            async def update() -> None:
                with pytest.raises(ThreadConflictError, match="thread 't'"):
                    await editor.aupdate_state(CONFIG, {"log": ["edited"]}, "first")

            group.start_soon(update)
            await door.reached.wait()
            await runner.ainvoke({}, CONFIG)
            door.open.set()
    assert (await runner.aget_state(CONFIG)).values["log"] == ["first", "last"] * 2
    assert line(await history(runner))


async def test_old_checkpoints_can_be_forked_from_either_side(savers: Any) -> None:
    graphs = [chain("a", "b").compile(saver) for saver in savers]
    await graphs[0].ainvoke({"log": ["one"]}, CONFIG)
    await graphs[1].ainvoke({"log": ["two"]}, CONFIG)
    old = (await history(graphs[0]))[-2].config  # the first input is in, nothing ran yet
    for graph in graphs:
        assert (await graph.ainvoke(None, old))["log"] == ["one", "a", "b"]
        updated = await graph.aupdate_state(old, {"log": ["edited"]}, "a")
        assert (await graph.ainvoke(None, updated))["log"] == ["one", "edited", "b"]
        assert (await graph.ainvoke({"log": ["new"]}, old))["log"] == ["one", "new", "a", "b"]
        copied = await graph.aupdate_state(old, None, "__copy__")
        assert (await graph.aget_state(copied)).values["log"] == ["one"]


@pytest.mark.parametrize("durability", DURABILITIES)
async def test_a_fork_becomes_the_head_though_its_clock_is_behind(
    savers: Any, durability: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What another process stored, an hour from now, is older than what is stored after it."""
    graph = chain("a", "b").compile(savers[0])
    monkeypatch.setattr(IDS, "_now", lambda: time.time_ns() + 3_600_000_000_000)
    await graph.ainvoke({"log": ["one"]}, CONFIG, durability=durability)
    start = (await history(graph))[-1].config
    monkeypatch.setattr(IDS, "_now", time.time_ns)
    monkeypatch.setattr(IDS, "_last", 0)
    await graph.ainvoke({"log": ["two"]}, start, durability=durability)
    assert "two" in (await graph.aget_state(CONFIG)).values["log"]
    updated = await graph.aupdate_state(start, {"log": ["three"]}, as_node="b")
    assert (await graph.aget_state(CONFIG)).config == updated


async def test_a_fork_that_was_overtaken_is_not_made_in_silence(savers: Any) -> None:
    door = Door()
    graph, other = chain("a", ("b", door)).compile(savers[0]), chain("a", "b").compile(savers[1])
    await other.ainvoke({}, CONFIG)
    old = (await history(other))[-2].config

    class Replay:
        async def ainvoke(self, _given: Any, _config: Any, **options: Any) -> None:
            await graph.ainvoke(None, old, **options)

    await lose(Replay(), door, None, lambda: other.ainvoke({}, CONFIG), durability="exit")
    assert (await other.aget_state(CONFIG)).values["log"] == ["a", "b"] * 2


@pytest.mark.parametrize("durability", DURABILITIES)
async def test_a_run_inside_the_threads_own_run_is_no_conflict(savers: Any, durability: Any) -> None:
    for saver in (*savers, InMemorySaver()):
        inner = chain("first", "call", "last").compile(saver)

        async def call(_state: Any, inner: Any = inner) -> dict[str, Any]:
            await inner.ainvoke({"a": 1}, CONFIG)
            await inner.aupdate_state(CONFIG, {"a": 2}, "call")
            return {"log": ["outer"]}

        graph = chain("first", ("call", call), "last").compile(saver)
        expected = [*(await graph.aget_state(CONFIG)).values.get("log", []), "first", "outer", "last"]
        assert (await graph.ainvoke({"log": []}, CONFIG, durability=durability))["log"] == expected
        assert (await graph.aget_state(CONFIG)).values["log"] == expected


async def test_a_thread_that_is_deleted_under_a_run_stays_deleted() -> None:
    """What the run would store next rests on rows that are gone."""
    saver, door = InMemorySaver(), Door()
    graph = chain("first", ("slow", door), "last").compile(saver)
    await lose(graph, door, {}, lambda: saver.adelete_thread("t"))
    assert await history(graph) == []


@pytest.mark.parametrize("durability", DURABILITIES)
@pytest.mark.parametrize("keeps", [None, True], ids=["fresh", "kept"])
async def test_a_subgraph_that_could_not_be_saved_is_tried_again(
    savers: Any, durability: Any, keeps: bool | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That its checkpoint is not there is no sign that the thread was deleted."""
    saver, backend, refused = savers[0], savers[0]._backend, 0
    commit = backend.commit

    async def sometimes(batch: Any) -> None:
        nonlocal refused
        if refused < 2 and any(getattr(request, "checkpoint_ns", "") for request in batch):
            refused += 1
            message = "not this time"
            raise BackendError(message)
        await commit(batch)

    monkeypatch.setattr(backend, "commit", sometimes)
    below = chain("inner").compile(checkpointer=keeps)

    async def node(_state: Any) -> Any:
        return {"log": (await below.ainvoke({"log": []}))["log"][-1:]}

    always = RetryPolicy(max_attempts=4, initial_interval=0.0, jitter=False, retry_on=Exception)
    builder = chain("first").add_node("node", node, retry_policy=always).add_edge("first", "node")
    graph = builder.compile(saver)
    for turn in (1, 2):
        assert len((await graph.ainvoke({"log": []}, CONFIG, durability=durability))["log"]) == turn * 2
    assert refused == (2 if keeps or durability != "exit" else 0)


async def test_the_loser_may_call_again(savers: Any) -> None:
    door = Door()
    graph, other = chain(("slow", door)).compile(savers[0]), chain("slow").compile(savers[1])
    await lose(graph, door, {}, lambda: other.ainvoke({}, CONFIG), durability="exit")
    assert (await graph.ainvoke({}, CONFIG))["log"] == ["slow", "slow"]


async def test_the_error_of_a_node_comes_first(savers: Any) -> None:
    """Its run lost the race as well; that is told with it."""
    door = Door()

    async def fail(_state: Any) -> None:
        await door(None)
        msg = "boom"
        raise ValueError(msg)

    graph, other = chain("first", ("fail", fail)).compile(savers[0]), chain("quick").compile(savers[1])
    with anyio.fail_after(10):
        async with anyio.create_task_group() as group:

            async def run() -> None:
                with pytest.raises(ValueError, match="boom") as caught:
                    await graph.ainvoke({}, CONFIG, durability="exit")
                assert any("ThreadConflictError" in text for text in caught.value.__notes__)

            group.start_soon(run)
            await door.reached.wait()
            await other.ainvoke({}, CONFIG)
            door.open.set()


async def test_a_subgraphs_namespace_is_named(savers: Any) -> None:
    door = Door()
    child = chain(("slow", door), schema=Log).compile(checkpointer=True)
    builder = chain(("sub", child))
    graph = builder.compile(savers[0])

    async def move_on() -> None:
        other = chain(("sub", chain(("slow", note("slow"))).compile(checkpointer=True))).compile(savers[1])
        await other.ainvoke(None, CONFIG)

    error = await lose(graph, door, {}, move_on, durability="sync")
    assert "thread 't', namespace 'sub'" in str(error)
