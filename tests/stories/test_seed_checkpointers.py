"""What a checkpointer gives, as its guide tells it: state, history, finding a point, replay, namespaces, durability."""

# mypy: ignore-errors
# The programs are a user's code as printed in the guide that this library follows, turned into Python.
import operator
import re
from collections import Counter
from typing import Annotated, Any, TypedDict

import pytest

from persistence.errors import PersistenceError
from runtime.graph import END, START, StateGraph
from runtime.types import Command, Durability, RunnableConfig, interrupt
from tests.stories.fake_model import FakeModel
from tests.stories.graphs import history, steps

pytestmark = pytest.mark.anyio

CONFIG = {"configurable": {"thread_id": "1"}}
UUID = r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"


class State(TypedDict):
    foo: str
    bar: Annotated[list[str], operator.add]


def workflow() -> StateGraph:
    async def node_a(state: State) -> State:
        return {"foo": "a", "bar": ["a"]}

    async def node_b(state: State) -> State:
        return {"foo": "b", "bar": ["b"]}

    return (
        StateGraph(State)
        .add_node("node_a", node_a)
        .add_node("node_b", node_b)
        .add_edge(START, "node_a")
        .add_edge("node_a", "node_b")
        .add_edge("node_b", END)
    )


async def run(saver: Any) -> Any:
    graph = workflow().compile(checkpointer=saver)
    await graph.ainvoke({"foo": "", "bar": []}, CONFIG)
    return graph


async def test_a_run_of_two_nodes_leaves_four_checkpoints(saver: Any) -> None:
    graph = await run(saver)
    assert [
        (one.values, one.next, one.metadata["source"], one.metadata["step"]) for one in await history(graph, CONFIG)
    ] == [
        ({"foo": "b", "bar": ["a", "b"]}, (), "loop", 2),
        ({"foo": "a", "bar": ["a"]}, ("node_b",), "loop", 1),
        ({"foo": "", "bar": []}, ("node_a",), "loop", 0),
        ({"bar": []}, ("__start__",), "input", -1),
    ]


async def test_the_latest_state_and_the_state_of_an_id(saver: Any) -> None:
    graph = await run(saver)
    latest = await graph.aget_state(CONFIG)
    assert (latest.values, latest.next, latest.tasks) == ({"foo": "b", "bar": ["a", "b"]}, (), ())
    assert latest.config["configurable"].keys() == {"thread_id", "checkpoint_ns", "checkpoint_id"}
    assert latest.config["configurable"]["checkpoint_ns"] == ""

    (_, before, *_, first) = await history(graph, CONFIG)
    assert latest.parent_config == before.config
    config = {"configurable": {"thread_id": "1", "checkpoint_id": before.config["configurable"]["checkpoint_id"]}}
    assert await graph.aget_state(config) == before
    assert [(task.name, task.error, task.interrupts) for task in before.tasks] == [("node_b", None, ())]
    assert first.parent_config is None


async def test_finding_a_certain_checkpoint(saver: Any) -> None:
    async def ask(state: State) -> State:
        return {"bar": [interrupt("Go on?")]}

    builder = workflow().add_node("ask", ask).add_edge("node_b", "ask")
    graph = builder.compile(checkpointer=saver)
    await graph.ainvoke({"foo": "", "bar": []}, CONFIG)
    await graph.aupdate_state(CONFIG, {"foo": "edited"}, as_node="node_a")
    states = await history(graph, CONFIG)

    before_node_b = next(s for s in states if "node_b" in s.next)
    assert before_node_b.values == {"foo": "edited", "bar": ["a", "b"]}
    step_2 = next(s for s in states if s.metadata["step"] == 2)
    assert step_2.values == {"foo": "b", "bar": ["a", "b"]}
    forks = [s for s in states if s.metadata["source"] == "update"]
    assert forks == [before_node_b]
    interrupted = next(s for s in states if s.tasks and any(t.interrupts for t in s.tasks))
    assert interrupted == step_2
    assert [question.value for question in interrupted.interrupts] == ["Go on?"]


async def test_replay_skips_what_came_before_and_repeats_calls_and_questions_after(saver: Any) -> None:
    calls = Counter()
    model = FakeModel(lambda text: {"role": "assistant", "content": text})

    async def fetch(state: State) -> State:
        calls["request"] += 1
        return {"foo": f"page {calls['request']}"}

    async def write(state: State) -> State:
        calls["model"] += 1
        return {"bar": [model.invoke([{"role": "user", "content": state["foo"]}])["content"]]}

    async def review(state: State) -> State:
        return {"bar": [interrupt(f"Publish {state['bar'][-1]}?")]}

    graph = StateGraph(State).add_sequence([fetch, write, review]).add_edge(START, "fetch").compile(checkpointer=saver)
    await graph.ainvoke({"foo": "", "bar": []}, CONFIG)
    assert (await graph.ainvoke(Command(resume="yes"), CONFIG))["bar"] == ["收到：page 1", "yes"]
    before = await history(graph, CONFIG)

    point = next(s for s in before if s.next == ("write",))
    replayed = await graph.ainvoke(None, point.config)
    assert calls == {"request": 1, "model": 2}
    (question,) = replayed["__interrupt__"]
    assert question.value == "Publish 收到：page 1?"
    assert (await graph.ainvoke(Command(resume="no"), CONFIG))["bar"] == ["收到：page 1", "no"]
    after = await history(graph, CONFIG)
    assert after[-len(before) :] == before
    assert steps(after[: -len(before)]) == [(4, "loop", ()), (3, "loop", ("review",)), (2, "fork", ("write",))]


