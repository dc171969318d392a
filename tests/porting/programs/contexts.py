"""Context, config and state handed to nodes, tools and functions in all the ways there are."""

import asyncio
from dataclasses import dataclass
from typing import Annotated, Any, TypedDict

from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import InjectedToolCallId, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.config import get_config, get_store, get_stream_writer
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.runtime import Runtime, get_runtime
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command, StreamWriter, interrupt
from pydantic import BaseModel


class Context(BaseModel):
    user: str = "nobody"
    limit: int = 3


class Plain(TypedDict):
    user: str


@dataclass
class Data:
    user: str
    limit: int = 1


class State(TypedDict, total=False):
    out: Any


def by_runtime(state, runtime: Runtime[Context]):
    return {"out": (type(runtime.context).__name__, runtime.context)}


for schema, context in ((Context, {"user": "a"}), (Context, Context(user="b")), (Plain, {"user": "c"}), (Data, {"user": "d"}), (Data, Data("e"))):
    graph = StateGraph(State, context_schema=schema).add_node(by_runtime).add_edge(START, "by_runtime").compile()
    print(graph.invoke({}, context=context))
print(StateGraph(State).add_node(by_runtime).add_edge(START, "by_runtime").compile().invoke({}))


def everything(state: State, config: RunnableConfig, writer: StreamWriter, *, store, runtime: Runtime):
    writer("one")
    get_stream_writer()("two")
    same = get_store() is store, get_config()["configurable"]["x"] == config["configurable"]["x"]
    return {"out": (same, runtime.store is store, config.get("run_name"), sorted(config["metadata"])[:1])}


store = InMemoryStore()
graph = StateGraph(State).add_node(everything).add_edge(START, "everything").compile(store=store)
for chunk in graph.stream({}, {"configurable": {"x": 1}, "metadata": {"a": 1}}, stream_mode=["custom", "values"]):
    print(chunk)


@tool
def lookup(query: str, config: RunnableConfig) -> str:
    """Look something up."""
    return f"{query} for {config['configurable']['user']} of {get_runtime().context}"


@tool
def hand_over(reason: str, tool_call_id: Annotated[str, InjectedToolCallId]) -> Command:
    """Hand over."""
    said = ToolMessage(f"over: {reason}", tool_call_id=tool_call_id, id="t2")
    return Command(goto="other", update={"messages": [said]})


def call(state: MessagesState, config: RunnableConfig):
    return {"messages": [ToolMessage(lookup.invoke({"query": "tea"}, config), tool_call_id="1", id="t1")]}


def hand(state: MessagesState):
    request = {"name": "hand_over", "args": {"reason": "tired"}, "id": "2", "type": "tool_call"}
    return hand_over.invoke(request)


def other(state: MessagesState):
    return {"messages": [AIMessage(f"{len(state['messages'])} so far", id="a")]}


graph = StateGraph(MessagesState).add_node(call).add_node("hand", hand, destinations=("other",)).add_node(other)
graph = graph.add_edge(START, "call").add_edge("call", "hand").compile()
result = graph.invoke({"messages": [HumanMessage("hi", id="h")]}, {"configurable": {"user": "u"}}, context={"c": 1})
print([(type(m).__name__, m.content) for m in result["messages"]])


class Wide(TypedDict, total=False):
    a: int
    b: int
    c: int


class Narrow(TypedDict):
    a: int


def narrow(state: Narrow):
    return {"b": len(state)}


def narrow_by_option(state):
    return {"c": sorted(state)}


graph = StateGraph(Wide).add_node(narrow).add_node("option", narrow_by_option, input_schema=Narrow)
graph = graph.add_edge(START, "narrow").add_edge("narrow", "option").compile()
print(graph.invoke({"a": 1, "b": 5, "c": 6}))


async def helper():
    get_stream_writer()("from helper")
    return get_config()["configurable"].get("thread_id")


async def nested(state: State):
    return {"out": await asyncio.gather(helper(), helper())}


async def main():
    graph = StateGraph(State).add_node(nested).add_edge(START, "nested").compile(InMemorySaver())
    async for chunk in graph.astream({}, {"configurable": {"thread_id": "t"}}, stream_mode=["custom", "updates"]):
        print(chunk)


asyncio.run(main())


def caught(state: State):
    try:
        return {"out": interrupt("q")}
    except ValueError:
        return {"out": "never"}


graph = StateGraph(State).add_node(caught).add_edge(START, "caught").compile(InMemorySaver())
config = {"configurable": {"thread_id": "1"}}
print(graph.invoke({}, config)["__interrupt__"][0].value, graph.invoke(Command(resume=7), config))
