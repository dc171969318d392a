"""Reading and editing the state of subgraphs: snapshots all the way down, by namespace, in the history."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Annotated, Any, TypedDict

import pytest
from anyio import to_thread
from pydantic import BaseModel

from persistence.sqlite import SqliteSaver
from runtime.func import entrypoint, task
from runtime.graph import START, StateGraph
from runtime.types import Command, Send, interrupt
from runtime.types.snapshot import StateSnapshot
from tests.stories.graphs import CONFIG, Log, at, chain, fan, history, thread
from tests.stories.nests import Runs, questions

pytestmark = pytest.mark.anyio


def place(config: Any) -> dict[str, Any]:
    """A config's thread and namespace."""
    address = config["configurable"]
    return {"configurable": {key: address[key] for key in ("thread_id", "checkpoint_ns")}}


async def test_a_pause_two_levels_down(saver: Any) -> None:
    inner = chain("s", Runs().asker("n")).compile()
    graph = chain("r", ("p", chain("m", ("q", inner)).compile())).compile(checkpointer=saver)
    ids = questions(await graph.ainvoke({"a": 1}, CONFIG))
    root = await graph.aget_state(CONFIG, subgraphs=True)
    (p,) = root.tasks
    middle = p.state
    (q,) = middle.tasks
    leaf = q.state
    assert (root.next, middle.next, leaf.next) == (("p",), ("q",), ("n",))
    assert leaf.values["a"] == 1
    assert leaf.values["log"][-1] == "s"
    for level in (root, middle, leaf):
        assert {one.value: one.id for one in level.interrupts} == ids
    own = leaf.config["configurable"]
    assert own["checkpoint_ns"] == f"p:{p.id}|q:{q.id}"
    assert leaf.metadata["parents"] == {
        "": root.config["configurable"]["checkpoint_id"],
        f"p:{p.id}": middle.config["configurable"]["checkpoint_id"],
    }
    assert own["checkpoint_map"] == {**leaf.metadata["parents"], own["checkpoint_ns"]: own["checkpoint_id"]}
    assert leaf.parent_config["configurable"]["checkpoint_map"][""] == root.config["configurable"]["checkpoint_id"]


async def test_without_asking_for_subgraphs_a_task_says_where_it_is(saver: Any) -> None:
    graph = chain(("p", chain(Runs().asker("n")).compile())).compile(checkpointer=saver)
    await graph.ainvoke({}, CONFIG)
    (p,) = (await graph.aget_state(CONFIG)).tasks
    assert p.state == {"configurable": {"thread_id": "t", "checkpoint_ns": f"p:{p.id}"}}
    inside = await graph.aget_state(p.state)
    assert (inside.next, inside.values) == (("n",), {"log": []})
    assert [one.value for one in inside.interrupts] == ["n?"]


async def test_the_record_of_a_finished_step_shows_what_ran_inside(saver: Any) -> None:
    graph = chain(("p", chain("s1", "s2").compile()), "end").compile(checkpointer=saver)
    await graph.ainvoke({}, CONFIG)
    assert (await graph.aget_state(CONFIG, subgraphs=True)).tasks == ()
    record = at(await history(graph), "p")
    (p,) = record.tasks
    assert p.state == {"configurable": {"thread_id": "t", "checkpoint_ns": f"p:{p.id}"}}
    deep = (await graph.aget_state(record.config, subgraphs=True)).tasks[0].state
    assert isinstance(deep, StateSnapshot)
    assert (deep.values, deep.next) == ({"log": ["s1", "s2"]}, ())
    assert [one.next for one in await history(graph, p.state)] == [(), ("s2",), ("s1",), ("__start__",)]


async def test_the_history_inside_takes_filters_and_limits(saver: Any) -> None:
    graph = chain(("p", chain("s1", "s2").compile())).compile(checkpointer=saver)
    await graph.ainvoke({}, CONFIG)
    where = at(await history(graph), "p").tasks[0].state
    everything = await history(graph, where)
    assert [one.metadata["step"] for one in everything] == [2, 1, 0, -1]
    assert await history(graph, where, limit=2) == everything[:2]
    assert await history(graph, where, before=everything[1].config) == everything[2:]
    assert await history(graph, where, filter={"source": "input"}) == everything[3:]
    for one in everything:
        assert await graph.aget_state(one.config) == one._replace(tasks=one.tasks)


async def test_a_point_inside_is_addressed_by_its_id(saver: Any) -> None:
    graph = chain(("p", chain("s1", "s2").compile())).compile(checkpointer=saver)
    await graph.ainvoke({}, CONFIG)
    where = at(await history(graph), "p").tasks[0].state
    old = at(await history(graph, where), "s2")
    found = await graph.aget_state(old.config)
    assert (found.next, found.values) == (("s2",), {"log": ["s1"]})


