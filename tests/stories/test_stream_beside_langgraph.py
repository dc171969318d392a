"""The same programs here and on LangGraph: streams, parts and callbacks tell the same, but for ids and times."""

from __future__ import annotations

import operator
import re
from dataclasses import dataclass, field
from importlib import import_module
from types import SimpleNamespace
from typing import Annotated, Any, TypedDict

import pydantic
import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import tool

from tests.stories.graphs import thread
from tests.stories.talking import model, whole

pytest.importorskip("langgraph")
pytestmark = pytest.mark.parametrize("anyio_backend", [pytest.param(("asyncio", {}), id="asyncio")])

PLACES = {
    "runtime": {"graph": "runtime.graph", "types": "runtime.types", "saver": "persistence.memory"},
    "langgraph": {"graph": "langgraph.graph", "types": "langgraph.types", "saver": "langgraph.checkpoint.memory"},
}


def library(name: str) -> Any:
    """Return the names that a program uses, of one of the two."""
    found = SimpleNamespace(callbacks=import_module(f"{name}.callbacks"))
    for module in (*PLACES[name].values(), f"{name}.graph.message", f"{name}.func"):
        vars(found).update({key: value for key, value in vars(import_module(module)).items() if key[0] != "_"})
    return found


def plain(value: Any) -> Any:
    """Return a value without what differs from run to run, or between the two on purpose."""
    if isinstance(value, dict):
        left_out = {"lc_versions", "durable_upto"}
        if value.get("ls_integration") == "langgraph":
            left_out.add("ls_integration")
        return {key: plain(one) for key, one in value.items() if key not in left_out}
    if isinstance(value, (list, tuple)):
        return type(value)(plain(one) for one in value)
    if type(value).__name__ == "Interrupt":
        return ("asked", value.value)
    if type(value).__name__ == "GraphOutput":
        return ("output", plain(value.value), plain(value.interrupts))
    if isinstance(value, (AIMessage, HumanMessage)):
        return (type(value).__name__, value.content, value.id)
    if isinstance(value, str):
        return re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "ID", value)
    return value


async def told(graph: Any, given: Any, config: Any = None, **options: Any) -> Any:
    """Return what a stream tells."""
    return plain([chunk async for chunk in graph.astream(given, config, **options)])


# ---- programs --------------------------------------------------------------------------------------------------------


@tool
def add(a: int, b: int) -> int:
    """Add."""
    return a + b


def conversation(of: Any) -> Any:
    """Build a conversation with everything that the ``messages`` and ``tools`` streams tell of."""

    async def inner(_state: Any) -> Any:
        return {"messages": [await model("from below", "child").ainvoke("hi")]}

    async def outer(state: Any, config: Any) -> Any:
        return await child.ainvoke(state, config)

    def commands(_state: Any) -> Any:
        return [of.Command(update={"messages": whole("c1", identity="c1")}), {"messages": whole("c2", identity="c2")}]

    async def quiet(_state: Any) -> Any:
        said = await model(identity="quiet", tags=["nostream"]).ainvoke("hi")
        await model(identity="tagged", tags=["mine"]).ainvoke("hi")
        return {"messages": [said]}

    def sync(_state: Any) -> Any:
        return {"messages": [model(identity="sync").invoke("hi", {"metadata": {"own": 1}, "tags": ["own"]})]}

    def pushing(_state: Any) -> Any:
        of.push_message(AIMessage("pushed", id="p1"))
        add.invoke({"type": "tool_call", "name": "add", "args": {"a": 1, "b": 2}, "id": "call"})
        return {"messages": [HumanMessage("again", id="in"), *whole("whole", identity="w")]}

    outer.__annotations__.clear()  # a parameter named config is given whatever it may be
    child = of.StateGraph(of.MessagesState).add_node("inner", inner).add_edge(of.START, "inner").compile()
    builder = of.StateGraph(of.MessagesState).add_node("node", child)
    builder.add_edge(of.START, "node")
    before = "node"
    for name, node in {"outer": outer, "commands": commands, "quiet": quiet, "sync": sync, "pushing": pushing}.items():
        builder.add_node(name, node).add_edge(before, name)
        before = name
    return builder.compile(of.InMemorySaver())


class Log(TypedDict):
    log: Annotated[list[str], operator.add]


class Model(pydantic.BaseModel):
    log: Annotated[list[str], operator.add] = []
    x: int = 1


@dataclass
class Data:
    log: Annotated[list[str], operator.add] = field(default_factory=list)
    x: int = 1


