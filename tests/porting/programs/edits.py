"""Edits of threads, as every node, and commands at points that are past."""

import asyncio
import inspect
import operator
from typing import Annotated

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, Send, StateUpdate, interrupt
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


saver = InMemorySaver()
b = StateGraph(S)
for k in "abcd":
    b.add_node(k, mk(k))
b.add_edge(START, "a").add_edge("a", "b").add_conditional_edges(
    "b", lambda s: "d" if s.get("n") == 4 else "c", ["c", "d"]
)
g = b.compile(saver)
i = 0


def cfg():
    global i
    i += 1
    return {"configurable": {"thread_id": str(i)}}


def st(c):
    s = g.get_state(c)
    return s.values, s.next, s.metadata["source"], s.metadata["step"], [(t.name, t.result, t.error) for t in s.tasks]


def at_b():
    c = cfg()
    g.invoke({"log": ["in"]}, c, interrupt_before=["b"])
    return c
    c = at_b()
    tried(
        ("as", who),
        lambda: sorted(g.update_state(c, {"log": ["u"]}, **({"as_node": who} if who else {}))["configurable"]),
    )
    tried(("st", who), lambda: st(c))
    tried(("go", who), lambda: g.invoke(None, c))
    c = at_b()
    tried(("vals", vals), lambda: sorted(g.update_state(c, vals, as_node="b")["configurable"]))
    tried("st", lambda: st(c))


for who in (None, "a", "b", END, START):
    c = at_b()
    tried(("none as", who), lambda: sorted(g.update_state(c, None, as_node=who)["configurable"]))
    tried("st", lambda: st(c))
    tried("go", lambda: g.invoke(None, c))
for who in (None, "a", "b", START, END, "__copy__", "__input__"):
    c = cfg()
    tried(("fresh", who), lambda: sorted(g.update_state(c, {"log": ["u"]}, as_node=who)["configurable"]))
    tried("st", lambda: st(c))
    tried("go", lambda: g.invoke(None, c))
c = cfg()
g.invoke({"log": ["in"]}, c)
tried("after end", lambda: sorted(g.update_state(c, {"log": ["u"]})["configurable"]))
tried("st", lambda: st(c))
tried("go", lambda: g.invoke(None, c))
tried("after end as a", lambda: g.update_state(c, {"log": ["u"]}, as_node="a") and st(c))
tried("go", lambda: g.invoke(None, c))
tried("after end as END", lambda: g.update_state(c, None, as_node=END) and st(c))
tried(
    "bulk",
    lambda: (
        g.bulk_update_state(cfg(), [[StateUpdate({"log": ["1"]}, "a")], [StateUpdate({"log": ["2"]}, "b")]])
        and st({"configurable": {"thread_id": str(i)}})
    ),
)
tried(
    "hist",
    lambda: [
        (s.metadata["source"], s.metadata["step"], s.next, s.values, [(t.name, t.result) for t in s.tasks])
        for s in g.get_state_history({"configurable": {"thread_id": str(i)}})
    ],
)
tried(
    "bulk par",
    lambda: (
        g.bulk_update_state(cfg(), [[StateUpdate({"log": ["1"]}, "a"), StateUpdate({"log": ["2"]}, "b")]])
        and st({"configurable": {"thread_id": str(i)}})
    ),
)
tried(
    "bulk input",
    lambda: (
        g.bulk_update_state(cfg(), [[StateUpdate({"log": ["1"]}, "__input__")], [StateUpdate({"log": ["2"]}, "a")]])
        and st({"configurable": {"thread_id": str(i)}})
    ),
)
tried("repr", lambda: StateUpdate({"log": 1}, "a"))
tried("copy", lambda: g.bulk_update_state(c, [[StateUpdate(None, "__copy__")]]) and st(c))
tried("task_id", lambda: StateUpdate({"log": 1}, "a", "tid"))


class S(TypedDict, total=False):
    log: Annotated[list, operator.add]
    n: int


def w(k):
    return lambda s: {"log": [k]}


def tell(b, c={"configurable": {"thread_id": "1"}}, inp={"log": []}):
    g = b.compile(InMemorySaver())
    g.invoke(inp, c)
    n0 = g.get_state(c).next
    g.update_state(c, {"log": ["U"]})
    s = g.get_state(c)
    return n0, s.next, s.values, [(t.name, t.path) for t in s.tasks], g.invoke(None, c)


def fan(s):
    return [Send("w", {"n": i}) for i in range(2)]


tried(
    "sends then j",
    lambda: tell(
        StateGraph(S)
        .add_node("o", w("o"))
        .add_node("w", w("w"))
        .add_node("j", w("j"))
        .add_edge(START, "o")
        .add_conditional_edges("o", fan, ["w"])
        .add_edge("w", "j")
    ),
)
tried(
    "send + pull",
    lambda: tell(
        StateGraph(S)
        .add_node("o", w("o"))
        .add_node("w", w("w"))
        .add_node("p", w("p"))
        .add_edge(START, "o")
        .add_conditional_edges("o", lambda s: [*fan(s), "p"], ["w", "p"])
    ),
)
tried(
    "parallel",
    lambda: tell(StateGraph(S).add_node("a", w("a")).add_node("b", w("b")).add_edge(START, "a").add_edge(START, "b")),
)
tried(
    "parallel join",
    lambda: tell(
        StateGraph(S)
        .add_node("a", w("a"))
        .add_node("b", w("b"))
        .add_node("j", w("j"))
        .add_edge(START, "a")
        .add_edge(START, "b")
        .add_edge(["a", "b"], "j")
    ),
)
tried(
    "waiting send",
    lambda: tell(
        StateGraph(S)
        .add_node("o", w("o"))
        .add_node("w", lambda s: {"log": [interrupt("q")]})
        .add_edge(START, "o")
        .add_conditional_edges("o", lambda s: [Send("w", 1)], ["w"])
    ),
)
tried(
    "goto send",
    lambda: tell(
        StateGraph(S).add_node("o", lambda s: Command(goto=[Send("w", 1)])).add_node("w", w("w")).add_edge(START, "o")
    ),
)
tried(
    "two turns",
    lambda: (
        lambda b, s: (
            b.compile(s).invoke({"log": []}, {"configurable": {"thread_id": "2"}}),
            b.compile(s).invoke({"log": []}, {"configurable": {"thread_id": "2"}}),
            sorted(b.compile(s).update_state({"configurable": {"thread_id": "2"}}, {"log": ["x"]})["configurable"]),
            b.compile(s).get_state({"configurable": {"thread_id": "2"}}).next,
        )
    )(StateGraph(S).add_sequence([("a", w("a")), ("b", w("b"))]).add_edge(START, "a"), InMemorySaver()),
)


class S(TypedDict, total=False):
    log: Annotated[list, operator.add]
    n: int


def mk(k):
    return lambda s: {"log": [k], "n": s.get("n", 0) + 1}


b = StateGraph(S).add_sequence([("a", mk("a")), ("b", mk("b")), ("c", mk("c"))]).add_edge(START, "a")


def at(*nexts):
    g = b.compile(InMemorySaver())
    c = {"configurable": {"thread_id": "1"}}
    g.invoke({"n": 0, "log": []}, c)
    return g, c, [s for s in g.get_state_history(c) if s.next == nexts][0].config


for nxt in ((), ("c",), ("b",), ("a",)):
    for cmd in (
        Command(update={"n": 50}),
        Command(goto="c"),
        Command(update={"n": 50}, goto="c"),
        Command(update={"n": 50}, goto="a"),
    ):
        g, c, conf = at(*nxt)
        tried((nxt, cmd), lambda: g.invoke(cmd, conf))
