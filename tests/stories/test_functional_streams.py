"""What an observer sees of a workflow and its tasks."""

from __future__ import annotations

from typing import Any, TypedDict

import anyio
import pytest

from runtime.config import get_stream_writer
from runtime.func import entrypoint, task
from runtime.graph import START, StateGraph
from runtime.types import Command, interrupt
from runtime.types.streams import StreamWriter
from tests.stories.graphs import CONFIG, collect

pytestmark = pytest.mark.anyio


@task
async def double(given: int) -> int:
    get_stream_writer()(f"doubling {given}")
    return 2 * given


@task
def triple(given: int, *, factor: int = 3) -> int:
    get_stream_writer()(f"tripling {given}")
    return factor * given


@task
async def ask(question: str) -> Any:
    return interrupt(question)


@task
async def fail(given: int) -> int:
    raise ValueError(given)


def shown(chunk: Any) -> Any:
    """A chunk of the tasks stream without ids."""
    return {key: value for key, value in chunk.items() if key != "id"}


async def test_updates_show_each_task_and_then_the_workflow(saver: Any) -> None:
    @entrypoint(checkpointer=saver)
    async def flow(given: int) -> Any:
        return {"result": await triple(await double(given))}

    assert await collect(flow.astream(1, CONFIG)) == [{"double": 2}, {"triple": 6}, {"flow": {"result": 6}}]
    assert await flow.ainvoke(1, CONFIG, stream_mode="updates") == [
        {"double": 2},
        {"triple": 6},
        {"flow": {"result": 6}},
    ]


async def test_values_show_the_result_once(saver: Any) -> None:
    @entrypoint(checkpointer=saver)
    async def flow(given: int) -> Any:
        return entrypoint.final(value=await double(given), save=0)

    assert await collect(flow.astream(1, CONFIG, stream_mode="values")) == [2]
    assert await collect(flow.astream(2, CONFIG, stream_mode="values")) == [4]


@pytest.mark.parametrize("sync", [True, False])
async def test_custom_shows_what_is_written_anywhere(sync: bool) -> None:
    def sync_flow(given: int, writer: StreamWriter) -> Any:
        writer("before")
        return [double(given).result(), triple(given).result()]

    async def async_flow(given: int, writer: StreamWriter) -> Any:
        writer("before")
        return [await double(given), await triple(given)]

    flow: Any = entrypoint(name="flow")(sync_flow if sync else async_flow)
    assert await collect(flow.astream(1, stream_mode=["custom", "updates"])) == [
        ("custom", "before"),
        ("custom", "doubling 1"),
        ("updates", {"double": 2}),
        ("custom", "tripling 1"),
        ("updates", {"triple": 3}),
        ("updates", {"flow": [2, 3]}),
    ]


async def test_tasks_show_starts_and_ends(saver: Any) -> None:
    @entrypoint(checkpointer=saver)
    async def flow(given: int) -> Any:
        return await triple(await double(given), factor=5)

    chunks = await collect(flow.astream(1, CONFIG, stream_mode="tasks"))
    done: dict[str, Any] = {"error": None, "interrupts": []}
    assert [shown(chunk) for chunk in chunks] == [
        {"name": "flow", "input": 1, "triggers": ("__start__",)},
        {"name": "double", "input": ((1,), {}), "triggers": ("__pregel_push",)},
        {"name": "double", "result": {"__return__": 2}, **done},
        {"name": "triple", "input": ((2,), {"factor": 5}), "triggers": ("__pregel_push",)},
        {"name": "triple", "result": {"__return__": 10}, **done},
        {"name": "flow", "result": {"__end__": 10}, **done},
    ]
    assert [chunk["id"] for chunk in chunks[1:3]] == [chunks[1]["id"]] * 2
    assert len({chunk["id"] for chunk in chunks}) == 3


