"""A pause that a consumer has seen is durable: a second connection finds it in the database at that moment."""

from __future__ import annotations

from typing import Any

import pytest

from persistence.sqlite import SqliteSaver
from runtime.types import Command, Durability, interrupt
from tests.stories.graphs import CONFIG, Log, chain, fan
from tests.stories.nests import Runs, questions

pytestmark = pytest.mark.anyio

MODES = ["updates", "values", "tasks", "debug"]
DURABILITIES: list[Durability] = ["sync", "async", "exit"]


def told(chunk: Any) -> list[str]:
    """The ids of the questions that a chunk shows, whatever its mode."""
    if isinstance(chunk, dict) and "payload" in chunk:
        chunk = chunk["payload"]
    if not isinstance(chunk, dict):
        return []
    found = [one.id for one in chunk.get("__interrupt__", ())]
    return found + [one["id"] for one in chunk.get("interrupts", ()) if isinstance(one, dict)]


async def stored(database: str, graph: Any) -> list[str]:
    """The ids of the questions that another connection finds pending."""
    async with SqliteSaver.from_conn_string(database) as other:
        reader = graph.builder.compile(checkpointer=other)
        return [one.id for one in (await reader.aget_state(CONFIG)).interrupts]


async def watched(database: str, graph: Any, given: Any, durability: Durability) -> int:
    """Stream a run; whenever a chunk tells of a question, look for it from a second connection."""
    seen = 0
    stream = graph.astream(given, CONFIG, stream_mode=MODES, subgraphs=True, durability=durability)
    async with stream:
        async for _, _, chunk in stream:
            ids = told(chunk)
            if ids:
                seen += 1
                assert set(ids) <= set(await stored(database, graph))
    return seen


@pytest.fixture
async def opened(database: str) -> Any:
    """A saver on a file."""
    async with SqliteSaver.from_conn_string(database) as saver:
        yield saver


@pytest.mark.parametrize("durability", DURABILITIES)
async def test_of_a_node(database: str, opened: Any, durability: Durability) -> None:
    graph = chain("a", Runs().asker("n")).compile(checkpointer=opened)
    assert await watched(database, graph, {}, durability) == 4


@pytest.mark.parametrize("durability", DURABILITIES)
async def test_of_nodes_side_by_side(database: str, opened: Any, durability: Durability) -> None:
    graph = fan(Runs().asker("l"), Runs().asker("r"), "s").compile(checkpointer=opened)
    assert await watched(database, graph, {}, durability) == 7


@pytest.mark.parametrize("durability", DURABILITIES)
async def test_of_a_subgraph(database: str, opened: Any, durability: Durability) -> None:
    inner = chain("s", Runs().asker("n")).compile()
    graph = chain("a", ("p", chain("m", ("q", inner)).compile())).compile(checkpointer=opened)
    assert await watched(database, graph, {}, durability) == 12


@pytest.mark.parametrize("durability", DURABILITIES)
async def test_of_the_next_question_after_an_answer(database: str, opened: Any, durability: Durability) -> None:
    graph = chain(("p", chain(Runs().asker("n", "q1", "q2")).compile())).compile(checkpointer=opened)
    await graph.ainvoke({}, CONFIG, durability=durability)
    assert await watched(database, graph, Command(resume="A"), durability) == 8


@pytest.mark.parametrize("durability", DURABILITIES)
async def test_whoever_leaves_at_the_question_can_answer_it(database: str, opened: Any, durability: Durability) -> None:
    graph = chain("a", ("p", chain("s", Runs().asker("n")).compile())).compile(checkpointer=opened)
    stream = graph.astream({}, CONFIG, stream_mode="updates", subgraphs=True, durability=durability)
    async with stream:
        async for _, chunk in stream:
            if told(chunk):
                break
    async with SqliteSaver.from_conn_string(database) as other:
        again = graph.builder.compile(checkpointer=other)
        result = await again.ainvoke(Command(resume="yes"), CONFIG)
    assert result["log"][-1] == "n:yes"


@pytest.mark.parametrize("durability", DURABILITIES)
async def test_a_breakpoint_is_durable_when_told(database: str, opened: Any, durability: Durability) -> None:
    graph = chain("a", "b").compile(checkpointer=opened, interrupt_before=["b"])
    async with SqliteSaver.from_conn_string(database) as other:
        reader = graph.builder.compile(checkpointer=other)
        found = []
        async for chunk in graph.astream({}, CONFIG, stream_mode="updates", durability=durability):
            if "__interrupt__" in chunk:
                found.append((await reader.aget_state(CONFIG)).next)
        assert found == [("b",)]


@pytest.mark.parametrize("durability", DURABILITIES)
async def test_every_step_of_a_conversation_survives_a_restart(database: str, durability: Durability) -> None:
    runs = Runs()

    async def node(_state: Log) -> dict[str, Any]:
        runs["f"] += 1
        noted = (await first.ainvoke({"log": []}))["log"]
        noted += [f"own:{interrupt('own')}"]
        noted += (await second.ainvoke({"log": []}))["log"]
        return {"log": noted}

    first = chain(runs.step("a"), runs.asker("b", "b1", "b2")).compile()
    second = chain(runs.step("c"), runs.asker("d")).compile()
    answers = {"b1": "1", "b2": "2", "own": "3", "d?": "4"}
    result: dict[str, Any] = {}
    given: Any = {}
    for name in [*answers, None]:
        async with SqliteSaver.from_conn_string(database) as saver:
            graph = chain(("f", node), "end").compile(checkpointer=saver)
            result = await graph.ainvoke(given, CONFIG, durability=durability)
            if name is not None:
                ids = questions(result)
                assert list(ids) == [name]
                given = Command(resume={ids[name]: answers[name]})
    assert result == {"log": ["a", "b:1", "b:2", "own:3", "c", "d:4", "end"]}
    assert runs == {"f": 5, "a": 1, "b": 3, "c": 1, "d": 2}
