"""Runs of graphs on every backend: answered by another process, raced, and killed with their server."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread
import pytest

from persistence.errors import PersistenceError
from persistence.postgres.backend import PostgresBackend
from persistence.sqlite.backend import SqliteBackend
from persistence.writer.limits import Limits
from runtime.errors import ThreadConflictError
from runtime.types import Command, interrupt
from tests.persistence.backends.graphs import Trail, chain, single, thread

if TYPE_CHECKING:
    from persistence.writer.saver import GroupCommitSaver
    from tests.persistence.backends.conftest import Restarting
    from tests.persistence.backends.places import Place

pytestmark = pytest.mark.anyio
ROOT = Path(__file__).parents[3]

CHILD = """
import json, operator, os, sys
from importlib import import_module
from typing import Annotated, TypedDict

import anyio

from runtime.graph import START, StateGraph

module, kind, given, durability = sys.argv[1:]


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
    async with getattr(import_module(module), kind)(**json.loads(given)) as saver:
        thread = {"configurable": {"thread_id": "t"}}
        if durability == "resume":
            print((await chain(saver).ainvoke(None, thread))["trail"])
        else:
            await chain(saver).ainvoke({"trail": []}, thread, durability=durability)


anyio.run(main)
"""


async def test_a_question_is_answered_by_another_process(place: Place) -> None:
    async def ask(_: Trail) -> dict[str, Any]:
        return {"trail": [interrupt("how many?\0")]}

    async with place.saver() as saver:
        paused = await single(saver, ask).ainvoke({"trail": [1]}, thread("t"))
        assert paused["__interrupt__"][0].value == "how many?\0"
    async with place.saver() as saver:
        assert (await single(saver, ask).ainvoke(Command(resume=7), thread("t")))["trail"] == [1, 7]


async def test_of_two_processes_that_run_a_thread_one_is_refused(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has a saver of its own, as two processes have, and no lease makes them take turns."""
    for backend in (SqliteBackend, PostgresBackend):
        monkeypatch.setattr(backend, "leasing", False)
    arrived = anyio.Event()
    going = anyio.Event()

    async def slow(_: Trail) -> dict[str, Any]:
        arrived.set()
        await going.wait()
        return {"trail": [1]}

    async def quick(_: Trail) -> dict[str, Any]:
        return {"trail": [0]}

    async with place.saver() as first, place.saver() as second:

        async def lose() -> None:
            with pytest.raises(ThreadConflictError):
                await single(first, slow).ainvoke({"trail": []}, thread("t"), durability="sync")

        async with anyio.create_task_group() as nursery:
            nursery.start_soon(lose)
            await arrived.wait()
            await single(second, quick).ainvoke({"trail": []}, thread("t"))
            going.set()
        state = await single(second, quick).aget_state(thread("t"))
        assert state.values == {"trail": [0]}


@pytest.mark.slow
def test_a_run_that_is_killed_goes_on_in_another_process(place: Place) -> None:
    def child(what: str) -> subprocess.CompletedProcess[str]:
        names = [place.kind.__module__, place.kind.__name__, json.dumps(place.given), what]
        command = [sys.executable, "-c", CHILD, *names]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=15)

    killed = child("sync")
    assert killed.returncode == -9, killed.stderr
    resumed = child("resume")
    assert resumed.stdout == "[0, 1, 2, 3, 4, 5]\n", resumed.stderr


@pytest.mark.slow
@pytest.mark.services
@pytest.mark.parametrize("durability", ["sync", "async"])
async def test_runs_while_the_server_is_killed(restarting: Restarting, durability: str) -> None:
    """Every run ends done, or with an error after which it goes on; no value is lost or there twice."""

    async def run(saver: GroupCommitSaver, name: str) -> None:
        graph = chain(saver, 10)
        given: Any = {"trail": []}
        while True:
            try:
                result = await graph.ainvoke(given, thread(name), durability=durability)
            except PersistenceError:
                stored = await saver.aget_tuple(thread(name))
                given = {"trail": []} if stored is None else None
            else:
                assert result["trail"] == list(range(10))
                return

    limits = Limits(attempts=100, first_delay=0.005, longest_delay=0.1)
    async with restarting.place.saver(limits=limits) as saver:
        async with anyio.create_task_group() as nursery:
            for number in range(20):
                nursery.start_soon(run, saver, f"{number}")
            for _ in range(2):
                await anyio.to_thread.run_sync(restarting.stop)
                await anyio.to_thread.run_sync(restarting.start)
        for number in range(20):
            history = [one async for one in saver.alist(thread(f"{number}"))]
            assert [one.metadata["step"] for one in history] == list(range(10, -2, -1))
