"""Threads that wait are edited, from outside and inside their subgraphs, and go on from there."""

from __future__ import annotations

from typing import Any

import pytest

from persistence.errors import SerializationError
from persistence.memory import InMemorySaver
from persistence.sqlite import SqliteSaver
from runtime.errors import UnknownInterruptError, UnknownNodeError
from runtime.func import entrypoint, task
from runtime.types import Command
from tests.stories.graphs import CONFIG, Log, chain, fan, history
from tests.stories.nests import Runs, asked, questions

pytestmark = pytest.mark.anyio


async def test_an_edited_thread_asks_again_and_takes_an_answer(saver: Any) -> None:
    graph = chain("a", Runs().asker("n")).compile(checkpointer=saver)
    await graph.ainvoke({"a": 1}, CONFIG)
    await graph.aupdate_state(CONFIG, {"a": 2})
    assert (await graph.aget_state(CONFIG)).next == ("n",)
    assert await graph.ainvoke(Command(resume="yes"), CONFIG) == {"a": 2, "log": ["a", "n:yes"]}


async def test_an_edited_thread_asks_again_without_an_answer(saver: Any) -> None:
    graph = chain("a", Runs().asker("n")).compile(checkpointer=saver)
    first = questions(await graph.ainvoke({"a": 1}, CONFIG))
    await graph.aupdate_state(CONFIG, {"a": 2})
    again = questions(await graph.ainvoke(None, CONFIG))
    assert list(again) == list(first)
    assert again != first


async def test_editing_as_the_waiting_node_skips_it(saver: Any) -> None:
    runs = Runs()
    graph = chain("a", runs.asker("n"), "end").compile(checkpointer=saver)
    await graph.ainvoke({}, CONFIG)
    await graph.aupdate_state(CONFIG, {"log": ["by hand"]}, as_node="n")
    snapshot = await graph.aget_state(CONFIG)
    assert (snapshot.next, snapshot.interrupts) == (("end",), ())
    assert await graph.ainvoke(None, CONFIG) == {"log": ["a", "by hand", "end"]}
    assert runs["n"] == 1


async def inside(graph: Any, *levels: str) -> dict[str, Any]:
    """The config of a subgraph that waits, so many levels down."""
    snapshot = await graph.aget_state(CONFIG, subgraphs=True)
    for name in levels:
        (task,) = [one for one in snapshot.tasks if one.name == name]
        snapshot = task.state
    address = snapshot.config["configurable"]
    return {"configurable": {key: address[key] for key in ("thread_id", "checkpoint_ns")}}


@pytest.mark.parametrize("kept", [None, True])
@pytest.mark.parametrize("answering", ["one answer", "none first"])
async def test_a_waiting_subgraph_is_edited(saver: Any, answering: str, kept: Any) -> None:
    runs = Runs()
    child = chain(runs.step("s"), runs.asker("n")).compile(checkpointer=kept)
    graph = chain(("p", child), "end").compile(checkpointer=saver)
    await graph.ainvoke({}, CONFIG)
    there = await inside(graph, "p")
    before = await history(graph)
    await graph.aupdate_state(there, {"log": ["edit"]})
    assert [(one.values, one.next, one.config) for one in await history(graph)] == [
        (one.values, one.next, one.config) for one in before
    ]
    snapshot = await graph.aget_state(CONFIG, subgraphs=True)
    assert (snapshot.next, snapshot.interrupts) == (("p",), ())
    assert snapshot.tasks[0].state.values == {"log": ["s", "edit"]}
    assert snapshot.tasks[0].state.metadata["source"] == "update"
    if answering == "none first":
        assert asked(await graph.ainvoke(None, CONFIG)) == ["n?"]
    assert await graph.ainvoke(Command(resume="yes"), CONFIG) == {"log": ["s", "edit", "n:yes", "end"]}
    assert runs["s"] == 1


async def test_a_subgraph_two_levels_down_is_edited(saver: Any) -> None:
    runs = Runs()
    inner = chain(runs.step("s"), runs.asker("n")).compile()
    middle = chain(runs.step("m"), ("q", inner)).compile()
    graph = chain(("p", middle)).compile(checkpointer=saver)
    await graph.ainvoke({"a": 1}, CONFIG)
    config = await graph.aupdate_state(await inside(graph, "p", "q"), {"a": 2})
    assert config["configurable"]["checkpoint_ns"].count("|") == 1
    result = await graph.ainvoke(Command(resume="yes"), CONFIG)
    assert result["a"] == 2
    assert result["log"][-1] == "n:yes"
    assert (runs["m"], runs["s"]) == (1, 1)


