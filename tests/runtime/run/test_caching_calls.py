"""Workflows and calls of @task functions with a CachePolicy."""

from __future__ import annotations

import threading
from typing import Any

import anyio
import pytest

from persistence.memory import InMemoryCache, InMemorySaver
from runtime.func import entrypoint, task
from runtime.graph import START, StateGraph
from runtime.types import CachePolicy, Command, interrupt
from tests.runtime.run.cached_nodes import CACHED, State, updates

pytestmark = pytest.mark.anyio


def thread(name: str) -> dict[str, Any]:
    return {"configurable": {"thread_id": name}}


async def test_a_workflow_is_not_run_again_for_an_equal_input(cache: Any) -> None:
    runs: list[Any] = []

    @entrypoint(cache=cache, cache_policy=CachePolicy())
    async def flow(given: Any) -> Any:
        runs.append(given)
        return [given]

    assert flow.cache is cache
    assert await updates(flow, 1) == [{"flow": [1]}]
    assert await updates(flow, 1) == [{"flow": [1], **CACHED}]
    assert await flow.ainvoke(2) == [2]
    await flow.aclear_cache()
    assert await updates(flow, 1) == [{"flow": [1]}]
    assert runs == [1, 2, 1]


async def test_what_a_workflow_is_told_of_its_last_call_counts(cache: Any) -> None:
    @entrypoint(InMemorySaver(), cache=cache, cache_policy=CachePolicy())
    async def count(step: int, *, previous: Any = None) -> Any:
        return (previous or 0) + step

    assert [await count.ainvoke(1, thread("1")) for _ in range(3)] == [1, 2, 3]
    assert [await count.ainvoke(1, thread("2")) for _ in range(3)] == [1, 2, 3]
    assert (await updates(count, 1, thread("3"))) == [{"count": 1, **CACHED}]


async def test_what_a_workflow_leaves_is_reused_with_its_result(cache: Any) -> None:
    @entrypoint(InMemorySaver(), cache=cache, cache_policy=CachePolicy(key_func=str))
    async def flow(given: Any) -> Any:
        return entrypoint.final(value=given, save="saved")

    for name in ("1", "2"):
        assert await flow.ainvoke(1, thread(name)) == 1
        assert (await flow.aget_state(thread(name))).values == 1


async def test_a_call_is_not_made_again_for_equal_arguments(cache: Any) -> None:
    made: list[Any] = []

    @task(cache_policy=CachePolicy())
    async def add(one: int, *, two: int = 1) -> int:
        made.append((one, two))
        return one + two

    @entrypoint(InMemorySaver(), cache=cache)
    async def flow(given: int) -> Any:
        return [await add(given), await add(given, two=5), await add(given)]

    first = await updates(flow, 1, thread("1"))
    assert first == [{"add": 2}, {"add": 6}, {"add": 2, **CACHED}, {"flow": [2, 6, 2]}]
    again = await updates(flow, 1, thread("2"))
    assert again == [{"add": 2, **CACHED}, {"add": 6, **CACHED}, {"add": 2, **CACHED}, {"flow": [2, 6, 2]}]
    assert made == [(1, 1), (1, 5)]
    await flow.aclear_cache()
    await flow.ainvoke(1, thread("3"))
    assert len(made) == 4


def test_calls_of_sync_functions_are_reused_too() -> None:
    made: list[int] = []

    @task(cache_policy=CachePolicy())
    def double(one: int) -> int:
        made.append(one)
        return 2 * one

    @entrypoint(cache=InMemoryCache())
    def flow(given: int) -> Any:
        return [double(given).result(), double(given).result()]

    assert flow.invoke(2) == [4, 4]
    assert made == [2]


async def test_a_key_func_gets_the_arguments(cache: Any) -> None:
    seen: list[Any] = []

    def key(*arguments: Any, **named: Any) -> str:
        seen.append((arguments, named))
        return str(arguments[0])

    @task(cache_policy=CachePolicy(key_func=key))
    async def work(one: int, two: Any) -> int:
        return one

    @entrypoint(cache=cache)
    async def flow(given: int) -> Any:
        return [await work(given, two=threading.Lock()) for _ in range(2)]

    assert [one for one in await updates(flow, 7) if "work" in one] == [{"work": 7}, {"work": 7, **CACHED}]
    assert [(arguments, [*named]) for arguments, named in seen] == [((7,), ["two"])] * 2


