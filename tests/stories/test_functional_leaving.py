"""Calls of tasks that are left behind or given up."""

from __future__ import annotations

import asyncio
import concurrent.futures
import logging
from collections.abc import Callable
from functools import partial
from typing import Any, TypedDict

import anyio
import pytest

from runtime.func import entrypoint, task
from runtime.graph import START, StateGraph
from runtime.run.hosting import next_round
from tests.stories.calls import Hanging, double, fail
from tests.stories.graphs import CONFIG, chain

pytestmark = pytest.mark.anyio


# ---- what is left behind ---------------------------------------------------------------------------------------------


async def test_calls_that_nobody_awaits_are_finished_before_the_step_ends(saver: Any) -> None:
    gate = anyio.Event()
    ended: list[str] = []

    @task
    async def slow() -> None:
        await gate.wait()
        ended.append("slow")

    @task
    async def nested() -> None:
        _ = slow()

    @entrypoint(checkpointer=saver)
    async def flow(given: int) -> str:
        _ = slow()
        _ = nested()
        return "returned"

    async with anyio.create_task_group() as group:

        async def run() -> None:
            ended.append(await flow.ainvoke(1, CONFIG))

        group.start_soon(run)
        await anyio.wait_all_tasks_blocked()
        assert ended == []
        gate.set()
    assert ended == ["slow", "slow", "returned"]


async def test_a_failure_that_nobody_asked_for_is_logged(saver: Any, caplog: pytest.LogCaptureFixture) -> None:
    @entrypoint(checkpointer=saver)
    async def flow(given: int) -> str:
        ignored, asked = fail(1), fail(2)
        with pytest.raises(ValueError, match="2"):
            await asked
        del ignored
        return "returned"

    with caplog.at_level(logging.WARNING, "actorgraph"):
        assert await flow.ainvoke(1, CONFIG) == "returned"
    assert [record.getMessage() for record in caplog.records] == [
        "A call of task 'fail' failed, and 'flow', which had made it, never awaited it: ValueError(1)"
    ]


async def test_an_error_that_ends_programs_is_never_ignored() -> None:
    @task
    async def leave() -> None:
        raise SystemExit(3)

    @entrypoint()
    async def flow(given: int) -> str:
        if given:
            await leave()
        _ = leave()
        return "returned"

    for given in (0, 1):
        with pytest.raises(SystemExit) as left:
            await flow.ainvoke(given)
        assert left.value.code == 3


async def test_what_outlives_its_workflow_cannot_call_tasks(anyio_backend_name: str) -> None:
    if anyio_backend_name != "asyncio":
        pytest.skip("trio has no tasks that outlive their nursery")
    over = anyio.Event()
    late: list[Any] = []

    async def leftover() -> None:
        await over.wait()
        late.append(double(1))

    @entrypoint()
    async def flow(given: int) -> None:
        late.append(asyncio.create_task(leftover()))

    await flow.ainvoke(1)
    over.set()
    with pytest.raises(RuntimeError, match="'double' was called by something that 'flow' had started and left behind"):
        await late[0]


# ---- giving up -------------------------------------------------------------------------------------------------------


async def test_a_wait_that_is_given_up_cancels_the_call(saver: Any) -> None:
    hanging, others = Hanging(), Hanging()
    hang, outer_hang = task(hanging.hang, name="hang"), task(others.hang, name="nested hang")

    @task
    async def outer() -> None:
        await outer_hang()

    @entrypoint(checkpointer=saver)
    async def flow(given: int) -> Any:
        with anyio.CancelScope() as scope:
            future = hang()
            await hanging.started.wait()
            scope.cancel()
            await future
        with anyio.CancelScope() as scope:
            future = outer()
            await others.started.wait()
            scope.cancel()
            await future
        return "gave up"

    with anyio.fail_after(10):
        assert await flow.ainvoke(1, CONFIG) == "gave up"
    assert (hanging.cancelled, others.cancelled) == (1, 1)


async def test_a_call_goes_on_while_somebody_waits_for_it(saver: Any) -> None:
    gate = anyio.Event()

    @task
    async def slow() -> str:
        await gate.wait()
        return "done"

    @entrypoint(checkpointer=saver)
    async def flow(given: int) -> Any:
        future = slow()
        found: list[str] = []

        async def wait() -> None:
            found.append(await future)

        async with anyio.create_task_group() as group:
            group.start_soon(wait)
            await anyio.wait_all_tasks_blocked()
            with anyio.move_on_after(0):
                await future
            gate.set()
        return found

    assert await flow.ainvoke(1, CONFIG) == ["done"]


@pytest.mark.parametrize("way", ["sync", "async", "task group"])
async def test_a_cancelled_run_leaves_nothing_running(saver: Any, way: str) -> None:
    hanging = [Hanging() for _ in range(3)]

    @task
    async def nested() -> None:
        await task(hanging[0].hang, name="a")()

    inside: list[str] = []

    @task
    def sync_nested() -> None:
        inside.append("sync_nested")
        try:
            task(hanging[1].hang, name="b")().result()
        finally:
            inside.remove("sync_nested")

    other = task(hanging[2].hang, name="c")

    def calls() -> list[Any]:
        return [nested(), sync_nested(), other()]

    def sync(given: int) -> None:
        for future in calls():
            future.result()

    async def plain(given: int) -> None:
        for future in calls():
            await future

    async def grouped(given: int) -> None:
        async def wait(future: Any) -> None:
            await future

        async with anyio.create_task_group() as group:
            for future in calls():
                group.start_soon(wait, future)

    functions: dict[str, Callable[..., Any]] = {"sync": sync, "async": plain, "task group": grouped}
    flow = entrypoint(checkpointer=saver, name="flow")(functions[way])
    with anyio.fail_after(10), anyio.CancelScope() as scope:
        async with anyio.create_task_group() as group:
            group.start_soon(flow.ainvoke, 1, CONFIG)
            for each in hanging:
                await each.started.wait()
            scope.cancel()
    assert scope.cancelled_caught
    assert [each.cancelled for each in hanging] == [1, 1, 1]
    assert inside == []
    assert (await flow.aget_state(CONFIG)).next == ("flow",)
    assert flow.statistics() == ()


