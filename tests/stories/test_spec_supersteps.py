"""Which tasks a superstep runs, in what order their writes are applied, and what START does."""

import operator
from typing import Annotated, Any, TypedDict

import anyio
import pytest

from runtime.errors import EmptyInputError, InvalidUpdateError
from runtime.graph import END, START, StateGraph
from runtime.types import Command, Send
from tests.stories.graphs import CONFIG, Log, chain, fan, history, note, steps, thread

pytestmark = pytest.mark.anyio


async def test_the_history_of_a_chain(saver: Any) -> None:
    async def n1(state: Log) -> dict[str, Any]:
        return {"a": state["a"] + 1, "log": ["n1"]}

    async def n2(state: Log) -> dict[str, Any]:
        return {"a": state["a"] * 10, "log": ["n2"]}

    graph = chain(("n1", n1), ("n2", n2)).compile(checkpointer=saver)
    assert await graph.ainvoke({"a": 1}, CONFIG) == {"a": 20, "log": ["n1", "n2"]}
    snapshots = await history(graph)
    shown = [(*steps([s])[0], s.values, {t.name: t.result for t in s.tasks}) for s in snapshots]
    assert shown == [
        (2, "loop", (), {"a": 20, "log": ["n1", "n2"]}, {}),
        (1, "loop", ("n2",), {"a": 2, "log": ["n1"]}, {"n2": {"a": 20, "log": ["n2"]}}),
        (0, "loop", ("n1",), {"a": 1, "log": []}, {"n1": {"a": 2, "log": ["n1"]}}),
        (-1, "input", ("__start__",), {"log": []}, {"__start__": {"a": 1}}),
    ]


@pytest.mark.parametrize("nodes", [1, 2, 5])
async def test_k_node_supersteps_make_k_plus_two_checkpoints(saver: Any, nodes: int) -> None:
    graph = chain(*[f"n{i}" for i in range(nodes)]).compile(checkpointer=saver)
    await graph.ainvoke({}, CONFIG)
    snapshots = await history(graph)
    assert [s.metadata["step"] for s in snapshots] == list(range(nodes, -2, -1))
    assert [s.metadata["source"] for s in snapshots] == ["loop"] * (nodes + 1) + ["input"]


async def test_the_empty_dict_is_an_input_and_none_is_not(saver: Any) -> None:
    graph = chain("n").compile(checkpointer=saver)
    with pytest.raises(EmptyInputError):
        await graph.ainvoke(None, CONFIG)
    assert await graph.ainvoke({}, CONFIG) == {"log": ["n"]}


async def test_nodes_of_one_superstep_run_at_the_same_time() -> None:
    arrived: list[str] = []
    everyone = anyio.Event()

    def meet(name: str) -> Any:
        async def node(_state: Any) -> dict[str, Any]:
            arrived.append(name)
            if len(arrived) == 3:
                everyone.set()
            await everyone.wait()
            return {"log": [name]}

        return node

    graph = fan(*[(name, meet(name)) for name in ("x", "y", "z")], first=None).compile()
    with anyio.fail_after(10):
        assert (await graph.ainvoke({}))["log"] == ["x", "y", "z", "join"]


async def test_a_node_does_not_see_what_its_siblings_write() -> None:
    seen: dict[str, Any] = {}

    def look(name: str) -> Any:
        async def node(state: Log) -> dict[str, Any]:
            seen[name] = list(state["log"])
            return {"log": [name]}

        return node

    await fan(("x", look("x")), ("y", look("y"))).compile().ainvoke({"log": ["in"]})
    assert seen == {"x": ["in", "st"], "y": ["in", "st"]}


async def test_writes_are_folded_by_node_name_not_by_completion() -> None:
    done = anyio.Event()

    async def alpha(_state: Any) -> dict[str, Any]:
        await done.wait()
        return {"log": ["alpha"]}

    async def zeta(_state: Any) -> dict[str, Any]:
        done.set()
        return {"log": ["zeta"]}

    graph = fan(("zeta", zeta), ("alpha", alpha), first=None, last=None).compile()
    with anyio.fail_after(10):
        assert (await graph.ainvoke({}))["log"] == ["alpha", "zeta"]


