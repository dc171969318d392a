"""Going back to a point inside a subgraph, and what subgraphs do when their parent goes back."""

from __future__ import annotations

import operator
from typing import Annotated, Any, TypedDict

import anyio
import pytest

from persistence.sqlite import SqliteSaver
from runtime.errors import CheckpointNotFoundError
from runtime.graph import START, StateGraph
from runtime.types import Command, Send, interrupt
from tests.stories.graphs import CONFIG, Log, at, chain, fan, history
from tests.stories.nests import Runs, asked, questions

pytestmark = pytest.mark.anyio


def levels(runs: Runs, *names: str, kept: Any = None) -> StateGraph:
    """Graphs inside each other: each level runs ``x1``, then the next level, then ``x2``; the last asks in between."""
    inner: tuple[str, Any] = runs.asker(f"{names[-1]}?")
    for name in reversed(names):
        builder = chain(runs.step(f"{name}1"), inner, runs.step(f"{name}2"))
        inner = (name, builder.compile(checkpointer=kept))
    return builder


async def paths(saver: Any) -> dict[str, str]:
    """Namespace without ids to the newest namespace with them."""
    found: dict[str, str] = {}
    async for one in saver.alist(CONFIG):
        where = one.config["configurable"]["checkpoint_ns"]
        found.setdefault("|".join(part.partition(":")[0] for part in where.split("|")), where)
    return found


async def inside(graph: Any, saver: Any, path: str, *names: str) -> Any:
    """The newest snapshot in a subgraph at which these nodes are next."""
    where = {"configurable": {"thread_id": "t", "checkpoint_ns": (await paths(saver))[path]}}
    return at(await history(graph, where), *names)


async def records(saver: Any) -> list[Any]:
    """Everything that is stored of the thread."""
    return [(one.checkpoint["id"], one.metadata, one.pending_writes) async for one in saver.alist(CONFIG)]


@pytest.mark.parametrize("kept", [None, True])
@pytest.mark.parametrize("finished", [False, True])
async def test_a_point_one_level_down(saver: Any, finished: bool, kept: Any) -> None:
    runs = Runs()
    graph = levels(runs, "a", "b", kept=kept).compile(checkpointer=saver)
    first = await graph.ainvoke({}, CONFIG)
    if finished:
        await graph.ainvoke(Command(resume="one"), CONFIG)
    point = await inside(graph, saver, "b", "b1")
    before, kept_records = dict(runs), await records(saver)
    again = await graph.ainvoke(None, point.config)
    assert asked(again) == ["b??"]
    assert questions(again) != questions(first)
    assert {name: runs[name] - before.get(name, 0) for name in runs if runs[name] != before.get(name, 0)} == {
        "b1": 1,
        "b?": 1,
    }
    result = await graph.ainvoke(Command(resume="two"), CONFIG)
    assert "b?:two" in result["log"]
    assert "b?:one" not in result["log"]
    assert (runs["a1"], runs["b1"], runs["b2"], runs["a2"]) == (1, 2, 1 + finished, 1 + finished)
    stored = await records(saver)
    assert all(record in stored for record in kept_records[1 if not finished else 0 :])


@pytest.mark.parametrize("kept", [None, True])
@pytest.mark.parametrize("finished", [False, True])
async def test_a_point_two_levels_down(saver: Any, finished: bool, kept: Any) -> None:
    runs = Runs()
    graph = levels(runs, "a", "b", "c", kept=kept).compile(checkpointer=saver)
    await graph.ainvoke({}, CONFIG)
    if finished:
        await graph.ainvoke(Command(resume="one"), CONFIG)
    point = await inside(graph, saver, "b|c", "c?")
    before = dict(runs)
    assert asked(await graph.ainvoke(None, point.config)) == ["c??"]
    assert {name: runs[name] - before[name] for name in before if runs[name] != before[name]} == {"c?": 1}
    result = await graph.ainvoke(Command(resume="two"), CONFIG)
    assert "c?:two" in result["log"]
    assert (runs["a1"], runs["b1"], runs["c1"]) == (1, 1, 1)
    assert (runs["c2"], runs["b2"], runs["a2"]) == (1 + finished,) * 3


