"""What a stream shows of subgraphs: nothing, or everything under its path; and streams that nodes follow themselves."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import anyio
import pytest

from runtime.config import get_stream_writer
from runtime.func import entrypoint, task
from runtime.types import Command
from tests.stories.graphs import CONFIG, Log, chain, collect
from tests.stories.nests import Runs

pytestmark = pytest.mark.anyio


def plain(path: tuple[str, ...]) -> tuple[str, ...]:
    """A path without the ids of tasks."""
    return tuple(part.partition(":")[0] for part in path)


def nested() -> Any:
    """Three levels."""
    inner = chain("c").compile()
    return chain("a", ("p", chain("b", ("q", inner)).compile()))


async def test_without_subgraphs_only_the_root_is_shown(saver: Any) -> None:
    chunks = await collect(nested().compile(checkpointer=saver).astream({}, CONFIG, stream_mode="updates"))
    assert [list(chunk) for chunk in chunks] == [["a"], ["p"]]


async def test_with_subgraphs_every_chunk_has_its_path(saver: Any) -> None:
    stream = nested().compile(checkpointer=saver).astream({}, CONFIG, stream_mode="updates", subgraphs=True)
    chunks = await collect(stream)
    assert [(plain(path), list(chunk)) for path, chunk in chunks] == [
        ((), ["a"]),
        (("p",), ["b"]),
        (("p", "q"), ["c"]),
        (("p",), ["q"]),
        ((), ["p"]),
    ]
    (deepest,) = [path for path, _ in chunks if len(path) == 2]
    assert all(part.count(":") == 1 for part in deepest)


async def test_several_modes(saver: Any) -> None:
    stream = nested().compile(checkpointer=saver).astream({}, CONFIG, stream_mode=["updates", "values"], subgraphs=True)
    chunks = await collect(stream)
    assert {mode for _, mode, _ in chunks} == {"updates", "values"}
    assert [plain(path) for path, mode, _ in chunks if mode == "values"][-2:] == [("p",), ()]


@pytest.mark.parametrize("mode", ["tasks", "checkpoints", "debug"])
async def test_other_modes_reach_down_too(saver: Any, mode: str) -> None:
    stream = nested().compile(checkpointer=saver).astream({}, CONFIG, stream_mode=mode, subgraphs=True)
    assert {plain(path) for path, _ in await collect(stream)} == {(), ("p",), ("p", "q")}


@pytest.mark.parametrize("subgraphs", [False, True])
async def test_custom_chunks_of_subgraphs(saver: Any, subgraphs: bool) -> None:
    async def write(_state: Log) -> dict[str, Any]:
        get_stream_writer()("inside")
        return {}

    graph = chain(("p", chain(("w", write)).compile())).compile(checkpointer=saver)
    chunks = await collect(graph.astream({}, CONFIG, stream_mode="custom", subgraphs=subgraphs))
    assert [chunk[1] for chunk in chunks] == (["inside"] if subgraphs else [])


async def test_a_resumed_subgraph_shows_only_what_it_does_now(saver: Any) -> None:
    graph = chain(("p", chain("s", Runs().asker("n"), "t").compile())).compile(checkpointer=saver)
    await graph.ainvoke({}, CONFIG)
    stream = graph.astream(Command(resume="yes"), CONFIG, stream_mode="updates", subgraphs=True)
    assert [(plain(path), list(chunk)) for path, chunk in await collect(stream)] == [
        (("p",), ["n"]),
        (("p",), ["t"]),
        ((), ["p"]),
    ]


async def test_kept_subgraphs_and_further_calls_have_paths_of_their_own(saver: Any) -> None:
    child, kept = chain("s").compile(), chain("k").compile(checkpointer=True)

    async def node(_state: Log) -> dict[str, Any]:
        for graph in (child, child, kept):
            await graph.ainvoke({"log": []})
        return {}

    graph = chain(("f", node)).compile(checkpointer=saver)
    chunks = await collect(graph.astream({}, CONFIG, stream_mode="updates", subgraphs=True))
    assert [plain(path) for path, _ in chunks] == [("f",), ("f", "1"), ("f", "2"), ()]
    assert chunks[2][0] == ("f", "2")


@pytest.mark.parametrize("subgraphs", [False, True])
@pytest.mark.parametrize("sync", [False, True])
async def test_a_node_follows_a_subgraph_itself(saver: Any, subgraphs: bool, sync: bool) -> None:
    child = chain("s1", "s2").compile()
    seen: list[Any] = []

    async def follow(_state: Log) -> dict[str, Any]:
        seen.extend([chunk async for chunk in child.astream({"log": []}, stream_mode="updates")])
        return {"log": ["followed"]}

    def follow_blocking(_state: Log) -> dict[str, Any]:
        seen.extend(child.stream({"log": []}, stream_mode="updates"))
        return {"log": ["followed"]}

    graph = chain(("f", follow_blocking if sync else follow)).compile(checkpointer=saver)
    chunks = await collect(graph.astream({}, CONFIG, stream_mode="updates", subgraphs=subgraphs))
    assert seen == [{"s1": {"log": ["s1"]}}, {"s2": {"log": ["s2"]}}]
    if subgraphs:
        assert [(plain(path), list(chunk)) for path, chunk in chunks] == [
            (("f",), ["s1"]),
            (("f",), ["s2"]),
            ((), ["f"]),
        ]
    else:
        assert chunks == [{"f": {"log": ["followed"]}}]


async def test_a_subgraph_that_a_node_follows_pauses_the_node(saver: Any) -> None:
    runs = Runs()
    child = chain(runs.step("s"), runs.asker("n")).compile()

    async def follow(_state: Log) -> dict[str, Any]:
        return {"log": [name async for chunk in child.astream({"log": []}, stream_mode="updates") for name in chunk]}

    graph = chain(("f", follow)).compile(checkpointer=saver)
    result = await graph.ainvoke({}, CONFIG)
    assert [one.value for one in result["__interrupt__"]] == ["n?"]
    assert await graph.ainvoke(Command(resume="yes"), CONFIG) == {"log": ["n"]}
    assert runs == {"s": 1, "n": 2}


async def test_a_node_that_leaves_a_followed_subgraph_ends_it(saver: Any) -> None:
    ended: list[str] = []

    async def forever(_state: Log) -> dict[str, Any]:
        try:
            await anyio.sleep_forever()
        finally:
            ended.append("forever")
        return {}

    child = chain("s", ("forever", forever)).compile()

    async def follow(_state: Log) -> dict[str, Any]:
        async with child.astream({"log": []}, stream_mode="updates") as stream:
            async for chunk in stream:
                return {"log": list(chunk)}
        return {}

    graph = chain(("f", follow)).compile(checkpointer=saver)
    assert await graph.ainvoke({}, CONFIG) == {"log": ["s"]}
    assert ended in ([], ["forever"])  # it may have been left before that node began
    assert child.statistics() == ()


async def test_a_slow_consumer_slows_subgraphs(saver: Any) -> None:
    graph = chain(("p", chain(*(f"s{number}" for number in range(20))).compile())).compile(checkpointer=saver)
    stream = graph.astream({}, CONFIG, stream_mode=["updates", "values", "debug"], subgraphs=True)
    count = 0
    async with stream:
        async for _ in stream:
            await anyio.lowlevel.checkpoint()
            count += 1
            assert stream.statistics().waiting <= stream.statistics().capacity
    assert count > 60


async def test_both_consumers_see_the_same_run_in_their_own_modes(saver: Any) -> None:
    runs = Runs()
    child = chain(runs.step("s"), runs.failer("bad", error=ValueError)).compile()
    inner: list[Any] = []

    async def follow(_state: Log) -> dict[str, Any]:
        get_stream_writer()("following")
        stream = child.astream({"log": []}, stream_mode=["values", "tasks", "checkpoints"])
        try:
            inner.extend([chunk async for chunk in stream])
        finally:
            assert stream.statistics().capacity > 0
        return {}

    graph = chain(("f", follow)).compile(checkpointer=saver)
    outer: list[Any] = []
    inputs: list[Any] = [{}, None]
    for given in inputs:
        with suppress(ValueError):
            stream = graph.astream(given, CONFIG, stream_mode=["updates", "values", "tasks", "custom"], subgraphs=True)
            outer += await collect(stream)
    assert {mode for mode, _ in inner} == {"values", "tasks", "checkpoints"}
    assert {(plain(path), mode) for path, mode, _ in outer} >= {
        (("f",), "updates"),
        (("f",), "values"),
        (("f",), "tasks"),
        ((), "custom"),
    }
    assert runs == {"s": 1, "bad": 2}


async def test_tasks_of_workflows_are_shown_to_both(saver: Any) -> None:
    @task
    async def work(number: int) -> int:
        get_stream_writer()(number)
        return number + 1

    @entrypoint()
    async def flow(number: int) -> int:
        return await work(number)

    inner: list[Any] = []

    async def follow(_state: Log) -> dict[str, Any]:
        inner.extend([chunk async for chunk in flow.astream(1, stream_mode=["updates", "custom", "tasks"])])
        return {}

    graph = chain(("f", follow)).compile(checkpointer=saver)
    chunks = await collect(graph.astream({}, CONFIG, stream_mode=["updates", "custom", "tasks"], subgraphs=True))
    assert [(mode, chunk) for path, mode, chunk in chunks if plain(path) == ("flow",)] == []
    assert [(mode, chunk) for path, mode, chunk in chunks if plain(path)[:1] == ("f",)] == inner
    assert {plain(path) for path, mode, _ in chunks if mode == "custom"} == {("f", "flow")}  # where the call was made
    assert ("updates", {"work": 2}) in inner
    assert ("custom", 1) in inner
