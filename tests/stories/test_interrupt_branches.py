"""Answering a stored question again: every answer makes a branch of its own, and each branch is right."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from persistence.sqlite import SqliteSaver
from runtime.errors import UnknownInterruptError
from runtime.graph import START, StateGraph
from runtime.types import Command, interrupt
from tests.stories.graphs import CONFIG, Log, at, chain, fan, history
from tests.stories.nests import Runs, asked, questions

pytestmark = pytest.mark.anyio


async def paused_at(graph: Any, *names: str) -> dict[str, Any]:
    """The config of the newest checkpoint at which these nodes are next."""
    config: dict[str, Any] = at(await history(graph), *names).config
    return config


async def test_two_answers_make_two_branches(saver: Any) -> None:
    runs = Runs()
    graph = chain("a", runs.asker("n"), runs.step("end")).compile(checkpointer=saver)
    await graph.ainvoke({}, CONFIG)
    there = await paused_at(graph, "n")
    assert await graph.ainvoke(Command(resume="one"), there) == {"log": ["a", "n:one", "end"]}
    before = await history(graph)
    assert await graph.ainvoke(Command(resume="two"), there) == {"log": ["a", "n:two", "end"]}
    assert await graph.ainvoke(Command(resume="three"), there) == {"log": ["a", "n:three", "end"]}
    after = await history(graph)
    assert after[-len(before) :] == before
    assert [one.values["log"] for one in after if not one.next] == [
        ["a", "n:three", "end"],
        ["a", "n:two", "end"],
        ["a", "n:one", "end"],
    ]
    assert (await graph.aget_state(CONFIG)).values["log"] == ["a", "n:three", "end"]
    assert runs["n"] == 4


async def test_by_the_questions_id(saver: Any) -> None:
    graph = chain(Runs().asker("n")).compile(checkpointer=saver)
    ids = questions(await graph.ainvoke({}, CONFIG))
    there = await paused_at(graph, "n")
    for answer in ("one", None, "two"):
        assert await graph.ainvoke(Command(resume={ids["n?"]: answer}), there) == {"log": [f"n:{answer}"]}


async def test_an_unknown_id_there_is_refused(saver: Any) -> None:
    graph = chain(Runs().asker("n")).compile(checkpointer=saver)
    await graph.ainvoke({}, CONFIG)
    there = await paused_at(graph, "n")
    await graph.ainvoke(Command(resume="one"), there)
    before = await history(graph)
    with pytest.raises(UnknownInterruptError):
        await graph.ainvoke(Command(resume={"0" * 32: "x"}), there)
    assert await history(graph) == before


async def test_the_later_of_two_questions_is_answered_again(saver: Any) -> None:
    graph = chain(Runs().asker("n", "q1", "q2")).compile(checkpointer=saver)
    await graph.ainvoke({}, CONFIG)
    there = await paused_at(graph, "n")
    await graph.ainvoke(Command(resume="A"), CONFIG)
    await graph.ainvoke(Command(resume="B"), CONFIG)
    assert await graph.ainvoke(Command(resume="C"), there) == {"log": ["n:A", "n:C"]}


async def test_the_earlier_of_two_questions_asks_the_later_one_again(saver: Any) -> None:
    graph = chain(Runs().asker("n", "q1", "q2")).compile(checkpointer=saver)
    ids = questions(await graph.ainvoke({}, CONFIG))
    there = await paused_at(graph, "n")
    await graph.ainvoke(Command(resume="A"), CONFIG)
    await graph.ainvoke(Command(resume="B"), CONFIG)
    result = await graph.ainvoke(Command(resume={ids["q1"]: "Z"}), there)
    assert asked(result) == ["q2"]
    assert await graph.ainvoke(Command(resume="Y"), CONFIG) == {"log": ["n:Z", "n:Y"]}


async def test_a_sibling_keeps_its_own_answer(saver: Any) -> None:
    runs = Runs()
    graph = fan(runs.asker("l"), runs.asker("r"), runs.step("s")).compile(checkpointer=saver)
    ids = questions(await graph.ainvoke({}, CONFIG))
    there = await paused_at(graph, "l", "r", "s")
    await graph.ainvoke(Command(resume={ids["l?"]: "L", ids["r?"]: "R"}), CONFIG)
    with pytest.raises(UnknownInterruptError, match="multiple"):
        await graph.ainvoke(Command(resume="which?"), there)
    result = await graph.ainvoke(Command(resume={ids["r?"]: "other"}), there)
    assert result == {"log": ["st", "l:L", "r:other", "s", "join"]}
    assert (runs["l"], runs["r"], runs["s"]) == (2, 3, 1)


async def test_a_sibling_that_still_waits_is_asked_on_the_branch_too(saver: Any) -> None:
    graph = fan(Runs().asker("l"), Runs().asker("r")).compile(checkpointer=saver)
    ids = questions(await graph.ainvoke({}, CONFIG))
    there = await paused_at(graph, "l", "r")
    await graph.ainvoke(Command(resume={ids["l?"]: "L", ids["r?"]: "R"}), CONFIG)
    await graph.ainvoke(None, there)  # a branch on which both are asked anew
    ids = questions(await graph.ainvoke(None, CONFIG))
    result = await graph.ainvoke(Command(resume={ids["l?"]: "new"}), CONFIG)
    assert asked(result) == ["r?"]
    assert (await graph.ainvoke(Command(resume="R2"), CONFIG))["log"] == ["st", "l:new", "r:R2", "join"]


async def test_with_an_update_the_old_branch_stays_as_it_was(saver: Any) -> None:
    graph = chain("a", Runs().asker("n")).compile(checkpointer=saver)
    await graph.ainvoke({"a": 1}, CONFIG)
    there = await paused_at(graph, "n")
    await graph.ainvoke(Command(resume="one"), there)
    before = await history(graph)
    assert await graph.ainvoke(Command(resume="two", update={"a": 2}), there) == {"a": 2, "log": ["a", "n:two"]}
    assert (await history(graph))[-len(before) :] == before


async def test_an_update_alone_at_an_old_checkpoint_leaves_the_old_branch_alone(saver: Any) -> None:
    graph = chain("x", "y").compile(checkpointer=saver)
    await graph.ainvoke({"a": 1}, CONFIG)
    before = await history(graph)
    there = at(before, "y").config
    assert await graph.ainvoke(Command(update={"a": 2}), there) == {"a": 2, "log": ["x", "y"]}
    assert (await history(graph))[-len(before) :] == before


async def test_going_back_without_an_answer_asks_again_under_a_new_id(saver: Any) -> None:
    graph = chain(Runs().asker("n"), "end").compile(checkpointer=saver)
    ids = questions(await graph.ainvoke({}, CONFIG))
    there = await paused_at(graph, "n")
    await graph.ainvoke(Command(resume="one"), CONFIG)
    before = await history(graph)
    again = questions(await graph.ainvoke(None, there))
    assert list(again) == ["n?"]
    assert again != ids
    assert (await history(graph))[-len(before) :] == before
    assert await graph.ainvoke(Command(resume="two"), CONFIG) == {"log": ["n:two", "end"]}


async def test_questions_asked_at_once_keep_the_other_answers(saver: Any) -> None:
    async def node(_state: Log) -> dict[str, Any]:
        answers: dict[str, str] = {}

        async def one(name: str) -> None:
            answers[name] = interrupt(name)

        async with anyio.create_task_group() as group:
            for name in ("q1", "q2"):
                group.start_soon(one, name)
        return {"log": [answers["q1"], answers["q2"]]}

    graph = chain(("n", node)).compile(checkpointer=saver)
    ids = questions(await graph.ainvoke({}, CONFIG))
    there = await paused_at(graph, "n")
    await graph.ainvoke(Command(resume={ids["q1"]: "1", ids["q2"]: "2"}), CONFIG)
    assert await graph.ainvoke(Command(resume={ids["q2"]: "other"}), there) == {"log": ["1", "other"]}
    assert await graph.ainvoke(Command(resume={ids["q1"]: "first"}), there) == {"log": ["first", "2"]}


# Questions of subgraphs


def nested(runs: Runs, depth: int) -> Any:
    """A graph whose question lies so many levels deep, with a step before and after it at every level."""
    inner: Any = runs.asker("n")
    for level in range(depth):
        builder = StateGraph(Log)
        before, after = runs.step(f"before{level}"), runs.step(f"after{level}")
        builder.add_node(*before)
        builder.add_node(*inner)
        builder.add_node(*after)
        builder.add_edge(START, before[0])
        builder.add_edge(before[0], inner[0])
        builder.add_edge(inner[0], after[0])
        inner = (f"sub{level}", builder.compile())
    return inner[1].builder


@pytest.mark.parametrize("depth", [2, 3])
async def test_a_subgraphs_question_is_answered_again(saver: Any, depth: int) -> None:
    runs = Runs()
    graph = nested(runs, depth).compile(checkpointer=saver)
    name = f"sub{depth - 2}"
    ids = questions(await graph.ainvoke({}, CONFIG))
    there = await paused_at(graph, name)
    first = await graph.ainvoke(Command(resume="one"), CONFIG)
    assert "n:one" in first["log"]
    before = await history(graph)
    second = await graph.ainvoke(Command(resume="two"), there)
    assert "n:two" in second["log"]
    assert "n:one" not in second["log"]
    third = await graph.ainvoke(Command(resume={ids["n?"]: "three"}), there)
    assert "n:three" in third["log"]
    assert [each.replace("one", "X") for each in first["log"]] == [each.replace("three", "X") for each in third["log"]]
    assert (await history(graph))[-len(before) :] == before
    for level in range(depth):
        assert (runs[f"before{level}"], runs[f"after{level}"]) == (1, 3)
    assert runs["n"] == 4


async def test_a_subgraphs_question_is_answered_again_after_a_restart(database: str) -> None:
    runs = Runs()
    there: dict[str, Any] = {}
    results = []
    steps: list[Any] = [{}, Command(resume="one"), Command(resume="two")]
    for given in steps:
        async with SqliteSaver.from_conn_string(database) as saver:
            graph = nested(runs, 2).compile(checkpointer=saver)
            results.append(await graph.ainvoke(given, there or CONFIG))
            there = there or await paused_at(graph, "sub0")
    assert "n:one" in results[1]["log"]
    assert "n:two" in results[2]["log"]
    assert (runs["before0"], runs["n"]) == (1, 3)


async def test_in_a_function_the_subgraphs_before_the_question_do_not_run_again(saver: Any) -> None:
    runs = Runs()
    first, second = chain(runs.step("a")).compile(), chain(runs.step("b"), runs.asker("n")).compile()
    third = chain(runs.step("c")).compile()

    async def node(_state: Log) -> dict[str, Any]:
        noted = []
        for graph in (first, second, third):
            noted += (await graph.ainvoke({"log": []}))["log"]
        return {"log": noted}

    graph = chain(("f", node)).compile(checkpointer=saver)
    await graph.ainvoke({}, CONFIG)
    there = await paused_at(graph, "f")
    assert await graph.ainvoke(Command(resume="one"), CONFIG) == {"log": ["a", "b", "n:one", "c"]}
    assert await graph.ainvoke(Command(resume="two"), there) == {"log": ["a", "b", "n:two", "c"]}
    assert (runs["a"], runs["b"], runs["n"], runs["c"]) == (1, 1, 3, 2)


async def test_per_thread_state_is_that_of_the_question(saver: Any) -> None:
    runs = Runs()
    child = chain(runs.step("b"), runs.asker("n")).compile(checkpointer=True)
    graph = chain(("p", child)).compile(checkpointer=saver)
    await graph.ainvoke({}, CONFIG)
    there = await paused_at(graph, "p")
    assert await graph.ainvoke(Command(resume="one"), CONFIG) == {"log": ["b", "n:one"]}
    assert await graph.ainvoke(Command(resume="two"), there) == {"log": ["b", "n:two"]}
    state = await graph.aget_state({"configurable": {"thread_id": "t", "checkpoint_ns": "p"}})
    assert state.values == {"log": ["b", "n:two"]}
    assert (runs["b"], runs["n"]) == (1, 3)