@pytest.mark.parametrize("kept", [None, True])
async def test_a_point_in_the_middle_level(saver: Any, kept: Any) -> None:
    runs = Runs()
    graph = levels(runs, "a", "b", "c", kept=kept).compile(checkpointer=saver)
    await graph.ainvoke({}, CONFIG)
    await graph.ainvoke(Command(resume="one"), CONFIG)
    point = await inside(graph, saver, "b", "c")
    assert asked(await graph.ainvoke(None, point.config)) == ["c??"]
    await graph.ainvoke(Command(resume="two"), CONFIG)
    assert (runs["a1"], runs["b1"], runs["c1"]) == (1, 1, 2)


async def test_a_point_after_the_question(saver: Any) -> None:
    runs = Runs()
    graph = levels(runs, "a", "b").compile(checkpointer=saver)
    await graph.ainvoke({}, CONFIG)
    first = await graph.ainvoke(Command(resume="one"), CONFIG)
    point = await inside(graph, saver, "b", "b2")
    before = dict(runs)
    assert await graph.ainvoke(None, point.config) == first
    assert {name for name in runs if runs[name] != before[name]} == {"b2", "a2"}


async def test_the_last_point_of_a_subgraph_runs_what_follows_it(saver: Any) -> None:
    runs = Runs()
    graph = levels(runs, "a", "b").compile(checkpointer=saver)
    await graph.ainvoke({}, CONFIG)
    first = await graph.ainvoke(Command(resume="one"), CONFIG)
    point = await inside(graph, saver, "b")
    before = dict(runs)
    assert await graph.ainvoke(None, point.config) == first
    assert {name for name in runs if runs[name] != before[name]} == {"a2"}


async def test_again_and_again(saver: Any) -> None:
    runs = Runs()
    graph = levels(runs, "a", "b").compile(checkpointer=saver)
    await graph.ainvoke({}, CONFIG)
    for turn in range(3):
        point = await inside(graph, saver, "b", "b1")
        await graph.ainvoke(None, point.config)
        if turn:
            assert f"b?:{turn}" in (await graph.ainvoke(Command(resume=str(turn)), CONFIG))["log"]
    assert (runs["a1"], runs["b1"]) == (1, 4)


async def test_after_a_restart(database: str) -> None:
    runs = Runs()
    point: Any = None
    for number in range(3):
        async with SqliteSaver.from_conn_string(database) as saver:
            graph = levels(runs, "a", "b", "c").compile(checkpointer=saver)
            if number == 0:
                await graph.ainvoke({}, CONFIG)
                point = (await inside(graph, saver, "b|c", "c1")).config
            elif number == 1:
                await graph.ainvoke(None, point)
            else:
                assert "c?:yes" in (await graph.ainvoke(Command(resume="yes"), CONFIG))["log"]
    assert (runs["a1"], runs["b1"], runs["c1"]) == (1, 1, 2)


@pytest.mark.parametrize("finished", [False, True])
async def test_an_answer_at_a_point_inside(saver: Any, finished: bool) -> None:
    runs = Runs()
    graph = levels(runs, "a", "b", "c").compile(checkpointer=saver)
    ids = questions(await graph.ainvoke({}, CONFIG))
    if finished:
        await graph.ainvoke(Command(resume="one"), CONFIG)
    point = await inside(graph, saver, "b|c", "c?")
    for answer in ("two", {ids["c??"]: "three"}):
        result = await graph.ainvoke(Command(resume=answer), point.config)
        assert f"c?:{answer if isinstance(answer, str) else 'three'}" in result["log"]
    assert (runs["a1"], runs["b1"], runs["c1"]) == (1, 1, 1)


async def test_an_edited_point_inside_is_run_from(saver: Any) -> None:
    runs = Runs()
    graph = levels(runs, "a", "b").compile(checkpointer=saver)
    await graph.ainvoke({"a": 1}, CONFIG)
    await graph.ainvoke(Command(resume="one"), CONFIG)
    point = await inside(graph, saver, "b", "b2")
    edited = await graph.aupdate_state(point.config, {"a": 2})
    before = dict(runs)
    assert (await graph.ainvoke(None, edited))["a"] == 2
    assert {name for name in runs if runs[name] != before[name]} == {"b2", "a2"}


