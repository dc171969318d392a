"""Commands to the parent graph, and handoffs between agents."""

import asyncio
import inspect
import operator
from typing import Annotated, Literal

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Command
from typing_extensions import TypedDict


def tried(what, function):
    """Print what comes of a call: its result, or the kind of its error."""
    try:
        result = function()
        print(what, "->", asyncio.run(result) if inspect.iscoroutine(result) else result)
    except Exception as error:
        print(what, [kind.__name__ for kind in type(error).__mro__ if kind.__module__ == "builtins"][0])


class S(TypedDict, total=False):
    log: Annotated[list, operator.add]
    n: int


def leaf(**cmd):
    return (
        StateGraph(S).add_node("leaf", lambda s: Command(graph=Command.PARENT, **cmd)).add_edge(START, "leaf").compile()
    )


def outer(sub, **nodes):
    b = StateGraph(S).add_node("sub", sub)
    for k in ("x", "y"):
        b.add_node(k, (lambda k: lambda s: {"log": [k]})(k))
    return b.add_edge(START, "sub")


tried("goto x", lambda: outer(leaf(goto="x", update={"log": ["leaf"]})).compile().invoke({"log": ["in"]}))
tried(
    "goto x static",
    lambda: outer(leaf(goto="x", update={"log": ["leaf"]})).add_edge("sub", "y").compile().invoke({"log": ["in"]}),
)
tried(
    "update only", lambda: outer(leaf(update={"log": ["leaf"]})).add_edge("sub", "y").compile().invoke({"log": ["in"]})
)
tried("tuples", lambda: outer(leaf(update=[("log", ["a"]), ("log", ["b"])])).compile().invoke({"log": ["in"]}))


def mid(inner):
    return (
        StateGraph(S)
        .add_node("inner", inner)
        .add_node("m", lambda s: {"log": ["m"]})
        .add_edge(START, "inner")
        .add_edge("inner", "m")
        .compile()
    )


tried("depth2", lambda: outer(mid(leaf(goto="m", update={"log": ["leaf"]}))).compile().invoke({"log": ["in"]}))


class Rel(TypedDict):
    n: int


def rehop(s):
    return Command(graph=Command.PARENT, goto="x", update={"log": ["re"]})


two = StateGraph(S).add_node("inner", leaf(goto="hop")).add_node("hop", rehop).add_edge(START, "inner").compile()
tried("depth2 hop", lambda: outer(two).compile().invoke({"log": ["in"]}))
tried("stream", lambda: list(outer(leaf(goto="x", update={"log": ["leaf"]})).compile().stream({"log": ["in"]})))
tried(
    "stream sub",
    lambda: [
        (tuple(n.split(":")[0] for n in ns), c)
        for ns, c in outer(leaf(goto="x", update={"log": ["leaf"]})).compile().stream({"log": ["in"]}, subgraphs=True)
    ],
)
tried(
    "stream tasks",
    lambda: [
        (c["name"], c.get("result"), c.get("error"), c.get("input"))
        for c in outer(leaf(goto="x", update={"log": ["leaf"]})).compile().stream({"log": ["in"]}, stream_mode="tasks")
    ],
)


def fn(s):
    return leaf(goto="x", update={"log": ["leaf"]}).invoke(s)


tried("in function", lambda: outer(fn).compile().invoke({"log": ["in"]}))
g = outer(leaf(goto="x", update={"log": ["leaf"]})).compile(InMemorySaver())
c = {"configurable": {"thread_id": "1"}}
tried("saver", lambda: g.invoke({"log": ["in"]}, c))


def router(s):
    return Command(goto="x")


class S(TypedDict, total=False):
    log: Annotated[list, operator.add]
    n: int


N = 0


def cfg(**k):
    global N
    N += 1
    return {"configurable": {"thread_id": str(N), **k}}


def V(r):
    return (
        {k: ([x.value for x in v] if k == "__interrupt__" else v) for k, v in r.items()} if isinstance(r, dict) else r
    )


def w(k):
    return lambda s: {"log": [k]}


def seq(*ns, **kw):
    return StateGraph(S).add_sequence(list(ns)).add_edge(START, ns[0][0]).compile(**kw)


class A(MessagesState):
    active: str


def sup(s) -> Command[Literal["r", "m", "__end__"]]:
    k = len(s["messages"])
    return Command(goto={1: "r", 2: "m"}.get(k, END), update={"active": {1: "r", 2: "m"}.get(k, "done")})


def agent(k):
    return lambda s: Command(update={"messages": [("ai", k)]}, goto="sup")


g = (
    StateGraph(A)
    .add_node("sup", sup)
    .add_node("r", agent("r"))
    .add_node("m", agent("m"))
    .add_edge(START, "sup")
    .compile()
)
tried("run", lambda: (lambda r: ([m.content for m in r["messages"]], r["active"]))(g.invoke({"messages": "hi"})))
tried("stream", lambda: [list(c) for c in g.stream({"messages": "hi"})])
tried("graph", lambda: sorted((e.source, e.target, e.conditional) for e in g.get_graph().edges))


def child(name, to):
    def run(s) -> Command[Literal["a2"]]:
        return Command(goto=to, graph=Command.PARENT, update={"messages": [("ai", name)]})

    return (
        StateGraph(MessagesState)
        .add_node("run", lambda s: Command(goto=to, graph=Command.PARENT, update={"messages": [("ai", name)]}))
        .add_edge(START, "run")
        .compile()
    )


p = (
    StateGraph(MessagesState)
    .add_node("a1", child("one", "a2"))
    .add_node("a2", child("two", "fin"))
    .add_node("fin", lambda s: {"messages": [("ai", "fin")]})
    .add_edge(START, "a1")
    .compile(InMemorySaver())
)
tried("handoff", lambda: [m.content for m in p.invoke({"messages": "q"}, cfg())["messages"]])
tried("handoff stream", lambda: [list(c) for c in p.stream({"messages": "q"}, cfg())])
tried("handoff sub", lambda: [(len(n), list(c)) for n, c in p.stream({"messages": "q"}, cfg(), subgraphs=True)])
c = cfg()
p.invoke({"messages": "q"}, c)
