"""Runs of graphs on MongoDB: answered elsewhere, raced, killed, and few commands a superstep."""

from __future__ import annotations

import json
import operator
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

import anyio
import pytest

from persistence.mongo import MongoDBSaver
from runtime.errors import ThreadConflictError
from runtime.graph import START, StateGraph
from runtime.types import Command, interrupt
from tests.persistence.mongo.test_commits import Commands

if TYPE_CHECKING:
    from tests.persistence.mongo.server import MongoServer

pytestmark = pytest.mark.anyio
ROOT = Path(__file__).parents[3]

CHILD = """
import json, operator, os, sys
from typing import Annotated, TypedDict

import anyio

from persistence.mongo import MongoDBSaver
from runtime.graph import START, StateGraph

settings, durability = json.loads(sys.argv[1]), sys.argv[2]


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
    async with MongoDBSaver(**settings) as saver:
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


def thread(name: str) -> dict[str, Any]:
    return {"configurable": {"thread_id": name}}


def chain(saver: MongoDBSaver, nodes: int) -> Any:
    """Compile a chain in which node n appends n."""
    builder = StateGraph(Trail)
    previous = START
    for number in range(nodes):

        async def node(_: Trail, number: int = number) -> dict[str, Any]:
            return {"trail": [number]}

        builder.add_node(f"n{number}", node).add_edge(previous, f"n{number}")
        previous = f"n{number}"
    return builder.compile(checkpointer=saver)


async def test_a_superstep_is_two_commands_and_their_commit(mongo: dict[str, Any], mongo_server: MongoServer) -> None:
    commands = Commands()
    async with MongoDBSaver(**mongo, connect_arguments={"event_listeners": [commands]}) as saver:
        graph = chain(saver, 8)
        await graph.ainvoke({"trail": []}, thread("warm"), durability="sync")
        commands.taken()
        assert (await graph.ainvoke({"trail": []}, thread("t"), durability="sync"))["trail"] == list(range(8))
        each = 3 if mongo_server.settings.get("transactions") is None else 2
        assert len(commands.taken()) <= 1 + 9 * each  # the head, then the input and eight supersteps


async def test_a_question_is_answered_by_another_process(mongo: dict[str, Any]) -> None:
    def build(saver: MongoDBSaver) -> Any:
        builder = StateGraph(Trail)
        builder.add_node("ask", lambda _: {"trail": [interrupt("how many?\0")]})
        builder.add_edge(START, "ask")
        return builder.compile(checkpointer=saver)

    async with MongoDBSaver(**mongo) as saver:
        paused = await build(saver).ainvoke({"trail": [1]}, thread("t"))
        assert paused["__interrupt__"][0].value == "how many?\0"
    async with MongoDBSaver(**mongo) as saver:
        assert (await build(saver).ainvoke(Command(resume=7), thread("t")))["trail"] == [1, 7]


async def test_of_two_processes_that_run_a_thread_one_is_refused(mongo: dict[str, Any]) -> None:
    """Each has a saver of its own, as two processes have; the claim on a thread is a process's own matter."""
    arrived = anyio.Event()
    going = anyio.Event()

    def build(saver: MongoDBSaver, *, waits: bool) -> Any:
        async def node(_: Trail) -> dict[str, Any]:
            if waits:
                arrived.set()
                await going.wait()
            return {"trail": [int(waits)]}

        builder = StateGraph(Trail)
        builder.add_node("node", node)
        builder.add_edge(START, "node")
        return builder.compile(checkpointer=saver)

    async with MongoDBSaver(**mongo) as first, MongoDBSaver(**mongo) as second:

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
def test_a_run_that_is_killed_goes_on_in_another_process(mongo: dict[str, Any]) -> None:
    def child(what: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", CHILD, json.dumps(mongo), what]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=15)

    killed = child("sync")
    assert killed.returncode == -9, killed.stderr
    resumed = child("resume")
    assert resumed.stdout == "[0, 1, 2, 3, 4, 5]\n", resumed.stderr
