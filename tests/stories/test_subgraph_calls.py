"""Graphs as nodes of graphs, and called inside nodes: what goes in, what comes out, where each call is kept."""

from __future__ import annotations

import operator
from typing import Annotated, Any, TypedDict

import anyio
import pytest

from runtime.graph import START, StateGraph
from runtime.types import Command, interrupt
from tests.stories.graphs import CONFIG, Log, chain, fan, thread
from tests.stories.nests import Runs, asked, questions

pytestmark = pytest.mark.anyio


class Private(TypedDict, total=False):
    """Shares a key with the parent and has one of its own."""

    log: Annotated[list[str], operator.add]
    secret: str


async def namespaces(saver: Any, name: str = "t") -> list[str]:
    """The namespaces that a thread has checkpoints in."""
    found = {one.config["configurable"]["checkpoint_ns"] async for one in saver.alist(thread(name))}
    return sorted(found)


def plain(namespace: str) -> str:
    """A namespace without the ids of tasks."""
    return "|".join(part.partition(":")[0] for part in namespace.split("|"))


# As a node


async def test_shared_keys_are_folded_by_the_subgraph_and_again_by_the_parent(saver: Any) -> None:
    graph = chain("n", ("p", chain("s").compile())).compile(checkpointer=saver)
    assert await graph.ainvoke({"log": ["in"]}, CONFIG) == {"log": ["in", "n", "in", "n", "s"]}


async def test_keys_of_its_own_stay_inside(saver: Any) -> None:
    async def keep(_state: Private) -> dict[str, Any]:
        return {"secret": "s", "log": ["kept"]}

    async def tell(state: Private) -> dict[str, Any]:
        return {"log": [state["secret"]]}

    child = chain(("keep", keep), ("tell", tell), schema=Private).compile()
    graph = chain(("p", child)).compile(checkpointer=saver)
    assert await graph.ainvoke({"a": 1}, CONFIG) == {"a": 1, "log": ["kept", "s"]}


async def test_it_gets_only_the_keys_that_it_knows(saver: Any) -> None:
    seen: list[Any] = []

    async def look(state: Private) -> dict[str, Any]:
        seen.append(dict(state))
        return {}

    child = chain(("look", look), schema=Private).compile()
    await chain(("p", child)).compile(checkpointer=saver).ainvoke({"a": 1, "log": ["in"]}, CONFIG)
    assert seen == [{"log": ["in"]}]


async def test_input_and_output_schemas(saver: Any) -> None:
    class Given(TypedDict):
        a: int

    class Returned(TypedDict):
        log: Annotated[list[str], operator.add]

    builder = StateGraph(Log, input_schema=Given, output_schema=Returned)
    builder.add_node("s", lambda state: {"log": [f"a={state['a']}"], "a": 5})
    builder.add_edge(START, "s")
    graph = chain(("p", builder.compile())).compile(checkpointer=saver)
    assert await graph.ainvoke({"a": 1, "log": ["in"]}, CONFIG) == {"a": 1, "log": ["in", "a=1"]}


async def test_three_deep(saver: Any) -> None:
    runs = Runs()
    inner = chain(runs.step("c")).compile()
    middle = chain(runs.step("b"), ("q", inner)).compile()
    graph = chain(runs.step("a"), ("p", middle)).compile(checkpointer=saver)
    result = await graph.ainvoke({}, CONFIG)
    assert result["log"][-1] == "c"
    assert runs == {"a": 1, "b": 1, "c": 1}
    assert [plain(one) for one in await namespaces(saver)] == ["", "p", "p|q"]


async def test_one_graph_as_several_nodes_side_by_side(saver: Any) -> None:
    child = chain("s").compile()
    graph = fan(("l", child), ("r", child), first=None).compile(checkpointer=saver)
    assert await graph.ainvoke({}, CONFIG) == {"log": ["s", "s", "join"]}
    assert [plain(one) for one in await namespaces(saver)] == ["", "l", "r"]


async def test_without_a_checkpointer() -> None:
    graph = chain("n", ("p", chain("s").compile())).compile()
    assert await graph.ainvoke({}) == {"log": ["n", "n", "s"]}


# Called in a node's function


async def test_state_is_mapped_by_hand(saver: Any) -> None:
    child = chain(("s", lambda state: {"a": state["a"] * 2})).compile()

    async def node(state: Log) -> dict[str, Any]:
        result = await child.ainvoke({"a": state["a"]})
        return {"a": result["a"] + 1}

    graph = chain(("f", node)).compile(checkpointer=saver)
    assert await graph.ainvoke({"a": 5}, CONFIG) == {"a": 11, "log": []}


async def test_blocking_in_a_sync_node(saver: Any) -> None:
    child = chain("s", Runs().asker("n")).compile()

    def node(_state: Log) -> dict[str, Any]:
        return {"log": child.invoke({"log": []})["log"]}

    graph = chain(("f", node)).compile(checkpointer=saver)
    assert asked(await graph.ainvoke({}, CONFIG)) == ["n?"]
    assert await graph.ainvoke(Command(resume="yes"), CONFIG) == {"log": ["s", "n:yes"]}


