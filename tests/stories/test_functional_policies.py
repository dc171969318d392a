"""Retries, timeouts and concurrency limits of workflows and tasks."""

from __future__ import annotations

import threading
from typing import Any, TypedDict

import anyio
import pytest

from runtime.errors import NodeTimeoutError
from runtime.func import entrypoint, task
from runtime.graph import START, StateGraph
from runtime.runtime import Runtime
from runtime.types import RetryPolicy, TimeoutPolicy
from runtime.types.streams import StreamWriter
from tests.stories.graphs import CONFIG, collect

pytestmark = pytest.mark.anyio

AT_ONCE = RetryPolicy(initial_interval=0, jitter=False, retry_on=ValueError)


# ---- retries ---------------------------------------------------------------------------------------------------------


async def test_a_task_is_retried_by_its_policy(saver: Any) -> None:
    attempts: list[int] = []

    @task(retry_policy=AT_ONCE)
    async def shaky(*, runtime: Runtime[Any]) -> int:
        assert runtime.execution_info is not None
        attempts.append(runtime.execution_info.node_attempt)
        if len(attempts) < 3:
            raise ValueError
        return len(attempts)

    @entrypoint(checkpointer=saver)
    async def flow(given: int) -> int:
        return int(await shaky())

    assert await flow.ainvoke(1, CONFIG) == 3
    assert attempts == [1, 2, 3]


async def test_a_task_fails_when_its_attempts_are_used_up(saver: Any) -> None:
    attempts: list[int] = []

    @task(retry_policy=[RetryPolicy(retry_on=KeyError), AT_ONCE])
    def shaky() -> int:
        attempts.append(1)
        raise ValueError(len(attempts))

    @entrypoint(checkpointer=saver)
    def flow(given: int) -> int:
        return shaky().result()

    with pytest.raises(ValueError, match="3"):
        await flow.ainvoke(1, CONFIG)
    with pytest.raises(ValueError, match="6"):
        await flow.ainvoke(None, CONFIG)


async def test_a_workflow_is_retried_by_its_policy(saver: Any) -> None:
    attempts: list[int] = []

    @entrypoint(checkpointer=saver, retry_policy=AT_ONCE)
    async def flow(given: int, *, previous: Any = None) -> Any:
        attempts.append(given)
        if len(attempts) < 3:
            raise ValueError(given)
        return [given, previous]

    assert await flow.ainvoke(1, CONFIG) == [1, None]
    assert attempts == [1, 1, 1]


# ---- timeouts --------------------------------------------------------------------------------------------------------


async def test_a_task_has_a_timeout_for_each_attempt() -> None:
    attempts: list[int] = []

    @task(timeout=0.02, retry_policy=RetryPolicy(initial_interval=0, jitter=False, retry_on=NodeTimeoutError))
    async def slow() -> str:
        attempts.append(1)
        if len(attempts) < 3:
            await anyio.sleep_forever()
        return "quick at last"

    @entrypoint()
    async def flow(given: int) -> str:
        return await slow()

    assert await flow.ainvoke(1) == "quick at last"
    assert len(attempts) == 3


async def test_a_timeout_of_a_task_is_its_callers_to_catch() -> None:
    @task(timeout=TimeoutPolicy(run_timeout=0.01))
    async def slow() -> None:
        await anyio.sleep_forever()

    @entrypoint()
    async def flow(given: int) -> str:
        try:
            await slow()
        except NodeTimeoutError as error:
            return error.node
        return "not caught"

    assert await flow.ainvoke(1) == "slow"


async def test_the_timeout_of_a_workflow_ends_its_calls() -> None:
    ended: list[str] = []

    @task
    async def slow(name: str) -> None:
        try:
            await anyio.sleep_forever()
        finally:
            ended.append(name)

    @entrypoint(timeout=0.05)
    async def flow(given: int) -> None:
        _ = slow("left behind")
        await slow("awaited")

    with anyio.fail_after(10), pytest.raises(NodeTimeoutError, match="'flow' exceeded its run timeout"):
        await flow.ainvoke(1)
    assert sorted(ended) == ["awaited", "left behind"]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["calls", "nested", "heartbeat", "writes", "sync heartbeat"])
async def test_signs_of_life_of_a_call_are_its_callers(kind: str) -> None:
    @task
    async def quick() -> None:
        await anyio.sleep(0.1)

    @task
    async def nested() -> None:
        for _ in range(6):
            await quick()

    @task
    async def living(*, runtime: Runtime[Any], writer: StreamWriter) -> None:
        for _ in range(6):
            await anyio.sleep(0.1)
            runtime.heartbeat() if kind == "heartbeat" else writer("alive")

    @task
    def sync_living(*, runtime: Runtime[Any]) -> None:
        for _ in range(6):
            threading.Event().wait(0.1)
            runtime.heartbeat()

    @entrypoint(timeout=TimeoutPolicy(idle_timeout=0.5))
    async def flow(given: int) -> str:
        if kind == "calls":
            for _ in range(6):
                await quick()
        else:
            await {"nested": nested, "sync heartbeat": sync_living}.get(kind, living)()
        return "alive"

    assert await flow.ainvoke(1) == "alive"


