"""Old questions of calls and of subgraphs, answered again: a branch is made, what the answer does not reach stays."""

from __future__ import annotations

from collections import Counter
from typing import Any

import anyio
import pytest

from persistence.memory import InMemorySaver
from persistence.sqlite import SqliteSaver
from runtime.errors import UnknownInterruptError
from runtime.func import entrypoint, task
from runtime.graph import START, StateGraph
from runtime.types import Command, interrupt
from tests.stories.asking import all_of
from tests.stories.graphs import CONFIG, Log, chain
from tests.stories.nests import Runs, questions

pytestmark = pytest.mark.anyio


async def stored(saver: Any) -> dict[tuple[str, str], Any]:
    """Return all that a thread has stored, by namespace and checkpoint."""
    found = {}
    async for one in saver.alist(CONFIG):
        where = one.config["configurable"]
        key = where["checkpoint_ns"], where["checkpoint_id"]
        found[key] = one.checkpoint["channel_values"], one.metadata, sorted(map(repr, one.pending_writes))
    return found


async def answered(graph: Any, given: Any, **answers: str) -> tuple[Any, Any, dict[str, str]]:
    """Run a graph to its end; return its result, the config of the first pause, and the ids of the questions."""
    ids: dict[str, str] = {}
    result = await graph.ainvoke(given, CONFIG)
    paused = (await graph.aget_state(CONFIG)).config
    while asked := questions(result) if isinstance(result, dict) else {}:
        ids |= asked
        result = await graph.ainvoke(Command(resume={asked[name]: answers[name] for name in asked}), CONFIG)
    return result, paused, ids


class Calls:
    """A workflow of calls that ask."""

    def __init__(self, saver: Any, *, at_once: bool = False) -> None:
        self.runs: Counter[str] = Counter()
        self.ask = task(self._ask, name="ask")
        self.work = task(self._work, name="work")
        self.at_once = at_once
        self.flow = entrypoint(checkpointer=saver)(self.workflow)

    async def _ask(self, question: str) -> str:
        self.runs[question] += 1
        return f"{question}={interrupt(question)}"

    async def _work(self, given: str) -> str:
        self.runs[given] += 1
        return given.upper()

    async def workflow(self, _given: str) -> list[str]:
        """Ask, at once or in turn, with work before, between and after."""
        before = await self.work("before")
        if self.at_once:
            return [before, *await all_of([self.ask("q1"), self.ask("q2")]), await self.work("after")]
        first = await self.ask("q1")
        between = await self.work(f"after {first}")
        return [before, first, between, await self.ask("q2"), await self.work("after")]


async def test_the_last_question_of_calls_in_turn(saver: Any) -> None:
    calls = Calls(saver)
    result, paused, ids = await answered(calls.flow, "go", q1="A", q2="B")
    assert result == ["BEFORE", "q1=A", "AFTER Q1=A", "q2=B", "AFTER"]
    before, runs = await stored(saver), Counter(calls.runs)
    for resume in ("C", {ids["q2"]: "C"}):
        assert (await calls.flow.ainvoke(Command(resume=resume), paused))[3] == "q2=C"
    assert calls.runs - runs == Counter({"q2": 2, "after": 2})
    after = await stored(saver)
    assert {key: after[key] for key in before} == before


async def test_the_first_question_of_calls_in_turn_undoes_what_came_after_it(saver: Any) -> None:
    calls = Calls(saver)
    _, paused, ids = await answered(calls.flow, "go", q1="A", q2="B")
    before, runs = await stored(saver), Counter(calls.runs)
    result = await calls.flow.ainvoke(Command(resume={ids["q1"]: "Z"}), paused)
    again = questions(result)
    assert list(again) == ["q2"]
    assert again["q2"] != ids["q2"]
    assert await calls.flow.ainvoke(Command(resume="Y"), CONFIG) == ["BEFORE", "q1=Z", "AFTER Q1=Z", "q2=Y", "AFTER"]
    assert calls.runs - runs == Counter({"q1": 1, "after q1=Z": 1, "q2": 2, "after": 1})
    after = await stored(saver)
    assert {key: after[key] for key in before} == before


