"""Tools in nodes: called by hand, or by LangGraph's own ToolNode, which runs here as any runnable does."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from typing import Annotated, Any

import langgraph.types
import pytest
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import InjectedToolCallId, tool
from langgraph.prebuilt import InjectedState, InjectedStore, ToolNode, ToolRuntime, tools_condition

from persistence.memory import InMemorySaver, InMemoryStore
from runtime.config import get_store
from runtime.graph import START, MessagesState, StateGraph
from runtime.types import Command, Send, interrupt
from tests.stories.graphs import CONFIG


@pytest.fixture
def anyio_backend() -> str:
    """Run on asyncio: ToolNode knows no other."""
    return "asyncio"


@tool
def add(left: int, right: int) -> int:
    """Add two numbers."""
    return left + right


@tool
async def add_later(left: int, right: int) -> int:
    """Add two numbers."""
    return left + right


@tool
def ask(question: str) -> str:
    """Ask somebody."""
    return f"they said {interrupt(question)}"


@tool
def look(
    state: Annotated[Any, InjectedState], store: Annotated[Any, InjectedStore], runtime: ToolRuntime[Any, Any]
) -> str:
    """Look around."""
    store.put(("seen",), "k", {"n": len(state["messages"])})
    runtime.stream_writer("looking")
    return f"{runtime.context} {get_store().get(('seen',), 'k').value}"


@tool
def hand_over(tool_call_id: Annotated[str, InjectedToolCallId]) -> Command[Any]:
    """Let somebody else go on."""
    done = ToolMessage("handed over", tool_call_id=tool_call_id)
    return Command(update={"messages": [done]}, goto="other")


def agent(*calls: tuple[Any, dict[str, Any]], tools: Any = None) -> StateGraph[Any, Any, Any, Any]:
    """Describe a model that makes these calls, and what makes them."""

    def model(state: MessagesState) -> dict[str, Any]:
        if isinstance(state["messages"][-1], ToolMessage):
            return {"messages": AIMessage("done")}
        made = [
            {"name": called.name, "args": arguments, "id": str(number)}
            for number, (called, arguments) in enumerate(calls)
        ]
        return {"messages": AIMessage("", tool_calls=made)}

    builder = StateGraph(MessagesState).add_node(model)
    builder.add_node("tools", ToolNode([called for called, _ in calls]) if tools is None else tools)
    builder.add_edge(START, "model").add_conditional_edges("model", tools_condition).add_edge("tools", "model")
    return builder


QUESTION: dict[str, Any] = {"messages": [("user", "?")]}


def told(output: Any) -> list[str]:
    return [str(message.content) for message in output["messages"] if isinstance(message, ToolMessage)]


async def test_langgraphs_tool_node_calls_tools() -> None:
    graph = agent((add, {"left": 1, "right": 2}), (add_later, {"left": 3, "right": 4})).compile()
    assert told(await graph.ainvoke(QUESTION)) == ["3", "7"]


async def test_a_tool_in_it_asks() -> None:
    graph = agent((ask, {"question": "who?"})).compile(InMemorySaver())
    assert (await graph.ainvoke(QUESTION, CONFIG))["__interrupt__"][0].value == "who?"
    assert told(await graph.ainvoke(Command(resume="nobody"), CONFIG)) == ["they said nobody"]


async def test_a_tool_in_it_gets_state_store_and_runtime() -> None:
    graph = agent((look, {})).compile(store=InMemoryStore())
    stream = graph.astream(QUESTION, context="here", stream_mode=["custom", "values"])
    chunks = [chunk async for chunk in stream]
    assert ("custom", "looking") in chunks
    assert told(chunks[-1][1]) == ["here {'n': 2}"]


async def test_a_node_of_ones_own_calls_tools_that_return_commands() -> None:
    def tools(state: MessagesState) -> list[Any]:
        return [hand_over.invoke(call) for call in state["messages"][-1].tool_calls]

    builder = agent((hand_over, {}), tools=tools)
    builder.add_node("other", lambda _state: {"messages": AIMessage("taken over")})
    output = await builder.compile().ainvoke(QUESTION)
    assert told(output) == ["handed over"]
    assert "taken over" in [message.content for message in output["messages"]]


async def test_tools_in_langgraphs_tool_node_return_commands() -> None:
    builder = agent((hand_over, {}), (add, {"left": 1, "right": 2}))
    builder.add_node("other", lambda _state: {"messages": AIMessage("taken over")})
    output = await builder.compile().ainvoke(QUESTION)
    assert sorted(told(output)) == ["3", "handed over"]
    assert "taken over" in [message.content for message in output["messages"]]


@tool
def leave(tool_call_id: Annotated[str, InjectedToolCallId], state: Annotated[Any, InjectedState]) -> Command[Any]:
    """Let somebody outside go on, with all that was said."""
    done = ToolMessage("left", tool_call_id=tool_call_id)
    return Command(graph=Command.PARENT, goto=[Send("outside", {"messages": [*state["messages"], done]})])


async def test_tools_in_langgraphs_tool_node_go_to_the_parent_graph() -> None:
    outer = StateGraph(MessagesState).add_node("inside", agent((leave, {})).compile())
    outer.add_node("outside", lambda state: {"messages": [*state["messages"], AIMessage("outside")]})
    output = await outer.add_edge(START, "inside").compile().ainvoke(QUESTION)
    assert told(output) == ["left"]
    assert output["messages"][-1].content == "outside"


def test_a_command_counts_as_one_of_langgraphs_where_that_is_loaded() -> None:
    """ToolNode copies it with a changed update; the copy is one of ours."""
    command: Command[str] = Command(update={"n": 1}, graph=Command.PARENT)
    assert isinstance(command, langgraph.types.Command)
    other = dataclasses.replace(command, update={"n": 2})
    assert type(other) is Command
    assert other == Command(update={"n": 2}, graph=Command.PARENT)


def test_a_command_is_one_whatever_else_it_counts_as() -> None:
    command: Command[str] = Command(update={"n": 1}, goto="a")
    assert type(command) is Command
    assert repr(command) == "Command(update={'n': 1}, goto='a')"
    for same in (copy.copy(command), copy.deepcopy(command), pickle.loads(pickle.dumps(command))):  # noqa: S301
        assert same == command
        assert type(same) is Command
    other = dataclasses.replace(command, goto="b")
    assert type(other) is Command
    assert other != command


def test_what_stands_where_langgraphs_command_should_be_is_no_mark(monkeypatch: pytest.MonkeyPatch) -> None:
    """As tests put mocks there."""
    monkeypatch.setattr(langgraph.types, "Command", len)
    command: Command[str] = Command(goto="a")
    assert copy.copy(command) == command
    assert not isinstance(command, str)
