"""Nodes that print, and a reader that prints each chunk: what follows a chunk has not begun when it is read."""

import asyncio
import operator
from typing import Annotated, TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.runtime import Runtime
from langgraph.types import Command, Send, interrupt


class Dough(TypedDict, total=False):
    bowls: list[str]
    steps: Annotated[list[str], operator.add]


def step(name):
    def node(state):
        print("   ", name, "after", state.get("steps", []))
        return {"steps": [name]}

    return node


def kneaded(name):
    async def node(state):
        print("   ", name, "after", state.get("steps", []))
        return {"steps": [name]}

    return node


def bakery(make):
    builder = StateGraph(Dough)
    for name in ("weigh", "mix", "bake"):
        builder.add_node(name, make(name))
    return builder.add_edge(START, "weigh").add_edge("weigh", "mix").add_edge("mix", "bake")


def thread(name):
    return {"configurable": {"thread_id": name}}


graph = bakery(step).compile(InMemorySaver())
for mode in ("values", "updates", ["updates", "values"]):
    print(mode)
    for chunk in graph.stream({"steps": []}, thread(str(mode)), stream_mode=mode):
        print(chunk)
for mode in ("tasks", "checkpoints", "debug"):
    print(mode)
    for chunk in graph.stream({"steps": []}, thread(mode), stream_mode=mode):
        print("a", chunk.get("type"), chunk.get("name"), chunk.get("next"), chunk.get("step"))


async def read_along():
    async for chunk in bakery(kneaded).compile().astream({"steps": []}):
        print(chunk)
        await asyncio.sleep(0)


asyncio.run(read_along())

print("left after a chunk")
for mode, wanted in (("values", {"steps": []}), ("updates", {"mix": {"steps": ["mix"]}})):
    for chunk in graph.stream({"steps": []}, thread("left" + mode), stream_mode=mode):
        if chunk == wanted:
            break
    print("and on")
    for chunk in graph.stream(None, thread("left" + mode)):
        print(chunk)


print("side by side they begin in the order of their names, however they are written down")
builder = StateGraph(Dough).add_node("weigh", step("weigh"))
for name in ("warm", "rest", "bake", "mix"):
    builder.add_node(name, step(name)).add_edge("weigh", name)
for chunk in builder.add_edge(START, "weigh").compile().stream({"steps": []}, stream_mode="values"):
    print(chunk)


def spread(state: Dough):
    return [Send("shape", bowl) for bowl in state["bowls"]]


def shape(bowl: str):
    print("    shaping", bowl)
    return {"steps": [f"shaped {bowl}"]}


def ask(state: Dough, runtime: Runtime):
    print("    asking")
    return {"steps": [interrupt(f"enough of {len(state['steps'])}?")]}


builder = StateGraph(Dough).add_node(shape).add_node(ask).add_conditional_edges(START, spread, ["shape"])
many = builder.add_edge("shape", "ask").compile(InMemorySaver())
for given in ({"bowls": list("abcdef")}, Command(resume="enough")):
    for chunk in many.stream(given, thread("bowls"), stream_mode="values"):
        told = chunk.get("__interrupt__")
        print([asked.value for asked in told] if told else chunk)
