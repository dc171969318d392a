"""Nodes with a CachePolicy: when a result is reused, and what of it."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest

from persistence.memory import InMemoryCache, InMemorySaver
from persistence.sqlite import SqliteCache, SqliteSaver
from runtime.errors import InvalidUpdateError
from runtime.graph import END, START, StateGraph
from runtime.types import CachePolicy, Command, Overwrite, Send
from tests.runtime.run.cached_nodes import CACHED, CONFIG, Note, State, single, updates

pytestmark = pytest.mark.anyio


# Hits and misses


async def test_an_equal_input_is_not_worked_on_twice(cache: Any) -> None:
    node = Note()
    graph = single(node).compile(cache=cache)
    assert graph.cache is cache
    assert await updates(graph, {"a": {"x": [1]}}) == [{"n": {"log": ["run 1"]}}]
    assert await updates(graph, {"a": {"x": [1]}}) == [{"n": {"log": ["run 1"]}, **CACHED}]
    assert await updates(graph, {"a": {"x": [2]}}) == [{"n": {"log": ["run 2"]}}]
    assert await graph.ainvoke({"a": {"x": [1]}}) == {"a": {"x": [1]}, "log": ["run 1"]}
    assert node.runs == 2


async def test_the_whole_input_counts(cache: Any) -> None:
    node = Note()
    graph = single(node).compile(cache=cache)
    more: list[Any] = [{"a": 1, "b": None}, {"a": 1, "log": ["x"]}]
    for given in (*more, *({"a": value} for value in (1, 1.0, True, (1,), [1]))):
        await graph.ainvoke(given)
    assert node.runs == 7


async def test_only_what_the_node_reads_counts(cache: Any) -> None:
    class OnlyA(TypedDict):
        a: Any

    node = Note()
    graph = single(node, input_schema=OnlyA).compile(cache=cache)
    await graph.ainvoke({"a": 1, "b": 1})
    assert await graph.ainvoke({"a": 1, "b": 2}) == {"a": 1, "b": 2, "log": ["run 1"]}


async def test_a_node_without_a_policy_runs_every_time(cache: Any) -> None:
    cached, other = Note(), Note()
    builder = single(cached)
    builder.add_node("other", other)
    builder.add_edge("n", "other")
    graph = builder.compile(cache=cache)
    for _ in range(2):
        await graph.ainvoke({"a": 1})
    assert (cached.runs, other.runs) == (1, 2)


async def test_a_policy_without_a_cache_does_nothing() -> None:
    node = Note()
    graph = single(node).compile()
    assert graph.cache is None
    for _ in range(2):
        await graph.ainvoke({"a": 1})
    assert node.runs == 2


async def test_a_policy_for_all_nodes(cache: Any) -> None:
    first, second = Note(), Note()
    builder = StateGraph(State).set_node_defaults(cache_policy=CachePolicy())
    builder.add_sequence([("first", first), ("second", second)])
    builder.add_edge(START, "first")
    graph = builder.compile(cache=cache)
    for _ in range(2):
        assert await graph.ainvoke({}) == {"log": ["run 1", "run 1"]}
    assert (first.runs, second.runs) == (1, 1)


async def test_a_key_func_alone_decides(cache: Any) -> None:
    seen: list[Any] = []

    def key(state: Any) -> str:
        seen.append(state)
        return str(state["a"])

    node = Note()
    graph = single(node, CachePolicy(key_func=key)).compile(cache=cache)
    await graph.ainvoke({"a": 1, "b": object()})
    assert (await graph.ainvoke({"a": 1, "b": 2}))["log"] == ["run 1"]
    assert (await graph.ainvoke({"a": 2, "b": 2}))["log"] == ["run 2"]
    assert [state["a"] for state in seen] == [1, 1, 2]


async def test_a_key_may_be_bytes(cache: Any) -> None:
    node = Note()
    graph = single(node, CachePolicy(key_func=lambda state: bytes(state["a"]))).compile(cache=cache)
    for a in ([0], [0], [255]):
        await graph.ainvoke({"a": a})
    assert node.runs == 2


@pytest.mark.parametrize("saved", [True, False])
async def test_a_key_func_that_raises_fails_its_node(cache: Any, saved: bool) -> None:
    node = Note()
    builder = single(node, CachePolicy(key_func=lambda state: str(1 // state["a"])))
    graph = builder.compile(InMemorySaver() if saved else None, cache=cache)
    with pytest.raises(ZeroDivisionError) as caught:
        await graph.ainvoke({"a": 0}, CONFIG)
    notes = "\n".join(caught.value.__notes__)
    assert "cache key of node 'n'" in notes
    assert "task with name 'n'" in notes
    assert node.runs == 0


async def test_a_key_is_text_or_bytes(cache: Any) -> None:
    policy: Any = CachePolicy(key_func=lambda _state: 3)
    with pytest.raises(TypeError, match=r"key_func of node 'n' must return str or bytes, got int: 3"):
        await single(Note(), policy).compile(cache=cache).ainvoke({"a": 1})


async def test_results_expire(tmp_path: Path) -> None:
    now = [0.0]
    memory = InMemoryCache(clock=lambda: now[0])
    async with SqliteCache(tmp_path / "c.sqlite", clock=lambda: now[0]) as file:
        for cache in (memory, file):
            now[0] = 0.0
            node = Note()
            graph = single(node, CachePolicy(ttl=60)).compile(cache=cache)
            for at, runs in ((0.0, 1), (59.0, 1), (60.0, 2), (119.0, 2), (120.0, 3)):
                now[0] = at
                await graph.ainvoke({"a": 1})
                assert node.runs == runs


# What is reused


async def test_routes_and_commands_are_reused(cache: Any) -> None:
    runs: list[str] = []

    def choose(state: State) -> Command[Any]:
        runs.append("choose")
        return Command(update={"log": ["chose"]}, goto="yes" if state["a"] else "no")

    def route(state: State) -> list[Any]:
        runs.append("route")
        return [Send("leaf", {"a": state["log"]}), "last"]

    def say(what: str, state: Any) -> dict[str, Any]:
        return {"log": [f"{what} {state['a']}"]}

    builder = StateGraph(State)
    builder.add_node("choose", choose, cache_policy=CachePolicy(), destinations=("yes", "no"))
    builder.add_node("yes", lambda _: {"log": ["yes"]}, cache_policy=CachePolicy())
    for name in ("no", "leaf", "last"):
        builder.add_node(name, functools.partial(say, name))
    builder.add_edge(START, "choose")
    builder.add_conditional_edges("yes", route, ["leaf", "last"])
    graph = builder.compile(cache=cache)
    first = await graph.ainvoke({"a": True})
    assert first["log"] == ["chose", "yes", "last True", "leaf ['chose', 'yes']"]
    assert runs == ["choose", "route"]
    assert await graph.ainvoke({"a": True}) == first
    assert runs == ["choose", "route"]
    assert (await graph.ainvoke({"a": False}))["log"] == ["chose", "no False"]


async def test_an_overwrite_is_reused_as_one(cache: Any) -> None:
    runs: list[int] = []

    def replace(_state: State) -> Any:
        runs.append(1)
        return {"log": Overwrite(["only"])}

    graph = single(replace).compile(cache=cache)
    for _ in range(2):
        assert await graph.ainvoke({"log": ["before"]}) == {"log": ["only"]}
    assert len(runs) == 1


async def test_a_join_waits_for_reused_nodes_too(cache: Any) -> None:
    builder = StateGraph(State)
    left, right = Note(), Note()
    builder.add_node("left", left, cache_policy=CachePolicy())
    builder.add_node("right", right)
    builder.add_node("join", lambda _: {"log": ["join"]})
    for name in ("left", "right"):
        builder.add_edge(START, name)
    builder.add_edge(["left", "right"], "join")
    graph = builder.compile(cache=cache)
    assert (await graph.ainvoke({}))["log"] == ["run 1", "run 1", "join"]
    assert (await graph.ainvoke({}))["log"] == ["run 1", "run 2", "join"]


async def test_a_node_that_writes_nothing_is_not_run_again(cache: Any) -> None:
    runs: list[int] = []
    graph = single(lambda _: runs.append(1)).compile(InMemorySaver(), cache=cache)
    assert await updates(graph, {"a": 1}, {"configurable": {"thread_id": "1"}}) == [{"n": None}]
    assert await updates(graph, {"a": 1}, {"configurable": {"thread_id": "2"}}) == [{"n": None, **CACHED}]
    assert len(runs) == 1


async def test_what_sends_carry_is_the_input(cache: Any) -> None:
    worked: list[Any] = []

    async def work(item: Any) -> Any:
        worked.append(item)
        return {"log": [f"{item}"]}

    builder = StateGraph(State)
    builder.add_node("work", work, cache_policy=CachePolicy())
    builder.add_conditional_edges(START, lambda state: [Send("work", item) for item in state["a"]], ["work"])
    graph = builder.compile(InMemorySaver(), cache=cache)
    await graph.ainvoke({"a": [1, 2]}, {"configurable": {"thread_id": "1"}})
    assert sorted(worked) == [1, 2]
    found = await updates(graph, {"a": [3, 2, 2, 1], "b": "other"}, {"configurable": {"thread_id": "2"}})
    assert [one["work"]["log"] for one in found if "__metadata__" in one] == [["2"], ["2"], ["1"]]
    assert [one["work"]["log"] for one in found if "__metadata__" not in one] == [["3"]]
    assert worked[2:] == [3]
    state = await graph.aget_state({"configurable": {"thread_id": "2"}})
    assert state.values["log"] == ["3", "2", "2", "1"]


async def test_a_route_that_depends_on_more_than_the_nodes_input_is_not_mistaken(cache: Any) -> None:
    builder = StateGraph(State)
    work = Note()
    builder.add_node("work", work, cache_policy=CachePolicy())
    builder.add_node("leaf", lambda _: {"log": ["leaf"]})
    builder.add_conditional_edges(START, lambda _: [Send("work", {"item": 1})], ["work"])
    builder.add_conditional_edges("work", lambda state: state["b"], {"leaf": "leaf", "end": END})
    graph = builder.compile(cache=cache)
    assert (await graph.ainvoke({"b": "leaf"}))["log"] == ["run 1", "leaf"]
    assert (await graph.ainvoke({"b": "end"}))["log"] == ["run 2"]
    assert (await graph.ainvoke({"b": "leaf"}))["log"] == ["run 1", "leaf"]


async def test_two_that_reuse_one_result_do_not_share_it(cache: Any) -> None:
    class Bag(TypedDict, total=False):
        bags: Annotated[list[Any], lambda old, new: [*old, new]]

    builder = StateGraph(Bag)
    builder.add_node("fill", lambda _: {"bags": [1]}, cache_policy=CachePolicy())
    builder.add_node("change", lambda state: state["bags"][1].append(2))
    builder.add_conditional_edges(START, lambda _: [Send("fill", 1), Send("fill", 1)], ["fill"])
    builder.add_edge("fill", "change")
    graph = builder.compile(cache=cache)
    for _ in range(2):
        found = await graph.ainvoke({"bags": 0})
    assert found["bags"] == [0, [1, 2], [1]]


async def test_a_subgraphs_node_is_reused_and_tells_subgraphs_apart(cache: Any) -> None:
    def parent(node: Any) -> Any:
        child = StateGraph(State)
        child.add_node("inner", node)
        child.add_edge(START, "inner")
        return single(child.compile()).compile(cache=cache)

    async def say_one(_state: State) -> Any:
        return {"b": "one"}

    async def say_two(_state: State) -> Any:
        return {"b": "two"}

    for _ in range(2):
        assert (await parent(say_one).ainvoke({"a": 1}))["b"] == "one"
        assert (await parent(say_two).ainvoke({"a": 1}))["b"] == "two"
    assert "__metadata__" in (await updates(parent(say_one), {"a": 1}))[0]


# With a checkpointer


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
async def test_a_hit_is_saved_like_any_finished_task(cache: Any, durability: Any, tmp_path: Path) -> None:
    node = Note()
    async with SqliteSaver(tmp_path / "threads.sqlite") as saver:
        graph = single(node).compile(saver, cache=cache)
        kept = []
        for thread in ("1", "2"):
            config: Any = {"configurable": {"thread_id": thread}}
            assert (await graph.ainvoke({"a": 1}, config, durability=durability))["log"] == ["run 1"]
            found = [
                (one.metadata["source"], one.metadata["step"], [write[1:] for write in one.pending_writes or ()])
                async for one in saver.alist(config)
            ]
            kept.append(found)
            assert (await graph.aget_state(config)).next == ()
        assert kept[0] == kept[1]
    assert node.runs == 1


async def test_hits_beside_a_failing_node_stay_finished(cache: Any) -> None:
    class Failing:
        mended = False

        async def __call__(self, _state: Any) -> Any:
            if not self.mended:
                message = "boom"
                raise ValueError(message)
            return {"log": ["mended"]}

    known, failing = Note(), Failing()
    builder = StateGraph(State)
    builder.add_node("known", known, cache_policy=CachePolicy())
    builder.add_node("failing", failing)
    builder.add_edge(START, "known")
    builder.add_edge(START, "failing")
    saver = InMemorySaver()
    graph = builder.compile(saver, cache=cache)
    failing.mended = True
    await graph.ainvoke({}, {"configurable": {"thread_id": "warm"}})
    failing.mended = False
    with pytest.raises(ValueError, match="boom"):
        await graph.ainvoke({}, CONFIG)
    await graph.aclear_cache()
    failing.mended = True
    resumed = await updates(graph, None, CONFIG)
    assert resumed == [{"known": {"log": ["run 1"]}, **CACHED}, {"failing": {"log": ["mended"]}}]
    assert known.runs == 1


async def test_a_hit_is_saved_while_others_still_work(cache: Any) -> None:
    saver = InMemorySaver()
    seen: list[Any] = []

    async def look(_state: State) -> None:
        stored = await saver.aget_tuple(CONFIG)
        assert stored is not None
        seen.append([write[1:] for write in stored.pending_writes or ()])

    builder = StateGraph(State)
    builder.add_node("known", lambda _: {"log": ["known"]}, cache_policy=CachePolicy())
    builder.add_node("look", look)
    builder.add_edge(START, "known")
    builder.add_edge(START, "look")
    graph = builder.compile(saver, cache=cache)
    await graph.ainvoke({"a": 1}, CONFIG)
    await graph.ainvoke({"a": 1, "log": Overwrite([])}, CONFIG)
    assert seen[-1] == [("log", ["known"])]


async def test_hits_that_cannot_be_folded_together_fail_their_run(cache: Any) -> None:
    builder = StateGraph(State)
    runs: list[int] = []
    for name in ("one", "two"):
        builder.add_node(name, lambda _: runs.append(1) or {"b": 1}, cache_policy=CachePolicy(key_func=lambda _: "k"))
    builder.add_conditional_edges(START, lambda state: state["a"], ["one", "two"])
    saver = InMemorySaver()
    graph = builder.compile(saver, cache=cache)
    for name in ("one", "two"):
        await graph.ainvoke({"a": [name]}, {"configurable": {"thread_id": name}})
    with pytest.raises(InvalidUpdateError, match="'b'"):
        await graph.ainvoke({"a": ["one", "two"]}, CONFIG)
    assert len(runs) == 2
    stored = await saver.aget_tuple(CONFIG)
    assert stored is not None
    assert [write[1] for write in stored.pending_writes or ()] == ["b", "__error__"]


# Values


@dataclass
class Point:
    x: int


class Points(TypedDict, total=False):
    a: Point
    b: list[Point]


async def test_the_types_of_the_schema_are_kept_and_rebuilt(cache: Any) -> None:
    runs: list[int] = []

    def move(state: Points) -> Any:
        runs.append(1)
        return {"b": [Point(state["a"].x + 1)]}

    graph = single(move, schema=Points).compile(cache=cache)
    for _ in range(2):
        assert (await graph.ainvoke({"a": Point(1)}))["b"] == [Point(2)]
    assert len(runs) == 1


async def test_a_state_of_a_class_is_keyed_by_its_fields(cache: Any) -> None:
    runs: list[int] = []

    @dataclass
    class Own:
        a: int = 0
        b: int = 0

    def double(state: Own) -> Any:
        runs.append(1)
        return {"b": 2 * state.a}

    graph = single(double, schema=Own).compile(cache=cache)
    for a in (1, 1, 2):
        assert (await graph.ainvoke({"a": a}))["b"] == 2 * a
    assert len(runs) == 2


# Pauses


async def test_breakpoints_stop_before_and_after_a_hit(cache: Any) -> None:
    node = Note()
    warm = single(node).compile(cache=cache)
    await warm.ainvoke({"a": 1})
    graph = single(node).compile(InMemorySaver(), cache=cache, interrupt_before=["n"], interrupt_after=["n"])
    assert await updates(graph, {"a": 1}, CONFIG) == [{"__interrupt__": ()}]
    assert await updates(graph, None, CONFIG) == [{"n": {"log": ["run 1"]}, **CACHED}, {"__interrupt__": ()}]
    assert node.runs == 1


async def test_a_replay_from_an_older_checkpoint_may_be_a_hit(cache: Any) -> None:
    node = Note()
    graph = single(node).compile(InMemorySaver(), cache=cache)
    await graph.ainvoke({"a": 1}, CONFIG)
    (before,) = [one async for one in graph.aget_state_history(CONFIG) if one.next == ("n",)]
    assert (await graph.ainvoke(None, before.config))["log"] == ["run 1"]
    assert node.runs == 1