async def test_a_stream_that_is_left_stops_the_calls(saver: Any) -> None:
    hanging = Hanging()
    hang = task(hanging.hang, name="hang")

    @entrypoint(checkpointer=saver)
    async def flow(given: int) -> None:
        future = hang()
        await double(given)
        await future

    async with flow.astream(1, CONFIG, stream_mode="updates") as stream:
        async for update in stream:
            assert update == {"double": 2}
            await hanging.started.wait()
            break
    assert hanging.cancelled == 1
    assert (await flow.aget_state(CONFIG)).next == ("flow",)


@pytest.mark.parametrize("sync", [True, False])
async def test_a_failing_sibling_ends_the_calls_of_a_node(saver: Any, sync: bool) -> None:
    class State(TypedDict, total=False):
        number: int

    hanging = Hanging()
    hang = task(hanging.hang, name="hang")

    async def bad(state: State) -> Any:
        await hanging.started.wait()
        raise ValueError("bad")

    async def waits(state: State) -> Any:
        await hang()

    def sync_waits(state: State) -> Any:
        hang().result()

    builder = StateGraph(State)
    builder.add_node("bad", bad)
    builder.add_node("waits", sync_waits if sync else waits)
    builder.add_edge(START, "bad")
    builder.add_edge(START, "waits")
    graph = builder.compile(checkpointer=saver)
    with anyio.fail_after(10), pytest.raises(ValueError, match="bad") as failed:
        await graph.ainvoke({"number": 1}, CONFIG)
    assert hanging.cancelled == 1
    assert not [note for note in failed.value.__notes__ if "Also failed" in note]
    errors = {one.name: one.error for one in (await graph.aget_state(CONFIG)).tasks}
    assert errors == {"bad": "ValueError('bad')", "waits": "CancelledError()"}


@pytest.mark.parametrize("sync", [True, False])
async def test_a_step_timeout_ends_the_calls(sync: bool) -> None:
    class State(TypedDict, total=False):
        number: int

    hanging = Hanging()
    hang = task(hanging.hang, name="hang")

    async def waits(state: State) -> Any:
        await hang()

    def sync_waits(state: State) -> Any:
        hang().result()

    builder = StateGraph(State)
    builder.add_node("waits", sync_waits if sync else waits)
    builder.add_edge(START, "waits")
    graph = builder.compile(step_timeout=0.05)
    with anyio.fail_after(10), pytest.raises(TimeoutError, match="step_timeout"):
        await graph.ainvoke({"number": 1})
    assert hanging.cancelled == 1


@pytest.mark.parametrize("rounds", range(5))
@pytest.mark.parametrize("shape", ["workflow", "node"])
async def test_a_cancel_between_two_calls_is_no_failure(saver: Any, shape: str, rounds: int) -> None:
    """However many rounds of the event loop after the first has ended, and before the second is waited for."""

    def cancel(left: int) -> None:
        if left:
            next_round(partial(cancel, left - 1))
        else:
            scope.cancel()

    @task
    async def quick() -> None:
        cancel(rounds)

    @task
    async def slow() -> None:
        await anyio.sleep_forever()

    async def work(_given: Any) -> None:
        first, second = quick(), slow()
        await first
        await second

    graph: Any = entrypoint(checkpointer=saver)(work) if shape == "workflow" else chain(("work", work)).compile(saver)
    with anyio.CancelScope() as scope:
        await graph.ainvoke({"a": 1}, CONFIG)
    assert scope.cancelled_caught
    assert [one.error for one in (await graph.aget_state(CONFIG)).tasks] in ([None], ["CancelledError()"])


# ---- what a thread waits for when asyncio cancels its run ------------------------------------------------------------


def by_result(call: Any) -> Any:
    return call.result()


def by_waiting(call: Any) -> Any:
    concurrent.futures.wait([call])
    return call.result()


def by_a_thread_of_its_own(call: Any) -> Any:
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        return pool.submit(call.result).result()


@pytest.mark.parametrize("anyio_backend", ["asyncio"])  # trio cancels scopes alone
@pytest.mark.parametrize("wait", [by_result, by_waiting, by_a_thread_of_its_own])
@pytest.mark.parametrize("kind", ["graph", "workflow"])
async def test_asyncios_cancel_ends_the_calls_that_a_sync_node_waits_for(
    wait: Callable[[Any], Any], kind: str, anyio_backend: Any
) -> None:
    begun = asyncio.Event()

    @task
    async def hang() -> None:
        begun.set()
        await anyio.sleep_forever()

    def node(given: Any) -> Any:
        return wait(hang())

    graph: Any = chain(("node", node)).compile() if kind == "graph" else entrypoint()(node)
    run = asyncio.ensure_future(graph.ainvoke({}))
    await begun.wait()
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(run, 10)


@pytest.mark.parametrize("anyio_backend", ["asyncio"])  # likewise
async def test_asyncios_cancel_ends_the_graph_that_a_sync_node_waits_for(anyio_backend: Any) -> None:
    begun = asyncio.Event()

    async def hang(state: Any) -> None:
        begun.set()
        await anyio.sleep_forever()

    inner = chain(("hang", hang)).compile()
    outer = chain(("node", partial(inner.invoke, durability=None))).compile()
    run = asyncio.ensure_future(outer.ainvoke({}))
    await begun.wait()
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(run, 10)
