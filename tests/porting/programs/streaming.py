"""All that a stream tells: custom items and updates, several modes, subgraphs, messages, v2."""

import asyncio
from typing import TypedDict

from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langgraph.config import get_stream_writer
from langgraph.graph import START, StateGraph
from langgraph.types import StreamWriter


class State(TypedDict):
    topic: str
    joke: str


def node(state: State):
    writer = get_stream_writer()
    writer({"progress": "0/2"})
    writer({"progress": "1/2"})
    return {"joke": f"a joke about {state['topic']}"}


def refine(state: State, writer: StreamWriter):
    writer("refining")
    return {"topic": state["topic"] + " and cats"}


graph = StateGraph(State).add_node("node", node).add_node(refine)
graph = graph.add_edge(START, "refine").add_edge("refine", "node").compile()
for chunk in graph.stream({"topic": "ice cream"}, stream_mode="custom"):
    print(chunk)
for mode, chunk in graph.stream({"topic": "ice cream"}, stream_mode=["updates", "custom"]):
    print(mode, chunk)
for chunk in graph.stream({"topic": "ice cream"}, stream_mode="values"):
    print(chunk)
for chunk in graph.stream({"topic": "ice cream"}, stream_mode="tasks"):
    print({k: v for k, v in chunk.items() if k != "id"})
for chunk in graph.stream({"topic": "ice cream"}, stream_mode=["values", "custom"], version="v2"):
    print(chunk["type"], chunk["ns"], chunk["data"])
print(graph.invoke({"topic": "x"}, stream_mode="updates"))
print(graph.invoke({"topic": "x"}, output_keys="joke"), graph.invoke({"topic": "x"}, output_keys=["topic"]))
result = graph.invoke({"topic": "x"}, version="v2")
print(type(result).__name__, result.value, result.interrupts)

model = GenericFakeChatModel(messages=iter([AIMessage("one two three", id="m")] * 9))


async def talk(state: State):
    found = await model.ainvoke("x")
    return {"joke": found.content}


inner = StateGraph(State).add_node(talk).add_edge(START, "talk").compile()
outer = StateGraph(State).add_node("inner", inner).add_edge(START, "inner").compile()


async def main():
    async for chunk, metadata in outer.astream({"topic": "t"}, stream_mode="messages", subgraphs=False):
        print(repr(chunk.content), metadata["langgraph_node"])
    async for ns, mode, chunk in outer.astream({"topic": "t"}, stream_mode=["updates", "custom"], subgraphs=True):
        print([part.split(":")[0] for part in ns], mode, chunk)


asyncio.run(main())