async def test_an_update_is_folded_like_a_nodes_and_leaves_the_original_alone(saver: Any) -> None:
    graph = await run(saver)
    (latest, *_) = before = await history(graph, CONFIG)
    await graph.aupdate_state(CONFIG, {"foo": "new", "bar": ["c"]})
    assert (await graph.aget_state(CONFIG)).values == {"foo": "new", "bar": ["a", "b", "c"]}
    assert (await history(graph, CONFIG))[1:] == before
    assert (await graph.aget_state(latest.config)).values == {"foo": "b", "bar": ["a", "b"]}


async def test_namespaces_say_which_graph_a_checkpoint_belongs_to(saver: Any) -> None:
    seen = {}

    async def my_node(state: State, config: RunnableConfig) -> State:
        seen["parent"] = config["configurable"]["checkpoint_ns"]
        return {"bar": ["parent"]}

    async def inner(state: State, config: RunnableConfig) -> State:
        seen["inner"] = config["configurable"]["checkpoint_ns"]
        return {"foo": interrupt("Deep?")}

    def around(name: str, node: Any) -> StateGraph:
        return StateGraph(State).add_node(name, node).add_edge(START, name)

    middle = around("inner_node", around("inner", inner).compile()).compile()
    builder = around("my_node", my_node).add_node("outer_node", middle).add_edge("my_node", "outer_node")
    graph = builder.compile(checkpointer=saver)
    await graph.ainvoke({"foo": "", "bar": []}, CONFIG)

    root = await graph.aget_state(CONFIG, subgraphs=True)
    outer = root.tasks[0].state
    deepest = outer.tasks[0].state
    places = [state.config["configurable"]["checkpoint_ns"] for state in (root, outer, deepest)]
    assert places[0] == ""
    assert re.fullmatch(f"outer_node:{UUID}", places[1])
    assert re.fullmatch(rf"outer_node:{UUID}\|inner_node:{UUID}", places[2])
    assert [state.next for state in (root, outer, deepest)] == [("outer_node",), ("inner_node",), ("inner",)]
    # A node's own config adds the node to its graph's namespace.
    assert re.fullmatch(f"my_node:{UUID}", seen["parent"])
    assert re.fullmatch(re.escape(places[2]) + rf"\|inner:{UUID}", seen["inner"])
    # Without asking for subgraphs a task says only where its subgraph's state is.
    (task,) = (await graph.aget_state(CONFIG)).tasks
    assert task.state == {"configurable": {"thread_id": "1", "checkpoint_ns": places[1]}}
    assert (await graph.ainvoke(Command(resume="yes"), CONFIG))["foo"] == "yes"


@pytest.mark.parametrize("durability", ["exit", "async", "sync"])
async def test_a_mode_is_chosen_with_the_call_and_survives_failures_as_far_as_it_promises(
    saver: Any, durability: Durability
) -> None:
    broken = [True]

    async def node_c(state: State) -> State:
        if broken:
            raise ConnectionError("down")
        return {"foo": "c", "bar": ["c"]}

    graph = workflow().add_node("node_c", node_c).add_edge("node_b", "node_c").compile(checkpointer=saver)
    with pytest.raises(ConnectionError):
        async for _ in graph.astream({"foo": "", "bar": []}, CONFIG, durability=durability):
            pass
    snapshot = await graph.aget_state(CONFIG)
    assert (snapshot.values["bar"], snapshot.next) == (["a", "b"], ("node_c",))
    assert len(await history(graph, CONFIG)) == (1 if durability == "exit" else 4)
    broken.clear()
    assert (await graph.ainvoke(None, CONFIG, durability=durability))["bar"] == ["a", "b", "c"]


async def test_a_checkpointer_offers_four_methods(saver: Any) -> None:
    await run(saver)
    listed = [one async for one in saver.alist(CONFIG)]
    assert [one.metadata["step"] for one in listed] == [2, 1, 0, -1]
    newest = await saver.aget_tuple(CONFIG)
    assert newest.config == listed[0].config
    assert newest.checkpoint["channel_values"]["bar"] == ["a", "b"]

    copy = {**newest.checkpoint, "id": newest.checkpoint["id"][:-1] + "f"}
    other = {"configurable": {"thread_id": "2", "checkpoint_ns": ""}}
    stored = await saver.aput(other, copy, {"source": "input", "step": -1, "parents": {}}, copy["channel_versions"])
    await saver.aput_writes(stored, [("foo", "pending")], "task")
    read = await saver.aget_tuple({"configurable": {"thread_id": "2"}})
    assert read.pending_writes == [("task", "foo", "pending")]
    assert read.checkpoint["channel_values"]["foo"] == "b"


async def test_without_a_thread_id_there_is_nowhere_to_save(saver: Any) -> None:
    graph = workflow().compile(checkpointer=saver)
    with pytest.raises(Exception, match="thread_id") as raised:
        await graph.ainvoke({"foo": "", "bar": []}, {"configurable": {}})
    assert not isinstance(raised.value, PersistenceError)
