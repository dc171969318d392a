"""Workflows and graphs inside of each other."""

from __future__ import annotations

import operator
from typing import Annotated, Any, TypedDict

import anyio
import pytest

from persistence.sqlite import SqliteSaver
from runtime.func import entrypoint, task
from runtime.graph import START, StateGraph
from runtime.types import Command, interrupt
from tests.stories.asking import all_of, ids, pending
from tests.stories.graphs import CONFIG, collect

pytestmark = pytest.mark.anyio


class State(TypedDict, total=False):
    number: int
    log: Annotated[list[Any], operator.add]


class Counted:
    """Things that happened."""

    def __init__(self) -> None:
        self.runs: list[str] = []
        self.work = task(self._work, name="work")

    async def _work(self, name: str) -> str:
        self.runs.append(name)
        return name


def pipeline(*nodes: tuple[str, Any], **options: Any) -> Any:
    """Compile a graph of nodes in a row."""
    builder = StateGraph(State)
    before = START
    for name, node in nodes:
        builder.add_node(name, node)
        builder.add_edge(before, name)
        before = name
    return builder.compile(**options)


# ---- graphs in workflows ---------------------------------------------------------------------------------------------


async def test_a_workflow_calls_graphs(saver: Any) -> None:
    async def add(state: State) -> Any:
        return {"number": state["number"] + 1, "log": [state["number"]]}

    graph = pipeline(("one", add), ("two", add))

    @task
    async def call(number: int) -> Any:
        return await graph.ainvoke({"number": number})

    @entrypoint(checkpointer=saver)
    async def flow(given: int) -> Any:
        first = await graph.ainvoke({"number": given})
        second = await graph.ainvoke(first)
        return [second, *[await future for future in [call(10), call(20)]]]

    assert await flow.ainvoke(1, CONFIG) == [
        {"number": 5, "log": [1, 2, 3, 4]},
        {"number": 12, "log": [10, 11]},
        {"number": 22, "log": [20, 21]},
    ]


def test_a_sync_workflow_calls_graphs(blocking_saver: Any) -> None:
    def add(state: State) -> Any:
        return {"number": state["number"] + 1}

    graph = pipeline(("one", add))

    @task
    def call(number: int) -> Any:
        return graph.invoke({"number": number})["number"]

    @entrypoint(checkpointer=blocking_saver)
    def flow(given: int) -> Any:
        return [graph.invoke({"number": given})["number"], call(given).result()]

    assert flow.invoke(1, CONFIG) == [2, 2]


@pytest.mark.parametrize("durability", ["async", "sync", "exit"])
async def test_a_graph_in_a_workflow_pauses_and_goes_on_inside(database: str, durability: Any) -> None:
    counted = Counted()

    async def before(state: State) -> Any:
        return {"log": [await counted.work("before")]}

    async def ask(state: State) -> Any:
        return {"log": [interrupt(state["number"])]}

    def build(saver: Any) -> Any:
        graph = pipeline(("before", before), ("ask", ask))

        @task
        async def call(number: int) -> Any:
            return (await graph.ainvoke({"number": number}))["log"]

        @entrypoint(checkpointer=saver)
        async def flow(given: int) -> Any:
            own = (await graph.ainvoke({"number": given}))["log"]
            return [own, *await all_of([call(2), call(3)])]

        return flow

    given: Any = 1
    for waits in ([1], [2, 3], [3]):
        async with SqliteSaver.from_conn_string(database) as saver:
            result = await build(saver).ainvoke(given, CONFIG, durability=durability)
            assert sorted(pending(result)) == waits
            given = Command(resume={ids(result)[waits[0]]: f"answer {waits[0]}"})
    async with SqliteSaver.from_conn_string(database) as saver:
        result = await build(saver).ainvoke(given, CONFIG, durability=durability)
    assert result == [["before", "answer 1"], ["before", "answer 2"], ["before", "answer 3"]]
    assert counted.runs == ["before"] * 3


async def test_a_graph_in_a_workflow_that_failed_goes_on_at_the_failed_node(saver: Any) -> None:
    counted = Counted()
    broken = [True]

    async def first(state: State) -> Any:
        counted.runs.append("first")

    async def second(state: State) -> Any:
        counted.runs.append("second")
        if broken[0]:
            raise ValueError("broken")
        return {"number": 2}

    graph = pipeline(("first", first), ("second", second))

    @task
    async def call() -> Any:
        return await graph.ainvoke({"number": 1})

    @entrypoint(checkpointer=saver)
    async def flow(given: int) -> Any:
        return [await counted.work("own"), (await call())["number"]]

    with pytest.raises(ValueError, match="broken"):
        await flow.ainvoke(1, CONFIG)
    broken[0] = False
    assert await flow.ainvoke(None, CONFIG) == ["own", 2]
    assert counted.runs == ["own", "first", "second", "second"]


# ---- workflows in graphs ---------------------------------------------------------------------------------------------


async def test_a_workflow_is_a_node(saver: Any) -> None:
    counted = Counted()

    @entrypoint()
    async def inner(state: State, *, previous: Any = None) -> Any:
        done = await counted.work("inner")
        return {"log": [done, interrupt("q"), previous]}

    async def last(state: State) -> Any:
        return {"log": ["last"]}

    graph = pipeline(("inner", inner), ("last", last), checkpointer=saver)
    assert pending(await graph.ainvoke({"number": 1}, CONFIG)) == ["q"]
    snapshot = await graph.aget_state(CONFIG, subgraphs=True)
    (waiting,) = snapshot.tasks
    assert (waiting.name, waiting.state.next, waiting.state.values) == ("inner", ("inner",), None)
    assert waiting.state.interrupts == snapshot.interrupts
    result = await graph.ainvoke(Command(resume="A"), CONFIG)
    assert result["log"] == ["inner", "A", None, "last"]
    assert counted.runs == ["inner"]
    again = await graph.ainvoke({"number": 1}, CONFIG)
    assert pending(again) == ["q"]
    assert (await graph.ainvoke(Command(resume="B"), CONFIG))["log"][-3:] == ["B", None, "last"]


