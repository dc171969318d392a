"""What streams show of subgraphs: keys, namespaces, configs."""

import asyncio
import inspect
import operator
import re
from typing import Annotated

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import StreamWriter
from typing_extensions import TypedDict


def tried(what, function):
    """Print what comes of a call: its result, or the kind of its error."""
    try:
        result = function()
        print(what, "->", asyncio.run(result) if inspect.iscoroutine(result) else result)
    except Exception as error:
        print(what, [kind.__name__ for kind in type(error).__mro__ if kind.__module__ == "builtins"][0])


class P(TypedDict, total=False):
    shared: str
    n: int


class C(TypedDict, total=False):
    shared: str
    own: int
    n: int


class COut(TypedDict, total=False):
    n: int


class CIn(TypedDict, total=False):
    shared: str


child = (
    StateGraph(C, output_schema=COut, input_schema=CIn)
    .add_node("x", lambda s: {"own": 5})
    .add_node("y", lambda s: {"n": s["own"] + 1, "shared": "child"})
    .add_node("z", lambda s: {"own": 6})
    .add_edge(START, "x")
    .add_edge("x", "y")
    .add_edge("y", "z")
    .compile()
)


def call(s):
    return {"n": child.invoke({"shared": "s"})["n"]}


gs = {
    "node": StateGraph(P).add_node("c", child).add_edge(START, "c"),
    "fn": StateGraph(P).add_node("c", call).add_edge(START, "c"),
}
i = 0
for k, b in gs.items():
    for saver in (None, InMemorySaver()):
        g = b.compile(saver)
        for mode in ("updates", "values", "tasks", "checkpoints", "debug"):
            i += 1
            for ns, c in g.stream(
                {"shared": "s"}, {"configurable": {"thread_id": str(i)}}, stream_mode=mode, subgraphs=True
            ):
                if ns:
                    if mode == "debug":
                        c = c["payload"]
                    print(
                        k,
                        mode,
                        {a: v for a, v in c.items() if a not in ("config", "parent_config", "metadata", "id", "tasks")},
                    )
        for mode in ("updates", "values"):
            i += 1
            for ns, c in g.stream(
                {"shared": "s"},
                {"configurable": {"thread_id": str(i)}},
                stream_mode=mode,
                subgraphs=True,
                output_keys=["shared"],
            ):
                print(k, mode, "keys", len(ns), c)
tried("root", lambda: list(child.stream({"shared": "s"}, stream_mode=["updates", "values"])))
tried("root invoke updates", lambda: child.invoke({"shared": "s"}, stream_mode="updates"))
tried("root invoke both", lambda: child.invoke({"shared": "s"}, stream_mode=["updates", "values"]))
tried("root invoke print", lambda: child.invoke({"shared": "s"}, print_mode=["updates", "values"]))
tried("root invoke v2", lambda: child.invoke({"shared": "s"}, version="v2"))


class S(TypedDict, total=False):
    log: Annotated[list, operator.add]
    n: int


def leaf(s, writer: StreamWriter):
    writer("leaf")
    return {"log": ["leaf"]}


def leaf2(s):
    return {"n": 5}


inner = StateGraph(S).add_sequence([leaf, leaf2]).add_edge(START, "leaf").compile()
mid = (
    StateGraph(S)
    .add_node("inner", inner)
    .add_node("m", lambda s: {"log": ["m"]})
    .add_edge(START, "inner")
    .add_edge("inner", "m")
    .compile()
)


def call(s):
    return {"log": inner.invoke({"log": ["called"]})["log"]}


top = StateGraph(S).add_node("mid", mid).add_node(call).add_edge(START, "mid").add_edge("mid", "call")
i = 0


def cfg():
    global i
    i += 1
    return {"configurable": {"thread_id": str(i)}}


def ns(x):
    return tuple(re.sub(r":.*", "", y) for y in x)


for saver in (None, InMemorySaver()):
    g = top.compile(saver)
    for mode in ("values", "updates", "custom", "tasks"):
        for c in g.stream({"log": ["in"]}, cfg(), stream_mode=mode, subgraphs=True):
            print(mode, ns(c[0]), c[1])
    for c in g.stream({"log": ["in"]}, cfg(), stream_mode=["updates", "custom"], subgraphs=True):
        print(ns(c[0]), c[1:])
    for c in g.stream({"log": ["in"]}, cfg(), stream_mode=["updates"], subgraphs=True, version="v2"):
        print(ns(c["ns"]), c["type"], c["data"])
    for c in g.stream({"log": ["in"]}, cfg(), stream_mode="custom"):
        print("custom no sub", c)
    for c in g.stream({"log": ["in"]}, cfg(), stream_mode="tasks"):
        print("tasks no sub", c)
for c in g.stream({"log": ["in"]}, cfg(), stream_mode="checkpoints", subgraphs=True):
    print(
        ns(c[0]),
        c[1]["next"],
        c[1]["values"],
        c[1]["metadata"]["step"],
        sorted(c[1]),
        [sorted(t) for t in c[1]["tasks"]],
        sorted(c[1]["config"]["configurable"]),
        c[1]["parent_config"] and sorted(c[1]["parent_config"]["configurable"]),
        sorted(c[1]["metadata"]),
    )
for c in g.stream({"log": ["in"]}, cfg(), stream_mode="debug", subgraphs=True):
    print(ns(c[0]), c[1]["type"], c[1]["step"], sorted(c[1]), sorted(c[1]["payload"]))
