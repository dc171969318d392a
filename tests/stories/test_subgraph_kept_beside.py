"""A subgraph that keeps its state, run at once with others that keep none: each finds its own again, in any order."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest

from persistence.sqlite import SqliteSaver
from runtime.graph import StateGraph
from runtime.types import Command
from tests.stories.graphs import CONFIG, Log, at, chain, history
from tests.stories.nests import Runs, asked, questions

pytestmark = pytest.mark.anyio


class Beside:
    """A node that runs two graphs at once; which of them begins first is said turn by turn."""

    def __init__(self, orders: str, *graphs: Any, inline: bool = False) -> None:
        """``orders``: a digit an execution, the graph that begins first; ``inline``: the node runs the first itself."""
        self._orders = iter(orders)
        self.graphs = graphs
        self._inline = inline
        self.begun: list[anyio.Event] = []

    def notes(self, number: int, *nodes: Any) -> StateGraph:
        """Return a graph that says when it begins, and goes on once the other has begun."""

        async def begin(_state: Log) -> dict[str, Any]:
            self.begun[number].set()
            await self.begun[1 - number].wait()
            return {}

        return chain(("begin", begin), *nodes)

    async def __call__(self, _state: Log) -> dict[str, Any]:
        """Run both, and log what each has logged so far."""
        first = int(next(self._orders))
        self.begun = [anyio.Event(), anyio.Event()]
        logs: dict[int, list[str]] = {}

        async def one(number: int) -> None:
            if number != first:
                await self.begun[first].wait()
            try:
                logs[number] = (await self.graphs[number].ainvoke({"log": []}))["log"]
            finally:
                self.begun[number].set()

        async with anyio.create_task_group() as group:
            group.start_soon(one, 1)
            if self._inline:
                await one(0)
            else:
                group.start_soon(one, 0)
        return {"log": ["+".join(logs[0]), "+".join(logs[1])]}


def beside(orders: str, kept: list[Any], fresh: list[Any], *, inline: bool = False) -> StateGraph:
    """Build a graph with one node that runs one graph that keeps its state and one that does not."""
    node = Beside(orders, inline=inline)
    node.graphs = (node.notes(0, *kept).compile(checkpointer=True), node.notes(1, *fresh).compile())
    return chain(("p", node))


async def namespaces(saver: Any) -> set[str]:
    """Return the namespaces of a thread that hold no ids."""
    return {one.config["configurable"]["checkpoint_ns"] async for one in saver.alist(CONFIG)}


@pytest.mark.parametrize("inline", [False, True], ids=["both in tasks", "one by the node itself"])
@pytest.mark.parametrize("orders", ["000", "111", "010", "101"])
async def test_its_state_goes_on_whichever_begins_first(saver: Any, orders: str, inline: bool) -> None:
    graph = beside(orders, ["k"], ["f"], inline=inline).compile(checkpointer=saver)
    for turn in (1, 2, 3):
        result = await graph.ainvoke({"log": []}, CONFIG)
        assert result["log"][-2:] == ["+".join("k" * turn), "f"]


async def test_the_first_turn_says_where_it_is_kept(saver: Any) -> None:
    graph = beside("101", ["k"], ["f"]).compile(checkpointer=saver)
    for _ in range(3):
        await graph.ainvoke({"log": []}, CONFIG)
    assert {ns for ns in await namespaces(saver) if ":" not in ns} == {"", "p|1"}


@pytest.mark.parametrize("inline", [False, True], ids=["both in tasks", "one by the node itself"])
@pytest.mark.parametrize("orders", ["00", "11", "01", "10"])
async def test_both_ask_and_each_gets_its_own_answer(saver: Any, orders: str, inline: bool) -> None:
    runs = Runs()
    graph = beside(
        orders * 2, [runs.step("k"), runs.asker("kn")], [runs.step("f"), runs.asker("fn")], inline=inline
    ).compile(checkpointer=saver)
    for turn in (1, 2):
        ids = questions(await graph.ainvoke({"log": []}, CONFIG))
        assert sorted(ids) == ["fn?", "kn?"]
        result = await graph.ainvoke(Command(resume={ids["kn?"]: f"K{turn}", ids["fn?"]: f"F{turn}"}), CONFIG)
        kept = "+".join(f"k+kn:K{each}" for each in range(1, turn + 1))
        assert result["log"][-2:] == [kept, f"f+fn:F{turn}"]
    assert runs == {"k": 2, "kn": 4, "f": 2, "fn": 4}


@pytest.mark.parametrize("asks", ["kept", "fresh"])
@pytest.mark.parametrize("orders", ["01", "10"])
async def test_one_asks_while_the_other_finishes(saver: Any, asks: str, orders: str) -> None:
    runs = Runs()
    kept, fresh = [runs.step("k")], [runs.step("f")]
    (kept if asks == "kept" else fresh).append(runs.asker("n"))
    graph = beside(orders * 2, kept, fresh).compile(checkpointer=saver)
    for turn in (1, 2):
        assert asked(await graph.ainvoke({"log": []}, CONFIG)) == ["n?"]
        result = await graph.ainvoke(Command(resume="yes"), CONFIG)
        assert result["log"][-2].count("k") == turn
        assert result["log"][-1] == ("f+n:yes" if asks == "fresh" else "f")
    assert (runs["k"], runs["f"]) == (2, 2)


async def test_in_another_process(database: str) -> None:
    for turn, order in enumerate("0110", start=1):
        async with SqliteSaver.from_conn_string(database) as saver:
            graph = beside(order, ["k"], ["f"]).compile(checkpointer=saver)
            result = await graph.ainvoke({"log": []}, CONFIG)
            assert result["log"][-2:] == ["+".join("k" * turn), "f"]


@pytest.mark.parametrize("durability", ["exit", "async", "sync"])
async def test_in_every_mode_and_after_a_failure(saver: Any, durability: Any) -> None:
    runs = Runs()
    graph = beside("0101", [runs.step("k"), runs.failer("bad")], [runs.step("f")]).compile(checkpointer=saver)
    with pytest.raises(BaseExceptionGroup):
        await graph.ainvoke({"log": []}, CONFIG, durability=durability)
    assert (await graph.ainvoke(None, CONFIG, durability=durability))["log"] == ["k+bad", "f"]
    assert runs["k"] == 1
    result = await graph.ainvoke({"log": []}, CONFIG, durability=durability)
    assert result["log"][-2:] == ["k+bad+k+bad", "f"]


@pytest.mark.parametrize("orders", ["001", "110", "011", "100"])
async def test_going_back_finds_what_was_kept_then(saver: Any, orders: str) -> None:
    graph = beside(orders + "0", ["k"], ["f"]).compile(checkpointer=saver)
    await graph.ainvoke({"log": []}, CONFIG)
    await graph.ainvoke({"log": []}, CONFIG)
    then = at(await history(graph), "p").config  # before the second turn
    again = await graph.ainvoke(None, then)
    assert again["log"] == ["k", "f", "k+k", "f"]
    assert (await graph.ainvoke({"log": []}, CONFIG))["log"][-2:] == ["k+k+k", "f"]


@pytest.mark.parametrize("orders", ["01", "10"])
async def test_an_edit_of_what_is_kept_counts(saver: Any, orders: str) -> None:
    graph = beside(orders, ["k"], ["f"]).compile(checkpointer=saver)
    await graph.ainvoke({"log": []}, CONFIG)
    (ns,) = {ns for ns in await namespaces(saver) if ns and ":" not in ns}
    await graph.aupdate_state({"configurable": {"thread_id": "t", "checkpoint_ns": ns}}, {"log": ["edited"]})
    assert (await graph.ainvoke({"log": []}, CONFIG))["log"][-2:] == ["k+edited+k", "f"]


@pytest.mark.parametrize("orders", ["0000", "0101", "1010", "0110"])
async def test_kept_below_one_of_two_that_begin_afresh(saver: Any, orders: str) -> None:
    runs = Runs()
    child = chain(runs.step("k"), runs.asker("kn")).compile(checkpointer=True)
    node = Beside(orders)
    node.graphs = (node.notes(0, ("in", child)).compile(), node.notes(1, "f").compile())
    graph = chain(("p", node)).compile(checkpointer=saver)
    for turn in (1, 2):
        assert asked(await graph.ainvoke({"log": []}, CONFIG)) == ["kn?"]
        result = await graph.ainvoke(Command(resume="yes"), CONFIG)
        assert result["log"][-2].count("k+") == turn
    assert runs["k"] == 2


@pytest.mark.parametrize("first", [0, 1])
async def test_two_kept_one_after_the_other_beside_one_that_is_not(saver: Any, first: int) -> None:
    fresh, begun = chain("f").compile(), Runs()
    kept = {name: chain(name).compile(checkpointer=True) for name in "xy"}

    def node_of(order: int) -> Callable[[Any], Awaitable[Any]]:
        async def node(_state: Log) -> Any:
            log: list[str] = []
            done = anyio.Event()

            async def both() -> None:
                if order:
                    await done.wait()
                for name in "xy":
                    log.append("+".join((await kept[name].ainvoke({"log": []}))["log"]))
                done.set()

            async def other() -> None:
                if not order:
                    await done.wait()
                begun["f"] += len((await fresh.ainvoke({"log": []}))["log"])
                done.set()

            async with anyio.create_task_group() as group:
                group.start_soon(both)
                group.start_soon(other)
            return {"log": log}

        return node

    for turn in (1, 2, 3):
        graph = chain(("p", node_of((first + turn) % 2))).compile(checkpointer=saver)
        result = await graph.ainvoke({"log": []}, CONFIG)
        assert result["log"][-2:] == ["+".join("x" * turn), "+".join("y" * turn)]
    assert begun["f"] == 3


@pytest.mark.parametrize("orders", ["00", "01", "10", "11"])
async def test_two_that_begin_afresh_one_of_them_by_the_node_itself(saver: Any, orders: str) -> None:
    runs = Runs()
    node = Beside(orders, inline=True)
    node.graphs = (
        node.notes(0, runs.step("a"), runs.asker("an")).compile(),
        node.notes(1, runs.step("b"), runs.asker("bn")).compile(),
    )
    graph = chain(("p", node)).compile(checkpointer=saver)
    ids = questions(await graph.ainvoke({"log": []}, CONFIG))
    assert sorted(ids) == ["an?", "bn?"]
    result = await graph.ainvoke(Command(resume={ids["an?"]: "A", ids["bn?"]: "B"}), CONFIG)
    assert result["log"] == ["a+an:A", "b+bn:B"]
    assert runs == {"a": 1, "an": 2, "b": 1, "bn": 2}