def test_blocking_all_the_way(blocking_saver: Any) -> None:
    runs = Runs()
    child = chain(runs.step("s"), runs.asker("n")).compile()

    def node(_state: Log) -> dict[str, Any]:
        return {"log": child.invoke({"log": []})["log"]}

    graph = chain(("f", node)).compile(checkpointer=blocking_saver)
    assert asked(graph.invoke({}, CONFIG)) == ["n?"]
    assert graph.get_state(CONFIG, subgraphs=True).tasks[0].state.next == ("n",)
    assert graph.invoke(Command(resume="yes"), CONFIG) == {"log": ["s", "n:yes"]}
    assert runs["s"] == 1


def test_blocking_three_deep(blocking_saver: Any) -> None:
    runs = Runs()
    inner = chain(runs.asker("n")).compile()
    middle = chain(("q", lambda _state: {"log": inner.invoke({"log": []})["log"]})).compile()
    graph = chain(("p", lambda _state: {"log": middle.invoke({"log": []})["log"]})).compile(checkpointer=blocking_saver)
    assert asked(graph.invoke({}, CONFIG)) == ["n?"]
    assert graph.invoke(Command(resume="yes"), CONFIG) == {"log": ["n:yes"]}


async def test_several_calls_of_one_task_have_a_place_each(saver: Any) -> None:
    child = chain(("s", lambda state: {"a": state["a"] + 1})).compile()

    async def node(_state: Log) -> dict[str, Any]:
        a = 0
        for _ in range(3):
            a = (await child.ainvoke({"a": a}))["a"]
        return {"a": a}

    graph = chain(("f", node)).compile(checkpointer=saver)
    assert (await graph.ainvoke({}, CONFIG))["a"] == 3
    found = await namespaces(saver)
    assert [plain(one) for one in found] == ["", "f", "f|1", "f|2"]
    assert found[2] == f"{found[1]}|1"
    states = [
        (await graph.aget_state({"configurable": {"thread_id": "t", "checkpoint_ns": one}})).values["a"]
        for one in found[1:]
    ]
    assert states == [1, 2, 3]


async def test_questions_of_several_calls_in_turn(saver: Any) -> None:
    runs = Runs()
    first, second = chain(runs.asker("x")).compile(), chain(runs.asker("y")).compile()

    async def node(_state: Log) -> dict[str, Any]:
        runs["f"] += 1
        return {"log": (await first.ainvoke({}))["log"] + (await second.ainvoke({}))["log"]}

    graph = chain(("f", node)).compile(checkpointer=saver)
    one = await graph.ainvoke({}, CONFIG)
    two = await graph.ainvoke(Command(resume="1"), CONFIG)
    assert (asked(one), asked(two)) == (["x?"], ["y?"])
    assert set(questions(one).values()).isdisjoint(questions(two).values())
    assert await graph.ainvoke(Command(resume="2"), CONFIG) == {"log": ["x:1", "y:2"]}
    assert runs == {"f": 3, "x": 2, "y": 2}


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
@pytest.mark.parametrize("order", ["xy", "yx"])
async def test_calls_at_once_ask_at_once(saver: Any, order: str, durability: Any) -> None:
    runs = Runs()
    children = {name: chain(runs.step(f"s{name}"), runs.asker(name)).compile() for name in "xy"}

    async def node(_state: Log) -> dict[str, Any]:
        noted: dict[str, list[str]] = {}

        async def call(name: str) -> None:
            noted[name] = (await children[name].ainvoke({"log": []}))["log"]

        async with anyio.create_task_group() as group:
            for name in "xy":
                group.start_soon(call, name)
        return {"log": noted["x"] + noted["y"]}

    graph = chain(("f", node)).compile(checkpointer=saver)
    result = await graph.ainvoke({}, CONFIG, durability=durability)
    ids = questions(result)
    assert sorted(ids) == ["x?", "y?"]
    for name in order:
        result = await graph.ainvoke(Command(resume={ids[f"{name}?"]: name}), CONFIG, durability=durability)
    assert result == {"log": ["sx", "x:x", "sy", "y:y"]}
    assert runs == {"sx": 1, "x": 2, "sy": 1, "y": 2}


def at_once(runs: Runs, rounds: list[list[int]]) -> Any:
    """A node that calls a graph at once with different numbers, which it asks about; each round lists its calls."""
    started: list[anyio.Event] = []
    left = iter(rounds)

    async def about(state: Log) -> dict[str, Any]:
        runs[f"ask {state['a']}"] += 1
        await started[-1].wait()
        return {"log": [f"{state['a']}:{interrupt(state['a'])}"]}

    async def before(state: Log) -> dict[str, Any]:
        runs[f"before {state['a']}"] += 1
        return {}

    child = chain(("before", before), ("about", about)).compile()

    async def node(_state: Log) -> dict[str, Any]:
        noted: dict[int, list[str]] = {}
        started.append(anyio.Event())

        async def call(number: int) -> None:
            noted[number] = (await child.ainvoke({"a": number}))["log"]

        async with anyio.create_task_group() as group:
            for number in next(left):
                group.start_soon(call, number)
                await anyio.lowlevel.checkpoint()
            started[-1].set()
        return {"log": [text for _, texts in sorted(noted.items()) for text in texts]}

    return node