async def test_sends_are_folded_by_index_after_the_named_nodes() -> None:
    finished: list[int] = []
    turn = [anyio.Event() for _ in range(4)]
    turn[3].set()

    async def work(item: int) -> dict[str, Any]:
        await turn[item + 1].wait()
        finished.append(item)
        turn[item].set()
        return {"log": [str(item)]}

    builder = StateGraph(Log)
    builder.add_node("src", lambda _state: Command(goto=[Send("work", 0), Send("work", 1), Send("work", 2)]))
    builder.add_node("work", work)
    builder.add_node("other", note("other"))
    builder.add_node("red", note("red"))
    builder.add_edge(START, "src")
    builder.add_edge("src", "other")
    builder.add_edge("work", "red")
    with anyio.fail_after(10):
        result = await builder.compile().ainvoke({"log": ["in"]})
    assert finished == [2, 1, 0]
    assert result["log"] == ["in", "other", "0", "1", "2", "red"]


async def test_a_fan_in_by_plain_edges_runs_once_for_sources_of_one_step() -> None:
    builder = fan("x", "y", first=None, last=None)
    builder.add_node("d", note("d"))
    builder.add_edge("x", "d")
    builder.add_edge("y", "d")
    assert (await builder.compile().ainvoke({}))["log"] == ["x", "y", "d"]


def uneven(*, defer: bool) -> StateGraph:
    builder = StateGraph(Log)
    for name in ("a1", "b1", "b2"):
        builder.add_node(name, note(name))
    builder.add_node("d", note("d"), defer=defer)
    builder.add_edge(START, "a1")
    builder.add_edge(START, "b1")
    builder.add_edge("b1", "b2")
    builder.add_edge("a1", "d")
    builder.add_edge("b2", "d")
    return builder


async def test_a_fan_in_by_plain_edges_runs_twice_for_sources_of_two_steps() -> None:
    assert (await uneven(defer=False).compile().ainvoke({}))["log"] == ["a1", "b1", "b2", "d", "d"]


async def test_a_deferred_node_waits_until_nothing_else_is_due(saver: Any) -> None:
    graph = uneven(defer=True).compile(checkpointer=saver)
    assert (await graph.ainvoke({}, CONFIG))["log"] == ["a1", "b1", "b2", "d"]
    assert [s.next for s in await history(graph)] == [(), ("d",), ("b2",), ("a1", "b1"), ("__start__",)]


async def test_a_deferred_node_waits_for_sends_too(saver: Any) -> None:
    """It is led to before they have run, and after; it runs once."""
    builder = StateGraph(Log).add_node("a", note("a")).add_node("part", note("part"))
    builder.add_node("d", note("d"), defer=True)
    builder.add_edge(START, "a").add_edge("a", "d").add_edge("part", "d")
    builder.add_conditional_edges("a", lambda _state: [Send("part", {}), Send("part", {})], ["part"])
    graph = builder.compile(checkpointer=saver)
    assert (await graph.ainvoke({}, CONFIG))["log"] == ["a", "part", "part", "d"]
    assert [s.next for s in await history(graph)] == [(), ("d",), ("part", "part"), ("a",), ("__start__",)]


async def test_a_deferred_join_waits_for_its_sources_and_the_rest() -> None:
    builder = StateGraph(Log)
    for name in ("a", "b", "c1", "c2"):
        builder.add_node(name, note(name))
    builder.add_node("j", note("j"), defer=True)
    for name in ("a", "b", "c1"):
        builder.add_edge(START, name)
    builder.add_edge("c1", "c2")
    builder.add_edge(["a", "b"], "j")
    assert (await builder.compile().ainvoke({}))["log"] == ["a", "b", "c1", "c2", "j"]


