"""Graphs in graphs with states of their own: called in nodes, as nodes, seen from outside while they wait."""

import operator
from typing import Annotated

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command, interrupt
from typing_extensions import TypedDict


class Outer(TypedDict, total=False):
    name: str
    log: Annotated[list[str], operator.add]


class Inner(TypedDict, total=False):
    word: str
    name: str
    asked: list[str]


class Deepest(TypedDict, total=False):
    grain: str


def grind(state: Deepest):
    return {"grain": state["grain"] + " ground"}


mill = StateGraph(Deepest).add_node(grind).add_edge(START, "grind").compile()


def prepare(state: Inner):
    return {"word": mill.invoke({"grain": state.get("name", "rye")})["grain"]}


def ask(state: Inner):
    return {"name": f"{state['word']} ({interrupt({'about': state['word']})})"}


bakery = StateGraph(Inner).add_sequence([prepare, ask]).add_edge(START, "prepare")


def note(state: Outer):
    return {"log": [f"noted {state['name']}"]}


def seen(snapshot, depth=0):
    asked = [question.value for question in snapshot.interrupts]
    print("  " * depth, snapshot.next, snapshot.values, snapshot.metadata and snapshot.metadata["step"], asked)
    for below in snapshot.tasks:
        print("  " * depth, "task", below.name, [one.value for one in below.interrupts], below.result)
        if below.state is not None and not isinstance(below.state, dict):
            seen(below.state, depth + 1)


as_node = StateGraph(Outer).add_node("bakery", bakery.compile()).add_node(note)
as_node = as_node.add_edge(START, "bakery").add_edge("bakery", "note").compile(InMemorySaver())


def visit(state: Outer):
    made = bakery_below.invoke({"name": state["name"]})
    return {"name": made["name"], "log": ["visited"]}


bakery_below = bakery.compile()
called = StateGraph(Outer).add_node(visit).add_node(note).add_edge(START, "visit").add_edge("visit", "note")
called = called.compile(InMemorySaver())
for title, graph in (("as a node", as_node), ("called", called)):
    print(title)
    thread = {"configurable": {"thread_id": title}}
    for path, chunk in graph.stream({"name": "oats", "log": []}, thread, subgraphs=True):
        told = chunk.get("__interrupt__")
        print([level.split(":")[0] for level in path], [one.value for one in told] if told else chunk)
    seen(graph.get_state(thread, subgraphs=True))
    print(type(graph.get_state(thread).tasks[0].state).__name__)
    for path, chunk in graph.stream(Command(resume="warm"), thread, subgraphs=True, stream_mode="updates"):
        print([level.split(":")[0] for level in path], chunk)
    seen(graph.get_state(thread, subgraphs=True))
    print([(one.metadata["step"], one.next) for one in graph.get_state_history(thread)])
print([name for name, _ in as_node.get_subgraphs()], [name for name, _ in called.get_subgraphs()])

print("edited below while it waits")
thread = {"configurable": {"thread_id": "edit"}}
as_node.invoke({"name": "barley", "log": []}, thread)
below = as_node.get_state(thread, subgraphs=True).tasks[0].state
as_node.update_state(below.config, {"word": "rice"})
print(as_node.get_state(thread, subgraphs=True).tasks[0].state.values)
paused = as_node.invoke(None, thread)
print([one.value for one in paused["__interrupt__"]])
print(as_node.invoke(Command(resume="hot"), thread))

print("what it remembers")


class Count(TypedDict):
    times: Annotated[int, operator.add]


for keeps in (None, True, False):
    counter = StateGraph(Count).add_node("count", lambda state: {"times": 1}).add_edge(START, "count")
    counter = counter.compile(keeps)

    def use(state: Outer, counter=counter):
        return {"log": [f"times {counter.invoke({'times': 0})['times']}"]}

    graph = StateGraph(Outer).add_node("use", use).add_edge(START, "use").compile(InMemorySaver())
    for _ in range(3):
        told = graph.invoke({"log": []}, {"configurable": {"thread_id": str(keeps)}})
    print(keeps, told)
