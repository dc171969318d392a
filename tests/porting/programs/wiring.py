"""Edges of every kind, nodes of every kind, and what a graph tells of itself."""

import asyncio
import functools
import operator
from typing import Annotated, Literal, TypedDict

from langchain_core.runnables import RunnableConfig, RunnableLambda
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.config import get_config
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, Send


class State(TypedDict, total=False):
    log: Annotated[list, operator.add]
    n: int


class Callable_:
    def __call__(self, state):
        return {"log": ["object"]}

    async def method(self, state, config: RunnableConfig):
        return {"log": [config["metadata"]["langgraph_node"], config["metadata"]["langgraph_step"], config["tags"]]}


def plain(state, config):
    return {"log": [sorted(set(config["configurable"]) & {"thread_id", "mine"}), get_config()["metadata"]["who"]]}


def partly(prefix, state):
    return {"log": [prefix]}


thing = Callable_()
builder = StateGraph(State)
builder.add_node("object", thing)
builder.add_node("method", thing.method)
builder.add_node("plain", plain)
builder.add_node("partly", functools.partial(partly, "p"))
builder.add_node("runnable", RunnableLambda(lambda s: {"log": ["runnable"]}))
builder.add_edge(START, "object")
builder.add_edge("object", "method")
builder.add_edge("method", "plain")
builder.add_edge("plain", "partly")
builder.add_edge("partly", "runnable")
graph = builder.compile(InMemorySaver(), name="wired")
config = {"configurable": {"thread_id": "1", "mine": 1}, "metadata": {"who": "me"}, "tags": ["tagged"]}
print(asyncio.run(graph.ainvoke({"log": []}, config))["log"])
print(sorted(graph.get_state(config).metadata.items(), key=str))
bound = graph.with_config(configurable={"thread_id": "2"}, metadata={"who": "bound"}, tags=["b"])
print(asyncio.run(bound.ainvoke({}))["log"], graph.name, graph.get_name())


def route(state) -> Literal["left", "right"]:
    return "left" if state["n"] < 0 else "right"


def several(state):
    return ["x", "y", Send("z", {"n": 5})] if state["n"] else END


fork = StateGraph(State)
for name in ("left", "right", "x", "y", "z"):
    fork.add_node(name, lambda s, name=name: {"log": [f"{name}{s.get('n')}"]})
fork.set_conditional_entry_point(route)
fork.add_conditional_edges("right", several, ["x", "y", "z", END])
fork.add_conditional_edges("left", lambda s: True, {True: "x", False: END})
fork.add_edge(["x", "y"], "z")
graph = fork.compile()
for n in (-1, 0, 1):
    print(graph.invoke({"n": n, "log": []}))
print(sorted((e.source, e.target, e.conditional) for e in graph.get_graph().edges))


def jump(state):
    return Command(update={"log": ["jump"]}, goto=["a", Send("b", {"n": 1}), Send("b", {"n": 2})])


def listed(state):
    return [Command(update={"log": ["first"]}), Command(update={"log": ["second"]}, goto="a"), {"log": ["dict"]}]


for start in (jump, listed):
    jumps = StateGraph(State).add_node("start", start, destinations=("a", "b"))
    jumps.add_node("a", lambda s: {"log": ["a"]}).add_node("b", lambda s: {"log": [s["n"]]}).add_edge(START, "start")
    print(jumps.compile().invoke({"log": []}))

async def main():
    print(await graph.abatch([{"n": 1, "log": []}, {"n": -1, "log": []}]))
    print([len(r["log"]) for r in graph.batch([{"n": 1, "log": []}] * 3, {"max_concurrency": 1})])


asyncio.run(main())
loop = StateGraph(State).add_node("count", lambda s: {"n": s["n"] + 1}).add_edge(START, "count")
loop.add_conditional_edges("count", lambda s: "count" if s["n"] < 4 else END)
print(loop.compile().invoke({"n": 0}), [c["count"]["n"] for c in loop.compile().stream({"n": 0})])
print(loop.compile().invoke({"n": 0, "unknown": 1}), loop.compile().invoke({"n": 0}, {"recursion_limit": 10}))
nothing = StateGraph(State).add_node("none", lambda s: None).add_node("empty", lambda s: {}).add_edge(START, "none")
print(nothing.add_edge("none", "empty").compile().invoke({"n": 1}), list(nothing.compile().stream({"n": 1})))
