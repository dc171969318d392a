"""Threads that change hands: graphs that evolve, joins over turns, deferred nodes, filters."""

import asyncio
import inspect
import operator
from typing import Annotated

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Send
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


s = InMemorySaver()
c = cfg()
old = seq(("a", w("a")), ("b", w("b")), checkpointer=s, interrupt_before=["b"])
old.invoke({"log": []}, c)


class S2(TypedDict, total=False):
    log: Annotated[list, operator.add]
    extra: str


new = (
    StateGraph(S2)
    .add_node("a", w("a"))
    .add_node("b", lambda s: {"log": ["b2"], "extra": str(sorted(s))})
    .add_node("c", w("c"))
    .add_edge(START, "a")
    .add_edge("a", "b")
    .add_edge("b", "c")
    .compile(s)
)
tried("next", lambda: new.get_state(c).next)
tried("go on", lambda: new.invoke(None, c))
tried("values", lambda: new.get_state(c).values)
tried("old sees", lambda: old.get_state(c).values)


class S3(TypedDict, total=False):
    n: int


other = StateGraph(S3).add_node("z", lambda s: {"n": 1}).add_edge(START, "z").compile(s)
tried("dropped key", lambda: (other.get_state(c).values, other.invoke({"n": 0}, c), new.get_state(c).values))


class S4(TypedDict, total=False):
    log: list


plain = StateGraph(S4).add_node("z", lambda s: {"log": s["log"] + ["z"]}).add_edge(START, "z").compile(s)
tried("no reducer now", lambda: plain.invoke({}, cfg() if False else c))


class S5(TypedDict, total=False):
    log: Annotated[list, lambda a, b: b]


tried("other reducer", lambda: StateGraph(S5).add_node("z", w("only")).add_edge(START, "z").compile(s).invoke({}, c))
tried("list threads", lambda: sorted({t.config["configurable"]["thread_id"] for t in s.list(None)}))


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


def src(k):
    return lambda s: {"log": [k]}


g = StateGraph(S)
for k in ("z1", "a1", "m1"):
    g.add_node(k, src(k))
    g.add_edge(START, k)
    g.add_conditional_edges(k, (lambda k: lambda s: [Send("w", {"k": k, "i": i}) for i in range(2)])(k), ["w"])
g.add_node("w", lambda s: {"log": [f"{s['k']}{s['i']}"]}).add_node("end", lambda s: {"log": ["end"]}).add_edge(
    "w", "end"
)
g = g.compile()
tried("order", lambda: g.invoke({"log": []}))


def lister(s):
    return ["b", "a", "b"]