async def test_tasks_show_failures_and_questions(saver: Any) -> None:
    @entrypoint(checkpointer=saver)
    async def flow(given: int) -> Any:
        return await (ask("q") if given else fail(given))

    seen: list[Any] = []
    with pytest.raises(ValueError, match="0"):
        async for chunk in flow.astream(0, CONFIG, stream_mode=["tasks", "updates"]):
            seen.append(chunk)
    assert [(mode, chunk["name"], repr(chunk["error"])) for mode, chunk in seen if "error" in chunk] == [
        ("tasks", "fail", "ValueError(0)"),
        ("tasks", "flow", "ValueError(0)"),
    ]
    seen = await collect(flow.astream(1, CONFIG, stream_mode=["tasks", "updates", "values"]))
    asked = [(chunk["name"], [one["value"] for one in chunk["interrupts"]]) for mode, chunk in seen if mode == "tasks"
             and "interrupts" in chunk]  # fmt: skip
    assert asked == [("flow", ["q"])]  # a call's question is its caller's
    assert [(mode, list(chunk)) for mode, chunk in seen if mode != "tasks"] == [
        ("updates", ["__interrupt__"]),
        ("values", ["__interrupt__"]),
    ]
    seen = await collect(flow.astream(Command(resume="A"), CONFIG, stream_mode=["updates", "values"]))
    assert seen == [("values", None), ("updates", {"ask": "A"}), ("updates", {"flow": "A"}), ("values", "A")]


async def test_debug_and_checkpoints_show_the_threads_values(saver: Any) -> None:
    @entrypoint(checkpointer=saver)
    async def flow(given: int) -> Any:
        return await double(given)

    await flow.ainvoke(1, CONFIG)
    chunks = await collect(flow.astream(2, CONFIG, stream_mode="debug"))
    kinds = [(chunk["type"], chunk["step"], chunk["payload"].get("name")) for chunk in chunks]
    assert kinds == [
        ("checkpoint", 1, None),
        ("task", 2, "flow"),
        ("task", 2, "double"),
        ("task_result", 2, "double"),
        ("task_result", 2, "flow"),
        ("checkpoint", 2, None),
    ]
    (before, after) = [chunk["payload"] for chunk in chunks if chunk["type"] == "checkpoint"]
    assert (before["values"], before["next"], after["values"], after["next"]) == (2, ["flow"], 4, [])


async def test_tasks_of_nodes_are_shown_as_well(saver: Any) -> None:
    class State(TypedDict, total=False):
        number: int

    async def node(state: State) -> Any:
        return {"number": await double(state["number"])}

    builder = StateGraph(State)
    builder.add_node("node", node)
    builder.add_edge(START, "node")
    graph = builder.compile(checkpointer=saver)
    assert await collect(graph.astream({"number": 1}, CONFIG, stream_mode=["values", "updates"])) == [
        ("values", {"number": 1}),
        ("updates", {"double": 2}),
        ("updates", {"node": {"number": 2}}),
        ("values", {"number": 2}),
    ]


async def test_a_workflow_inside_a_graph_is_shown_under_its_namespace(saver: Any) -> None:
    class State(TypedDict, total=False):
        number: int

    @entrypoint()
    async def inner(state: State) -> Any:
        return {"number": await double(state["number"])}

    builder = StateGraph(State)
    builder.add_node("node", inner)
    builder.add_edge(START, "node")
    graph = builder.compile(checkpointer=saver)
    chunks = await collect(graph.astream({"number": 1}, CONFIG, stream_mode=["updates", "custom"], subgraphs=True))
    assert [(len(ns), mode, chunk) for ns, mode, chunk in chunks] == [
        (2, "custom", "doubling 1"),  # written where the workflow's task stands, and that is below the node's
        (1, "updates", {"double": 2}),
        (1, "updates", {"inner": {"number": 2}}),
        (0, "updates", {"node": {"number": 2}}),
    ]
    assert await collect(graph.astream({"number": 1}, CONFIG)) == [{"node": {"number": 2}}]


async def test_a_slow_reader_slows_calls_and_loses_nothing(saver: Any) -> None:
    @entrypoint(checkpointer=saver)
    async def flow(given: int) -> int:
        futures = [double(number) for number in range(given)]
        return sum([await future for future in futures])

    seen = []
    async with flow.astream(400, CONFIG, stream_mode="updates") as stream:
        async for chunk in stream:
            seen.append(chunk)
            if len(seen) % 100 == 0:
                await anyio.wait_all_tasks_blocked()
    assert len(seen) == 401
    assert sorted(chunk["double"] for chunk in seen[:-1]) == [2 * number for number in range(400)]
    assert seen[-1] == {"flow": sum(range(400)) * 2}