async def test_unknown_namespaces_read_as_empty(saver: Any) -> None:
    graph = chain(("p", chain("s").compile())).compile(checkpointer=saver)
    await graph.ainvoke({}, CONFIG)
    for where in ("nowhere", "nowhere:1|p:2", "p:0"):
        found = await graph.aget_state({"configurable": {"thread_id": "t", "checkpoint_ns": where}})
        assert (found.values, found.next, found.metadata) == ({}, (), None)
        assert await history(graph, {"configurable": {"thread_id": "t", "checkpoint_ns": where}}) == []


async def test_parallel_subgraphs_are_all_shown(saver: Any) -> None:
    graph = fan(
        ("l", chain("x", Runs().asker("a")).compile()), ("r", chain("y", Runs().asker("b")).compile()), first=None
    ).compile(checkpointer=saver)
    await graph.ainvoke({}, CONFIG)
    snapshot = await graph.aget_state(CONFIG, subgraphs=True)
    assert {one.name: one.state.values["log"] for one in snapshot.tasks} == {"l": ["x"], "r": ["y"]}


async def test_each_send_shows_its_own(saver: Any) -> None:
    builder = StateGraph(Log)
    builder.add_node("w", chain("s", Runs().asker("n")).compile())
    builder.add_conditional_edges(START, lambda _state: [Send("w", {"a": number}) for number in range(3)])
    graph = builder.compile(checkpointer=saver)
    await graph.ainvoke({}, CONFIG)
    snapshot = await graph.aget_state(CONFIG, subgraphs=True)
    assert [one.state.values["a"] for one in snapshot.tasks] == [0, 1, 2]


async def test_two_different_graphs_in_one_function(saver: Any) -> None:
    class Other(TypedDict, total=False):
        text: str

    def note(_state: Other) -> dict[str, Any]:
        return {"text": "second"}

    asking = chain(Runs().asker("n")).compile()
    other = chain(("note", note), schema=Other).compile()

    async def node(_state: Log) -> dict[str, Any]:
        await other.ainvoke({})
        return {"log": (await asking.ainvoke({"log": []}))["log"]}

    graph = chain(("f", node)).compile(checkpointer=saver)
    await graph.ainvoke({}, CONFIG)
    (f,) = (await graph.aget_state(CONFIG, subgraphs=True)).tasks
    assert f.state.next == ("n",)  # the one that has work left
    first = {"configurable": {"thread_id": "t", "checkpoint_ns": f"f:{f.id}"}}
    assert (await graph.aget_state(first)).values == {"text": "second"}
    second = {"configurable": {"thread_id": "t", "checkpoint_ns": f"f:{f.id}|1"}}
    assert (await graph.aget_state(second)).next == ("n",)
    await graph.aupdate_state(second, {"a": 7}, as_node="__start__")
    assert (await graph.aget_state(second)).values["a"] == 7


async def test_of_a_kept_one_between_runs(saver: Any) -> None:
    child = chain(("s", lambda state: {"a": state.get("a", 0) + 1})).compile(checkpointer=True)

    async def node(_state: Log) -> dict[str, Any]:
        return {"log": [str((await child.ainvoke({"log": []}))["a"])]}

    graph = chain(("f", node)).compile(checkpointer=saver)
    where = {"configurable": {"thread_id": "t", "checkpoint_ns": "f"}}
    await graph.ainvoke({}, CONFIG)
    assert (await graph.aget_state(where)).values["a"] == 1
    await graph.aupdate_state(where, {"a": 10})
    assert (await graph.ainvoke({}, CONFIG))["log"] == ["1", "11"]
    first, second = [one for one in reversed(await history(graph)) if one.next == ("f",)]
    for record, expected in ((first, 1), (second, 11)):
        deep = (await graph.aget_state(record.config, subgraphs=True)).tasks[0].state
        assert deep.values["a"] == expected


async def test_the_child_reads_its_own_kept_state_only_through_its_parent(saver: Any) -> None:
    child = chain("s").compile()
    graph = chain(("p", child)).compile(checkpointer=saver)
    await graph.ainvoke({}, CONFIG)
    with pytest.raises(ValueError, match="checkpointer"):
        await child.aget_state(CONFIG)


async def test_editing_inside_returns_a_config_that_can_be_run_from(saver: Any) -> None:
    runs = Runs()
    graph = chain(("p", chain(runs.step("s"), runs.asker("n")).compile()), "end").compile(checkpointer=saver)
    await graph.ainvoke({}, CONFIG)
    where = (await graph.aget_state(CONFIG)).tasks[0].state
    edited = await graph.aupdate_state(where, {"log": ["edit"]})
    assert edited["configurable"]["checkpoint_ns"] == where["configurable"]["checkpoint_ns"]
    found = await graph.aget_state(edited)
    assert (found.values, found.next) == ({"log": ["s", "edit"]}, ("n",))
    await graph.ainvoke(None, edited)
    assert await graph.ainvoke(Command(resume="yes"), CONFIG) == {"log": ["s", "edit", "n:yes", "end"]}
    assert runs["s"] == 1