@pytest.mark.parametrize("name", ["q1", "q2"])
async def test_calls_made_at_once_keep_their_own_answers(saver: Any, name: str) -> None:
    calls = Calls(saver, at_once=True)
    _, paused, ids = await answered(calls.flow, "go", q1="A", q2="B")
    with pytest.raises(UnknownInterruptError, match="multiple"):
        await calls.flow.ainvoke(Command(resume="which?"), paused)
    before, runs = await stored(saver), Counter(calls.runs)
    result = await calls.flow.ainvoke(Command(resume={ids[name]: "Z"}), paused)
    assert result == [
        "BEFORE",
        *(f"{each}={'Z' if each == name else old}" for each, old in zip(ids, "AB", strict=True)),
        "AFTER",
    ]
    assert calls.runs - runs == Counter({name: 1, "after": 1})
    after = await stored(saver)
    assert {key: after[key] for key in before} == before


async def test_an_answer_that_is_not_given_yet_is_asked_for_on_the_branch(saver: Any) -> None:
    calls = Calls(saver, at_once=True)
    ids = questions(await calls.flow.ainvoke("go", CONFIG))
    paused = (await calls.flow.aget_state(CONFIG)).config
    await calls.flow.ainvoke(Command(resume={ids["q1"]: "A", ids["q2"]: "B"}), CONFIG)
    await calls.flow.ainvoke(None, paused)  # a branch on which both are asked
    fresh = questions(await calls.flow.ainvoke(None, CONFIG))
    branch = (await calls.flow.aget_state(CONFIG)).config
    assert list(questions(await calls.flow.ainvoke(Command(resume={fresh["q1"]: "1"}), CONFIG))) == ["q2"]
    await calls.flow.ainvoke(None, paused)  # the thread moves on
    result = await calls.flow.ainvoke(Command(resume={fresh["q2"]: "2"}), branch)
    assert result == ["BEFORE", "q1=1", "q2=2", "AFTER"]


@pytest.mark.parametrize("depth", [1, 2])
async def test_calls_of_calls(saver: Any, depth: int) -> None:
    calls = Calls(saver)

    @task
    async def outer(level: int) -> list[str]:
        calls.runs[f"outer{level}"] += 1
        if level:
            return [f"<{each}>" for each in await outer(level - 1)]
        return [await calls.work("before"), await calls.ask("q1"), await calls.ask("q2")]

    @entrypoint(checkpointer=saver)
    async def flow(_given: str) -> list[str]:
        return [*await outer(depth), await calls.ask("q3")]

    result, paused, ids = await answered(flow, "go", q1="A", q2="B", q3="C")
    left, right = "<" * depth, ">" * depth
    assert result == [*(f"{left}{each}{right}" for each in ("BEFORE", "q1=A", "q2=B")), "q3=C"]
    before, runs = await stored(saver), Counter(calls.runs)
    result = await flow.ainvoke(Command(resume={ids["q3"]: "Z"}), paused)
    assert result[1:] == [f"{left}q1=A{right}", f"{left}q2=B{right}", "q3=Z"]
    assert calls.runs - runs == Counter({"q3": 1})
    runs = Counter(calls.runs)
    again = questions(await flow.ainvoke(Command(resume={ids["q2"]: "Y"}), paused))
    assert list(again) == ["q3"]
    assert calls.runs - runs == Counter({**{f"outer{each}": 1 for each in range(depth + 1)}, "q2": 1, "q3": 1})
    result = await flow.ainvoke(Command(resume={again["q3"]: "X"}), CONFIG)
    assert result == [*(f"{left}{each}{right}" for each in ("BEFORE", "q1=A", "q2=Y")), "q3=X"]
    after = await stored(saver)
    assert {key: after[key] for key in before} == before


async def test_a_question_of_the_caller_after_the_answered_one_is_asked_again(saver: Any) -> None:
    calls = Calls(saver)

    async def node(_state: Log) -> Any:
        first = interrupt("own1")
        called = await calls.ask("q1")
        return {"log": [first, called, interrupt(f"own2 after {called}")]}

    graph = chain(("n", node)).compile(checkpointer=saver)
    _, paused, ids = await answered(graph, {"log": []}, **{"own1": "1", "q1": "A", "own2 after q1=A": "2"})
    again = questions(await graph.ainvoke(Command(resume={ids["q1"]: "Z"}), paused))
    assert list(again) == ["own2 after q1=Z"]
    assert (await graph.ainvoke(Command(resume="3"), CONFIG))["log"] == ["1", "q1=Z", "3"]