async def test_calls_at_once_may_come_in_another_order_each_time(saver: Any) -> None:
    runs = Runs()
    node = at_once(runs, [[1, 2, 3], [3, 1, 2], [2, 3, 1], [1, 3, 2]])
    graph = chain(("f", node)).compile(checkpointer=saver)
    result = await graph.ainvoke({}, CONFIG)
    ids = {one.value: one.id for one in result["__interrupt__"]}
    assert sorted(ids) == [1, 2, 3]
    await graph.ainvoke(Command(resume={ids[2]: "two"}), CONFIG)
    await graph.ainvoke(Command(resume={ids[1]: "one"}), CONFIG)
    result = await graph.ainvoke(Command(resume={ids[3]: "three"}), CONFIG)
    assert result == {"log": ["1:one", "2:two", "3:three"]}
    assert [runs[f"before {number}"] for number in (1, 2, 3)] == [1, 1, 1]


async def test_a_call_at_once_with_another_input_starts_over_and_takes_nothing_of_its_sibling(saver: Any) -> None:
    node = at_once(Runs(), [[1, 2], [3, 2]])
    graph = chain(("f", node)).compile(checkpointer=saver)
    ids = {one.value: one.id for one in (await graph.ainvoke({}, CONFIG))["__interrupt__"]}
    result = await graph.ainvoke(Command(resume={ids[1]: "one", ids[2]: "two"}), CONFIG)
    assert [one.value for one in result["__interrupt__"]] == [3]


async def test_a_slow_call_is_waited_for_when_its_sibling_asks(saver: Any) -> None:
    runs = Runs()
    release = anyio.Event()

    async def slow(_state: Log) -> dict[str, Any]:
        runs["slow"] += 1
        await release.wait()
        return {"log": ["slow"]}

    async def quick(_state: Log) -> dict[str, Any]:
        release.set()
        return {}

    asking = chain(("quick", quick), runs.asker("n")).compile()
    working = chain(("slow", slow), runs.step("after")).compile()

    async def node(_state: Log) -> dict[str, Any]:
        noted: dict[str, list[str]] = {}

        async def call(name: str, child: Any) -> None:
            noted[name] = (await child.ainvoke({"log": []}))["log"]

        async with anyio.create_task_group() as group:
            group.start_soon(call, "w", working)
            await anyio.lowlevel.checkpoint()
            group.start_soon(call, "a", asking)
        return {"log": noted["a"] + noted["w"]}

    graph = chain(("f", node)).compile(checkpointer=saver)
    assert asked(await graph.ainvoke({}, CONFIG)) == ["n?"]
    assert await graph.ainvoke(Command(resume="yes"), CONFIG) == {"log": ["n:yes", "slow", "after"]}
    assert runs == {"slow": 1, "after": 1, "n": 2}


async def test_what_a_finished_node_left_running_is_ended(saver: Any) -> None:
    ended: list[str] = []

    async def forever(_state: Log) -> dict[str, Any]:
        try:
            await anyio.sleep_forever()
        finally:
            ended.append("forever")
        return {}

    child = chain(("forever", forever)).compile()

    async def node(_state: Log) -> dict[str, Any]:
        outside.start_soon(child.ainvoke, {"log": []})
        await anyio.wait_all_tasks_blocked()
        return {"log": ["done"]}

    graph = chain(("f", node)).compile(checkpointer=saver)
    with pytest.raises(BaseException) as caught:  # noqa: PT011 - what was left behind hears of it
        async with anyio.create_task_group() as outside:
            assert await graph.ainvoke({}, CONFIG) == {"log": ["done"]}
            assert ended == ["forever"]
            outside.cancel_scope.cancel()
    assert caught is not None


async def test_a_graph_that_a_helper_object_holds(saver: Any) -> None:
    class Worker:
        def __init__(self) -> None:
            self.child = chain("s", Runs().asker("n")).compile()

        async def work(self, _state: Log) -> dict[str, Any]:
            return {"log": (await self.child.ainvoke({"log": []}))["log"]}

    graph = chain(("f", Worker().work)).compile(checkpointer=saver)
    await graph.ainvoke({}, CONFIG)
    assert (await graph.aget_state(CONFIG, subgraphs=True)).tasks[0].state.next == ("n",)


async def test_a_graph_made_inside_the_node(saver: Any) -> None:
    runs = Runs()

    async def node(_state: Log) -> dict[str, Any]:
        child = chain(runs.step("s"), runs.asker("n")).compile()
        return {"log": (await child.ainvoke({"log": []}))["log"]}

    graph = chain(("f", node)).compile(checkpointer=saver)
    await graph.ainvoke({}, CONFIG)
    assert await graph.ainvoke(Command(resume="yes"), CONFIG) == {"log": ["s", "n:yes"]}
    assert runs["s"] == 1
