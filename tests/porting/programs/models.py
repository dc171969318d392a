"""pydantic models and dataclasses as state, input and output."""

import asyncio
import inspect
import operator
from dataclasses import dataclass, field
from datetime import date
from enum import Enum
from typing import Annotated, Any, Literal, Optional

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from pydantic import BaseModel, ConfigDict, Field, PrivateAttr
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


class Kind(str, Enum):
    A = "a"
    B = "b"


class Item(BaseModel):
    name: str
    qty: int = 1


class Order(BaseModel):
    items: list[Item] = Field(default_factory=list)
    when: Optional[date] = None
    kind: Kind = Kind.A
    notes: Annotated[list[str], operator.add] = Field(default_factory=list)


def n(o: Order):
    return {"items": o.items + [Item(name="x")], "notes": [type(o.items[0]).__name__ if o.items else "-"]}


def m(o: Order):
    return {"notes": [str([type(i).__name__ for i in o.items]), str(o.when), o.kind.value]}


g = StateGraph(Order).add_node(n).add_node(m).add_edge(START, "n").add_edge("n", "m").compile(InMemorySaver())
tried("inst", lambda: g.invoke(Order(items=[Item(name="q")], when=date(2024, 1, 2), kind=Kind.B), cfg()))
tried("empty", lambda: g.invoke({}, cfg()))
c = cfg()
tried("v2", lambda: g.invoke(Order(items=[Item(name="q")]), c, version="v2"))
tried("state", lambda: g.get_state(c).values)
tried(
    "bad output",
    lambda: (
        StateGraph(Order)
        .add_node("n", lambda o: {"items": "nope"})
        .add_node("k", lambda o: {})
        .add_edge(START, "n")
        .add_edge("n", "k")
        .compile()
        .invoke(Order())
    ),
)
tried("bad input", lambda: g.invoke({"kind": "zz"}, cfg()))


class Frozen(BaseModel):
    model_config = ConfigDict(frozen=True)
    a: int = 0
    _p: int = PrivateAttr(default=3)


tried(
    "frozen",
    lambda: (
        StateGraph(Frozen).add_node("n", lambda s: {"a": s.a + s._p}).add_edge(START, "n").compile().invoke({"a": 1})
    ),
)


class Gen(BaseModel):
    a: Any = None
    b: Literal["x"] | int = "x"


tried(
    "any",
    lambda: StateGraph(Gen).add_node("n", lambda s: {"a": {"k": s.b}}).add_edge(START, "n").compile().invoke({"b": 5}),
)
tried(
    "none given",
    lambda: StateGraph(Gen).add_node("n", lambda s: print(repr(s))).add_edge(START, "n").compile().invoke({"a": None}),
)
tried(
    "router model",
    lambda: (
        StateGraph(Order)
        .add_node("n", lambda o: {"notes": ["n"]})
        .add_node("k", lambda o: {"notes": ["k"]})
        .add_edge(START, "n")
        .add_conditional_edges("n", lambda o: print(type(o).__name__, o.notes) or "k")
        .compile()
        .invoke(Order())
    ),
)


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


@dataclass
class D:
    q: str
    log: Annotated[list, operator.add] = field(default_factory=list)
    opt: Optional[int] = None


@dataclass
class DI:
    q: str


@dataclass
class DO:
    log: list = field(default_factory=list)


def n(s: D):
    return {"log": [s.q, s.opt]}


def r(s: D):
    print("router", s)
    return END


g = (
    StateGraph(D, input_schema=DI, output_schema=DO)
    .add_node(n)
    .add_edge(START, "n")
    .add_conditional_edges("n", r)
    .compile(InMemorySaver())
)
c = cfg()
tried("run", lambda: g.invoke(DI("x"), c))
tried("dict", lambda: g.invoke({"q": "y", "opt": 5}, cfg()))
tried("v2", lambda: g.invoke(DI("x"), cfg(), version="v2"))
tried("stream", lambda: list(g.stream(DI("x"), cfg())))
tried(
    "mutate",
    lambda: (
        StateGraph(D)
        .add_node("n", lambda s: setattr(s, "q", "mut") or s)
        .add_edge(START, "n")
        .compile()
        .invoke(D("old"))
    ),
)
tried(
    "replace",
    lambda: (
        StateGraph(D)
        .add_node("n", lambda s: __import__("dataclasses").replace(s, q="rep", log=[]))
        .add_edge(START, "n")
        .compile()
        .invoke(D("old", ["a"]))
    ),
)
