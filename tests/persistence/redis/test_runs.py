"""Runs of graphs on Redis: recovered, raced, cut off, killed, and one call a superstep."""

from __future__ import annotations

import operator
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

import anyio
import anyio.to_thread
import pytest

from persistence.errors import PersistenceError
from persistence.redis import RedisSaver
from persistence.writer.limits import Limits
from runtime.errors import ThreadConflictError
from runtime.graph import END, START, StateGraph
from runtime.types import Command, interrupt
from tests.persistence.redis.test_commits import calls

if TYPE_CHECKING:
    from tests.persistence.redis.server import RedisServer, StartedRedis

pytestmark = pytest.mark.anyio
ROOT = Path(__file__).parents[3]

CHILD = """
import operator, os, sys
from typing import Annotated, TypedDict

import anyio

from persistence.redis import RedisSaver
from runtime.graph import START, StateGraph

url, prefix, durability = sys.argv[1:]


class State(TypedDict):
    trail: Annotated[list[int], operator.add]


def chain(saver):
    builder = StateGraph(State)
    previous = START
    for number in range(6):

        async def node(_, number=number):
            if number == 4 and durability != "resume":
                os.kill(os.getpid(), 9)
            return {"trail": [number]}

        builder.add_node(f"n{number}", node).add_edge(previous, f"n{number}")
        previous = f"n{number}"
    return builder.compile(checkpointer=saver)


async def main():
    async with RedisSaver(url, prefix=prefix) as saver:
        thread = {"configurable": {"thread_id": "t"}}
        if durability == "resume":
            print((await chain(saver).ainvoke(None, thread))["trail"])
        else:
            await chain(saver).ainvoke({"trail": []}, thread, durability=durability)


anyio.run(main)
"""


class Trail(TypedDict):
    """What the nodes wrote, in order."""

    trail: Annotated[list[int], operator.add]


def chain(saver: RedisSaver, nodes: int) -> Any:
    """Compile a chain in which node n appends n."""
    builder = StateGraph(Trail)
    previous = START
    for number in range(nodes):
        name = f"n{number}"

        async def node(_: Trail, number: int = number) -> dict[str, Any]:
            return {"trail": [number]}

        builder.add_node(name, node)
        builder.add_edge(previous, name)
        previous = name
    builder.add_edge(previous, END)
    return builder.compile(checkpointer=saver)


def thread(name: str) -> dict[str, Any]:
    return {"configurable": {"thread_id": name}}


async def test_a_superstep_is_one_call(saver: RedisSaver, redis_server: RedisServer) -> None:
    graph = chain(saver, 12)
    await graph.ainvoke({"trail": []}, thread("warm"), durability="sync")
    before = calls(redis_server)
    assert (await graph.ainvoke({"trail": []}, thread("t"), durability="sync"))["trail"] == list(range(12))
    assert calls(redis_server) - before <= 14  # the head, the input, twelve supersteps


async def test_a_question_is_answered_by_another_process(redis_server: RedisServer, redis_keys: str) -> None:
    def build(saver: RedisSaver) -> Any:
        builder = StateGraph(Trail)
        builder.add_node("ask", lambda _: {"trail": [interrupt("how many?\0")]})
        builder.add_edge(START, "ask")
        return builder.compile(checkpointer=saver)

    async with RedisSaver(redis_server.url, prefix=redis_keys) as saver:
        paused = await build(saver).ainvoke({"trail": [1]}, thread("t"))
        assert paused["__interrupt__"][0].value == "how many?\0"
    async with RedisSaver(redis_server.url, prefix=redis_keys) as saver:
        assert (await build(saver).ainvoke(Command(resume=7), thread("t")))["trail"] == [1, 7]


async def test_of_two_processes_that_run_a_thread_one_is_refused(redis_server: RedisServer, redis_keys: str) -> None:
    """Each has a saver of its own, as two processes have; the claim on a thread is a process's own matter."""
    arrived = anyio.Event()
    going = anyio.Event()

    def build(saver: RedisSaver, *, waits: bool) -> Any:
        async def node(_: Trail) -> dict[str, Any]:
            if waits:
                arrived.set()
                await going.wait()
            return {"trail": [int(waits)]}

        builder = StateGraph(Trail)
        builder.add_node("node", node)
        builder.add_edge(START, "node")
        return builder.compile(checkpointer=saver)

    async with (
        RedisSaver(redis_server.url, prefix=redis_keys) as first,
        RedisSaver(redis_server.url, prefix=redis_keys) as second,
    ):

        async def lose() -> None:
            with pytest.raises(ThreadConflictError):
                await build(first, waits=True).ainvoke({"trail": []}, thread("t"), durability="sync")

        async with anyio.create_task_group() as nursery:
            nursery.start_soon(lose)
            await arrived.wait()
            await build(second, waits=False).ainvoke({"trail": []}, thread("t"))
            going.set()
        state = await build(second, waits=False).aget_state(thread("t"))
        assert state.values == {"trail": [0]}


@pytest.mark.slow
def test_a_run_that_is_killed_goes_on_in_another_process(redis_server: RedisServer, redis_keys: str) -> None:
    def child(what: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", CHILD, redis_server.url, redis_keys, what]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=15)

    killed = child("sync")
    assert killed.returncode == -9, killed.stderr
    resumed = child("resume")
    assert resumed.stdout == "[0, 1, 2, 3, 4, 5]\n", resumed.stderr


@pytest.mark.slow
@pytest.mark.services
@pytest.mark.parametrize("durability", ["sync", "async"])
async def test_runs_while_the_server_is_killed(started: StartedRedis, redis_keys: str, durability: str) -> None:
    """Every run ends done, or with an error after which it goes on; no value is lost or there twice."""
    refused = 0

    async def run(saver: RedisSaver, name: str) -> None:
        nonlocal refused
        graph = chain(saver, 10)
        given: Any = {"trail": []}
        while True:
            try:
                result = await graph.ainvoke(given, thread(name), durability=durability)
            except PersistenceError:
                refused += 1
                stored = await saver.aget_tuple(thread(name))
                given = {"trail": []} if stored is None else None
            else:
                assert result["trail"] == list(range(10))
                return

    limits = Limits(attempts=100, first_delay=0.005, longest_delay=0.1)
    async with RedisSaver(started.url, prefix=redis_keys, limits=limits) as saver:
        async with anyio.create_task_group() as nursery:
            for number in range(20):
                nursery.start_soon(run, saver, f"{number}")
            for _ in range(2):
                await anyio.to_thread.run_sync(started.kill)
                await anyio.to_thread.run_sync(started.start)
        for number in range(20):
            history = [one async for one in saver.alist(thread(f"{number}"))]
            assert [one.metadata["step"] for one in history] == list(range(10, -2, -1))
