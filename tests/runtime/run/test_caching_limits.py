"""Nodes with a CachePolicy: what is never kept, what is forgotten, and what a failing cache costs."""

from __future__ import annotations

import functools
import logging
import operator
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, TypedDict

import anyio
import pytest

from persistence.contracts.cache import BaseCache
from persistence.errors import BackendError, PersistenceClosedError, SaverLoopError, UnsupportedOperationError
from persistence.memory import InMemoryCache, InMemorySaver
from persistence.sqlite import SqliteCache
from runtime.errors import BlockingCallError, NodeError, UnknownNodeError
from runtime.graph import START, StateGraph
from runtime.types import CachePolicy, Command, RetryPolicy, interrupt
from tests.runtime.run.cached_nodes import CACHED, Note, State, single, updates

pytestmark = pytest.mark.anyio


# What is never kept


async def test_errors_are_not_kept(cache: Any) -> None:
    attempts: list[int] = []

    async def flaky(_state: State) -> Any:
        attempts.append(1)
        if len(attempts) < 3:
            raise ConnectionError
        return {"log": ["at last"]}

    graph = single(flaky).compile(cache=cache)
    for _ in range(2):
        with pytest.raises(ConnectionError):
            await graph.ainvoke({"a": 1})
    for _ in range(2):
        assert (await graph.ainvoke({"a": 1}))["log"] == ["at last"]
    assert len(attempts) == 3


async def test_what_succeeded_at_a_further_attempt_is_kept(cache: Any) -> None:
    attempts: list[int] = []

    async def flaky(_state: State) -> Any:
        attempts.append(1)
        if len(attempts) == 1:
            raise ConnectionError
        return {"log": ["at last"]}

    retry = RetryPolicy(initial_interval=0.001, jitter=False)
    graph = single(flaky, retry_policy=retry).compile(cache=cache)
    for _ in range(2):
        assert (await graph.ainvoke({"a": 1}))["log"] == ["at last"]
    assert len(attempts) == 2


async def test_results_of_a_superstep_that_fails_are_kept(cache: Any) -> None:
    good = Note()
    released = anyio.Event()

    async def bad(_state: State) -> Any:
        await released.wait()
        message = "boom"
        raise ValueError(message)

    async def release(state: State) -> Any:
        released.set()
        return await good(state)

    builder = StateGraph(State)
    builder.add_node("good", release, cache_policy=CachePolicy())
    builder.add_node("bad", bad)
    builder.add_edge(START, "good")
    builder.add_edge(START, "bad")
    graph = builder.compile(cache=cache)
    for _ in range(2):
        with pytest.raises(ValueError, match="boom"):
            await graph.ainvoke({"a": 1})
    assert good.runs == 1


async def test_what_an_error_handler_gave_is_not_kept(cache: Any) -> None:
    attempts: list[int] = []

    async def flaky(_state: State) -> Any:
        attempts.append(1)
        if len(attempts) == 1:
            raise ConnectionError
        return {"log": ["done"]}

    def handle(_state: State, error: NodeError) -> Any:
        assert error.node == "n"
        return {"log": ["handled"]}

    graph = single(flaky, error_handler=handle).compile(InMemorySaver(), cache=cache)
    found = [(await graph.ainvoke({"a": 1}, {"configurable": {"thread_id": name}}))["log"] for name in "123"]
    assert found == [["handled"], ["done"], ["done"]]
    assert len(attempts) == 2


def never_bad(old: list[str], new: list[str]) -> list[str]:
    if "bad" in new:
        message = "bad"
        raise ValueError(message)
    return [*old, *new]


@pytest.mark.parametrize("saved", [True, False])
async def test_what_cannot_be_applied_is_not_kept(cache: Any, saved: bool) -> None:
    class Strict(TypedDict, total=False):
        a: Any
        log: Annotated[list[str], never_bad]

    answers = [["bad"], ["good"]]
    builder = single(lambda _: {"log": answers.pop(0)}, schema=Strict)
    graph = builder.compile(InMemorySaver() if saved else None, cache=cache)
    config: Any = {"configurable": {"thread_id": "t"}}
    with pytest.raises(ValueError, match="bad"):
        await graph.ainvoke({"a": 1}, config)
    assert (await graph.ainvoke({"a": 1}, config))["log"] == ["good"]