async def test_a_key_func_that_raises_fails_its_call(cache: Any) -> None:
    @task(cache_policy=CachePolicy(key_func=lambda one: str(1 // one)))
    async def work(one: int) -> int:
        return one

    @entrypoint(cache=cache)
    async def flow(given: int) -> Any:
        return await work(given)

    with pytest.raises(ZeroDivisionError) as caught:
        await flow.ainvoke(0)
    assert any("cache key of node 'work'" in note for note in caught.value.__notes__)


async def test_failures_and_answers_of_calls_are_not_kept(cache: Any) -> None:
    attempts: list[int] = []

    @task(cache_policy=CachePolicy())
    async def flaky(_one: int) -> str:
        attempts.append(1)
        if len(attempts) == 1:
            message = "boom"
            raise ValueError(message)
        return "done"

    @task(cache_policy=CachePolicy())
    async def ask(_one: int) -> Any:
        return interrupt("who?")

    @entrypoint(InMemorySaver(), cache=cache)
    async def flow(given: int) -> Any:
        return [await flaky(given), await ask(given)]

    with pytest.raises(ValueError, match="boom"):
        await flow.ainvoke(1, thread("0"))
    for name in ("ann", "bob"):
        assert "__interrupt__" in await flow.ainvoke(1, thread(name))
        assert await flow.ainvoke(Command(resume=name), thread(name)) == ["done", name]
    assert len(attempts) == 2


async def test_answers_to_calls_count_only_where_they_were_given(cache: Any) -> None:
    asks = [True]

    @task(cache_policy=CachePolicy())
    async def ask(_one: int) -> Any:
        return interrupt("who?") if asks[0] else "nobody"

    @entrypoint(InMemorySaver(), cache=cache)
    async def flow(given: int) -> Any:
        return await ask(given)

    await flow.ainvoke(1, thread("ann"))
    asks[0] = False
    assert await flow.ainvoke(1, thread("bob")) == "nobody"
    asks[0] = True
    assert await flow.ainvoke(Command(resume="ann"), thread("ann")) == "ann"


async def test_answers_given_before_a_call_are_not_kept(cache: Any) -> None:
    @task(cache_policy=CachePolicy())
    async def ask(_one: int) -> Any:
        return interrupt("who?")

    @entrypoint(InMemorySaver(), cache=cache)
    async def flow(given: int) -> Any:
        return await ask(given)

    for name in ("ann", "bob"):
        await flow.ainvoke(1, thread(name), interrupt_before="*")
        assert await flow.ainvoke(Command(resume=name), thread(name)) == name


async def test_a_reused_call_is_recorded_like_any_other(cache: Any) -> None:
    made: list[int] = []

    @task(cache_policy=CachePolicy())
    async def work(one: int) -> int:
        made.append(one)
        return one

    @entrypoint(InMemorySaver(), cache=cache)
    async def flow(given: int) -> Any:
        return [await work(given), interrupt("go on?")]

    await flow.ainvoke(1, thread("1"))
    await flow.ainvoke(1, thread("2"))
    await flow.aclear_cache()
    assert await flow.ainvoke(Command(resume="yes"), thread("2")) == [1, "yes"]
    assert made == [1]


async def test_nodes_call_cached_tasks_beside_each_other(cache: Any) -> None:
    made: list[int] = []

    @task(cache_policy=CachePolicy())
    async def square(one: int) -> int:
        made.append(one)
        await anyio.sleep(0)
        return one * one

    async def node(state: State) -> Any:
        futures = [square(one) for one in state["a"]]
        return {"b": [await future for future in futures]}

    builder = StateGraph(State)
    builder.add_node("n", node)
    builder.add_edge(START, "n")
    graph = builder.compile(cache=cache)
    for _ in range(2):
        assert (await graph.ainvoke({"a": [1, 2, 3]}))["b"] == [1, 4, 9]
    assert sorted(made) == [1, 2, 3]
