"""Reading, editing and going back below another graph, however the graph came to be there."""

from __future__ import annotations

from typing import Any

import pytest

from runtime.types import Command, StateSnapshot
from tests.stories.graphs import CONFIG, at, chain, history
from tests.stories.nests import Runs, asked
from tests.stories.places import PLACES

pytestmark = pytest.mark.anyio

# One has no state to read; what a call runs is read by its own namespace only.
SEEN = [name for name in PLACES if name not in {"stateless", "in a task"}]


@pytest.fixture(params=SEEN)
def place(request: pytest.FixtureRequest) -> Any:
    """Puts a graph below another, where its state can be seen from above."""
    return PLACES[request.param]


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
