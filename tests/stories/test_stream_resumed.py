"""In which order a stream tells of a superstep, and what it tells of work that was done before."""

import re
from typing import Any

import pytest

from persistence.memory import InMemoryCache
from runtime.func import entrypoint, task
from runtime.graph import START, StateGraph
from runtime.types import CachePolicy, Command, interrupt
from tests.stories.graphs import CONFIG, Gate, Log, chain, collect, fan, history, note, thread
from tests.stories.test_stream_beside_langgraph import PLACES, library, plain

pytestmark = pytest.mark.anyio

MODES = ["values", "updates", "tasks", "checkpoints"]


def brief(mode: str, told: Any) -> Any:
    """Return what a chunk is about."""
    if mode == "tasks":
        return ("start" if "input" in told else "end", told["name"])
    if mode == "checkpoints":
        return (mode, told["metadata"]["source"], told["metadata"]["step"], tuple(told["next"]))
    if mode == "values":
        return (mode, *told.get("log", ()), *("asked" for _ in told.get("__interrupt__", ())))
    cached = "__metadata__" in told
    return ("cached" if cached else mode, next(iter(told)))


async def told(graph: Any, given: Any, config: Any = CONFIG, modes: list[str] = MODES) -> list[Any]:
    """Return what the chunks of a run are about."""
    return [brief(mode, one) for mode, one in await collect(graph.astream(given, config, stream_mode=modes))]


async def test_a_checkpoint_is_told_after_the_values_it_has(saver: Any) -> None:
    graph = chain("a").compile(checkpointer=saver)
    assert await told(graph, {"log": []}) == [
        ("checkpoints", "input", -1, (START,)),
        ("values",),
        ("checkpoints", "loop", 0, ("a",)),
        ("start", "a"),
        ("updates", "a"),
        ("end", "a"),
        ("values", "a"),
        ("checkpoints", "loop", 1, ()),
    ]
    assert await told(graph, None) == [("values", "a"), ("checkpoints", "loop", 1, ())]


async def test_debug_tells_of_the_checkpoint_that_a_run_goes_on_from(saver: Any) -> None:
    graph = chain("a").compile(checkpointer=saver)
    await graph.ainvoke({}, CONFIG)
    (only,) = await collect(graph.astream(None, CONFIG, stream_mode="debug"))
    head = await graph.aget_state(CONFIG)
    assert (only["type"], only["step"]) == ("checkpoint", 1)
    assert only["payload"] == {
        "config": head.config,
        "parent_config": head.parent_config,
        "values": head.values,
        "metadata": head.metadata,
        "next": [],
        "tasks": [],
    }


async def test_a_resumed_run_tells_what_was_stored_of_its_superstep(saver: Any) -> None:
    gate = Gate("ok")
    graph = fan("ok", ("bad", gate.fail)).compile(checkpointer=saver)
    with pytest.raises(ValueError, match="boom"):
        await gate.run(graph, {}, CONFIG)
    gate.mended = True
    chunks = await collect(graph.astream(None, CONFIG, stream_mode=MODES))
    assert [brief(mode, one) for mode, one in chunks] == [
        ("values", "st"),
        ("checkpoints", "loop", 1, ("bad", "ok")),
        ("start", "bad"),
        ("start", "ok"),
        ("cached", "ok"),
        ("updates", "bad"),
        ("end", "bad"),
        ("values", "st", "bad", "ok"),
        ("checkpoints", "loop", 2, ("join",)),
        ("start", "join"),
        ("updates", "join"),
        ("end", "join"),
        ("values", "st", "bad", "ok", "join"),
        ("checkpoints", "loop", 3, ()),
    ]
    stored = (await history(graph))[2]
    ids = {one.name: one.id for one in stored.tasks}
    assert chunks[1][1]["tasks"] == [
        {"id": ids["bad"], "name": "bad", "error": "ValueError('boom')", "state": None},
        {"id": ids["ok"], "name": "ok", "result": {"log": ["ok"]}, "interrupts": (), "state": None},
    ]
    assert chunks[1][1]["config"] == stored.config


async def test_an_answered_run_tells_the_question_that_it_goes_on_from(saver: Any) -> None:
    graph = chain("a", ("ask", lambda _: {"log": [interrupt("q")]})).compile(checkpointer=saver)
    asked = (await graph.ainvoke({}, CONFIG))["__interrupt__"][0]
    chunks = await collect(graph.astream(Command(resume="yes"), CONFIG, stream_mode="checkpoints"))
    (waiting,) = chunks[0]["tasks"]
    assert waiting["interrupts"] == ({"value": "q", "id": asked.id, "response_schema": None},)
    assert [one["metadata"]["step"] for one in chunks] == [1, 2]