async def test_a_join_waits_for_sources_of_different_steps() -> None:
    builder = StateGraph(Log)
    for name in ("a", "b1", "b2", "j"):
        builder.add_node(name, note(name))
    builder.add_edge(START, "a")
    builder.add_edge(START, "b1")
    builder.add_edge("b1", "b2")
    builder.add_edge(["a", "b2"], "j")
    assert (await builder.compile().ainvoke({}))["log"] == ["a", "b1", "b2", "j"]


async def test_a_join_can_be_filled_by_different_runs(saver: Any) -> None:
    class State(TypedDict, total=False):
        way: str
        log: Annotated[list[str], operator.add]

    builder = StateGraph(State)
    for name in ("x", "y", "z", "j"):
        builder.add_node(name, note(name))
    builder.add_edge(START, "x")
    builder.add_conditional_edges("x", lambda state: state["way"], ["y", "z"])
    builder.add_edge(["y", "z"], "j")
    graph = builder.compile(checkpointer=saver)
    assert (await graph.ainvoke({"way": "y"}, CONFIG))["log"] == ["x", "y"]
    assert (await graph.ainvoke({"way": "z"}, CONFIG))["log"] == ["x", "y", "x", "z", "j"]
    assert (await graph.ainvoke({"way": "y"}, CONFIG))["log"] == ["x", "y", "x", "z", "j", "x", "y"]


async def test_a_loop_triggers_a_node_again() -> None:
    builder = StateGraph(Log)
    builder.add_node("n", lambda state: {"a": state["a"] + 1, "log": [str(state["a"])]})
    builder.add_edge(START, "n")
    builder.add_conditional_edges("n", lambda state: "n" if state["a"] < 3 else END)
    assert await builder.compile().ainvoke({"a": 0}) == {"a": 3, "log": ["0", "1", "2"]}


async def test_task_order_in_the_history_is_builder_order(saver: Any) -> None:
    graph = fan("zeta", "alpha", "mid").compile(checkpointer=saver)
    await graph.ainvoke({}, CONFIG)
    assert ("zeta", "alpha", "mid") in [s.next for s in await history(graph)]


async def test_sends_come_first_in_the_task_list(saver: Any) -> None:
    builder = StateGraph(Log)
    builder.add_node("src", lambda _state: Command(goto=[Send("work", 1), Send("work", 2)]))
    builder.add_node("work", lambda item: {"log": [f"w{item}"]})
    builder.add_node("other", note("other"))
    builder.add_edge(START, "src")
    builder.add_edge("src", "other")
    graph = builder.compile(checkpointer=saver)
    await graph.ainvoke({}, CONFIG)
    (snapshot,) = [s for s in await history(graph) if len(s.tasks) == 3]
    assert snapshot.next == ("work", "work", "other")
    assert [t.path for t in snapshot.tasks] == [
        ("__pregel_push", 0, False),
        ("__pregel_push", 1, False),
        ("__pregel_pull", "other"),
    ]
    assert [t.result for t in snapshot.tasks] == [{"log": ["w1"]}, {"log": ["w2"]}, {"log": ["other"]}]


async def test_two_writers_of_a_plain_key_fail_the_run(saver: Any) -> None:
    graph = fan(("x", lambda _s: {"a": 1}), ("y", lambda _s: {"a": 2})).compile(checkpointer=saver)
    with pytest.raises(InvalidUpdateError, match="'a'"):
        await graph.ainvoke({}, CONFIG)


async def test_threads_do_not_share_state(saver: Any) -> None:
    graph = chain("n").compile(checkpointer=saver)
    await graph.ainvoke({"log": ["one"]}, thread("one"))
    await graph.ainvoke({"log": ["two"]}, thread("two"))
    assert (await graph.aget_state(thread("one"))).values == {"log": ["one", "n"]}
    assert (await graph.aget_state(thread("two"))).values == {"log": ["two", "n"]}


async def test_sync_and_async_nodes_run_side_by_side() -> None:
    graph = fan(("plain", lambda _state: {"log": ["plain"]}), ("waits", note("waits"))).compile()
    assert (await graph.ainvoke({}))["log"] == ["st", "plain", "waits", "join"]