async def test_a_workflow_with_a_state_of_its_own_remembers_across_calls_of_its_parent(saver: Any) -> None:
    @entrypoint(checkpointer=True)
    async def inner(given: int, *, previous: int | None = None) -> int:
        return given + (previous or 0)

    async def node(state: State) -> Any:
        return {"log": [await inner.ainvoke(state["number"])]}

    graph = pipeline(("node", node), checkpointer=saver)
    for number in (1, 2, 3):
        result = await graph.ainvoke({"number": number}, CONFIG)
    assert result["log"] == [1, 3, 6]
    with pytest.raises(RuntimeError, match="root"):
        await inner.ainvoke(1, CONFIG)


async def test_workflows_call_workflows(saver: Any) -> None:
    counted = Counted()

    @entrypoint()
    async def inmost(given: int, *, previous: Any = None) -> Any:
        return [given, await counted.work(f"inmost {given}"), interrupt(f"q{given}"), previous]

    @task
    async def call(given: int) -> Any:
        return await inmost.ainvoke(given)

    @entrypoint(checkpointer=saver)
    async def flow(given: int, *, previous: Any = None) -> Any:
        return [previous is not None, await inmost.ainvoke(0), await all_of([call(1), call(2)])]

    for turn in (False, True):
        assert pending(await flow.ainvoke(1, CONFIG)) == ["q0"]
        result = await flow.ainvoke(Command(resume=0), CONFIG)
        known = ids(result)
        assert sorted(known) == ["q1", "q2"]
        assert pending(await flow.ainvoke(Command(resume={known["q2"]: "two"}), CONFIG)) == ["q1"]
        assert await flow.ainvoke(Command(resume="one"), CONFIG) == [
            turn,
            [0, "inmost 0", 0, None],
            [[1, "inmost 1", "one", None], [2, "inmost 2", "two", None]],
        ]
    assert sorted(counted.runs) == ["inmost 0", "inmost 0", "inmost 1", "inmost 1", "inmost 2", "inmost 2"]


async def test_a_workflow_with_a_thread_of_its_own_is_another_run(saver: Any) -> None:
    @entrypoint(checkpointer=saver)
    async def other(given: int, *, previous: Any = None) -> Any:
        return [given, previous]

    @entrypoint(checkpointer=saver)
    async def flow(given: int) -> Any:
        return await other.ainvoke(given, {"configurable": {"thread_id": "other"}})

    assert await flow.ainvoke(1, CONFIG) == [1, None]
    assert await flow.ainvoke(2, CONFIG) == [2, [1, None]]
    assert (await other.aget_state({"configurable": {"thread_id": "other"}})).values == [2, [1, None]]


async def test_runs_inside_calls_are_cancelled_with_their_run(saver: Any) -> None:
    started = anyio.Event()
    ended: list[str] = []

    async def hang(state: State) -> Any:
        started.set()
        try:
            await anyio.sleep_forever()
        finally:
            ended.append("node")

    graph = pipeline(("hang", hang))

    @task
    async def call() -> Any:
        return await graph.ainvoke({"number": 1})

    @entrypoint(checkpointer=saver)
    async def flow(given: int) -> Any:
        return await call()

    async with anyio.create_task_group() as group:
        group.start_soon(flow.ainvoke, 1, CONFIG)
        await started.wait()
        group.cancel_scope.cancel()
    assert ended == ["node"]
    assert flow.statistics() == graph.statistics() == ()


async def test_what_graphs_in_calls_do_can_be_watched(saver: Any) -> None:
    counted = Counted()

    async def node(state: State) -> Any:
        return {"log": [await counted.work("node")]}

    graph = pipeline(("node", node))

    @task
    async def call() -> Any:
        return (await graph.ainvoke({"number": 1}))["log"]

    @entrypoint(checkpointer=saver)
    async def flow(given: int) -> Any:
        return await call()

    chunks = await collect(flow.astream(1, CONFIG, stream_mode="updates", subgraphs=True))
    assert [([part.partition(":")[0] for part in ns], chunk) for ns, chunk in chunks] == [
        (["flow", "call"], {"work": "node"}),
        (["flow", "call"], {"node": {"log": ["node"]}}),
        ([], {"call": ["node"]}),
        ([], {"flow": ["node"]}),
    ]
    assert await collect(flow.astream(1, CONFIG)) == [{"call": ["node"]}, {"flow": ["node"]}]


async def test_a_workflow_that_is_a_node_may_return_a_command(saver: Any) -> None:
    @entrypoint()
    async def inner(state: State) -> Any:
        return Command(update={"log": ["inner"]}, goto="other")

    async def other(state: State) -> Any:
        return {"log": ["other"]}

    builder = StateGraph(State)
    builder.add_node("inner", inner)
    builder.add_node("other", other)
    builder.add_edge(START, "inner")
    graph = builder.compile(checkpointer=saver)
    assert (await graph.ainvoke({"number": 1}, CONFIG))["log"] == ["inner", "other"]
