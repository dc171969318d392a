"""Timeouts of attempts: the whole time, silence, and signs of life, in virtual time."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise
from typing import Any

import anyio
import pytest

from runtime.actors.node import NodeActor
from runtime.actors.outcomes import COMPLETED, Failed
from runtime.context.runtime import Runtime
from runtime.errors import (
    NodeTimeoutError,
)
from runtime.types import RetryPolicy, Send, TimeoutPolicy
from tests.runtime.actors.staging import VIRTUAL, graph, handled, of, task_of


@VIRTUAL
@pytest.mark.parametrize("timeout", [3600, timedelta(hours=1), TimeoutPolicy(run_timeout=3600)])
async def test_an_attempt_that_takes_too_long_is_cancelled(timeout: Any) -> None:
    ended: list[float] = []

    async def node(_given: Any) -> None:
        try:
            await anyio.sleep(7200)
        finally:
            ended.append(anyio.current_time())

    begun = anyio.current_time()
    outcome, _ = await handled(of(graph(node, timeout=timeout)))
    assert isinstance(outcome, Failed)
    error = outcome.error
    assert isinstance(error, NodeTimeoutError)
    assert (error.node, error.kind, error.timeout, round(error.elapsed)) == ("node", "run", 3600, 3600)
    assert [round(end - begun) for end in ended] == [3600]


@VIRTUAL
async def test_an_attempt_in_time_is_left_alone() -> None:
    async def node(_given: Any) -> Any:
        await anyio.sleep(3599)
        return {"last": 1}

    outcome, _ = await handled(of(graph(node, timeout=TimeoutPolicy(run_timeout=3600, idle_timeout=3600))))
    assert outcome is COMPLETED


@VIRTUAL
async def test_each_attempt_has_the_whole_time() -> None:
    tried: list[float] = []

    async def node(_given: Any) -> Any:
        tried.append(anyio.current_time())
        await anyio.sleep(60 if len(tried) < 3 else 5)
        return {"last": len(tried)}

    policy = RetryPolicy(initial_interval=1, backoff_factor=1, jitter=False)
    outcome, task = await handled(of(graph(node, timeout=10, retry_policy=policy)))
    assert (outcome, task.writes) == (COMPLETED, [("last", 3)])
    assert [round(later - earlier) for earlier, later in pairwise(tried)] == [11, 11]


@VIRTUAL
@pytest.mark.parametrize(
    ("refresh_on", "writes", "beats", "lives"),
    [
        ("auto", False, False, False),
        ("auto", True, False, True),
        ("auto", False, True, True),
        ("heartbeat", True, False, False),
        ("heartbeat", False, True, True),
    ],
)
async def test_signs_of_life_keep_a_silent_node_alive(refresh_on: Any, writes: bool, beats: bool, lives: bool) -> None:
    async def node(_given: Any, runtime: Runtime[Any]) -> Any:
        for _ in range(10):
            await anyio.sleep(8)
            if writes:
                runtime.stream_writer("an item for nobody")
            if beats:
                runtime.heartbeat()
        return {"last": 1}

    outcome, _ = await handled(of(graph(node, timeout=TimeoutPolicy(idle_timeout=10, refresh_on=refresh_on))))
    if lives:
        assert outcome is COMPLETED
    else:
        assert isinstance(outcome, Failed)
        assert isinstance(outcome.error, NodeTimeoutError)
        assert (outcome.error.kind, round(outcome.error.elapsed)) == ("idle", 10)


@VIRTUAL
async def test_the_whole_time_counts_however_lively_a_node_is() -> None:
    async def node(_given: Any, runtime: Runtime[Any]) -> None:
        while True:
            await anyio.sleep(1)
            runtime.heartbeat()

    outcome, _ = await handled(of(graph(node, timeout=TimeoutPolicy(run_timeout=30, idle_timeout=10))))
    assert isinstance(outcome, Failed)
    assert isinstance(outcome.error, NodeTimeoutError)
    assert (outcome.error.kind, round(outcome.error.elapsed)) == ("run", 30)


@VIRTUAL
async def test_the_timeout_of_a_send_replaces_the_nodes_own() -> None:
    async def node(_given: Any) -> Any:
        await anyio.sleep(20)
        return {"last": 1}

    run = of(graph(node, timeout=10))
    task = task_of(run, "node")
    task.send = Send("node", None, timeout=30)
    assert await NodeActor(task.node, run).handle(task) is COMPLETED


@VIRTUAL
async def test_a_cancel_from_outside_is_no_timeout() -> None:
    async def node(_given: Any) -> None:
        await anyio.sleep_forever()

    with anyio.move_on_after(5) as scope:
        await handled(of(graph(node, timeout=TimeoutPolicy(run_timeout=10, idle_timeout=10))))
    assert scope.cancelled_caught


@VIRTUAL
async def test_a_heartbeat_after_the_end_does_nothing() -> None:
    kept: list[Any] = []

    async def node(_given: Any, runtime: Runtime[Any]) -> None:
        kept.append(runtime)

    await handled(of(graph(node, timeout=TimeoutPolicy(idle_timeout=10))))
    kept[0].heartbeat()
    kept[0].stream_writer("an item for nobody")


@pytest.mark.slow
async def test_real_time_runs_out_too() -> None:
    async def node(_given: Any) -> None:
        await anyio.sleep_forever()

    for policy, kind in ((TimeoutPolicy(run_timeout=0.01), "run"), (TimeoutPolicy(idle_timeout=0.01), "idle")):
        outcome, _ = await handled(of(graph(node, timeout=policy)))
        assert isinstance(outcome, Failed)
        assert isinstance(outcome.error, NodeTimeoutError)
        assert outcome.error.kind == kind


async def test_a_thread_that_the_node_waits_for_can_show_signs_of_life() -> None:
    async def node(_given: Any, runtime: Runtime[Any]) -> None:
        await anyio.to_thread.run_sync(runtime.heartbeat)
        await anyio.to_thread.run_sync(runtime.stream_writer, "an item for nobody")

    outcome, _ = await handled(of(graph(node, timeout=TimeoutPolicy(idle_timeout=10))))
    assert outcome is COMPLETED