async def test_a_failed_call_is_made_again_on_the_branch(saver: Any) -> None:
    calls, tries = Calls(saver), Runs()

    @task
    async def fail() -> str:
        tries["fail"] += 1
        if tries["fail"] == 1:
            raise ConnectionError
        return "made good"

    @entrypoint(checkpointer=saver)
    async def flow(_given: str) -> list[str]:
        return [await calls.ask("q1"), await fail()]

    await flow.ainvoke("go", CONFIG)
    paused = (await flow.aget_state(CONFIG)).config
    with pytest.raises(ConnectionError):
        await flow.ainvoke(Command(resume="A"), CONFIG)
    await flow.ainvoke("next", CONFIG)  # the thread moves on
    assert await flow.ainvoke(Command(resume="B"), paused) == ["q1=B", "made good"]


async def test_with_an_update_on_a_checkpoint_that_had_a_command(saver: Any) -> None:
    runs = Runs()
    calls = Calls(saver)

    async def node(_state: Log) -> Any:
        return {"log": [await calls.work("before"), await calls.ask("q1")]}

    builder = StateGraph(Log).add_node("n", node).add_node(*runs.step("other")).add_edge(START, "n")
    graph = builder.compile(checkpointer=saver)
    await graph.ainvoke({"log": []}, CONFIG)
    await graph.ainvoke(Command(update={"a": 1}), CONFIG)
    result = await graph.ainvoke(Command(resume="yes", update={"a": 2}), CONFIG)
    assert result == {"a": 2, "log": ["BEFORE", "q1=yes"]}
    assert calls.runs["before"] == 1


async def test_after_a_restart(database: str) -> None:
    runs: Counter[str] = Counter()
    paused: Any = None
    results = []
    steps: list[Any] = ["go", Command(resume="A"), Command(resume="B"), Command(resume="C")]
    for given in steps:
        async with SqliteSaver.from_conn_string(database) as saver:
            calls = Calls(saver)
            results.append(await calls.flow.ainvoke(given, CONFIG if given != steps[3] else paused))
            runs += calls.runs
            if given == steps[1]:
                paused = None
            paused = paused or (await calls.flow.aget_state(CONFIG)).config
    assert results[2] == ["BEFORE", "q1=A", "AFTER Q1=A", "q2=B", "AFTER"]
    assert results[3] == ["BEFORE", "q1=A", "AFTER Q1=A", "q2=C", "AFTER"]
    assert runs == Counter({"before": 1, "q1": 2, "after q1=A": 1, "q2": 3, "after": 2})


# Subgraphs with a saver of their own


class OwnSavers:
    """A graph whose node runs subgraphs that each have a saver of their own."""

    def __init__(self, *names: str, at_once: bool = False) -> None:
        self.runs = Runs()
        self.savers = {name: InMemorySaver() for name in names}
        self.children = {
            name: chain(self.runs.step(f"{name} before"), self.runs.asker(name)).compile(checkpointer=own)
            for name, own in self.savers.items()
        }
        self.at_once = at_once

    async def __call__(self, _state: Log) -> Any:
        """Run all, at once or in turn."""
        logs: dict[str, list[str]] = {}
        children = self.children

        async def one(name: str) -> None:
            logs[name] = (await children[name].ainvoke({"log": []}))["log"]

        if self.at_once:
            async with anyio.create_task_group() as group:
                for name in children:
                    group.start_soon(one, name)
        else:
            for name in children:
                await one(name)
        return {"log": [entry for name in children for entry in logs[name]]}

    async def stored(self) -> list[Any]:
        """Return all that the children have stored."""
        return [await stored(own) for own in self.savers.values()]


@pytest.mark.parametrize("at_once", [False, True])
async def test_subgraphs_with_savers_of_their_own(saver: Any, at_once: bool) -> None:
    own = OwnSavers("l", "r", at_once=at_once)
    children = own.children

    async def node(state: Log) -> Any:
        assert children
        return await own(state)

    graph = chain(("p", node)).compile(checkpointer=saver)
    result, paused, ids = await answered(graph, {"log": []}, **{"l?": "L", "r?": "R"})
    assert result["log"] == ["l before", "l:L", "r before", "r:R"]
    before, below = await stored(saver), await own.stored()
    result = await graph.ainvoke(Command(resume={ids["r?"]: "Z"}), paused)
    assert result["log"] == ["l before", "l:L", "r before", "r:Z"]
    assert own.runs["l before"] == own.runs["r before"] == 1
    after = await stored(saver)
    assert {key: after[key] for key in before} == before
    for old, new in zip(below, await own.stored(), strict=True):
        assert {key: new[key] for key in old} == old


