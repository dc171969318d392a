"""Nodes in worker threads cannot be stopped: whoever cancels the run, it is over only when they are."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from threading import Event
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from persistence.memory import InMemorySaver
from runtime.actors.threaded import in_thread
from runtime.graph import END, START, CompiledStateGraph, StateGraph
from tests.cancellation.working import State

CONFIG: dict[str, Any] = {"configurable": {"thread_id": "t"}}


class Held:
    """A sync node that works until it is let go."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.started = Event()
        self.let_go = Event()
        self.ended = False
        self.runs = 0

    def node(self, state: State) -> State:
        self.runs += 1
        self.started.set()
        assert self.let_go.wait(10)
        self.ended = True
        if self.error is not None:
            raise self.error
        return {"log": ["held"]}

    def graph(self) -> CompiledStateGraph:
        builder = StateGraph(State)
        builder.add_node("held", self.node)
        builder.add_node("after", lambda _state: {"log": ["after"]})
        builder.add_edge(START, "held")
        builder.add_edge("held", "after")
        builder.add_edge("after", END)
        return builder.compile(checkpointer=InMemorySaver())

    async def reached(self) -> None:
        """Return once the node is at work."""
        while not self.started.is_set():
            await anyio.sleep(0.001)

    async def stays(self, task: asyncio.Task[Any]) -> None:
        """Give a cancelled run many turns, in which it must not end."""
        for _ in range(20):
            await anyio.lowlevel.checkpoint()
        assert not task.done()
        assert not self.ended


@pytest.fixture
def held() -> Iterator[Held]:
    """A node that is let go at the latest when the test ends."""
    made = Held()
    yield made
    made.let_go.set()


on_asyncio = pytest.mark.parametrize("anyio_backend", ["asyncio"])


@on_asyncio
@pytest.mark.parametrize("cancels", [1, 2])
async def test_a_task_that_is_cancelled_waits_for_its_thread_and_keeps_the_result(held: Held, cancels: int) -> None:
    graph = held.graph()
    task = asyncio.ensure_future(graph.ainvoke({}, CONFIG))
    await held.reached()
    for _ in range(cancels):
        task.cancel()
        await held.stays(task)
    held.let_go.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert held.ended
    assert (await graph.aget_state(CONFIG)).values == {"log": ["held"]}
    assert await graph.ainvoke(None, CONFIG) == {"log": ["held", "after"]}
    assert held.runs == 1


@on_asyncio
async def test_a_deadline_of_asyncio_is_told_as_such(held: Held) -> None:
    """The cancel that is delivered late is still the deadline's own."""
    graph, deadline = held.graph(), asyncio.timeout(None)

    async def run() -> None:
        async with deadline:
            await graph.ainvoke({}, CONFIG)

    task = asyncio.ensure_future(run())
    await held.reached()
    deadline.reschedule(0)
    await held.stays(task)
    held.let_go.set()
    with pytest.raises(TimeoutError):
        await task


@on_asyncio
async def test_a_thread_that_fails_after_the_cancel_is_recorded_and_the_cancel_delivered(held: Held) -> None:
    held.error = ValueError("late")
    graph = held.graph()
    task = asyncio.ensure_future(graph.ainvoke({}, CONFIG))
    await held.reached()
    task.cancel()
    await held.stays(task)
    held.let_go.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    (left,) = (await graph.aget_state(CONFIG)).tasks
    assert (left.name, left.error) == ("held", "ValueError('late')")


async def test_a_scope_that_is_cancelled_waits_for_the_thread_too(held: Held) -> None:
    graph = held.graph()
    async with anyio.create_task_group() as group:

        async def run() -> None:
            await graph.ainvoke({}, CONFIG)

        group.start_soon(run)
        await held.reached()
        group.cancel_scope.cancel()
        held.let_go.set()
    assert held.ended
    assert (await graph.aget_state(CONFIG)).values == {"log": ["held"]}


@on_asyncio
async def test_what_has_not_begun_when_it_is_cancelled_never_runs(held: Held) -> None:
    """There is one thread, and it is taken."""
    limiter, ran = anyio.CapacityLimiter(1), list[str]()

    def second() -> None:
        ran.append("second")

    def waiting() -> Any:
        return held.node({})

    first = asyncio.ensure_future(in_thread(waiting, limiter))
    await held.reached()
    blocked = asyncio.ensure_future(in_thread(second, limiter))
    await anyio.lowlevel.checkpoint()
    blocked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await blocked
    held.let_go.set()
    assert await first == {"log": ["held"]}
    assert ran == []


@on_asyncio
async def test_what_is_cancelled_as_it_begins_runs_to_its_end_or_not_at_all() -> None:
    """The cancel and the thread race; whoever wins, the caller knows."""
    for turns in range(8):
        ran: list[str] = []
        task = asyncio.ensure_future(in_thread(_noting(ran), anyio.CapacityLimiter(1)))
        for _ in range(turns):
            await anyio.lowlevel.checkpoint()
        task.cancel()
        known = []
        try:
            known = [await task]
        except asyncio.CancelledError:
            known = list(ran)
        await asyncio.to_thread(int)
        assert ran == known


def _noting(ran: list[str]) -> Callable[[], str]:
    def function() -> str:
        ran.append("ran")
        return "ran"

    return function