tried(
    "dup targets",
    lambda: (
        StateGraph(S)
        .add_node("a", w("a"))
        .add_node("b", w("b"))
        .add_conditional_edges(START, lister)
        .compile()
        .invoke({"log": []})
    ),
)
tried(
    "two routers",
    lambda: (
        StateGraph(S)
        .add_node("s", w("s"))
        .add_node("a", w("a"))
        .add_node("b", w("b"))
        .add_edge(START, "s")
        .add_conditional_edges("s", lambda s: "a", ["a"])
        .add_conditional_edges("s", lister, ["a", "b"])
        .compile()
        .invoke({"log": []})
    ),
)
tried(
    "edge + router",
    lambda: (
        StateGraph(S)
        .add_node("s", w("s"))
        .add_node("a", w("a"))
        .add_node("b", w("b"))
        .add_edge(START, "s")
        .add_edge("s", "a")
        .add_conditional_edges("s", lister, ["a", "b"])
        .compile()
        .invoke({"log": []})
    ),
)
tried(
    "diamond",
    lambda: (
        StateGraph(S)
        .add_node("s", w("s"))
        .add_node("a", w("a"))
        .add_node("b", w("b"))
        .add_node("e", w("e"))
        .add_edge(START, "s")
        .add_edge("s", "a")
        .add_edge("s", "b")
        .add_edge("a", "e")
        .add_edge("b", "e")
        .compile()
        .invoke({"log": []})
    ),
)
tried(
    "uneven",
    lambda: (
        StateGraph(S)
        .add_node("s", w("s"))
        .add_node("a", w("a"))
        .add_node("b", w("b"))
        .add_node("b2", w("b2"))
        .add_node("e", w("e"))
        .add_edge(START, "s")
        .add_edge("s", "a")
        .add_edge("s", "b")
        .add_edge("b", "b2")
        .add_edge("a", "e")
        .add_edge("b2", "e")
        .compile()
        .invoke({"log": []})
    ),
)
tried(
    "uneven defer",
    lambda: (
        StateGraph(S)
        .add_node("s", w("s"))
        .add_node("a", w("a"))
        .add_node("b", w("b"))
        .add_node("b2", w("b2"))
        .add_node("e", w("e"), defer=True)
        .add_edge(START, "s")
        .add_edge("s", "a")
        .add_edge("s", "b")
        .add_edge("b", "b2")
        .add_edge("a", "e")
        .add_edge("b2", "e")
        .compile()
        .invoke({"log": []})
    ),
)
tried(
    "defer loop",
    lambda: (
        StateGraph(S)
        .add_node("a", lambda s: {"n": s["n"] + 1})
        .add_node("d", w("d"), defer=True)
        .add_edge(START, "a")
        .add_conditional_edges("a", lambda s: ["a", "d"] if s["n"] < 3 else "d", ["a", "d"])
        .compile()
        .invoke({"n": 0})
    ),
)
tried(
    "defer sends",
    lambda: (
        StateGraph(S)
        .add_node("w", lambda s: {"log": [s["i"]]})
        .add_node("d", w("d"), defer=True)
        .add_conditional_edges(START, lambda s: [Send("w", {"i": i}) for i in range(3)], ["w"])
        .add_edge("w", "d")
        .compile()
        .invoke({"log": []})
    ),
)
tried(
    "defer two deep",
    lambda: list(
        StateGraph(S)
        .add_node("a", w("a"))
        .add_node("d", w("d"), defer=True)
        .add_node("e", w("e"), defer=True)
        .add_edge(START, "a")
        .add_edge("a", "d")
        .add_edge("a", "e")
        .add_edge("d", "e")
        .compile()
        .stream({"log": []}, stream_mode="values")
    )[-1],
)
tried(
    "join partial",
    lambda: (
        StateGraph(S)
        .add_node("s", w("s"))
        .add_node("a", w("a"))
        .add_node("b", w("b"))
        .add_node("j", w("j"))
        .add_edge(START, "s")
        .add_conditional_edges("s", lambda s: "a", ["a", "b"])
        .add_edge(["a", "b"], "j")
        .compile()
        .invoke({"log": []})
    ),
)
js = (
    StateGraph(S)
    .add_node("a", w("a"))
    .add_node("b", w("b"))
    .add_node("j", w("j"))
    .add_conditional_edges(START, lambda s: s["n"] and "a" or "b", ["a", "b"])
    .add_edge(["a", "b"], "j")
    .compile(InMemorySaver())
)
c = cfg()
tried("join across turns", lambda: [js.invoke({"n": n}, c)["log"] for n in (1, 0, 1, 0)])


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


s = InMemorySaver()
g = seq(("a", w("a")), ("b", w("b")), checkpointer=s)
for t in ("x", "y"):
    g.invoke({"log": [t]}, {"configurable": {"thread_id": t, "user": f"u{t}"}, "metadata": {"run": t}})
X = {"configurable": {"thread_id": "x"}}
tried("list", lambda: sorted((t.config["configurable"]["thread_id"], t.metadata["step"]) for t in s.list(None)))
tried("filter", lambda: sorted(t.metadata["step"] for t in s.list(None, filter={"user": "ux"})))
tried("filter2", lambda: len(list(s.list(None, filter={"run": "y", "source": "loop"}))))
tried("meta", lambda: g.get_state(X).metadata)
tried("hist filter", lambda: [h.metadata["step"] for h in g.get_state_history(X, filter={"step": 1})])
s.delete_thread("y")
tried(
    "deleted",
    lambda: (
        list(s.list({"configurable": {"thread_id": "y"}})),
        g.get_state({"configurable": {"thread_id": "y"}}).values,
        g.get_state({"configurable": {"thread_id": "y"}}).created_at,
    ),
)
tried("again", lambda: g.invoke({"log": ["new"]}, {"configurable": {"thread_id": "y"}}))
first = list(g.get_state_history(X))[-1]
tried(
    "first",
    lambda: (first.values, first.next, first.metadata, first.parent_config, [(t.name, t.result) for t in first.tasks]),
)
tried("ns in config", lambda: g.get_state({"configurable": {"thread_id": "x", "checkpoint_ns": ""}}).values)
tried(
    "created order",
    lambda: (lambda hs: [a.created_at >= b.created_at for a, b in zip(hs, hs[1:])])(list(g.get_state_history(X))),
)
tried(
    "run_id",
    lambda: (
        g.invoke({"log": []}, {"configurable": {"thread_id": "r"}, "run_id": __import__("uuid").UUID(int=5)})
        and g.get_state({"configurable": {"thread_id": "r"}}).metadata
    ),
)
tried(
    "meta kinds",
    lambda: (
        g.invoke(
            {"log": []},
            {
                "configurable": {"thread_id": "mk", "i": 1, "b": True, "f": 1.5, "none": None, "l": [1], "__x": 2},
                "metadata": {"s": "t", "d": {"a": 1}},
            },
        )
        and g.get_state({"configurable": {"thread_id": "mk"}}).metadata
    ),
)
