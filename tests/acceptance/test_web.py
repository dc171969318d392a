"""A web application on a real socket: a thousand requests at once, and clients that leave in the middle.

Uvicorn knows asyncio only; on trio the same application stands behind hypercorn.
"""

from __future__ import annotations

import gc
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import pytest

from persistence.sqlite import SqliteSaver
from runtime.graph import StateGraph
from runtime.run.conductor import Conductor
from tests.acceptance.serving import Site, application, served
from tests.stories.graphs import Log, chain, thread

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

MANY = 1000
MODES = ("exit", "async", "sync")


@pytest.fixture
def database(tmp_path: Path) -> str:
    return str(tmp_path / "threads.sqlite")


@pytest.fixture
def backend(anyio_backend_name: str) -> str:
    return anyio_backend_name


class Meeting:
    """A node that goes on once so many runs have come to it."""

    def __init__(self, expected: int) -> None:
        self.expected = expected
        self.come = 0
        self.complete = anyio.Event()

    async def __call__(self, state: Log) -> dict[str, Any]:
        self.come += 1
        if self.come == self.expected:
            self.complete.set()
        await self.complete.wait()
        return {"a": state["a"] + 1, "log": ["met"]}


def double(state: Log) -> dict[str, Any]:
    """Work in a thread, as plain functions do."""
    return {"a": state["a"] * 2, "log": ["doubled"]}


async def test_a_thousand_requests_at_once(database: str, backend: str) -> None:
    """They are at once: none goes on before all have come to the first node."""
    builder = chain(("meet", Meeting(MANY)), ("double", double), "end")
    answers: dict[int, Any] = {}

    async def ask(site: Site, number: int) -> None:
        path = f"/threads/{number}?durability={MODES[number % len(MODES)]}"
        answer = await site.post(path, {"a": number, "log": []})
        assert answer.status == 200, answer
        answers[number] = answer.json()

    async with served(application(builder, database), backend) as site:
        async with anyio.create_task_group() as nursery:
            for number in range(MANY):
                nursery.start_soon(ask, site, number)
        assert site.app.state.graph.statistics() == ()

    log = ["met", "doubled", "end"]
    assert answers == {number: {"a": (number + 1) * 2, "log": log} for number in range(MANY)}
    await check_all_finished(builder, database, log)


async def check_all_finished(builder: StateGraph[Any, Any, Any, Any], database: str, log: list[str]) -> None:
    """Every thread is in the file, whole and with nothing left to do."""
    async with SqliteSaver(database) as saver:
        graph = builder.compile(saver)
        for number in range(MANY):
            snapshot = await graph.aget_state(thread(str(number)))
            assert (snapshot.values, snapshot.next) == ({"a": (number + 1) * 2, "log": log}, ())
    with closing(sqlite3.connect(database)) as connection:
        kept = connection.execute("SELECT thread_id, count(*) FROM checkpoints GROUP BY thread_id").fetchall()
        (sound,) = connection.execute("PRAGMA integrity_check").fetchone()
    # exit keeps the last checkpoint, the others one a superstep: input, START and three nodes.
    assert dict(kept) == {str(number): 1 if MODES[number % 3] == "exit" else 5 for number in range(MANY)}
    assert sound == "ok"


class Slow:
    """A node that waits until it is let go, and tells when it was stopped."""

    def __init__(self) -> None:
        self.begun = anyio.Event()
        self.ended = anyio.Event()
        self.free = anyio.Event()

    async def __call__(self, _state: Log) -> dict[str, Any]:
        self.begun.set()
        try:
            await self.free.wait()
        finally:
            self.ended.set()
        return {"log": ["slow"]}


async def test_a_client_that_leaves_a_stream_ends_its_run(database: str, backend: str) -> None:
    slow, runs = Slow(), Counter[str]()

    async def first(_state: Log) -> dict[str, Any]:
        runs["first"] += 1
        return {"log": ["first"]}

    app = application(chain(("first", first), ("slow", slow), "last"), database)
    async with served(app, backend) as site:
        async with site.asking("POST", "/threads/1/events", {"log": ["in"]}) as exchange:
            assert await exchange.event() == {"first": {"log": ["first"]}}
            await slow.begun.wait()
            assert len(app.state.graph.statistics()) == 1
        await slow.ended.wait()

        # The next one on the thread waits its turn: what comes after it comes after the end of the run that was left.
        slow.free.set()
        resumed = await site.post("/threads/1", None)
        assert resumed.json() == {"log": ["in", "first", "slow", "last"]}
        assert runs == {"first": 1}
        assert (await site.get("/threads/1")).json() == {"values": resumed.json(), "next": []}
        assert app.state.graph.statistics() == ()
    assert runs_alive(app.state.graph.checkpointer) == 0


async def test_what_had_finished_is_saved_when_the_client_has_left(database: str, backend: str) -> None:
    slow = Slow()
    builder = chain("first", ("slow", slow), "last")
    async with served(application(builder, database), backend) as site:
        async with site.asking("POST", "/threads/1/events", {"log": ["in"]}) as exchange:
            await exchange.event()
            await slow.begun.wait()
        await slow.ended.wait()
    async with SqliteSaver(database) as saver:
        snapshot = await builder.compile(saver).aget_state(thread("1"))
    assert (snapshot.values, snapshot.next) == ({"log": ["in", "first"]}, ("slow",))


def runs_alive(saver: object) -> int:
    """Count the conductors that save here, which a leaked run would keep."""
    gc.collect()
    return sum(type(one) is Conductor and one.program.saver is saver for one in gc.get_objects())


async def test_clients_that_leave_at_every_point(database: str, backend: str) -> None:
    """Some read nothing, some an event, some all; each thread goes on, and what had finished does not run again."""
    names = ["a", "b", "c", "d"]
    finished = Counter[tuple[str, str]]()

    def counted(name: str) -> Any:
        async def node(state: Log) -> dict[str, Any]:
            await anyio.sleep(0)
            finished[state["log"][0], name] += 1
            return {"log": [name]}

        return name, node

    app = application(chain(*(counted(name) for name in names)), database)

    async def leave(site: Site, number: int) -> None:
        async with site.asking("POST", f"/threads/{number}/events", {"log": [str(number)]}) as exchange:
            for name in names[: number % 5]:
                assert await exchange.event() == {name: {"log": [name]}}

    async with served(app, backend) as site:
        async with anyio.create_task_group() as nursery:
            for number in range(50):
                nursery.start_soon(leave, site, number)
        for number in range(50):
            # Whoever left before the run had begun left nothing behind.
            left = (await site.get(f"/threads/{number}")).json()
            answer = await site.post(f"/threads/{number}", None if left["values"] else {"log": [str(number)]})
            assert answer.json() == {"log": [str(number), *names]}
        assert app.state.graph.statistics() == ()
    assert set(finished.values()) == {1}
    assert runs_alive(app.state.graph.checkpointer) == 0


async def test_a_client_that_leaves_a_plain_request_leaves_the_run_to_its_end(database: str, backend: str) -> None:
    slow = Slow()
    app = application(chain("first", ("slow", slow), "last"), database)
    async with served(app, backend) as site:
        async with site.asking("POST", "/threads/1", {"log": ["in"]}):
            await slow.begun.wait()
        slow.free.set()
        await slow.ended.wait()
    async with SqliteSaver(database) as saver:
        snapshot = await chain("first", "slow", "last").compile(saver).aget_state(thread("1"))
    assert snapshot.values == {"log": ["in", "first", "slow", "last"]}
