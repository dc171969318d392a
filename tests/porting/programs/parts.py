"""Streams and results in their second version, with states that are classes, and subgraphs that stream too."""

import operator
from dataclasses import dataclass, field
from typing import Annotated

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.config import get_stream_writer
from langgraph.graph import START, StateGraph
from langgraph.types import Command, GraphOutput, Send, interrupt
from pydantic import BaseModel
from typing_extensions import TypedDict


class Plain(TypedDict, total=False):
    total: int
    log: Annotated[list[str], operator.add]


@dataclass
class Data:
    total: int = 0
    log: Annotated[list[str], operator.add] = field(default_factory=list)


class Model(BaseModel):
    total: int = 0
    log: Annotated[list[str], operator.add] = []


def of(state, key):
    return state[key] if isinstance(state, dict) else getattr(state, key)


def add(state):
    get_stream_writer()({"adding": of(state, "total")})
    return {"total": of(state, "total") + 1, "log": ["added"]}


def ask(state):
    return {"log": [interrupt(f"{of(state, 'total')}?")]}


def shown(part):
    """A part, without what is only here: how far it is on disk."""
    rest = {key: value for key, value in part.items() if key != "durable_upto"}
    if rest["type"] in ("checkpoints", "debug", "tasks"):
        rest["data"] = sorted(rest["data"])
    if rest["type"] == "updates" and "__interrupt__" in rest["data"]:
        rest["data"] = [asked.value for asked in rest["data"]["__interrupt__"]]
    if "interrupts" in rest:
        rest["interrupts"] = [asked.value for asked in rest["interrupts"]]
    rest["ns"] = tuple(level.split(":")[0] for level in rest["ns"])
    return rest


for schema in (Plain, Data, Model):
    graph = StateGraph(schema).add_sequence([add, ask]).add_edge(START, "add").compile(InMemorySaver())
    thread = {"configurable": {"thread_id": schema.__name__}}
    for given in ({"total": 1}, Command(resume="yes")):
        for part in graph.stream(given, thread, stream_mode=["values", "updates", "custom"], version="v2"):
            print(shown(part))
    thread = {"configurable": {"thread_id": schema.__name__ + "2"}}
    paused = graph.invoke({"total": 5}, thread, version="v2")
    print(type(paused) is GraphOutput, type(paused.value).__name__, [asked.value for asked in paused.interrupts])
    done = graph.invoke(Command(resume="no"), thread, version="v2")
    print(done)
    print(graph.get_state(thread).values)

inner = StateGraph(Plain).add_sequence([add, ask]).add_edge(START, "add").compile()


def fan(state: Plain):
    return [Send("inner", {"total": 10 * number, "log": []}) for number in (1, 2)]


outer = StateGraph(Plain).add_node("inner", inner, input_schema=Plain).add_node("last", add)
outer = outer.add_conditional_edges(START, fan, ["inner"]).add_edge("inner", "last")
one = StateGraph(Plain).add_node("inner", inner).add_node("last", add).add_edge(START, "inner").add_edge("inner", "last")
graph, thread = one.compile(InMemorySaver()), {"configurable": {"thread_id": "below"}}
for given in ({"total": 3, "log": []}, Command(resume="go")):
    for mode in ("updates", "values", "custom", "tasks", "checkpoints"):
        config = {"configurable": {"thread_id": mode}}
        for part in graph.stream(given, config, stream_mode=mode, subgraphs=True, version="v2"):
            print(shown(part))
for path, chunk in graph.stream({"total": 0, "log": []}, thread, subgraphs=True):
    print(len(path), sorted(chunk))
for path, mode, chunk in graph.stream(Command(resume=1), thread, subgraphs=True, stream_mode=["values"]):
    print(len(path), mode, chunk)
