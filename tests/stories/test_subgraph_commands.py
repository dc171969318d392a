"""Commands from a subgraph to the graph around it."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from runtime.errors import InvalidUpdateError, UnknownNodeError
from runtime.graph import END, START, StateGraph
from runtime.types import Command, Send
from tests.stories.graphs import CONFIG, Log, chain, history
from tests.stories.nests import Runs, asked

pytestmark = pytest.mark.anyio


def upward(runs: Runs | None = None, **options: Any) -> tuple[str, Any]:
    """A node that addresses the parent."""

    async def up(_state: Log) -> Command[Any]:
        if runs is not None:
            runs["up"] += 1
        return Command(graph=Command.PARENT, **options)

    return "up", up


def parent(child: Any, *others: str) -> StateGraph:
    """START -> n -> p (the child) -> after, beside other nodes that only a route reaches."""
    builder = chain("n", ("p", child), "after")
    for name in others:
        builder.add_node(name, lambda _state, name=name: {"log": [name]})
    return builder


@pytest.mark.parametrize("kept", [None, True, False])
async def test_an_update_and_a_route(saver: Any, kept: Any) -> None:
    runs = Runs()
    child = chain(runs.step("s"), upward(update={"log": ["cmd"], "a": 1}, goto="other"), runs.step("never")).compile(
        checkpointer=kept
    )
    graph = parent(child, "other").compile(checkpointer=saver)
    result = await graph.ainvoke({}, CONFIG)
    assert result == {"a": 1, "log": ["n", "cmd", "after", "other"]}  # the node's own edges hold as well
    assert runs == {"s": 1}
    (record,) = [one for one in await history(graph) if set(one.next) == {"after", "other"}]
    assert record.values == {"a": 1, "log": ["n", "cmd"]}


async def test_of_several_at_once_the_first_in_order_counts(saver: Any) -> None:
    """Whichever comes last: tasks are folded in path order, and so are their Commands."""

    async def up(state: Any) -> Command[Any]:
        await anyio.sleep(0.002 * (2 - state["a"]))
        return Command(graph=Command.PARENT, update={"log": [f"part {state['a']}"]})

    builder = chain("s").add_node("up", up)
    builder.add_conditional_edges("s", lambda _state: [Send("up", {"a": number}) for number in range(3)])
    graph = parent(builder.compile()).compile(checkpointer=saver)
    assert await graph.ainvoke({}, CONFIG) == {"log": ["n", "part 0", "after"]}


async def test_out_of_a_function(saver: Any) -> None:
    child = chain(upward(update={"log": ["cmd"]}, goto="other")).compile()

    async def node(state: Log) -> dict[str, Any]:
        await child.ainvoke(state)
        return {"log": ["never"]}

    builder = chain(("f", node))
    builder.add_node("other", lambda _state: {"log": ["other"]})
    assert await builder.compile(checkpointer=saver).ainvoke({}, CONFIG) == {"log": ["cmd", "other"]}


async def test_out_of_a_sync_function(saver: Any) -> None:
    child = chain(upward(update={"log": ["cmd"]}, goto="other")).compile()

    def node(state: Log) -> dict[str, Any]:
        child.invoke(state)
        return {"log": ["never"]}

    builder = chain(("f", node))
    builder.add_node("other", lambda _state: {"log": ["other"]})
    assert await builder.compile(checkpointer=saver).ainvoke({}, CONFIG) == {"log": ["cmd", "other"]}


async def test_out_of_a_task_group(saver: Any) -> None:
    runs = Runs()
    child = chain(upward(update={"log": ["cmd"]}, goto="other")).compile()

    async def forever(_state: Log) -> dict[str, Any]:
        try:
            await anyio.sleep_forever()
        finally:
            runs["ended"] += 1
        return {}

    waiting = chain(("forever", forever)).compile()

    async def node(_state: Log) -> dict[str, Any]:
        async with anyio.create_task_group() as group:
            group.start_soon(waiting.ainvoke, {"log": []})
            await anyio.wait_all_tasks_blocked()
            group.start_soon(child.ainvoke, {"log": []})
        return {"log": ["never"]}

    builder = chain(("f", node))
    builder.add_node("other", lambda _state: {"log": ["other"]})
    assert await builder.compile(checkpointer=saver).ainvoke({}, CONFIG) == {"log": ["cmd", "other"]}
    assert runs == {"ended": 1}


async def test_a_defensive_function_does_not_swallow_it(saver: Any) -> None:
    child = chain(upward(update={"log": ["cmd"]})).compile()

    async def node(_state: Log) -> dict[str, Any]:
        try:
            await child.ainvoke({"log": []})
        except Exception:  # noqa: BLE001 - what defensive code does
            return {"log": ["swallowed"]}
        return {"log": ["never"]}

    graph = chain(("f", node)).compile(checkpointer=saver)
    assert await graph.ainvoke({}, CONFIG) == {"log": ["cmd"]}


async def test_sends_to_the_parent(saver: Any) -> None:
    child = chain(upward(goto=[Send("work", 1), Send("work", 2)])).compile()
    builder = chain(("p", child))
    builder.add_node("work", lambda number: {"log": [f"work {number}"]})
    assert await builder.compile(checkpointer=saver).ainvoke({}, CONFIG) == {"log": ["work 1", "work 2"]}


async def test_two_levels_one_after_the_other(saver: Any) -> None:
    inner = chain(upward(update={"log": ["from inner"]}, goto="relay")).compile()
    middle = chain(("q", inner))
    middle.add_node("relay", lambda _state: Command(graph=Command.PARENT, update={"log": ["relayed"]}, goto="other"))
    graph = parent(middle.compile(), "other").compile(checkpointer=saver)
    assert await graph.ainvoke({}, CONFIG) == {"log": ["n", "relayed", "after", "other"]}


async def test_the_inner_one_reaches_only_the_graph_around_it(saver: Any) -> None:
    inner = chain(upward(update={"log": ["cmd"]}, goto="there")).compile()
    middle = chain(("q", inner), "m2")
    middle.add_node("there", lambda _state: {"log": ["there"]})
    graph = chain(("p", middle.compile()), "end").compile(checkpointer=saver)
    assert await graph.ainvoke({}, CONFIG) == {"log": ["cmd", "m2", "there", "end"]}


async def test_a_route_that_the_parent_does_not_know(saver: Any) -> None:
    graph = parent(chain(upward(goto="nowhere")).compile()).compile(checkpointer=saver)
    with pytest.raises(UnknownNodeError, match="nowhere"):
        await graph.ainvoke({}, CONFIG)
    assert (await graph.aget_state(CONFIG)).next == ("p",)


async def test_a_route_to_the_end(saver: Any) -> None:
    builder = StateGraph(Log)
    builder.add_node("p", chain(upward(update={"log": ["cmd"]}, goto=END)).compile())
    builder.add_edge(START, "p")
    assert await builder.compile(checkpointer=saver).ainvoke({}, CONFIG) == {"log": ["cmd"]}


async def test_at_the_root_there_is_nobody_to_address(saver: Any) -> None:
    graph = chain(upward(update={"log": ["cmd"]})).compile(checkpointer=saver)
    with pytest.raises(InvalidUpdateError, match=r"Node 'up' returned .*Command\.PARENT.* it has no parent") as failure:
        await graph.ainvoke({}, CONFIG)
    assert "During task with name 'up'" in failure.value.__notes__[0]
    assert (await graph.aget_state(CONFIG)).next == ("up",)
    with pytest.raises(InvalidUpdateError, match="parent"):
        await graph.ainvoke(Command(graph=Command.PARENT, update={"log": ["x"]}), CONFIG)


async def test_after_a_question(saver: Any) -> None:
    runs = Runs()
    child = chain(runs.step("s"), runs.asker("n"), upward(runs, update={"log": ["cmd"]}, goto="other")).compile()
    graph = parent(child, "other").compile(checkpointer=saver)
    assert asked(await graph.ainvoke({}, CONFIG)) == ["n?"]
    result = await graph.ainvoke(Command(resume="yes"), CONFIG)
    assert result == {"log": ["n", "cmd", "after", "other"]}
    assert runs == {"s": 1, "n": 2, "up": 1}


async def test_a_kept_subgraph_starts_a_new_call_after_it(saver: Any) -> None:
    runs = Runs()

    async def up(state: Log) -> Command[Any]:
        return Command(graph=Command.PARENT, update={"log": [f"cmd {state['a']}"]})

    child = chain(("count", lambda state: {"a": state.get("a", 0) + 1}), ("up", up), runs.step("never")).compile(
        checkpointer=True
    )

    async def node(_state: Log) -> dict[str, Any]:
        await child.ainvoke({"log": []})
        return {}

    graph = chain(("f", node)).compile(checkpointer=saver)
    await graph.ainvoke({}, CONFIG)
    assert (await graph.ainvoke({}, CONFIG))["log"] == ["cmd 1", "cmd 2"]
    assert runs == {}


async def test_handing_over_between_agents(saver: Any) -> None:
    def agent(name: str, other: str | None) -> Any:
        async def work(_state: Log) -> Any:
            if other is None:
                return {"log": [f"{name} is done"]}
            return Command(graph=Command.PARENT, update={"log": [f"{name} hands over"]}, goto=other)

        return chain(("work", work), schema=Log).compile()

    builder = StateGraph(Log)
    builder.add_node("alice", agent("alice", "bob"))
    builder.add_node("bob", agent("bob", None))
    builder.add_edge(START, "alice")
    result = await builder.compile(checkpointer=saver).ainvoke({}, CONFIG)
    assert result["log"][-1] == "bob is done"
    assert result["log"][0] == "alice hands over"