async def test_answers_are_not_kept(cache: Any) -> None:
    graph = single(lambda _: {"log": [interrupt("who?")]}).compile(InMemorySaver(), cache=cache)
    for name in ("ann", "bob"):
        config: Any = {"configurable": {"thread_id": name}}
        asked = await graph.ainvoke({"a": 1}, config)
        assert [question.value for question in asked["__interrupt__"]] == ["who?"]
        assert (await graph.ainvoke(Command(resume=name), config))["log"] == [name]


async def test_an_answer_is_not_passed_over_for_a_result_that_came_without_one(cache: Any) -> None:
    asks = [True]
    graph = single(lambda _: {"log": [interrupt("who?") if asks[0] else "nobody"]}).compile(
        InMemorySaver(), cache=cache
    )
    config: Any = {"configurable": {"thread_id": "ann"}}
    await graph.ainvoke({"a": 1}, config)
    asks[0] = False
    assert (await graph.ainvoke({"a": 1}, {"configurable": {"thread_id": "bob"}}))["log"] == ["nobody"]
    asks[0] = True
    assert (await graph.ainvoke(Command(resume="ann"), config))["log"] == ["ann"]


async def test_answers_given_beforehand_are_not_kept(cache: Any) -> None:
    builder = StateGraph(State)
    builder.add_sequence([("first", lambda _: {"log": ["first"]}), ("ask", lambda _: {"log": [interrupt("who?")]})])
    builder.nodes["ask"].cache = CachePolicy()
    builder.add_edge(START, "first")
    graph = builder.compile(InMemorySaver(), cache=cache, interrupt_before=["first"])
    for name in ("ann", "bob"):
        config: Any = {"configurable": {"thread_id": name}}
        await graph.ainvoke({"a": 1}, config)
        assert (await graph.ainvoke(Command(resume=name), config))["log"] == ["first", name]


async def test_a_command_to_the_parent_is_not_kept(cache: Any) -> None:
    runs: list[int] = []

    def leave(_state: State) -> Any:
        runs.append(1)
        return Command(graph=Command.PARENT, update={"log": ["left"]}, goto="after")

    child = single(leave).compile(cache=cache)
    builder = StateGraph(State)
    builder.add_node("child", child)
    builder.add_node("after", lambda _: {"log": ["after"]})
    builder.add_edge(START, "child")
    graph = builder.compile()
    for number in (1, 2):
        assert (await graph.ainvoke({"a": 1}))["log"] == ["left", "after"]
        assert len(runs) == number


# Code that changed


def versions(factor: int) -> Any:
    async def node(state: State) -> Any:
        return {"b": state["a"] * factor}

    return node


async def test_results_of_other_code_are_not_taken(cache: Any) -> None:
    assert (await single(versions(2)).compile(cache=cache).ainvoke({"a": 1}))["b"] == 2
    assert (await single(versions(3)).compile(cache=cache).ainvoke({"a": 1}))["b"] == 3
    again = single(versions(2)).compile(cache=cache)
    assert await updates(again, {"a": 1}) == [{"n": {"b": 2}, **CACHED}]


async def test_graphs_of_other_names_and_edges_have_results_of_their_own(cache: Any) -> None:
    node = Note()
    await single(node).compile(cache=cache, name="one").ainvoke({"a": 1})
    await single(node).compile(cache=cache, name="two").ainvoke({"a": 1})
    assert node.runs == 2
    longer = single(node)
    longer.add_node("more", lambda _: {"log": ["more"]})
    longer.add_edge("n", "more")
    assert (await longer.compile(cache=cache, name="one").ainvoke({"a": 1}))["log"] == ["run 3", "more"]
    await single(node).compile(cache=cache, name="one").ainvoke({"a": 1})
    assert node.runs == 3