async def test_a_saver_of_its_own_in_a_call(saver: Any) -> None:
    runs, own = Runs(), InMemorySaver()
    child = chain(runs.step("b"), runs.asker("n")).compile(checkpointer=own)

    @task
    async def run() -> Any:
        return (await child.ainvoke({"log": []}))["log"]

    @entrypoint(checkpointer=saver)
    async def flow(_given: str) -> Any:
        return await run()

    result, paused, _ = await answered(flow, "go", **{"n?": "A"})
    assert result == ["b", "n:A"]
    below = await stored(own)
    assert await flow.ainvoke(Command(resume="B"), paused) == ["b", "n:B"]
    assert runs["b"] == 1
    after = await stored(own)
    assert {key: after[key] for key in below} == below


async def test_a_saver_that_no_node_shows_is_refused_before_anything_is_stored(saver: Any) -> None:
    runs, own = Runs(), InMemorySaver()

    async def node(_state: Log) -> Any:
        return await chain(runs.asker("n")).compile(checkpointer=HIDDEN["saver"]).ainvoke({"log": []})

    graph = chain(("p", node)).compile(checkpointer=saver)
    HIDDEN["saver"] = own
    _, paused, _ = await answered(graph, {"log": []}, **{"n?": "A"})
    before = await stored(saver)
    with pytest.raises(UnknownInterruptError, match="go on from there with None"):
        await graph.ainvoke(Command(resume="B"), paused)
    assert await stored(saver) == before
    assert list(questions(await graph.ainvoke(None, paused))) == ["n?"]
    assert (await graph.ainvoke(Command(resume="B"), CONFIG))["log"] == ["n:B"]


HIDDEN: dict[str, Any] = {}


# Between questions of the node's own


def _in_a_call(runs: Runs, _own: Any) -> Any:
    @task
    async def ask(given: str) -> list[str]:
        runs["below"] += 1
        return [f"{given}={interrupt(given)}"]

    return ask


def _in_a_subgraph(runs: Runs, own: Any) -> Any:
    async def ask(state: Log) -> Any:
        runs["below"] += 1
        given = state["log"][-1]
        return {"log": [f"{given}={interrupt(given)}"]}

    child = chain(("ask", ask)).compile(checkpointer=own)

    async def call(given: str) -> list[str]:
        log: list[str] = (await child.ainvoke({"log": [given]}))["log"]
        return log[-1:]

    return call


BELOW = {
    "a call": (_in_a_call, lambda: None),
    "a subgraph": (_in_a_subgraph, lambda: None),
    "a subgraph that keeps its state": (_in_a_subgraph, lambda: True),
    "a subgraph with a saver of its own": (_in_a_subgraph, InMemorySaver),
}


@pytest.mark.parametrize("where", BELOW)
async def test_between_questions_of_the_nodes_own(saver: Any, where: str) -> None:
    runs = Runs()
    make, own = BELOW[where]
    ask = make(runs, own())

    async def node(_state: Log) -> Any:
        runs["node"] += 1
        told = await ask(f"below {interrupt('first')}")
        return {"log": [*told, interrupt(f"last {told[0]}")]}

    graph = chain(("n", node)).compile(checkpointer=saver)
    result, paused, ids = await answered(graph, {"log": []}, **{"first": "1", "below 1": "2", "last below 1=2": "3"})
    assert result["log"] == ["below 1=2", "3"]
    before = await stored(saver)
    ran = runs["below"]

    # The last one: nothing below runs again.
    assert (await graph.ainvoke(Command(resume={ids["last below 1=2"]: "Z"}), paused))["log"] == ["below 1=2", "Z"]
    assert runs["below"] == ran
    # The one below: the node's first answer stays, its last question is put anew.
    result = await graph.ainvoke(Command(resume={ids["below 1"]: "Z"}), paused)
    assert list(questions(result)) == ["last below 1=Z"]
    assert runs["below"] == ran + 1
    assert (await graph.ainvoke(Command(resume="Y"), CONFIG))["log"] == ["below 1=Z", "Y"]
    # The first one: all that came after it is new.
    result = await graph.ainvoke(Command(resume={ids["first"]: "Z"}), paused)
    assert list(questions(result)) == ["below Z"]
    result = await graph.ainvoke(Command(resume="Y"), CONFIG)
    assert list(questions(result)) == ["last below Z=Y"]
    assert (await graph.ainvoke(Command(resume="X"), CONFIG))["log"] == ["below Z=Y", "X"]
    after = await stored(saver)
    assert {key: after[key] for key in before} == before
