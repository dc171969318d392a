"""Reading, editing and going back below another graph, however the graph came to be there."""

from __future__ import annotations

from typing import Any

import pytest

from runtime.func import entrypoint, task
from runtime.graph import START, StateGraph
from runtime.types import Command, StateSnapshot, interrupt
from tests.stories.graphs import CONFIG, Log, at, chain, history
from tests.stories.nests import Runs, asked
from tests.stories.places import PLACES, Builder

pytestmark = pytest.mark.anyio


def _in_a_call_of_a_call(builder: Builder, saver: Any) -> Any:
    child = builder.compile()

    @task
    async def inner(state: Log) -> Any:
        return await child.ainvoke(state)

    @task
    async def outer(state: Log) -> Any:
        return await inner(state)

    @entrypoint(checkpointer=saver)
    async def workflow(state: Log) -> Any:
        return await outer(state)

    return workflow


def _kept_in_a_task(builder: Builder, saver: Any) -> Any:
    child = builder.compile(checkpointer=True)

    @task
    async def run(state: Log) -> Any:
        return await child.ainvoke(state)

    async def call(state: Log) -> Any:
        return await run(state)

    return chain(("p", call)).compile(checkpointer=saver)


def _called_second(builder: Builder, saver: Any) -> Any:
    first, second = chain("first").compile(), builder.compile()

    async def call(state: Log) -> Any:
        await first.ainvoke({"log": []})
        return await second.ainvoke(state)

    return chain(("p", call)).compile(checkpointer=saver)


def _in_an_error_handler(builder: Builder, saver: Any) -> Any:
    child = builder.compile()

    async def fail(_state: Log) -> Any:
        raise ValueError("handled")

    async def handle(state: Log) -> Any:
        return await child.ainvoke(state)

    graph = StateGraph(Log).add_node("p", fail, error_handler=handle).add_edge(START, "p")
    return graph.compile(checkpointer=saver)


# One has no state to read.
SEEN = {name: put for name, put in PLACES.items() if name != "stateless"} | {
    "in a call of a call": _in_a_call_of_a_call,
    "kept in a task": _kept_in_a_task,
    "called second": _called_second,
    "in an error handler": _in_an_error_handler,
}


@pytest.fixture(params=SEEN)
def place(request: pytest.FixtureRequest) -> Any:
    """Puts a graph below another, where its state can be seen from above."""
    return SEEN[request.param]


async def below(graph: Any) -> Any:
    """Return the snapshot of the graph that lies deepest."""
    snapshot = await graph.aget_state(CONFIG, subgraphs=True)
    while snapshot.tasks and isinstance(snapshot.tasks[0].state, StateSnapshot):
        snapshot = snapshot.tasks[0].state
    return snapshot


def line(snapshot: Any) -> dict[str, Any]:
    """Return the config of all that the graph of a snapshot has saved."""
    where = snapshot.config["configurable"]
    return {"configurable": {key: where[key] for key in ("thread_id", "checkpoint_ns")}}


async def paused(place: Any, saver: Any) -> tuple[Any, Runs]:
    runs = Runs()
    graph = place(chain(runs.step("a"), runs.step("b"), runs.asker("n")), saver)
    assert asked(await graph.ainvoke({"log": []}, CONFIG)) == ["n?"]
    return graph, runs


async def test_the_state_below_is_seen_from_above(saver: Any, place: Any) -> None:
    graph, _ = await paused(place, saver)
    inner = await below(graph)
    assert (inner.next, inner.values["log"]) == (("n",), ["a", "b"])
    root = await graph.aget_state(CONFIG)
    assert [one.id for one in inner.interrupts] == [one.id for one in root.interrupts]
    assert inner.metadata["parents"][""] == root.config["configurable"]["checkpoint_id"]
    states = await history(graph, line(inner))
    assert [(one.next, one.values.get("log")) for one in states] == [
        (("n",), ["a", "b"]),
        (("b",), ["a"]),
        (("a",), []),
        (("__start__",), []),
    ]


@pytest.mark.parametrize("finished", [False, True])
async def test_going_back_to_a_point_below_runs_what_follows_it(saver: Any, place: Any, finished: bool) -> None:
    graph, runs = await paused(place, saver)
    inner = await below(graph)
    point = at(await history(graph, line(inner)), "b")
    if finished:
        assert (await graph.ainvoke(Command(resume="first"), CONFIG))["log"] == ["a", "b", "n:first"]
    old = await graph.aget_state(CONFIG)
    runs.clear()
    assert asked(await graph.ainvoke(None, point.config)) == ["n?"]
    assert runs == {"b": 1, "n": 1}
    assert (await graph.ainvoke(Command(resume="second"), CONFIG))["log"] == ["a", "b", "n:second"]
    if finished:
        assert (await graph.aget_state(old.config)).values["log"] == ["a", "b", "n:first"]


async def test_an_edit_below_is_what_the_graph_goes_on_with(saver: Any, place: Any) -> None:
    graph, runs = await paused(place, saver)
    inner = await below(graph)
    await graph.aupdate_state(inner.config, {"log": ["edited"]})
    assert (await graph.ainvoke(Command(resume="yes"), CONFIG))["log"] == ["a", "b", "edited", "n:yes"]
    assert runs["a"] == runs["b"] == 1


async def test_an_edit_below_as_the_waiting_node_answers_for_it(saver: Any, place: Any) -> None:
    graph, runs = await paused(place, saver)
    inner = await below(graph)
    await graph.aupdate_state(inner.config, {"log": ["instead"]}, as_node="n")
    assert (await graph.ainvoke(None, CONFIG))["log"] == ["a", "b", "instead"]
    assert runs["n"] == 1


async def test_going_back_into_a_call_that_has_its_result(saver: Any) -> None:
    runs = Runs()
    child = chain(runs.step("a"), runs.step("b")).compile()

    @task
    async def run() -> Any:
        return (await child.ainvoke({"log": []}))["log"]

    async def call(_state: Log) -> Any:
        return {"log": [*await run(), interrupt("p?")]}

    graph = chain(("p", call)).compile(checkpointer=saver)
    await graph.aupdate_state(CONFIG, {"log": ["edited"]}, as_node=START)
    assert asked(await graph.ainvoke(None, CONFIG)) == ["p?"]
    point = at(await history(graph, line(await below(graph))), "b")
    runs.clear()
    assert asked(await graph.ainvoke(None, point.config)) == ["p?"]
    assert runs == {"b": 1}
    assert (await graph.ainvoke(Command(resume="yes"), CONFIG))["log"] == ["edited", "a", "b", "yes"]
