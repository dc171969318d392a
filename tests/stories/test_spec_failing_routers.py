"""A router that raises makes its task fail: nothing of the task counts as finished."""

from typing import Any

import pytest

from runtime.graph import START, StateGraph
from tests.stories.graphs import CONFIG, Log, at, history, note

pytestmark = pytest.mark.anyio


class Routed:
    """``x -> (router) -> y``; the router raises until it is mended."""

    def __init__(self) -> None:
        self.runs: list[str] = []
        self.mended = False

    async def x(self, _state: Log) -> dict[str, Any]:
        self.runs.append("x")
        return {"log": ["x"]}

    def router(self, _state: Log) -> str:
        self.runs.append("router")
        if not self.mended:
            message = "no way"
            raise ValueError(message)
        return "y"

    def compile(self, saver: Any) -> Any:
        builder = StateGraph(Log)
        builder.add_node("x", self.x)
        builder.add_node("y", note("y"))
        builder.add_edge(START, "x")
        builder.add_conditional_edges("x", self.router)
        return builder.compile(checkpointer=saver)


async def test_the_task_of_a_failed_router_has_an_error_and_no_result(saver: Any) -> None:
    graph = Routed().compile(saver)
    with pytest.raises(ValueError, match="no way"):
        await graph.ainvoke({}, CONFIG)
    snapshot = await graph.aget_state(CONFIG)
    assert snapshot.next == ("x",)
    assert snapshot.values["log"] == []
    (task,) = snapshot.tasks
    assert (task.error, task.result) == ("ValueError('no way')", None)
    assert (await history(graph))[0].metadata["step"] == 0


async def test_a_resume_runs_the_node_and_its_router_again(saver: Any) -> None:
    story = Routed()
    graph = story.compile(saver)
    with pytest.raises(ValueError, match="no way"):
        await graph.ainvoke({}, CONFIG)
    story.mended = True
    story.runs.clear()
    assert (await graph.ainvoke(None, CONFIG))["log"] == ["x", "y"]
    assert story.runs == ["x", "router"]
    (task,) = at(await history(graph), "x").tasks
    assert (task.error, task.result) == ("ValueError('no way')", {"log": ["x"]})


async def test_a_key_that_the_path_map_lacks_fails_the_same_way(saver: Any) -> None:
    answers = ["nowhere", "somewhere"]
    builder = StateGraph(Log)
    builder.add_node("x", note("x"))
    builder.add_node("y", note("y"))
    builder.add_edge(START, "x")
    builder.add_conditional_edges("x", lambda _state: answers.pop(0), {"somewhere": "y"})
    graph = builder.compile(checkpointer=saver)
    with pytest.raises((LookupError, ValueError), match="nowhere"):
        await graph.ainvoke({}, CONFIG)
    assert (await graph.aget_state(CONFIG)).next == ("x",)
    assert (await graph.ainvoke(None, CONFIG))["log"] == ["x", "y"]


async def test_a_router_at_start_that_raises_can_be_resumed_too(saver: Any) -> None:
    answers: list[Any] = [None, "y"]

    def route(_state: Log) -> str:
        answer = answers.pop(0)
        if answer is None:
            message = "no way in"
            raise ValueError(message)
        return str(answer)

    builder = StateGraph(Log)
    builder.add_node("y", note("y"))
    builder.add_conditional_edges(START, route)
    graph = builder.compile(checkpointer=saver)
    with pytest.raises(ValueError, match="no way in"):
        await graph.ainvoke({"log": ["in"]}, CONFIG)
    assert (await graph.aget_state(CONFIG)).next == (START,)
    assert (await graph.ainvoke(None, CONFIG))["log"] == ["in", "y"]