async def test_blocking_reads_and_edits(blocking_saver: Any) -> None:
    graph = chain(("p", chain("s", Runs().asker("n")).compile())).compile(checkpointer=blocking_saver)

    def work() -> None:
        graph.invoke({}, CONFIG)
        where = graph.get_state(CONFIG, subgraphs=True).tasks[0].state.config
        graph.update_state(place(where), {"log": ["edit"]})
        assert [one.metadata["source"] for one in graph.get_state_history(place(where), limit=1)] == ["update"]
        assert graph.invoke(Command(resume="yes"), CONFIG) == {"log": ["s", "edit", "n:yes"]}

    await to_thread.run_sync(work)


# Values of types that only the subgraph knows


class Model(BaseModel):
    """A pydantic value."""

    x: int


@dataclass
class Plain:
    """A dataclass value."""

    y: int


class Typed(TypedDict, total=False):
    """State of a subgraph."""

    log: Annotated[list[str], operator.add]
    model: Model
    plain: list[Plain]


@pytest.mark.parametrize("form", ["node", "function", "hidden"])
async def test_values_of_types_that_only_the_subgraph_knows(database: str, form: str) -> None:
    async def fill(_state: Typed) -> dict[str, Any]:
        return {"model": Model(x=1), "plain": [Plain(2)]}

    def build() -> Any:
        child = chain(("fill", fill), Runs().asker("n"), schema=Typed).compile()
        hidden = {"child": child}

        async def node(_state: Log) -> dict[str, Any]:
            await (child if form == "function" else hidden["child"]).ainvoke({"log": []})
            return {}

        async def called(_state: Log) -> dict[str, Any]:
            await hidden["child"].ainvoke({"log": []})
            return {}

        return chain(("p", child if form == "node" else node if form == "function" else called))

    async with SqliteSaver.from_conn_string(database) as saver:
        assert questions(await build().compile(checkpointer=saver).ainvoke({}, CONFIG))
    async with SqliteSaver.from_conn_string(database) as saver:
        graph = build().compile(checkpointer=saver)
        if form != "hidden":
            state = (await graph.aget_state(CONFIG, subgraphs=True)).tasks[0].state
            assert (state.values["model"], state.values["plain"]) == (Model(x=1), [Plain(2)])
        assert "__interrupt__" not in await graph.ainvoke(Command(resume="yes"), CONFIG)


# Inside workflows


async def test_a_subgraph_in_a_task_of_a_workflow(saver: Any) -> None:
    runs = Runs()
    child = chain(runs.step("s"), runs.asker("n")).compile()

    @task
    async def work(number: int) -> list[str]:
        noted: list[str] = (await child.ainvoke({"a": number}))["log"]
        return noted

    @entrypoint(checkpointer=saver)
    async def flow(number: int) -> list[str]:
        return await work(number)

    assert questions(await flow.ainvoke(1, CONFIG))
    (found,) = [one async for one in saver.alist(CONFIG) if one.metadata["step"] == 1]
    where = place(found.config)
    caller, own = where["configurable"]["checkpoint_ns"].split("|")
    assert caller.startswith("flow:")
    assert own.startswith("work:")
    inside = await flow.aget_state(where)
    assert (inside.next, inside.values["a"]) == (("n",), 1)
    await flow.aupdate_state(where, {"log": ["edit"]})
    assert await flow.ainvoke(Command(resume="yes"), CONFIG) == ["s", "edit", "n:yes"]
    assert runs["s"] == 1


async def test_tasks_of_a_workflow_that_is_a_subgraph_run_once(saver: Any) -> None:
    runs = Runs()

    @task
    async def work(number: int) -> int:
        runs[f"work {number}"] += 1
        return number * 2

    @entrypoint()
    async def flow(number: int) -> str:
        doubled = await work(number)
        return f"{doubled}:{interrupt('q')}"

    async def node(_state: Log) -> dict[str, Any]:
        return {"log": [await flow.ainvoke(3), await flow.ainvoke(4)]}

    graph = chain(("p", chain(("f", node)).compile())).compile(checkpointer=saver)
    for number in range(3):
        result = await graph.ainvoke(Command(resume=f"r{number}") if number else {}, CONFIG)
    assert result == {"log": ["6:r1", "8:r2"]}
    assert runs == {"work 3": 1, "work 4": 1}


async def test_threads_do_not_share_subgraphs(saver: Any) -> None:
    child = chain(("s", lambda state: {"a": state.get("a", 0) + 1})).compile(checkpointer=True)
    graph = chain(("p", child)).compile(checkpointer=saver)
    for name in ("x", "y"):
        await graph.ainvoke({}, thread(name))
        found = await graph.aget_state({"configurable": {"thread_id": name, "checkpoint_ns": "p"}})
        assert found.values["a"] == 1
