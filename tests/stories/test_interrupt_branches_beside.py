"""Old questions of calls and subgraphs, answered again where other nodes were due: these keep what they had."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from runtime.func import task
from runtime.graph import START, StateGraph
from runtime.types import Command, interrupt
from tests.stories.graphs import CONFIG, Log, chain
from tests.stories.nests import Runs, asked, questions

pytestmark = pytest.mark.anyio

ASKERS = ["itself", "a call", "a call of a call", "a subgraph", "a kept subgraph", "a subgraph of a call"]


class Beside:
    """Two nodes side by side: one asks twice, below it and itself; and what the other does."""

    def __init__(self, asker: str, neighbour: str) -> None:
        self.asker, self.neighbour = asker, neighbour
        self.runs = Runs()
        self.ask, self.outer, self.run = (task(each) for each in (self._ask, self._outer, self._run))
        self.failed = False

    async def _ask(self, name: str) -> str:
        self.runs[f"ask {name}"] += 1
        return f"{name}={interrupt(name)}"

    async def _outer(self, name: str) -> str:
        return await self.ask(name)

    async def _run(self, name: str) -> str:
        return await self.below(name, None)

    async def below(self, name: str, saver: Any) -> str:
        """Ask in a subgraph."""
        graph = chain(self.runs.step(f"before {name}"), (name, self.node(name))).compile(checkpointer=saver)
        return str((await graph.ainvoke({"log": []}))["log"][-1])

    def node(self, name: str) -> Any:
        """Return a node that asks."""

        async def node(_state: Log) -> dict[str, Any]:
            return {"log": [await self._ask(name)]}

        return node

    async def first(self, _state: Log) -> dict[str, Any]:
        """Ask below, and then itself."""
        self.runs["first"] += 1
        how: dict[str, Callable[[], Awaitable[str]]] = {
            "itself": lambda: self._ask("q1"),
            "a call": lambda: self.ask("q1"),
            "a call of a call": lambda: self.outer("q1"),
            "a subgraph": lambda: self.below("q1", None),
            "a kept subgraph": lambda: self.below("q1", True),
            "a subgraph of a call": lambda: self.run("q1"),
        }
        return {"log": [await how[self.asker](), f"q2={interrupt('q2')}"]}

    async def other(self, _state: Log) -> dict[str, Any]:
        """Be beside it."""
        self.runs["other"] += 1
        if self.neighbour == "fails" and not self.failed:
            raise ConnectionError
        if self.neighbour == "asks":
            return {"log": [await self._ask("n")]}
        if self.neighbour == "asks in a call":
            return {"log": [await self.ask("n")]}
        if self.neighbour == "asks in a subgraph":
            return {"log": [await self.below("n", None)]}
        return {"log": ["other"]}

    def graph(self, saver: Any) -> Any:
        """Return the graph."""
        builder = StateGraph(Log).add_node("first", self.first).add_node("other", self.other)
        return builder.add_edge(START, "first").add_edge(START, "other").compile(checkpointer=saver)


async def stored(saver: Any) -> dict[str, Any]:
    """Return all that the thread has stored."""
    return {
        one.checkpoint["id"]: (one.checkpoint["channel_values"], one.metadata, sorted(map(repr, one.pending_writes)))
        async for one in saver.alist(CONFIG)
    }


@pytest.mark.parametrize("neighbour", ["finished", "asks", "asks in a call", "asks in a subgraph"])
@pytest.mark.parametrize("asker", ASKERS)
async def test_the_first_question_of_one_of_two_nodes(saver: Any, asker: str, neighbour: str) -> None:
    program = Beside(asker, neighbour)
    graph, runs = program.graph(saver), program.runs
    ids: dict[str, str] = {}
    result = await graph.ainvoke({"log": []}, CONFIG)
    there = (await graph.aget_state(CONFIG)).config
    while now := questions(result):
        ids |= now
        result = await graph.ainvoke(Command(resume=dict.fromkeys(now.values(), "old")), CONFIG)
    others = {"finished": "other"}.get(neighbour, "n=old")
    assert result == {"log": ["q1=old", "q2=old", others]}
    before, ran = await stored(saver), runs.copy()
    for answer in ("new", "newer"):
        result = await graph.ainvoke(Command(resume={ids["q1"]: answer}), there)
        assert asked(result) == ["q2"]
        result = await graph.ainvoke(Command(resume="again"), CONFIG)
        assert result == {"log": [f"q1={answer}", "q2=again", others]}
    after = await stored(saver)
    assert {key: after[key] for key in before} == before
    assert (runs["other"], runs["before q1"]) == (ran["other"], ran["before q1"])


@pytest.mark.parametrize("neighbour", ["asks", "asks in a call", "asks in a subgraph"])
@pytest.mark.parametrize("asker", ASKERS)
async def test_the_other_still_waits(saver: Any, asker: str, neighbour: str) -> None:
    program = Beside(asker, neighbour)
    graph, runs = program.graph(saver), program.runs
    ids = questions(await graph.ainvoke({"log": []}, CONFIG))
    there = (await graph.aget_state(CONFIG)).config
    await graph.ainvoke(Command(resume={ids["q1"]: "old"}), CONFIG)
    await graph.ainvoke(None, there)  # so that the thread has left it
    ran = runs.copy()
    result = await graph.ainvoke(Command(resume={ids["q1"]: "new"}), there)
    assert asked(result) == ["n", "q2"]
    now = questions(result)
    result = await graph.ainvoke(Command(resume={now["n"]: "N", now["q2"]: "Q"}), CONFIG)
    assert result == {"log": ["q1=new", "q2=Q", "n=N"]}
    assert (runs["before q1"], runs["before n"]) == (ran["before q1"], ran["before n"])


@pytest.mark.parametrize("asker", ASKERS)
async def test_the_other_had_failed(saver: Any, asker: str) -> None:
    program = Beside(asker, "fails")
    graph = program.graph(saver)
    with pytest.raises(ConnectionError):
        await graph.ainvoke({"log": []}, CONFIG)
    program.failed = True
    ids = questions(await graph.ainvoke(None, CONFIG))
    there = (await graph.aget_state(CONFIG)).config
    for answer in ("old", "old"):
        await graph.ainvoke(Command(resume=answer), CONFIG)
    program.failed = False
    with pytest.raises(ConnectionError):
        await graph.ainvoke(None, there)
    program.failed = True
    result = await graph.ainvoke(Command(resume={ids["q1"]: "new"}), there)
    assert asked(result) == ["q2"]
    result = await graph.ainvoke(Command(resume="again"), CONFIG)
    assert result == {"log": ["q1=new", "q2=again", "other"]}
