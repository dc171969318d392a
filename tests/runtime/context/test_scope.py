"""What a node can reach: runtime, config, store, writer; and what it says outside of one."""

from __future__ import annotations

import dataclasses
from typing import Any

import anyio
import pytest
from anyio import to_thread

from persistence.memory import InMemorySaver, InMemoryStore
from runtime.context.runtime import ExecutionInfo, RunControl, Runtime
from runtime.context.scope import (
    SCOPE,
    Scope,
    enclosing_depth,
    get_config,
    get_runtime,
    get_store,
    get_stream_writer,
)
from runtime.engine.tasks import HandlerTask
from runtime.types import RunnableConfig
from tests.runtime.actors.staging import stage, task_of
from tests.stories.graphs import CONFIG, chain


async def ran(function: Any, config: Any = None, **options: Any) -> Any:
    """Return what a node finds out."""
    found: list[Any] = []

    async def node(_state: Any) -> None:
        found.append(await function())

    await chain(("node", node)).compile(**options).ainvoke({}, config)
    return found[0]


# ---- outside of a node -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("function", [get_runtime, get_config, get_store, get_stream_writer])
def test_outside_of_a_node_there_is_nothing_to_reach(function: Any) -> None:
    with pytest.raises(RuntimeError, match=f"Called {function.__name__} outside of a runnable context"):
        function()
    assert enclosing_depth() == 0


def test_a_runtime_without_a_run_offers_nothing_and_does_no_harm() -> None:
    runtime: Runtime[Any] = Runtime()
    runtime.stream_writer("an item for nobody")
    runtime.heartbeat()
    assert (runtime.context, runtime.store, runtime.previous, runtime.execution_info) == (None, None, None, None)
    assert (runtime.drain_requested, runtime.drain_reason) == (False, None)


def test_a_drain_is_asked_for_once_and_for_all() -> None:
    control = RunControl()
    runtime: Runtime[Any] = Runtime(control=control)
    assert not runtime.drain_requested
    control.request_drain("maintenance")
    assert (runtime.drain_requested, runtime.drain_reason) == (True, "maintenance")


def test_an_execution_has_a_key_for_outside_systems() -> None:
    info = ExecutionInfo(checkpoint_id="c", checkpoint_ns="node:1", task_id="1", thread_id="t", node_attempt=2)
    assert info.idempotency_key == dataclasses.replace(info, node_attempt=3).idempotency_key == "t/node:1/1"
    assert dataclasses.replace(info, thread_id=None).idempotency_key == "/node:1/1"


# ---- inside of one ---------------------------------------------------------------------------------------------------


async def test_everything_can_be_reached_by_function() -> None:
    store = InMemoryStore()

    async def look() -> Any:
        get_stream_writer()("an item for nobody")
        return get_store(), get_runtime().store, get_runtime(), get_config(), enclosing_depth()

    config = {
        "configurable": {"thread_id": "t", "user": "u"},
        "tags": ["x"],
        "metadata": {"m": 1},
        "recursion_limit": 7,
    }
    found, mine, runtime, seen, depth = await ran(look, config, checkpointer=InMemorySaver(), store=store)
    assert (found, mine, depth) == (store, store, 1)
    info = runtime.execution_info
    assert (info.thread_id, info.node_attempt, info.run_id) == ("t", 1, None)
    assert info.checkpoint_ns == f"node:{info.task_id}" == seen["configurable"]["checkpoint_ns"]
    assert seen["configurable"]["checkpoint_id"] == info.checkpoint_id
    assert (seen["configurable"]["user"], seen["tags"], seen["recursion_limit"]) == ("u", ["x"], 7)
    assert {key: seen["metadata"][key] for key in ("m", "thread_id", "langgraph_step", "langgraph_node")} == {
        "m": 1,
        "thread_id": "t",
        "langgraph_step": 1,
        "langgraph_node": "node",
    }
    assert seen["metadata"]["langgraph_path"] == ("__pregel_pull", "node")
    assert seen["metadata"]["langgraph_triggers"] == ("branch:to:node",)


async def test_a_node_cannot_change_the_config_of_others() -> None:
    seen: list[Any] = []

    def node(_state: Any, config: RunnableConfig) -> None:
        seen.append(dict(config["configurable"]))
        config["configurable"]["mine"] = 1
        config["metadata"]["mine"] = 1

    await chain(("one", node), ("two", node)).compile().ainvoke({}, CONFIG)
    assert "mine" not in seen[1]
    assert "mine" not in CONFIG["configurable"]


async def test_what_a_node_starts_reaches_the_same() -> None:
    async def look() -> Any:
        found: list[Any] = []

        async def child() -> None:
            found.append(get_config()["metadata"]["langgraph_node"])

        async with anyio.create_task_group() as group:
            group.start_soon(child)
        found.append(await to_thread.run_sync(lambda: get_config()["metadata"]["langgraph_node"]))
        return found

    assert await ran(look) == ["node", "node"]


async def test_runs_know_how_deep_they_are() -> None:
    depths: list[int] = []

    async def inner(_state: Any) -> None:
        depths.append(enclosing_depth())

    async def outer(_state: Any) -> None:
        depths.append(enclosing_depth())
        await chain(("inner", inner)).compile().ainvoke({})

    await chain(("outer", outer)).compile().ainvoke({})
    assert depths == [1, 2]


# ---- a scope by itself -----------------------------------------------------------------------------------------------


async def test_what_a_scope_offers_is_made_once_and_when_it_is_asked_for() -> None:
    run = stage(node=lambda _state: None)
    scope = Scope(run, task_of(run, "node"))
    assert scope.config is scope.config
    assert scope.questions is scope.questions
    first = scope.questions
    scope.children = scope.task_calls = 2
    scope.restart()
    assert scope.questions is not first
    assert (scope.children, scope.task_calls, scope.pausing) == (0, 0, False)
    assert SCOPE.get(None) is None


async def test_a_handler_is_told_what_it_handles() -> None:
    run = stage(node=lambda _state: None)
    task = task_of(run, "node")
    assert Scope(run, task).error is None
    error = Scope(run, HandlerTask(task, run.plan.nodes["node"], reason := ValueError("boom"))).error
    assert error is not None
    assert (error.node, error.error) == ("node", reason)


async def test_a_scope_says_when_its_node_waits() -> None:
    run = stage(node=lambda _state: None)
    scope, told = Scope(run, task_of(run, "node")), list[str]()
    scope.waits()
    scope.on_wait = lambda: told.append("waits")
    scope.waits()
    assert told == ["waits"]