def asking(of: Any, schema: Any) -> Any:
    """Build a graph that asks."""
    builder = of.StateGraph(schema)
    builder.add_sequence(
        [("one", lambda _state: {"log": ["one"]}), ("ask", lambda _state: {"log": [of.interrupt("really?")]})]
    )
    return builder.add_edge(of.START, "one").compile(of.InMemorySaver())


# ---- what they tell --------------------------------------------------------------------------------------------------


async def messages_and_tools(of: Any, **options: Any) -> Any:
    """Tell of models, messages and tools."""
    given = {"messages": [HumanMessage("q", id="in")]}
    config = {**thread("t"), "tags": ["everywhere"], "metadata": {"team": "red"}}
    return await told(conversation(of), given, config, stream_mode=["messages", "tools"], **options)


@pytest.mark.parametrize("options", [{}, {"subgraphs": True}, {"subgraphs": True, "version": "v2"}])
async def test_messages_and_tools(options: Any) -> None:
    here, there = [await messages_and_tools(library(name), **options) for name in PLACES]
    assert len(here) == len(there)
    for ours, theirs in zip(here, there, strict=True):
        assert ours == theirs


async def parts(of: Any, schema: Any) -> Any:
    """Tell of a pause and what follows it, in parts, and of outputs."""
    graph, options = asking(of, schema), {"stream_mode": ["values", "updates", "tasks"], "version": "v2"}
    outputs = []
    # Of one key alone, LangGraph makes a state of no keys when the run pauses; here that is no state.
    choices: list[Any] = [None, ["log"], *(["log"] if schema is Log else [])]
    for number, keys in enumerate(choices):
        for given in ({"log": ["in"]}, of.Command(resume="yes")):
            outputs.append(await graph.ainvoke(given, thread(str(number)), version="v2", output_keys=keys))
    return [
        await told(graph, {"log": ["in"]}, thread("t"), **options),
        await told(graph, of.Command(resume="yes"), thread("t"), **options),
        plain(outputs),
        plain(await graph.ainvoke({"log": ["in"]}, thread("u"), stream_mode="updates", version="v2")),
        plain(await graph.ainvoke({"log": ["in"]}, thread("v"), stream_mode=["values", "updates"])),
        plain(await graph.ainvoke({"log": ["in"]}, thread("w"), version="v2", interrupt_before="*")),
    ]


def without_question_ids(value: Any) -> str:
    """Return a text in which questions have no ids."""
    return re.sub(r"'id': '[0-9a-f]{32}'", "", repr(value))


@pytest.mark.parametrize("schema", [Log, Model, Data])
async def test_parts_and_outputs(schema: Any) -> None:
    here, there = [await parts(library(name), schema) for name in PLACES]
    for ours, theirs in zip(here, there, strict=True):
        assert without_question_ids(ours) == without_question_ids(theirs)


async def lifecycle(of: Any) -> list[Any]:
    """Tell what a handler is told."""
    events: list[Any] = []

    class Handler(of.callbacks.GraphCallbackHandler):  # type: ignore[misc]
        def on_interrupt(self, event: Any) -> None:
            events.append(("pause", event.status, plain(event.checkpoint_ns), plain(event.interrupts)))

        def on_resume(self, event: Any) -> None:
            events.append(("resume", event.status, plain(event.checkpoint_ns)))

    graph, config = asking(of, Log), {**thread("t"), "callbacks": [Handler()]}
    inputs: list[Any] = [{"log": []}, None, of.Command(resume="yes"), {"log": []}, {"log": []}]
    for given in inputs:
        await graph.ainvoke(given, config)
    for options in ({"interrupt_before": ["ask"]}, {"interrupt_after": ["one"]}):
        await graph.ainvoke({"log": []}, {**config, **thread("u")} | {"callbacks": [Handler()]}, **options)
    points = [point async for point in graph.aget_state_history(thread("t"))]
    for point in points[1::3]:
        await graph.ainvoke(None, {**point.config, "callbacks": [Handler()]})
    nested = of.StateGraph(Log).add_node("sub", asking(of, Log)).add_edge(of.START, "sub").compile(of.InMemorySaver())
    for given in ({"log": []}, of.Command(resume="yes")):
        await nested.ainvoke(given, {**thread("n"), "callbacks": [Handler()]})
    return events


async def test_callbacks_of_a_graphs_life() -> None:
    here, there = [await lifecycle(library(name)) for name in PLACES]
    assert here == there
