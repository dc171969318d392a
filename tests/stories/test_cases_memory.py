"""Nothing of a run stays alive after it: not after success, not after an error, not after a cancel."""

import gc
import weakref
from typing import Any, TypedDict

import anyio
import pytest

from persistence.memory import InMemorySaver
from runtime.graph import START, StateGraph
from runtime.runtime import Runtime
from tests.stories.graphs import CONFIG

pytestmark = pytest.mark.anyio


class Big:
    """An object that can be watched."""


class State(TypedDict, total=False):
    big: Any
    n: int


class Watched:
    """Runs that carry a big object in state, context and node locals, and end in one of three ways."""

    def __init__(self, ending: str) -> None:
        self.ending = ending
        self.watched: list[weakref.ref[Big]] = []
        self.started = anyio.Event()

    def big(self) -> Big:
        made = Big()
        self.watched.append(weakref.ref(made))
        return made

    async def node(self, _state: State, runtime: Runtime) -> dict[str, Any]:
        local = self.big()
        assert runtime.context is not None
        return {"big": local}

    async def end(self, state: State) -> dict[str, Any]:
        assert isinstance(state["big"], Big)
        if self.ending == "error":
            message = "boom"
            raise ValueError(message)
        if self.ending == "cancel":
            self.started.set()
            await anyio.sleep_forever()
        return {"n": 1}

    def compile(self) -> Any:
        builder = StateGraph(State)
        builder.add_node("node", self.node)
        builder.add_node("end", self.end)
        builder.add_edge(START, "node")
        builder.add_edge("node", "end")
        return builder.compile()

    async def run(self, graph: Any) -> None:
        self.started = anyio.Event()
        if self.ending == "error":
            with pytest.raises(ValueError, match="boom"):
                await graph.ainvoke({"big": self.big()}, context=self.big())
        elif self.ending == "cancel":
            async with anyio.create_task_group() as group:
                group.start_soon(self.invoke, graph)
                await self.started.wait()
                group.cancel_scope.cancel()
        else:
            await self.invoke(graph)

    async def invoke(self, graph: Any) -> None:
        await graph.ainvoke({"big": self.big()}, context=self.big())

    def alive(self) -> int:
        gc.collect()
        return sum(one() is not None for one in self.watched)


@pytest.mark.parametrize("ending", ["success", "error", "cancel"])
async def test_nothing_of_a_run_stays_alive(ending: str) -> None:
    story = Watched(ending)
    graph = story.compile()
    for _ in range(3):
        await story.run(graph)
        await anyio.sleep(0)
    assert len(story.watched) == 9
    assert story.alive() == 0


@pytest.mark.parametrize("how", ["read to the end", "left early"])
async def test_nothing_of_a_stream_stays_alive(how: str) -> None:
    story = Watched("success" if how == "read to the end" else "cancel")
    graph = story.compile()
    for _ in range(3):
        story.started = anyio.Event()
        stream = graph.astream({"big": story.big()}, context=story.big(), stream_mode="values")
        with anyio.fail_after(10):
            async for chunk in stream:
                if how == "left early" and isinstance(chunk.get("big"), Big):
                    break
            await stream.aclose()
        del stream, chunk
        await anyio.sleep(0)
    assert story.alive() == 0


async def test_a_saver_does_not_hold_the_callers_context() -> None:
    builder = StateGraph(State)
    builder.add_node("n", lambda _state: {"n": 1})
    builder.add_edge(START, "n")
    graph = builder.compile(checkpointer=InMemorySaver())

    class Marker:
        pass

    contexts = []
    for _ in range(3):
        context = Marker()
        contexts.append(weakref.ref(context))
        await graph.ainvoke({"n": 0}, CONFIG, context=context)
        del context
    gc.collect()
    assert [one() for one in contexts] == [None] * 3


@pytest.mark.slow
async def test_many_runs_leave_no_growing_tables() -> None:
    builder = StateGraph(State)
    builder.add_node("n", lambda state: {"n": state["n"] + 1})
    builder.add_edge(START, "n")
    graph = builder.compile()

    async def objects_after(runs: int) -> int:
        for _ in range(runs):
            await graph.ainvoke({"n": 0})
        gc.collect()
        return len(gc.get_objects())

    await objects_after(20)
    before = await objects_after(1)
    after = await objects_after(100)
    assert after - before < 100
