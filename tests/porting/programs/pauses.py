"""Breakpoints of every kind, and questions in loops and one after another."""

import asyncio
import inspect
import operator
from typing import Annotated

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt
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


def mk(k):
    return lambda s: {"log": [k]}


b = StateGraph(S)
for k in "abcd":
    b.add_node(k, mk(k))
b.add_edge(START, "a").add_edge("a", "b").add_edge("a", "c").add_edge(["b", "c"], "d")
i = 0


def cfg():
    global i
    i += 1
    return {"configurable": {"thread_id": str(i)}}


for before, after in (
    (["b"], None),
    (None, ["a"]),
    (["b", "c"], None),
    (None, ["b"]),
    ("*", None),
    (None, "*"),
    ("*", "*"),
    (["a"], ["d"]),
    ([], []),
):
    g = b.compile(InMemorySaver(), interrupt_before=before, interrupt_after=after)
    c = cfg()
    r = g.invoke({"log": []}, c)
    out = [(r, g.get_state(c).next)]
    while g.get_state(c).next and len(out) < 9:
        r = g.invoke(None, c)
        out.append((r, g.get_state(c).next))
    print(before, after, out)
    c = cfg()
g = b.compile(InMemorySaver())
tried("values", lambda: list(g.stream({"log": []}, cfg(), stream_mode="values", interrupt_before=["d"])))
tried("v2", lambda: g.invoke({"log": []}, cfg(), version="v2", interrupt_before=["d"]))
tried("no saver", lambda: b.compile(interrupt_before=["b"]).invoke({"log": []}))
g = b.compile(InMemorySaver(), interrupt_before=["b"])
c = cfg()
g.invoke({"log": []}, c)
tried("update then go", lambda: g.update_state(c, {"log": ["u"]}) and g.invoke(None, c))
c = cfg()
g.invoke({"log": []}, c)
tried(
    "update as b", lambda: g.update_state(c, {"log": ["u"]}, as_node="b") and (g.get_state(c).next, g.invoke(None, c))
)
c = cfg()
g.invoke({"log": []}, c)
tried("new input", lambda: g.invoke({"log": ["again"]}, c))
tried("command goto", lambda: g.invoke(Command(goto="d"), c))
tried("tasks", lambda: [(t.name, t.interrupts, t.error) for t in g.get_state(c).tasks])
l = (
    StateGraph(S)
    .add_node("a", lambda s: {"n": s.get("n", 0) + 1})
    .add_conditional_edges("a", lambda s: "a" if s["n"] < 3 else END)
    .add_edge(START, "a")
    .compile(InMemorySaver(), interrupt_before=["a"])
)
c = cfg()
tried("loop", lambda: [l.invoke({"n": 0}, c)] + [l.invoke(None, c) for _ in range(4)])


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


a = (
    StateGraph(S)
    .add_node("ask", lambda s: {"log": [interrupt({"q": "name?", "n": len(s["log"])})]})
    .add_edge(START, "ask")
    .add_conditional_edges("ask", lambda s: "ask" if s["log"][-1] != "stop" else END)
    .compile(InMemorySaver())
)
c = cfg()
r = a.invoke({"log": []}, c)
i = r["__interrupt__"][0]
print(type(i).__name__, i.value, isinstance(i.id, str), len(i.id), type(r["__interrupt__"]).__name__)
ids = {i.id}
for v in ("x", "y", "stop"):
    r = a.invoke(Command(resume=v), c)
    print(V(r))
    for j in r.get("__interrupt__", []):
        ids.add(j.id)
print(len(ids))
st = a.get_state(c)
print(st.interrupts, st.tasks, st.next)
tried(
    "resume by id map",
    lambda: (
        lambda c2: (lambda r: V(a.invoke(Command(resume={r["__interrupt__"][0].id: "stop"}), c2)))(
            a.invoke({"log": []}, c2)
        )
    )(cfg()),
)


def multi(s):
    return {"log": [interrupt("a"), interrupt("b"), interrupt("c")]}


m = StateGraph(S).add_node("m", multi).add_edge(START, "m").compile(InMemorySaver())
c = cfg()
m.invoke({"log": []}, c)
for v in (1, 2, 3):
    tried(v, lambda: V(m.invoke(Command(resume=v), c)))


def deep(s):
    def helper(q):
        return interrupt(q)

    return {"log": [helper("h1") + helper("h2")]}


d = StateGraph(S).add_node("d", deep).add_edge(START, "d").compile(InMemorySaver())
c = cfg()
d.invoke({"log": []}, c)
d.invoke(Command(resume="A"), c)
tried("deep", lambda: d.invoke(Command(resume="B"), c))


def tryx(s):
    try:
        v = interrupt("q")
    finally:
        print("finally")
    return {"log": [v]}


t = StateGraph(S).add_node("t", tryx).add_edge(START, "t").compile(InMemorySaver())
c = cfg()
tried("finally", lambda: V(t.invoke({"log": []}, c)))
tried("finally", lambda: V(t.invoke(Command(resume=1), c)))
tried(
    "value kinds",
    lambda: [
        V(
            StateGraph(S)
            .add_node("k", lambda s: {"log": [interrupt(v)]})
            .add_edge(START, "k")
            .compile(InMemorySaver())
            .invoke({"log": []}, cfg())
        )
        for v in (None, 0, "", [1], {"a": {"b": 1}}, (1, 2))
    ],
)
tried(
    "with update",
    lambda: (lambda c: (t.invoke({"log": []}, c), t.invoke(Command(resume="R", update={"n": 7, "log": ["U"]}), c)))(
        cfg()
    ),
)
tried(
    "with goto",
    lambda: (lambda g, c: (V(g.invoke({"log": []}, c)), g.invoke(Command(resume="R", goto="z"), c)))(
        StateGraph(S).add_node("t", tryx).add_node("z", w("z")).add_edge(START, "t").compile(InMemorySaver()), cfg()
    ),
)
