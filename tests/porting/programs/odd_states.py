"""States of other classes, odd reducers, and bare values."""

import asyncio
import inspect
import operator
from typing import Annotated, Optional, Protocol

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Command, Overwrite, interrupt
from pydantic import BaseModel
from typing_extensions import TypedDict


def tried(what, function):
    """Print what comes of a call: its result, or the kind of its error."""
    try:
        result = function()
        print(what, "->", asyncio.run(result) if inspect.iscoroutine(result) else result)
    except Exception as error:
        print(what, [kind.__name__ for kind in type(error).__mro__ if kind.__module__ == "builtins"][0])


class Plain:
    a: int
    b: Annotated[list, operator.add]


class PlainDefault:
    a: int = 5
    b: Annotated[list, operator.add] = []


class Proto(Protocol):
    a: int


for cls in (Plain, PlainDefault, Proto):
    g = (
        StateGraph(cls)
        .add_node("n", lambda s: print("got", type(s).__name__, s) or {"b": [1]})
        .add_edge(START, "n")
        .compile()
    )
    tried(cls.__name__, lambda: g.invoke({"a": 2}))


def typed(s: Plain):
    print("typed", s["a"])
    return {"a": s["a"] + 1}


tried("typed", lambda: StateGraph(Plain).add_node(typed).add_edge(START, "typed").compile().invoke({"a": 2}))


class E(MessagesState):
    extra: int


class Full(TypedDict, total=False):
    q: str
    a: str


class Out(TypedDict):
    a: str


g = StateGraph(Full, output_schema=Out).add_node("n", lambda s: {"q": "x"}).add_edge(START, "n").compile()
tried("unwritten stream", lambda: list(g.stream({"q": "s"}, stream_mode=["values", "updates"])))
tried("outkey", lambda: g.invoke({"q": "s"}, output_keys="a"))
g = StateGraph(Full).add_node("n", lambda s: None).add_edge(START, "n").compile()
tried("empty in stream", lambda: list(g.stream({}, stream_mode=["values", "updates"])))


class M(BaseModel):
    a: int = 5


g = StateGraph(M).add_node("n", lambda s: None).add_edge(START, "n").compile()


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


for v in (Overwrite([9]), Overwrite(value=[9]), {"__overwrite__": [9]}, {"type": "__overwrite__", "value": [9]}):
    tried(v, lambda: seq(("a", lambda s: {"log": v}), ("b", w("b"))).invoke({"log": [1]}))
tried(
    "two",
    lambda: (
        StateGraph(S)
        .add_node("a", lambda s: {"log": Overwrite([1])})
        .add_node("b", lambda s: {"log": Overwrite([2])})
        .add_edge(START, "a")
        .add_edge(START, "b")
        .compile()
        .invoke({"log": []})
    ),
)
tried(
    "with others",
    lambda: (
        StateGraph(S)
        .add_node("a", lambda s: {"log": [1]})
        .add_node("b", lambda s: {"log": Overwrite([2])})
        .add_node("c", lambda s: {"log": [3]})
        .add_edge(START, "a")
        .add_edge(START, "b")
        .add_edge(START, "c")
        .compile()
        .invoke({"log": [0]})
    ),
)
tried("input", lambda: seq(("a", w("a"))).invoke({"log": Overwrite(["x"])}))
tried("lastvalue", lambda: seq(("a", lambda s: {"n": Overwrite(5)})).invoke({"n": 1}))
tried(
    "update_state",
    lambda: (
        lambda g, c: (
            g.invoke({"log": [1]}, c),
            g.update_state(c, {"log": Overwrite(["z"])}) and None,
            g.get_state(c).values,
        )
    )(seq(("a", w("a")), checkpointer=InMemorySaver()), cfg()),
)
tried(
    "stream",
    lambda: list(seq(("a", lambda s: {"log": Overwrite([9])})).stream({"log": [1]}, stream_mode=["updates", "values"])),
)
tried("command", lambda: seq(("a", lambda s: Command(update={"log": Overwrite([9])}))).invoke({"log": [1]}))


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


