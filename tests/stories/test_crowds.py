"""A crowd of runs on one event loop: what else lives there is not kept waiting, and each thread keeps its order."""

from __future__ import annotations

from typing import Any

import anyio
import anyio.lowlevel
import pytest

from runtime.run import pacing
from runtime.run.pacing import RELEASED, Pacer
from tests.runtime.run.test_pacing import IN_TIME, Clock
from tests.stories.graphs import Log, chain, thread

AT_MOST = 2 * (IN_TIME + RELEASED)
"""Nodes between two beats of something else: a beat may fall in the middle of a round."""


@pytest.fixture(autouse=True)
async def clock() -> None:
    """Let the runs take turns by a clock that does not depend on the machine."""
    pacing._HERE.set(Pacer(now=Clock()))


async def test_other_tasks_have_their_rounds_while_a_crowd_computes(saver: Any) -> None:
    """Whether the runs arrive, go on or end together: counted in nodes between two beats, not in time."""
    at_work, most, gate = 0, 0, anyio.Event()

    async def meets(_state: Log) -> None:
        await gate.wait()

    async def works(_state: Log) -> dict[str, Any]:
        nonlocal at_work
        at_work += 1
        return {"log": ["works"]}

    graph = chain(("a", works), ("meets", meets), ("b", works), ("c", works)).compile(saver)

    async def beat() -> None:
        nonlocal at_work, most
        while True:
            await anyio.lowlevel.checkpoint()
            most, at_work = max(most, at_work), 0

    async with anyio.create_task_group() as beats:
        beats.start_soon(beat)
        async with anyio.create_task_group() as crowd:
            for number in range(300):
                crowd.start_soon(graph.ainvoke, {"log": []}, thread(str(number)))
            while len(graph.statistics()) < 300:
                await anyio.lowlevel.checkpoint()
            gate.set()
        beats.cancel_scope.cancel()
    assert 0 < most <= AT_MOST
    for number in range(300):
        assert (await graph.aget_state(thread(str(number)))).values["log"].count("works") == 3


async def test_runs_of_a_thread_keep_their_order_in_a_crowd(saver: Any) -> None:
    graph = chain("a").compile(saver)
    async with anyio.create_task_group() as crowd:
        for number in range(100):
            crowd.start_soon(graph.ainvoke, {"log": [str(number)]}, thread("t"))
            await anyio.lowlevel.checkpoint()
    log = (await graph.aget_state(thread("t"))).values["log"]
    assert [entry for entry in log if entry != "a"] == [str(number) for number in range(100)]
