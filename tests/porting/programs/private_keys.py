"""Private keys, what routers see of them, and schemas for input and output."""

import asyncio
import inspect
import operator
from typing import Annotated

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command
from pydantic import BaseModel
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


class Priv(TypedDict):
    secret: str


class Pub(TypedDict, total=False):
    q: str
    a: str


def n1(s: Pub) -> Priv:
    return {"secret": "s"}


def n2(s: Priv) -> Pub:
    return {"a": s["secret"] + "!"}


def n3(s: Pub):
    return {"q": str(sorted(s))}


g = (
    StateGraph(Pub)
    .add_node(n1)
    .add_node(n2)
    .add_node(n3)
    .add_edge(START, "n1")
    .add_edge("n1", "n2")
    .add_edge("n2", "n3")
    .compile(InMemorySaver())
)
c = cfg()
tried("run", lambda: g.invoke({"q": "x"}, c))
tried("state", lambda: g.get_state(c).values)
tried("hist", lambda: [s.values for s in g.get_state_history(c)])
tried("updates", lambda: list(g.stream({"q": "x"}, cfg())))
tried("values", lambda: list(g.stream({"q": "x"}, cfg(), stream_mode="values")))
tried("update private", lambda: g.update_state(c, {"secret": "edited"}, as_node="n1") and g.invoke(None, c))
tried("out keys", lambda: g.invoke({"q": "x"}, cfg(), output_keys=["secret"]))
tried(
    "router sees",
    lambda: (
        StateGraph(Pub)
        .add_node(n1)
        .add_node(n2)
        .add_edge(START, "n1")
        .add_conditional_edges("n1", lambda s: print(sorted(s)) or "n2")
        .compile()
        .invoke({"q": "r"})
    ),
)


def typed_router(s: Priv):
    print(s)
    return "n2"


tried(
    "typed router",
    lambda: (
        StateGraph(Pub)
        .add_node(n1)
        .add_node(n2)
        .add_edge(START, "n1")
        .add_conditional_edges("n1", typed_router)
        .compile()
        .invoke({"q": "r"})
    ),
)
tried(
    "unknown written",
    lambda: (
        StateGraph(Pub).add_node("x", lambda s: {"nope": 1, "a": "y"}).add_edge(START, "x").compile().invoke({"q": "r"})
    ),
)


class Pub(TypedDict, total=False):
    q: str
    a: str
    log: Annotated[list, operator.add]


class Priv(TypedDict):
    secret: str
    plog: Annotated[list, operator.add]


class One(TypedDict):
    a: str


def n1(s: Pub) -> Priv:
    return {"secret": "s", "a": "A", "log": [1], "plog": [2], "unknown": 5}


def n2(s: Priv):
    return {}


def n3(s: One):
    print("n3", s)
    return {}


def r0(s):
    print("r0", sorted(s.items()))
    return "n2"


def r1(s: Pub):
    print("r1", sorted(s.items()))
    return "n2"


def r2(s: One):
    print("r2", sorted(s.items()))
    return "n2"


def r3(s: Priv):
    print("r3", sorted(s.items()))
    return "n2"


for r in (r0, r1, r2, r3):
    tried(
        r.__name__,
        lambda: (
            StateGraph(Pub)
            .add_node(n1)
            .add_node(n2)
            .add_node(n3)
            .add_edge(START, "n1")
            .add_conditional_edges("n1", r)
            .compile()
            .invoke({"q": "r", "log": [0]})
        ),
    )


def c1(s):
    return Command(update={"secret": "c", "log": [1]})


for r in (r0, r2):
    tried(
        "cmd",
        lambda: (
            StateGraph(Pub)
            .add_node("n1", c1)
            .add_node(n2)
            .add_node(n3)
            .add_edge(START, "n1")
            .add_conditional_edges("n1", r)
            .compile()
            .invoke({"q": "r", "log": [0]})
        ),
    )
tried(
    "none",
    lambda: (
        StateGraph(Pub)
        .add_node("n1", lambda s: None)
        .add_node(n2)
        .add_node(n3)
        .add_edge(START, "n1")
        .add_conditional_edges("n1", r0)
        .compile()
        .invoke({"q": "r", "log": [0]})
    ),
)


def r4(s):
    print("start", sorted(s.items()))
    return "n2"


tried(
    "start",
    lambda: (
        StateGraph(Pub).add_node(n2).add_conditional_edges(START, r4).compile().invoke({"q": "r", "log": [0], "zz": 1})
    ),
)


class In(TypedDict):
    q: str


class Out(TypedDict):
    a: str


class Full(TypedDict):
    q: str
    a: str
    log: Annotated[list, operator.add]


class Priv(TypedDict):
    secret: str


def one(s: In) -> Priv:
    print("one", s)
    return {"secret": s["q"] + "!", "log": ["one"]}


def two(s: Priv) -> Out:
    print("two", s)
    return {"a": s["secret"].upper(), "log": ["two"]}


def three(s: Full):
    print("three", sorted(s.items()))
    return {"log": ["three"]}


def four(s: Out):
    print("four", s)
    return None


b = StateGraph(Full, input_schema=In, output_schema=Out)
b.add_sequence([one, two, three, four]).add_edge(START, "one")
g = b.compile(InMemorySaver())
c = {"configurable": {"thread_id": "1"}}
tried("run", lambda: g.invoke({"q": "hi", "a": "no", "log": ["zz"]}, c))
tried("state", lambda: g.get_state(c).values)
tried("values", lambda: list(g.stream({"q": "hi"}, {"configurable": {"thread_id": "2"}}, stream_mode="values")))
tried("updates", lambda: list(g.stream({"q": "hi"}, {"configurable": {"thread_id": "3"}})))
tried("outkeys", lambda: g.invoke({"q": "hi"}, {"configurable": {"thread_id": "4"}}, output_keys=["log", "secret"]))
tried("outkey", lambda: g.invoke({"q": "hi"}, {"configurable": {"thread_id": "5"}}, output_keys="log"))
tried(
    "stream outkey",
    lambda: list(
        g.stream(
            {"q": "hi"}, {"configurable": {"thread_id": "6"}}, output_keys="log", stream_mode=["values", "updates"]
        )
    ),
)
tried(
    "stream outkeys",
    lambda: list(
        g.stream(
            {"q": "hi"}, {"configurable": {"thread_id": "7"}}, output_keys=["secret"], stream_mode=["values", "updates"]
        )
    ),
)


class PIn(BaseModel):
    q: int


class POut(BaseModel):
    a: int


class PFull(BaseModel):
    q: int = 0
    a: int = 0
    h: int = 0


def pn(s: PIn):
    print(type(s).__name__, s)
    return {"a": s.q + 1, "h": 3}


def pm(s):
    print(type(s).__name__, s)


def pl(s: POut):
    print(type(s).__name__, s)


p = StateGraph(PFull, input_schema=PIn, output_schema=POut).add_sequence([pn, pm, pl]).add_edge(START, "pn").compile()
tried("p", lambda: p.invoke({"q": 3}))
tried("p2", lambda: p.invoke(PIn(q=4), version="v2"))
tried("p3", lambda: p.invoke({"h": 4}))
tried(
    "explicit",
    lambda: (
        StateGraph(Full)
        .add_node("n", lambda s: print(s), input_schema=In)
        .add_edge(START, "n")
        .compile()
        .invoke({"q": "1", "a": "2"})
    ),
)