async def test_by_thread_namespace_and_id_alone(saver: Any) -> None:
    runs = Runs()
    graph = levels(runs, "a", "b").compile(checkpointer=saver)
    await graph.ainvoke({}, CONFIG)
    address = (await inside(graph, saver, "b", "b1")).config["configurable"]
    bare = {key: address[key] for key in ("thread_id", "checkpoint_ns", "checkpoint_id")}
    assert asked(await graph.ainvoke(None, {"configurable": bare})) == ["b??"]
    assert runs["a1"] == 1


async def test_a_point_that_does_not_exist(saver: Any) -> None:
    graph = levels(Runs(), "a", "b").compile(checkpointer=saver)
    await graph.ainvoke({}, CONFIG)
    address = (await inside(graph, saver, "b", "b1")).config["configurable"]
    before = await records(saver)
    for wrong in ({**address, "checkpoint_id": "1f000000-0000-6000-8000-000000000000"},):
        bare = {key: wrong[key] for key in ("thread_id", "checkpoint_ns", "checkpoint_id")}
        with pytest.raises(CheckpointNotFoundError):
            await graph.ainvoke(None, {"configurable": bare})
    assert await records(saver) == before


@pytest.mark.parametrize("number", [0, 1, 2])
async def test_the_right_one_of_several_sends(saver: Any, number: int) -> None:
    runs = Runs()

    def step(name: str) -> Any:
        async def node(state: Any) -> dict[str, Any]:
            runs[f"{name}{state['number']}"] += 1
            return {"log": [f"{name}{state['number']}"]}

        return name, node

    class Numbered(Log):
        number: int

    child = chain(step("x"), step("y"), schema=Numbered)
    child.output_schema = Log
    compiled = child.compile()

    async def work(state: Any) -> dict[str, Any]:
        return {"log": (await compiled.ainvoke({"number": state, "log": []}))["log"]}

    builder = StateGraph(Log)
    builder.add_node("w", work)
    builder.add_node("end", runs.step("end")[1])
    builder.add_conditional_edges(START, lambda _state: [Send("w", number) for number in range(3)])
    builder.add_edge("w", "end")
    graph = builder.compile(checkpointer=saver)
    first = await graph.ainvoke({}, CONFIG)
    (record,) = [one for one in await history(graph) if one.next == ("w", "w", "w")]
    point = at(await history(graph, record.tasks[number].state), "y")
    before = dict(runs)
    assert await graph.ainvoke(None, point.config) == first
    assert {name for name in runs if runs[name] != before[name]} == {f"y{number}", "end"}


async def test_a_later_call_of_one_node(saver: Any) -> None:
    runs = Runs()
    graphs = [chain(runs.step(f"{name}1"), runs.step(f"{name}2")).compile() for name in "xyz"]

    async def node(_state: Log) -> dict[str, Any]:
        noted = []
        for each in graphs:
            noted += (await each.ainvoke({"log": []}))["log"]
        return {"log": noted}

    graph = chain(("f", node), runs.step("end")).compile(checkpointer=saver)
    first = await graph.ainvoke({}, CONFIG)
    point = await inside(graph, saver, "f|1", "y2")
    before = dict(runs)
    assert await graph.ainvoke(None, point.config) == first
    assert {name for name in runs if runs[name] != before[name]} == {"y2", "z1", "z2", "end"}


async def test_one_of_several_calls_at_once(saver: Any) -> None:
    runs = Runs()
    graphs = {name: chain(runs.step(f"{name}1"), runs.step(f"{name}2")).compile() for name in "xy"}

    async def node(_state: Log) -> dict[str, Any]:
        noted: dict[str, list[str]] = {}

        async def call(name: str) -> None:
            noted[name] = (await graphs[name].ainvoke({"log": []}))["log"]

        async with anyio.create_task_group() as group:
            for name in "xy":
                group.start_soon(call, name)
        return {"log": noted["x"] + noted["y"]}

    graph = chain(("f", node)).compile(checkpointer=saver)
    first = await graph.ainvoke({}, CONFIG)
    for where in {one.config["configurable"]["checkpoint_ns"] async for one in saver.alist(CONFIG)} - {""}:
        place = {"configurable": {"thread_id": "t", "checkpoint_ns": where}}
        for name in "xy":
            for point in await history(graph, place):
                if point.next == (f"{name}2",):
                    before = dict(runs)
                    assert await graph.ainvoke(None, point.config) == first
                    assert runs[f"{name}1"] == before[f"{name}1"]
                    assert runs[f"{name}2"] == before[f"{name}2"] + 1
                    break