async def test_going_back_tells_of_the_branch_after_the_state_that_it_starts_from(saver: Any) -> None:
    graph = chain("a", "b").compile(checkpointer=saver)
    await graph.ainvoke({}, CONFIG)
    old = (await history(graph))[1]
    assert (await told(graph, None, old.config))[:3] == [
        ("values", "a"),
        ("checkpoints", "fork", 2, ("b",)),
        ("start", "b"),
    ]


async def test_a_checkpoint_says_where_subgraphs_keep_their_state(saver: Any) -> None:
    child = chain("inner").compile()
    graph = chain(("sub", child)).compile(checkpointer=saver)
    chunks = await collect(graph.astream({}, CONFIG, stream_mode="checkpoints"))
    (due,) = chunks[1]["tasks"]
    assert due["state"] == {"configurable": {"thread_id": "t", "checkpoint_ns": f"sub:{due['id']}"}}
    assert due["state"] == (await history(graph))[1].tasks[0].state


async def test_a_question_beside_a_failure_is_told_before_the_run_fails(saver: Any) -> None:
    gate = Gate("ok")
    nodes: list[Any] = ["ok", ("ask", lambda _: {"log": [interrupt("q")]}), ("bad", gate.fail)]
    graph = fan(*nodes, first=None, last=None).compile(checkpointer=saver)
    chunks = []

    async def follow() -> None:
        async for mode, one in graph.astream({}, CONFIG, stream_mode=MODES):
            chunks.append(brief(mode, one))
            if chunks[-1] == ("end", "ok"):
                gate.open.set()

    with pytest.raises(ValueError, match="boom"):
        await follow()
    at = chunks.index(("end", "bad"))
    assert chunks[at:] == [
        ("end", "bad"),
        ("updates", "__interrupt__"),
        ("values", "ok", "asked"),
        ("end", "ask"),
    ]
    assert [one.value for one in (await graph.aget_state(CONFIG)).interrupts] == ["q"]


@pytest.mark.parametrize("version", ["v1", "v2"])
async def test_a_cached_result_starts_and_has_no_end(saver: Any, version: Any) -> None:
    builder = StateGraph(Log).add_node("a", note("a"), cache_policy=CachePolicy()).add_edge(START, "a")
    graph = builder.compile(checkpointer=saver, cache=InMemoryCache())
    await graph.ainvoke({}, CONFIG)
    chunks = await collect(graph.astream({}, thread("other"), stream_mode=["tasks", "updates"], version=version))
    if version == "v2":
        chunks = [(part["type"], part["data"]) for part in chunks]
    assert [brief(mode, one) for mode, one in chunks] == [("start", "a"), ("cached", "a")]


async def test_a_cached_call_starts_and_has_no_end(saver: Any) -> None:
    @task(cache_policy=CachePolicy())
    async def double(x: int) -> int:
        return 2 * x

    @entrypoint(checkpointer=saver, cache=InMemoryCache())
    async def flow(x: int) -> int:
        return await double(x)

    await flow.ainvoke(1, CONFIG)
    assert await told(flow, 1, thread("other"), ["tasks", "updates"]) == [
        ("start", "flow"),
        ("start", "double"),
        ("cached", "double"),
        ("updates", "flow"),
        ("end", "flow"),
    ]


async def asked_and_answered(of: Any) -> list[Any]:
    """Tell of a pause, its answer, a run with nothing left to do, and one that goes back, here or there."""
    builder = of.StateGraph(Log)
    nodes = [("a", lambda _: {"log": ["a"]}), ("ask", lambda _: {"log": [of.interrupt("q")]})]
    graph = builder.add_sequence(nodes).add_edge(of.START, "a").compile(of.InMemorySaver())
    chunks = []
    inputs: list[Any] = [{"log": []}, of.Command(resume="yes"), None]
    for given in inputs:
        chunks.append(await collect(graph.astream(given, CONFIG, stream_mode=MODES)))
    old = [one async for one in graph.aget_state_history(CONFIG) if one.next == ("a",)]
    chunks.append(await collect(graph.astream(None, old[0].config, stream_mode=MODES)))
    chunks.append(await collect(graph.astream(of.Command(resume="no"), CONFIG, stream_mode=MODES)))
    return [(mode, without_ids(plain(one))) for run in chunks for mode, one in run]


def without_ids(value: Any) -> Any:
    """Return what a chunk tells, without the ids of questions."""
    if isinstance(value, dict):
        return {key: without_ids(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(without_ids(one) for one in value)
    return re.sub(r"^[0-9a-f]{32}$", "ID", value) if isinstance(value, str) else value


@pytest.mark.parametrize("anyio_backend", [pytest.param(("asyncio", {}), id="asyncio")])
async def test_langgraph_tells_the_same() -> None:
    pytest.importorskip("langgraph")
    here, there = [await asked_and_answered(library(name)) for name in PLACES]
    assert here == there
