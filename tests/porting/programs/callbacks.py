"""Callbacks, tags, graph events, drained runs, and what a program asks of its runtime."""

import asyncio
import operator
from typing import Annotated, TypedDict

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langgraph.callbacks import GraphCallbackHandler
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphDrained
from langgraph.graph import START, StateGraph
from langgraph.runtime import RunControl, Runtime, get_runtime
from langgraph.types import Command, interrupt


class State(TypedDict, total=False):
    log: Annotated[list, operator.add]


class Model(BaseCallbackHandler):
    def on_chat_model_start(self, serialized, messages, *, tags=None, metadata=None, **kwargs):
        print("model starts", [m.content for m in messages[0]], "mine" in tags, metadata["langgraph_node"])

    def on_llm_end(self, response, **kwargs):
        print("model ends", response.generations[0][0].text)


class Life(GraphCallbackHandler):
    def on_interrupt(self, event):
        print("interrupt", event.status, [i.value for i in event.interrupts], event.checkpoint_ns)

    def on_resume(self, event):
        print("resume", event.status, event.checkpoint_ns)


model = GenericFakeChatModel(messages=iter(AIMessage(f"said {n}") for n in range(9)))


def talk(state, config):
    return {"log": [model.invoke("hello", config).content]}


def ask(state):
    return {"log": [interrupt("sure?")]}


builder = StateGraph(State).add_node(talk).add_node(ask).add_edge(START, "talk").add_edge("talk", "ask")
graph = builder.compile(InMemorySaver())
config = {"configurable": {"thread_id": "1"}, "callbacks": [Model(), Life()], "tags": ["mine"]}
print(sorted(graph.invoke({"log": []}, config)))
print(graph.invoke(Command(resume="yes"), config))


def told(state, runtime: Runtime[dict]):
    same = get_runtime(dict).context is runtime.context
    info = runtime.execution_info
    return {"log": [runtime.context, same, info.node_attempt, info.thread_id, runtime.previous, runtime.store]}


print(StateGraph(State, context_schema=dict).add_node(told).add_edge(START, "told").compile().invoke({"log": []}, context={"a": 1}))
control = RunControl()


def stop(state):
    control.request_drain("enough")
    return {"log": ["stop"]}


drained = StateGraph(State).add_node(stop).add_node("next", lambda s: {"log": ["next"]}).add_edge(START, "stop")
drained = drained.add_edge("stop", "next").compile(InMemorySaver())
try:
    drained.invoke({"log": []}, {"configurable": {"thread_id": "d"}}, control=control)
except GraphDrained as error:
    print("drained", error.reason)
print(drained.get_state({"configurable": {"thread_id": "d"}}).next, drained.invoke(None, {"configurable": {"thread_id": "d"}}))


async def main():
    async for chunk in drained.astream({"log": []}, {"configurable": {"thread_id": "e"}}, stream_mode="checkpoints"):
        print(chunk["next"], chunk["values"], chunk["metadata"]["source"], [t["name"] for t in chunk["tasks"]])


asyncio.run(main())