async def test_finished_neighbours_of_the_way_keep_their_results(saver: Any) -> None:
    runs = Runs()
    graph = fan(("p", chain(runs.step("s1"), runs.step("s2")).compile()), runs.step("n"), first=None).compile(
        checkpointer=saver
    )
    first = await graph.ainvoke({}, CONFIG)
    point = await inside(graph, saver, "p", "s2")
    assert await graph.ainvoke(None, point.config) == first
    assert (runs["s1"], runs["s2"], runs["n"]) == (1, 2, 1)


# When the parent goes back


async def test_replaying_the_parents_step_runs_a_subgraph_from_its_start(saver: Any) -> None:
    runs = Runs()
    graph = levels(runs, "a", "b").compile(checkpointer=saver)
    await graph.ainvoke({}, CONFIG)
    await graph.ainvoke(Command(resume="one"), CONFIG)
    assert asked(await graph.ainvoke(None, at(await history(graph), "b").config)) == ["b??"]
    assert (runs["a1"], runs["b1"], runs["b?"]) == (1, 2, 3)
    assert "b?:two" in (await graph.ainvoke(Command(resume="two"), CONFIG))["log"]


def counting(runs: Runs) -> Any:
    """A subgraph that keeps a count."""

    async def count(state: Log) -> dict[str, Any]:
        runs["count"] += 1
        return {"a": state.get("a", 0) + 1}

    return chain(("count", count)).compile(checkpointer=True)


async def test_replaying_rewinds_kept_state(saver: Any) -> None:
    runs = Runs()
    child = counting(runs)

    async def node(_state: Log) -> dict[str, Any]:
        return {"log": [str((await child.ainvoke({"log": []}))["a"])]}

    graph = chain(("f", node)).compile(checkpointer=saver)
    for expected in (["1"], ["1", "2"], ["1", "2", "3"]):
        assert (await graph.ainvoke({}, CONFIG))["log"] == expected
    turns = [one for one in reversed(await history(graph)) if one.next == ("f",)]
    assert (await graph.ainvoke(None, turns[1].config))["log"] == ["1", "2"]
    assert (await graph.ainvoke({}, CONFIG))["log"] == ["1", "2", "3"]
    assert (await graph.ainvoke(None, turns[0].config))["log"] == ["1"]
    assert (await graph.ainvoke({}, CONFIG))["log"] == ["1", "2"]


async def test_replaying_rewinds_kept_state_at_the_first_visit_only(saver: Any) -> None:
    runs = Runs()
    child = counting(runs)

    async def node(_state: Log) -> dict[str, Any]:
        return {"log": [str((await child.ainvoke({"log": []}))["a"])]}

    builder = StateGraph(Log)
    builder.add_node("f", node)
    builder.add_edge(START, "f")
    builder.add_conditional_edges("f", lambda state: "f" if len(state["log"]) < 3 else "__end__")
    graph = builder.compile(checkpointer=saver)
    assert (await graph.ainvoke({}, CONFIG))["log"] == ["1", "2", "3"]
    turns = [one for one in reversed(await history(graph)) if one.next == ("f",)]
    assert (await graph.ainvoke(None, turns[1].config))["log"] == ["1", "2", "3"]
    assert runs["count"] == 5


async def test_new_input_at_an_old_point_starts_subgraphs_anew(saver: Any) -> None:
    runs = Runs()
    graph = levels(runs, "a", "b").compile(checkpointer=saver)
    await graph.ainvoke({}, CONFIG)
    await graph.ainvoke(Command(resume="one"), CONFIG)
    assert asked(await graph.ainvoke({"a": 5}, at(await history(graph), "b").config)) == ["b??"]
    assert (runs["a1"], runs["b1"]) == (2, 2)


