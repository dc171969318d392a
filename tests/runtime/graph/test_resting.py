"""Threads whose run was stopped: they are told from those that wait, and continued only where that is asked for."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from persistence.sqlite import SqliteSaver
from runtime.errors import GraphDrained
from runtime.graph import START, StateGraph
from runtime.graph.recovery import Recovered, arecover
from runtime.runtime import RunControl
from runtime.types import interrupt
from tests.crash.recovering import saver_at
from tests.stories.graphs import Log, chain

Config = dict[str, Any]

WHOLE = {"log": ["first", "second", "last"]}


def config(thread: str) -> Config:
    return {"configurable": {"thread_id": thread}}


async def epoch(saver: Any, thread: str) -> tuple[int, bool]:
    row = await saver.alease(thread)
    return (row.epoch, row.held)


async def drained(saver: Any, thread: str, build: Callable[..., StateGraph] = chain) -> None:
    """Leave a thread that was drained while its first node was at work."""
    control = RunControl()

    def first(_state: Any) -> Any:
        control.request_drain()
        return {"log": ["first"]}

    graph = build(("first", first), "second", "last").compile(saver, name="worker")
    with pytest.raises(GraphDrained):
        await graph.ainvoke({"log": []}, config(thread), control=control)


async def cancelled(saver: Any, thread: str) -> None:
    """Leave a thread that was cancelled while its second node was at work."""
    with anyio.CancelScope() as scope:

        async def second(_state: Any) -> Any:
            scope.cancel()
            await anyio.sleep_forever()

        graph = chain("first", ("second", second), "last").compile(saver, name="worker")
        await graph.ainvoke({"log": []}, config(thread))


async def asking(saver: Any, thread: str) -> None:
    graph = chain("first", ("second", lambda _state: {"log": [interrupt("?")]}), "last")
    await graph.compile(saver, name="worker").ainvoke({"log": []}, config(thread))


async def failed(saver: Any, thread: str) -> None:
    def second(_state: Any) -> Any:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await chain("first", ("second", second), "last").compile(saver, name="worker").ainvoke({}, config(thread))


async def done(saver: Any, thread: str) -> None:
    await chain("first", "second", "last").compile(saver, name="worker").ainvoke({"log": []}, config(thread))


async def of_another(saver: Any, thread: str) -> None:
    """Leave a thread that was stopped, under the same name, before a node that the graph does not have."""
    control = RunControl()

    def first(_state: Any) -> Any:
        control.request_drain()

    with pytest.raises(GraphDrained):
        await (
            chain(("first", first), "other").compile(saver, name="worker").ainvoke({}, config(thread), control=control)
        )


@pytest.fixture(params=["sqlite", "postgres"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database whose threads have leases."""
    if request.param == "sqlite":
        return str(tmp_path / "threads.sqlite")
    return str(request.getfixturevalue("postgres_url"))


async def test_what_was_stopped_is_continued_where_that_is_asked_for(where: str) -> None:
    async with saver_at(where) as saver:
        for leave in (drained, cancelled, asking, failed, done, of_another):
            await leave(saver, leave.__name__)
        graph = chain("first", "second", "last").compile(saver, name="worker")
        leases = {name: await epoch(saver, name) for name in ("asking", "failed", "done", "of_another")}
        assert await arecover(graph) == []
        assert await arecover(chain("first", "second").compile(saver, name="other"), unfinished=True) == []
        some = await saver.afree_leases("worker", "asking", 2)
        assert [row.thread_id for row in some] == ["cancelled", "done"]
        found = await arecover(graph, unfinished=True, max_concurrency=1)
        assert found == [Recovered("cancelled", "finished", WHOLE), Recovered("drained", "finished", WHOLE)]
        assert await arecover(graph, unfinished=True) == []
        assert {name: await epoch(saver, name) for name in leases} == leases, "the others were left alone"


@pytest.mark.parametrize("where", [{"interrupt_before": ["second"]}, {"interrupt_after": ["first"]}])
async def test_what_stands_at_a_breakpoint_is_left_there(tmp_path: Path, where: dict[str, Any]) -> None:
    async with SqliteSaver(tmp_path / "threads.sqlite") as saver:
        graph = chain("first", "second", "last").compile(saver, name="worker", **where)
        await graph.ainvoke({"log": []}, config("paused"))
        assert await arecover(graph, unfinished=True) == []
        assert (await graph.aget_state(config("paused"))).next == ("second",)


@pytest.mark.parametrize("breaks", [True, False])
async def test_breakpoints_of_subgraphs_count_too(tmp_path: Path, *, breaks: bool) -> None:
    control = RunControl()

    def first(_state: Any) -> Any:
        if not breaks:
            control.request_drain()
        return {"log": ["first"]}

    inner = chain(("first", first), "second").compile(interrupt_before=["second"] if breaks else None)
    outer = StateGraph(Log).add_node("sub", inner).add_edge(START, "sub")
    async with SqliteSaver(tmp_path / "threads.sqlite") as saver:
        graph = outer.compile(saver, name="worker")
        if breaks:
            await graph.ainvoke({"log": []}, config("t"))
        else:
            with pytest.raises(GraphDrained):
                await graph.ainvoke({"log": []}, config("t"), control=control)
        found = [each.status for each in await arecover(graph, unfinished=True)]
        assert found == ([] if breaks else ["finished"])


async def test_of_several_that_look_at_once_one_continues_it(tmp_path: Path) -> None:
    path = tmp_path / "threads.sqlite"
    runs: list[str] = []
    async with SqliteSaver(path) as one, SqliteSaver(path) as other:
        await drained(one, "t")

        def second(_state: Any) -> Any:
            runs.append("second")
            return {"log": ["second"]}

        ended: list[Recovered] = []

        async def recover(saver: Any) -> None:
            graph = chain("first", ("second", second), "last").compile(saver, name="worker")
            ended.extend(await arecover(graph, unfinished=True))

        async with anyio.create_task_group() as group:
            group.start_soon(recover, one)
            group.start_soon(recover, other)
        assert runs == ["second"]
        assert {each.status for each in ended} <= {"finished", "taken"}
        assert [each.value for each in ended if each.status == "finished"] == [WHOLE]


async def test_what_is_at_work_is_left_to_it(tmp_path: Path) -> None:
    path = tmp_path / "threads.sqlite"
    begun, go = anyio.Event(), anyio.Event()

    async def second(_state: Any) -> Any:
        begun.set()
        await go.wait()
        return {"log": ["second"]}

    async with SqliteSaver(path) as one, SqliteSaver(path) as other:
        graph = chain("first", ("second", second), "last").compile(one, name="worker")
        watching = chain("first", "second", "last").compile(other, name="worker")

        async def work(invoke: Callable[..., Awaitable[Any]]) -> None:
            await invoke({"log": []}, config("t"), durability="sync")

        async with anyio.create_task_group() as group:
            group.start_soon(work, graph.ainvoke)
            await begun.wait()
            assert await arecover(watching, unfinished=True) == []
            go.set()
        assert await watching.aget_state(config("t")) == await graph.aget_state(config("t"))
