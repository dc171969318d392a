"""Writes that cannot be folded: nothing of them is stored, the thread stays readable, and a mended program goes on."""

from __future__ import annotations

import re
from typing import Annotated, Any, TypedDict

import anyio
import pytest

from persistence.memory import InMemorySaver
from runtime.errors import InvalidUpdateError
from runtime.graph import START, StateGraph
from runtime.types import Command, Overwrite, RetryPolicy, Send
from tests.stories.graphs import CONFIG, history

DURABILITIES = ["sync", "async", "exit"]


def refusing(left: list[int], right: list[int]) -> list[int]:
    """Concatenate; no sevens, and no more than three together."""
    if 7 in right or len(left) + len(right) > 3:
        msg = "refused"
        raise ValueError(msg)
    return left + right


class State(TypedDict, total=False):
    items: Annotated[list[int], refusing]
    last: int


class Node:
    """A node that returns something else once it is mended."""

    def __init__(self, bad: Any, good: Any) -> None:
        self.bad = bad
        self.good = good
        self.mended = False
        self.runs = 0

    async def __call__(self, _state: Any) -> Any:
        self.runs += 1
        await anyio.sleep(0)
        return self.good if self.mended else self.bad


ALONE: dict[str, Any] = {
    "a reducer that raises": ({"items": [7]}, ValueError, "refused"),
    "two writes of one node": ([Command(update={"last": 1}), {"last": 2}], InvalidUpdateError, "only one value"),
    "two overwrites": (
        [Command(update={"items": Overwrite([])}), {"items": Overwrite([])}],
        InvalidUpdateError,
        "only one Overwrite",
    ),
}


@pytest.mark.parametrize("durability", DURABILITIES)
@pytest.mark.parametrize("case", ALONE)
async def test_a_lone_node_whose_writes_were_refused_runs_again_once_mended(case: str, durability: Any) -> None:
    bad, error, message = ALONE[case]
    node = Node(bad, {"items": [1]})
    graph = StateGraph(State).add_node("node", node).add_edge(START, "node").compile(InMemorySaver())
    with pytest.raises(error, match=message) as caught:
        await graph.ainvoke({"items": [0]}, CONFIG, durability=durability)
    assert any("During task with name 'node'" in text for text in caught.value.__notes__)
    state = await graph.aget_state(CONFIG)
    assert (state.values["items"], state.next) == ([0], ("node",))
    assert message in str(state.tasks[0].error)
    assert state.tasks[0].result is None
    node.mended = True
    assert await graph.ainvoke(None, CONFIG, durability=durability) == {"items": [0, 1]}
    assert node.runs == 2


@pytest.mark.parametrize("durability", DURABILITIES)
async def test_the_thread_takes_new_input_and_updates_after_a_refusal(durability: Any) -> None:
    node = Node({"items": [7]}, {"items": [1]})
    graph = StateGraph(State).add_node("node", node).add_edge(START, "node").compile(InMemorySaver())
    with pytest.raises(ValueError, match="refused"):
        await graph.ainvoke({"items": [0]}, CONFIG, durability=durability)
    await graph.aupdate_state(CONFIG, {"last": 5}, "node")
    assert (await graph.aget_state(CONFIG)).values == {"items": [0], "last": 5}
    node.mended = True
    assert (await graph.ainvoke({}, CONFIG))["items"] == [0, 1]


async def test_writes_that_fail_only_together_are_the_fault_of_who_came_last() -> None:
    first_done = anyio.Event()

    async def first(_state: Any) -> Any:
        first_done.set()
        return {"items": [1, 2]}

    class Last(Node):
        async def __call__(self, state: Any) -> Any:
            await first_done.wait()
            return await super().__call__(state)

    last = Last({"items": [3, 4]}, {"items": [3]})
    graph = (
        StateGraph(State)
        .add_node("first", first)
        .add_node("last", last)
        .add_edge(START, "first")
        .add_edge(START, "last")
        .compile(InMemorySaver())
    )
    with pytest.raises(ValueError, match="refused") as caught:
        await graph.ainvoke({}, CONFIG)
    assert any("'last'" in text for text in caught.value.__notes__)
    state = await graph.aget_state(CONFIG)
    assert state.next == ("last",)
    last.mended = True
    assert (await graph.ainvoke(None, CONFIG))["items"] == [1, 2, 3]