async def test_a_silent_call_is_no_sign_of_life() -> None:
    @task
    async def silent() -> None:
        await anyio.sleep_forever()

    @entrypoint(timeout=TimeoutPolicy(idle_timeout=0.05))
    async def flow(given: int) -> None:
        await silent()

    with anyio.fail_after(10), pytest.raises(NodeTimeoutError, match="idle"):
        await flow.ainvoke(1)


# ---- concurrency -----------------------------------------------------------------------------------------------------


class Crowd:
    """Counts how many are at work at once."""

    def __init__(self) -> None:
        self.here = self.most = 0

    async def come(self, name: int) -> int:
        self.here += 1
        self.most = max(self.most, self.here)
        await anyio.wait_all_tasks_blocked()
        self.here -= 1
        return name


@pytest.mark.parametrize("limit", [1, 3])
async def test_a_limit_gates_the_calls_of_a_workflow(limit: int) -> None:
    crowd = Crowd()
    come = task(crowd.come)

    @entrypoint()
    async def flow(given: int) -> Any:
        futures = [come(number) for number in range(given)]
        return [await future for future in futures]

    with anyio.fail_after(10):
        assert await flow.ainvoke(7, {"max_concurrency": limit}) == list(range(7))
    assert crowd.most == limit


@pytest.mark.parametrize("sync", [True, False])
async def test_nested_calls_do_not_wait_for_each_other(sync: bool, saver: Any) -> None:
    """Three deep, under a limit of one: what a call waits for is never kept waiting by it."""

    def sync_make(level: int) -> Any:
        @task(name=f"level {level}")
        def call(given: int) -> int:
            if level == 3:
                return given
            futures = [sync_make(level + 1)(given + place) for place in range(2)]
            return sum(future.result() for future in futures)

        return call

    def make(level: int) -> Any:
        @task(name=f"level {level}")
        async def call(given: int) -> int:
            if level == 3:
                return given
            futures = [make(level + 1)(given + place) for place in range(2)]
            return sum([await future for future in futures])

        return call

    @entrypoint(checkpointer=saver)
    async def flow(given: int) -> int:
        first = (sync_make if sync else make)(1)
        futures = [first(given), first(given)]
        return sum([await future for future in futures])

    with anyio.fail_after(15):
        assert await flow.ainvoke(1, {**CONFIG, "max_concurrency": 1}) == 16


async def test_a_limit_does_not_stop_what_a_call_runs_in_turn(saver: Any) -> None:
    class State(TypedDict, total=False):
        number: int

    @task
    async def double(given: int) -> int:
        return 2 * given

    async def node(state: State) -> Any:
        return {"number": await double(state["number"])}

    builder = StateGraph(State)
    builder.add_node("node", node)
    builder.add_edge(START, "node")
    graph = builder.compile()

    @entrypoint()
    async def inner(given: int) -> int:
        return int((await graph.ainvoke({"number": given}))["number"])

    @task
    async def outer(given: int) -> int:
        return int(await inner.ainvoke(given))

    @entrypoint(checkpointer=saver)
    async def flow(given: int) -> Any:
        futures = [outer(number) for number in range(given)]
        return [await future for future in futures]

    with anyio.fail_after(15):
        assert await flow.ainvoke(3, {**CONFIG, "max_concurrency": 1}) == [0, 2, 4]


@pytest.mark.slow
async def test_more_sync_calls_than_threads_end_all_the_same() -> None:
    """Each waits in its thread for another that needs one."""

    @task
    def inner(given: int) -> int:
        return given

    @task
    def outer(given: int) -> int:
        return inner(given).result()

    @entrypoint()
    def flow(given: int) -> int:
        futures = [outer(number) for number in range(given)]
        return sum(future.result() for future in futures)

    results: list[int] = []

    async def run() -> None:
        results.append(await flow.ainvoke(10))

    with anyio.fail_after(19):
        async with anyio.create_task_group() as group:
            for _ in range(45):
                group.start_soon(run)
    assert results == [45] * 45


async def test_calls_are_made_by_many_runs_of_one_workflow_at_once(saver: Any) -> None:
    @task
    async def double(given: int) -> int:
        await anyio.lowlevel.checkpoint()
        return 2 * given

    @entrypoint(checkpointer=saver)
    async def flow(given: int) -> Any:
        return [await double(given) for _ in range(3)]

    streams: dict[int, Any] = {}

    async def run(number: int) -> None:
        streams[number] = await collect(flow.astream(number, {"configurable": {"thread_id": str(number)}}))

    async with anyio.create_task_group() as group:
        for number in range(20):
            group.start_soon(run, number)
    assert streams == {n: [*[{"double": 2 * n}] * 3, {"flow": [2 * n] * 3}] for n in range(20)}