# Clearing


async def test_results_are_cleared_by_node_or_all(cache: Any) -> None:
    first, second = Note(), Note()
    builder = StateGraph(State).set_node_defaults(cache_policy=CachePolicy())
    builder.add_sequence([("first", first), ("second", second)])
    builder.add_edge(START, "first")
    graph = builder.compile(cache=cache)
    other = Note()
    others = single(other).compile(cache=cache, name="other")
    await others.ainvoke({})
    await graph.ainvoke({})
    await graph.aclear_cache(["second"])
    await graph.ainvoke({})
    assert (first.runs, second.runs) == (1, 2)
    await graph.aclear_cache()
    await graph.ainvoke({})
    assert (first.runs, second.runs) == (2, 3)
    await graph.aclear_cache([])
    await others.ainvoke({})
    assert other.runs == 1


async def test_clearing_needs_a_cache_and_known_nodes(cache: Any) -> None:
    with pytest.raises(ValueError, match="No cache is set for this graph"):
        await single(Note()).compile().aclear_cache()
    with pytest.raises(UnknownNodeError, match="there is no node 'm'"):
        await single(Note()).compile(cache=cache).aclear_cache(["m"])


def test_the_blocking_door_clears_too(tmp_path: Path) -> None:
    memory = InMemoryCache()
    with SqliteCache(tmp_path / "c.sqlite") as file:
        for cache in (memory, file):
            node = Note()
            graph = single(node).compile(InMemorySaver() if cache is file else None, cache=cache)
            for thread in "12":
                graph.invoke({"a": 1}, {"configurable": {"thread_id": thread}})
            assert node.runs == 1
            graph.clear_cache(["n"])
            graph.invoke({"a": 1}, {"configurable": {"thread_id": "3"}})
            assert node.runs == 2
    with pytest.raises(ValueError, match="No cache is set"):
        single(Note()).compile().clear_cache()


async def test_blocking_calls_go_to_the_loop_that_the_cache_is_open_on(tmp_path: Path) -> None:
    node = Note()
    async with SqliteCache(tmp_path / "c.sqlite") as cache:
        graph = single(node).compile(cache=cache)
        for _ in range(2):
            await anyio.to_thread.run_sync(functools.partial(graph.invoke, {"a": 1}))
        assert node.runs == 1
        with pytest.raises(BlockingCallError, match="ainvoke"):
            graph.invoke({"a": 1})


# Caches that fail


class Broken(InMemoryCache):
    """Fails in one of its methods."""

    def __init__(self, method: str, error: Exception) -> None:
        super().__init__()
        self.method = method
        self.error = error

    async def aget(self, keys: Sequence[Any]) -> dict[Any, Any]:
        if self.method == "aget":
            raise self.error
        return await super().aget(keys)

    async def aset(self, pairs: Mapping[Any, Any]) -> None:
        if self.method == "aset":
            raise self.error
        await super().aset(pairs)

    def key_of(self, value: object) -> str:
        if self.method == "key_of":
            raise self.error
        return super().key_of(value)


@pytest.mark.parametrize("error", [BackendError("disk full"), OSError("no route"), RuntimeError("bug")])
@pytest.mark.parametrize("method", ["aget", "aset", "key_of"])
async def test_a_cache_that_fails_is_told_of_and_the_node_runs(
    caplog: pytest.LogCaptureFixture, method: str, error: Exception
) -> None:
    node = Note()
    graph = single(node).compile(cache=Broken(method, error))
    with caplog.at_level(logging.WARNING, "actorgraph"):
        for number in (1, 2):
            assert (await graph.ainvoke({"a": 1}))["log"] == [f"run {number}"]
    told = [record for record in caplog.records if str(error) in record.getMessage()]
    assert len(told) == 2
    assert "'LangGraph'" in told[0].getMessage()