async def test_an_edited_subgraph_beside_another_that_waits(saver: Any) -> None:
    def child(name: str) -> Any:
        return chain(f"s{name}", Runs().asker(name)).compile()

    graph = fan(("l", child("x")), ("r", child("y")), first=None).compile(checkpointer=saver)
    await graph.ainvoke({}, CONFIG)
    await graph.aupdate_state(await inside(graph, "l"), {"log": ["edit"]})
    result = await graph.ainvoke(None, CONFIG)
    ids = questions(result)
    assert asked(await graph.ainvoke(Command(resume={ids["x?"]: "X"}), CONFIG)) == ["y?"]
    assert (await graph.ainvoke(Command(resume="Y"), CONFIG))["log"] == ["sx", "edit", "x:X", "sy", "y:Y", "join"]


async def test_a_waiting_subgraph_is_told_to_skip_its_node(saver: Any) -> None:
    runs = Runs()
    child = chain(runs.asker("n"), runs.step("after")).compile()
    graph = chain(("p", child)).compile(checkpointer=saver)
    await graph.ainvoke({}, CONFIG)
    await graph.aupdate_state(await inside(graph, "p"), {"log": ["by hand"]}, as_node="n")
    assert await graph.ainvoke(None, CONFIG) == {"log": ["by hand", "after"]}
    assert runs == {"n": 1, "after": 1}


@pytest.mark.parametrize("node", [None, "n"])
async def test_the_question_that_an_edit_inside_took_back_takes_no_answer(saver: Any, node: str | None) -> None:
    runs = Runs()

    def child(name: str) -> Any:
        return chain(f"s{name}", runs.asker("n", f"{name}?")).compile()

    graph = fan(("l", child("x")), ("r", child("y")), first=None).compile(checkpointer=saver)
    put = questions(await graph.ainvoke({}, CONFIG))
    await graph.aupdate_state(await inside(graph, "l"), {"log": ["edit"]}, as_node=node)
    snapshot = await graph.aget_state(CONFIG, subgraphs=True)
    assert [one.value for one in snapshot.interrupts] == ["y?"]
    assert snapshot.tasks[0].state.interrupts == ()
    before = await history(graph), dict(runs)
    with pytest.raises(UnknownInterruptError, match="No pending interrupt has the id") as refused:
        await graph.ainvoke(Command(resume={put["x?"]: "X"}), CONFIG)
    assert refused.value.pending_ids == (put["y?"],)
    assert (await history(graph), dict(runs)) == before
    answered = await graph.ainvoke(Command(resume={put["y?"]: "Y"}), CONFIG)
    if node is None:
        assert asked(answered) == ["x?"]
        assert questions(answered)["x?"] != put["x?"]
        answered = await graph.ainvoke(Command(resume={questions(answered)["x?"]: "X"}), CONFIG)
    told = {None: ["sx", "edit", "n:X"], "n": ["sx", "edit"]}[node]
    assert answered["log"] == [*told, "sy", "n:Y", "join"]


@pytest.mark.parametrize("level", [("p",), ("p", "q")])
async def test_an_edit_takes_questions_back_from_all_graphs_around(saver: Any, level: tuple[str, ...]) -> None:
    inner = chain("s", Runs().asker("n")).compile()
    graph = chain(("p", chain("m", ("q", inner)).compile())).compile(checkpointer=saver)
    put = questions(await graph.ainvoke({}, CONFIG))
    place = await inside(graph, *level)
    with pytest.raises(UnknownNodeError):
        await graph.aupdate_state(place, {}, as_node="nobody")
    with pytest.raises(SerializationError):
        await graph.aupdate_state(place, {"log": [object()]})
    assert questions(await graph.ainvoke(None, CONFIG)) == put  # nothing was edited
    edited = await graph.aupdate_state(place, {"log": ["edit"]})
    for config in (CONFIG, await inside(graph, "p"), edited):
        assert (await graph.aget_state(config)).interrupts == ()
    with pytest.raises(UnknownInterruptError, match="none"):
        await graph.ainvoke(Command(resume={put["n?"]: "yes"}), CONFIG)
    assert (await graph.ainvoke(Command(resume="yes"), CONFIG))["log"][-1] == "n:yes"