async def test_a_function_asked_before_its_subgraph_is_asked_again(saver: Any) -> None:
    runs = Runs()
    child = chain(runs.step("s1"), runs.step("s2")).compile()

    async def node(_state: Log) -> dict[str, Any]:
        first = interrupt("first")
        noted = (await child.ainvoke({"log": []}))["log"]
        return {"log": [first, *noted, interrupt("second")]}

    graph = chain(("f", node)).compile(checkpointer=saver)
    await graph.ainvoke({}, CONFIG)
    await graph.ainvoke(Command(resume="1"), CONFIG)
    await graph.ainvoke(Command(resume="2"), CONFIG)
    point = await inside(graph, saver, "f", "s2")
    assert asked(await graph.ainvoke(None, point.config)) == ["first"]  # an old answer is not used in silence
    await graph.ainvoke(Command(resume="A"), CONFIG)
    assert await graph.ainvoke(Command(resume="B"), CONFIG) == {"log": ["A", "s1", "s2", "B"]}


def noting(*, asks: bool = False) -> StateGraph:
    """Build a parent whose step ``p`` is a subgraph that notes, and keeps, every ``x`` it was given."""

    async def look(state: Any) -> dict[str, Any]:
        if asks:
            interrupt("go on?")
        return {"seen": [state["x"]]}

    inner = StateGraph(Looking, output_schema=Given).add_node("look", look).add_edge(START, "look")
    builder = StateGraph(Given).add_node("before", lambda _state: {}).add_node("p", inner.compile(checkpointer=True))
    return builder.add_edge(START, "before").add_edge("before", "p")


class Given(TypedDict):
    """What the parent knows."""

    x: int


class Looking(Given):
    """What the subgraph keeps."""

    seen: Annotated[list[int], operator.add]


async def seen(graph: Any, saver: Any) -> list[int]:
    """What the subgraph has kept."""
    found = await saver.aget_tuple({"configurable": {"thread_id": "t", "checkpoint_ns": "p"}})
    return list(found.checkpoint["channel_values"]["seen"])


@pytest.mark.parametrize("by", ["its own config", "the thread's"])
@pytest.mark.parametrize("edits", [1, 2])
async def test_an_edit_of_the_past_rewinds_kept_state(saver: Any, by: str, edits: int) -> None:
    graph = noting().compile(checkpointer=saver)
    for x in (1, 2, 3):
        await graph.ainvoke({"x": x}, CONFIG)
    point = [one for one in await history(graph) if one.next == ("p",)][1]
    for again in (20, 30):  # the second branch does not see what the first one did
        config = point.config
        for number in range(edits):
            config = await graph.aupdate_state(config, {"x": again + number}, as_node="before")
        await graph.ainvoke(None, config if by == "its own config" else CONFIG)
        assert await seen(graph, saver) == [1, again + edits - 1]
    await graph.ainvoke({"x": 4}, CONFIG)
    assert await seen(graph, saver) == [1, 30 + edits - 1, 4]


async def test_a_question_on_a_branch_of_the_past_is_answered_there(saver: Any) -> None:
    graph = noting(asks=True).compile(checkpointer=saver)
    for x in (1, 2):
        await graph.ainvoke({"x": x}, CONFIG)
        await graph.ainvoke(Command(resume="yes"), CONFIG)
    point = [one for one in await history(graph) if one.next == ("p",)][-1]
    await graph.ainvoke(None, await graph.aupdate_state(point.config, {"x": 10}, as_node="before"))
    assert await graph.ainvoke(Command(resume="yes"), CONFIG) == {"x": 10}
    assert await seen(graph, saver) == [10]


async def test_an_edit_of_the_newest_point_leaves_kept_state_alone(saver: Any) -> None:
    graph = noting().compile(checkpointer=saver, interrupt_before=["p"])
    await graph.ainvoke({"x": 1}, CONFIG)
    await graph.ainvoke(None, CONFIG)
    await graph.ainvoke({"x": 2}, CONFIG)
    await graph.aupdate_state(CONFIG, {"x": 20}, as_node="before")
    await graph.ainvoke(None, CONFIG)
    assert await seen(graph, saver) == [1, 20]