async def test_a_conflict_between_siblings_is_found_before_it_is_stored() -> None:
    nodes = {name: Node({"last": number}, {}) for number, name in enumerate("abc")}
    builder: Any = StateGraph(State)
    for name, node in nodes.items():
        builder.add_node(name, node).add_edge(START, name)
    graph = builder.compile(InMemorySaver())
    with pytest.raises(InvalidUpdateError, match="only one value") as caught:
        await graph.ainvoke({}, CONFIG)
    assert any("During task with name" in text for text in caught.value.__notes__)
    state = await graph.aget_state(CONFIG)
    (finished,) = [task for task in state.tasks if task.result is not None]
    assert state.values["last"] == nodes[finished.name].bad["last"]
    for node in nodes.values():
        node.mended = True
    assert (await graph.ainvoke(None, CONFIG))["last"] == nodes[finished.name].bad["last"]


async def test_a_refused_input_stores_only_itself() -> None:
    graph = StateGraph(State).add_node("node", Node({}, {})).add_edge(START, "node").compile(InMemorySaver())
    with pytest.raises(ValueError, match="refused"):
        await graph.ainvoke({"items": [7]}, CONFIG)
    assert [one.next for one in await history(graph)] == [(START,)]
    assert (await graph.ainvoke({"items": [1]}, CONFIG))["items"] == [1]


async def test_a_graph_without_a_saver_names_the_node_too() -> None:
    graph = StateGraph(State).add_node("node", Node({"items": [7]}, {})).add_edge(START, "node").compile()
    with pytest.raises(ValueError, match="refused") as caught:
        await graph.ainvoke({})
    assert any("During task with name 'node'" in text for text in caught.value.__notes__)


async def test_a_refusal_is_not_tried_again() -> None:
    """The node has succeeded; its policy is about the node."""
    node = Node({"items": [7]}, {})
    policy = RetryPolicy(retry_on=ValueError, initial_interval=0, jitter=False)
    builder = StateGraph(State).add_node("node", node, retry_policy=policy)
    builder.add_conditional_edges(START, lambda _state: [Send("node", 1), Send("node", 2)], ["node"])
    with pytest.raises(ValueError, match="refused"):
        await builder.compile(InMemorySaver()).ainvoke({}, CONFIG)
    assert node.runs <= 2


def writing(*writes: Any, sends: int = 0) -> Any:
    """Describe nodes that write at once, and one that is sent to."""
    builder = StateGraph(State)
    for position, each in enumerate(writes):
        builder.add_node(f"w{position}", lambda _state, each=each: each).add_edge(START, f"w{position}")
    if sends:
        builder.add_node("sent", lambda given: {"last": given})
        builder.add_conditional_edges(START, lambda _state: [Send("sent", place) for place in range(sends)])
    return builder


WRITERS: dict[str, tuple[Any, str]] = {
    "two nodes": (writing({"last": 1}, {"last": 2}), "Key 'last' was written in this superstep by: 'w0', 'w1'."),
    "one node twice": (writing([Command(update={"last": 1}), {"last": 2}]), "Key 'last' .* by: 'w0' .2 times.."),
    "a node that was sent to": (writing(sends=2), "Key 'last' .* by: 'sent' .2 times.."),
    "two overwrites": (
        writing({"items": Overwrite([])}, {"items": [1]}, {"items": Overwrite([2])}),
        "Key 'items' .* by: 'w0', ('w1', )?'w2'",
    ),
}


@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize("case", WRITERS)
async def test_who_wrote_what_does_not_go_together_is_named(case: str, kept: bool) -> None:
    builder, told = WRITERS[case]
    with pytest.raises(InvalidUpdateError) as raised:
        await builder.compile(InMemorySaver() if kept else None).ainvoke({}, CONFIG)
    (note,) = (note for note in raised.value.__notes__ if note.startswith("Key "))
    assert re.match(told, note)


async def test_of_many_who_wrote_only_some_are_named() -> None:
    builder = writing(*({"last": each} for each in range(12)))
    with pytest.raises(InvalidUpdateError) as raised:
        await builder.compile().ainvoke({})
    assert any(note.endswith("'w5', 4 more.") for note in raised.value.__notes__)


async def test_a_reducer_that_refuses_all_together_names_who_wrote() -> None:
    with pytest.raises(ValueError, match="refused") as raised:
        await writing({"items": [1, 1]}, {"items": [2, 2]}).compile(InMemorySaver()).ainvoke({}, CONFIG)
    assert "Key 'items' was written in this superstep by: 'w0', 'w1'." in raised.value.__notes__