@pytest.mark.parametrize("how", ["with a saver of its own", "in a call of a task"])
async def test_questions_of_other_subgraphs_are_taken_back_too(saver: Any, how: str) -> None:
    own = InMemorySaver() if how == "with a saver of its own" else None
    child = chain("s", Runs().asker("n")).compile(checkpointer=own)

    @task
    async def call() -> Any:
        return await child.ainvoke({})

    @entrypoint(checkpointer=saver)
    async def flow(_given: Any) -> Any:
        return await call()

    graph: Any = flow if own is None else chain(("p", child)).compile(checkpointer=saver)
    put = questions(await graph.ainvoke({}, CONFIG))
    places = [each.config["configurable"] async for each in (own or saver).alist(CONFIG)]
    place = max((each["checkpoint_ns"] for each in places), key=len)
    await graph.aupdate_state({"configurable": {"thread_id": "t", "checkpoint_ns": place}}, {"log": ["edit"]})
    assert (await graph.aget_state(CONFIG)).interrupts == ()
    with pytest.raises(UnknownInterruptError):
        await graph.ainvoke(Command(resume={put["n?"]: "yes"}), CONFIG)
    assert await graph.ainvoke(Command(resume="yes"), CONFIG) == {"log": ["s", "edit", "n:yes"]}


async def test_an_edit_at_an_old_point_inside_takes_back_what_the_newest_asks(saver: Any) -> None:
    graph = chain(("p", chain("s", Runs().asker("n")).compile()), "end").compile(checkpointer=saver)
    put = questions(await graph.ainvoke({}, CONFIG))
    (old,) = [one for one in await history(graph, await inside(graph, "p")) if one.next == ("s",)]
    await graph.aupdate_state(old.config, {"log": ["edit"]}, as_node="s")
    with pytest.raises(UnknownInterruptError):
        await graph.ainvoke(Command(resume={put["n?"]: "yes"}), CONFIG)
    assert (await graph.ainvoke(Command(resume="yes"), CONFIG)) == {"log": ["edit", "n:yes", "end"]}


async def test_an_edited_subgraph_survives_a_restart(database: str) -> None:
    runs = Runs()

    def build(saver: Any) -> Any:
        child = chain(runs.step("s"), runs.asker("n")).compile()
        return chain(("p", child)).compile(checkpointer=saver)

    async with SqliteSaver.from_conn_string(database) as saver:
        await build(saver).ainvoke({}, CONFIG)
    async with SqliteSaver.from_conn_string(database) as saver:
        graph = build(saver)
        await graph.aupdate_state(await inside(graph, "p"), {"log": ["edit"]})
    async with SqliteSaver.from_conn_string(database) as saver:
        assert await build(saver).ainvoke(Command(resume="yes"), CONFIG) == {"log": ["s", "edit", "n:yes"]}
    assert runs["s"] == 1


async def test_the_parent_is_edited_while_its_subgraph_waits(saver: Any) -> None:
    runs = Runs()
    child = chain(runs.step("s"), runs.asker("n")).compile()
    graph = chain("a", ("p", child), "end").compile(checkpointer=saver)
    await graph.ainvoke({"a": 1}, CONFIG)
    await graph.aupdate_state(CONFIG, {"a": 2}, as_node="a")
    result = await graph.ainvoke(Command(resume="yes"), CONFIG)  # a new task: its subgraph starts over
    assert result["a"] == 2
    assert result["log"][-3:] == ["s", "n:yes", "end"]
    assert (runs["s"], runs["n"]) == (2, 2)


async def test_unknown_places_cannot_be_edited(saver: Any) -> None:
    graph = chain(("p", chain(Runs().asker("n")).compile())).compile(checkpointer=saver)
    await graph.ainvoke({}, CONFIG)
    for where in ("nowhere:1", "p:1|deeper:2"):
        config = {"configurable": {"thread_id": "t", "checkpoint_ns": where}}
        with pytest.raises(ValueError, match="not found"):
            await graph.aupdate_state(config, {"log": ["x"]})
        assert (await graph.aget_state(config)).values == {}


async def test_new_input_while_a_subgraph_waits_starts_over(saver: Any) -> None:
    runs = Runs()
    child = chain(runs.step("s"), runs.asker("n")).compile()
    graph = chain(("p", child)).compile(checkpointer=saver)
    first = questions(await graph.ainvoke({}, CONFIG))
    second = questions(await graph.ainvoke({}, CONFIG))
    assert first != second
    assert (await graph.ainvoke(Command(resume="yes"), CONFIG))["log"] == ["s", "n:yes"]
    assert (runs["s"], runs["n"]) == (2, 3)


async def test_an_edit_of_a_nodes_state_type_is_checked_inside(saver: Any) -> None:
    async def never(_state: Log) -> dict[str, Any]:
        raise AssertionError

    child = chain(Runs().asker("n"), ("x", never)).compile()
    graph = chain(("p", child)).compile(checkpointer=saver)
    await graph.ainvoke({}, CONFIG)
    with pytest.raises(ValueError, match="nope"):
        await graph.aupdate_state(await inside(graph, "p"), {"log": []}, as_node="nope")