@pytest.mark.parametrize("method", ["aget", "aset"])
@pytest.mark.parametrize("error", [PersistenceClosedError("closed"), SaverLoopError("elsewhere")])
async def test_misuse_of_a_cache_ends_the_run(method: str, error: Exception) -> None:
    with pytest.raises(type(error)) as caught:
        await single(Note()).compile(cache=Broken(method, error)).ainvoke({"a": 1})
    assert caught.value is error


async def test_a_cache_that_is_not_open_says_what_to_do(tmp_path: Path) -> None:
    cache = SqliteCache(tmp_path / "c.sqlite")
    with pytest.raises(PersistenceClosedError, match="use it inside 'async with"):
        await single(Note()).compile(cache=cache).ainvoke({"a": 1})


@pytest.mark.parametrize("wrong", [object(), {}, InMemorySaver(), InMemoryCache])
def test_what_is_no_cache_is_refused(wrong: Any) -> None:
    with pytest.raises(TypeError, match="cache must be a BaseCache"):
        single(Note()).compile(cache=wrong)


async def test_a_third_partys_cache_needs_the_port_alone(caplog: pytest.LogCaptureFixture) -> None:
    class Dict(BaseCache):
        def __init__(self) -> None:
            self.kept: dict[Any, Any] = {}

        async def aget(self, keys: Sequence[Any]) -> dict[Any, Any]:
            return {key: self.kept[key] for key in keys if key in self.kept}

        async def aset(self, pairs: Mapping[Any, Any]) -> None:
            self.kept |= {key: value for key, (value, _) in pairs.items()}

        def key_of(self, value: object) -> str:
            return repr(value)

    node = Note()
    cache = Dict()
    graph = single(node).compile(cache=cache)
    for _ in range(2):
        await graph.ainvoke({"a": 1})
    assert node.runs == 1
    with pytest.raises(UnsupportedOperationError, match="Dict does not implement aclear"):
        await graph.aclear_cache()
    for nonsense in (None, 3, ["log"], [("log",)], [(1, 2)], [("no channel of this graph", 1)]):
        cache.kept = dict.fromkeys(cache.kept, nonsense)
        await graph.ainvoke({"a": 1})
    assert node.runs == 7
    assert caplog.records == []


async def test_an_input_that_cannot_be_stored_is_not_looked_up(cache: Any, caplog: pytest.LogCaptureFixture) -> None:
    node = Note()
    graph = single(node).compile(cache=cache)
    with caplog.at_level(logging.WARNING, "actorgraph"):
        for number in (1, 2):
            assert (await graph.ainvoke({"a": threading.Lock()}))["log"] == [f"run {number}"]
    assert "Node 'n'" in caplog.text
    assert "key_func" in caplog.text


async def test_a_result_that_cannot_be_stored_does_not_take_others_with_it(
    cache: Any, caplog: pytest.LogCaptureFixture
) -> None:
    good = Note()
    builder = StateGraph(State)
    builder.add_node("good", good, cache_policy=CachePolicy())
    builder.add_node("odd", lambda _: {"b": threading.Lock()}, cache_policy=CachePolicy())
    builder.add_edge(START, "good")
    builder.add_edge(START, "odd")
    graph = builder.compile(cache=cache)
    with caplog.at_level(logging.WARNING, "actorgraph"):
        for _ in range(2):
            await graph.ainvoke({"a": 1})
    assert good.runs == 1
    assert "are not kept ('odd')" in caplog.text


async def test_an_input_that_cannot_be_built_fails_where_it_always_did(cache: Any) -> None:
    @dataclass
    class Positive:
        a: int = 0
        log: Annotated[list[str], operator.add] = field(default_factory=list)

        def __post_init__(self) -> None:
            if self.a < 0:
                message = "below zero"
                raise ValueError(message)

    node = Note()
    graph = single(node, input_schema=Positive).compile(cache=cache)
    with pytest.raises(ValueError, match="below zero") as caught:
        await graph.ainvoke({"a": -1})
    assert "While building the input of node 'n'" in caught.value.__notes__
    assert node.runs == 0