def n(s):
    return {"n": s.get("n", 0) + 1}


tried("missing key", lambda: seq(("a", lambda s: {"n": s["n"] + 1})).invoke({"log": []}))
tried("none value", lambda: seq(("a", lambda s: {"n": None})).invoke({"log": [], "n": 1}))
tried("none to reducer", lambda: seq(("a", lambda s: {"log": None})).invoke({"log": []}))
tried("falsy", lambda: seq(("a", lambda s: {"n": 0})).invoke({"n": 5}))
tried("tuple into list", lambda: seq(("a", lambda s: {"log": (1,)})).invoke({"log": []}))
tried("str state", lambda: StateGraph(str).add_node("a", lambda s: s + "!").add_edge(START, "a").compile().invoke("hi"))
tried(
    "int state",
    lambda: (
        StateGraph(Annotated[int, operator.add]).add_node("a", lambda s: s + 1).add_edge(START, "a").compile().invoke(3)
    ),
)
tried(
    "dict state",
    lambda: StateGraph(dict).add_node("a", lambda s: {**s, "x": 1}).add_edge(START, "a").compile().invoke({"a": 1}),
)
tried(
    "dict state stream",
    lambda: list(
        StateGraph(dict)
        .add_node("a", lambda s: {**s, "x": 1})
        .add_edge(START, "a")
        .compile()
        .stream({"a": 1}, stream_mode=["values", "updates"])
    ),
)
tried(
    "list state saver",
    lambda: (lambda g, c: (g.invoke([1], c), g.get_state(c).values, g.invoke([2], c)))(
        StateGraph(Annotated[list, operator.add])
        .add_node("a", lambda s: [len(s)])
        .add_edge(START, "a")
        .compile(InMemorySaver()),
        cfg(),
    ),
)
tried(
    "list router",
    lambda: (
        StateGraph(Annotated[list, operator.add])
        .add_node("a", lambda s: [len(s)])
        .add_edge(START, "a")
        .add_conditional_edges("a", lambda s: "a" if len(s) < 4 else END)
        .compile()
        .invoke([1])
    ),
)
tried(
    "list update_state",
    lambda: (lambda g, c: (g.invoke([1], c), g.update_state(c, [9]) and g.get_state(c).values))(
        StateGraph(Annotated[list, operator.add])
        .add_node("a", lambda s: [len(s)])
        .add_edge(START, "a")
        .compile(InMemorySaver()),
        cfg(),
    ),
)
tried(
    "list interrupt",
    lambda: (lambda g, c: (g.invoke([1], c), g.invoke(Command(resume=5), c)))(
        StateGraph(Annotated[list, operator.add])
        .add_node("a", lambda s: [interrupt("q")])
        .add_edge(START, "a")
        .compile(InMemorySaver()),
        cfg(),
    )[1],
)
tried(
    "list cmd",
    lambda: (
        StateGraph(Annotated[list, operator.add])
        .add_node("a", lambda s: Command(update=[7], goto="b"))
        .add_node("b", lambda s: [8])
        .add_edge(START, "a")
        .compile()
        .invoke([1])
    ),
)


class DefaultReducer(TypedDict, total=False):
    a: Annotated[Optional[dict], lambda x, y: {**(x or {}), **(y or {})}]
    b: Annotated[int, max] if False else Annotated[int, lambda x, y: max(x, y)]
    c: Annotated[list, lambda x, y: sorted(x + y)]
    d: Annotated[str, lambda x, y: x + y]
    e: Annotated[set, lambda x, y: x | y]


tried(
    "reducers",
    lambda: sorted(
        (k, str(v))
        for k, v in StateGraph(DefaultReducer)
        .add_node("a", lambda s: {"a": {"k": 1}, "b": 3, "c": [2, 1], "d": "x", "e": {1}})
        .add_node("b", lambda s: {"a": {"j": 2}, "b": 1, "c": [0], "d": "y", "e": {2}})
        .add_edge(START, "a")
        .add_edge("a", "b")
        .compile()
        .invoke({})
        .items()
    ),
)
