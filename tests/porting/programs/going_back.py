"""Replays, forks, input and commands at every point of a history."""

import asyncio
import inspect
import operator
from typing import Annotated

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
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


ran = []


def mk(k):
    def f(s):
        ran.append(k)
        return {"log": [k], "n": s.get("n", 0) + 1}

    return f


b = StateGraph(S).add_sequence([("a", mk("a")), ("b", mk("b")), ("c", mk("c"))]).add_edge(START, "a")


def fresh(t):
    g = b.compile(InMemorySaver())
    c = {"configurable": {"thread_id": t}}
    g.invoke({"log": ["in"]}, c)
    ran.clear()
    return g, c, list(g.get_state_history(c))


def trail(g, c):
    return [
        (s.metadata["source"], s.metadata["step"], s.next, s.values.get("log"), s.values.get("n"))
        for s in g.get_state_history(c)
    ]


for i in range(5):
    g, c, h = fresh(str(i))
    tried(("replay", i, h[i].next), lambda: g.invoke(None, h[i].config))
    print(sorted(ran), trail(g, c)[:3], len(trail(g, c)))
for i in range(5):
    g, c, h = fresh(str(i))
    nc = g.update_state(h[i].config, {"log": ["E"]})
    tried(("edit", i, h[i].next), lambda: g.invoke(None, nc))
    print(sorted(ran), trail(g, c)[:4], len(trail(g, c)))
for i in (0, 2, 3):
    g, c, h = fresh(str(i))
    nc = g.update_state(h[i].config, {"log": ["E"]}, as_node="a")
    tried(("edit as a", i), lambda: g.invoke(None, nc))
    print(sorted(ran), [s.parent_config == h[i].config for s in g.get_state_history(c)][:4])
for i in (1, 2):
    g, c, h = fresh(str(i))
    tried(("stream from", i), lambda: list(g.stream(None, h[i].config)))
    tried(("input at", i), lambda: g.invoke({"log": ["new"]}, h[i].config))
    print(sorted(ran), trail(g, c)[:4])
    tried(("cmd at", i), lambda: g.invoke(Command(update={"log": ["cmd"]}, goto="c"), h[i].config))
    print(sorted(ran))


def ask(s):
    ran.append("ask")
    return {"log": [interrupt("q")]}


q = (
    StateGraph(S)
    .add_node("a", mk("a"))
    .add_node("ask", ask)
    .add_node("z", mk("z"))
    .add_edge(START, "a")
    .add_edge("a", "ask")
    .add_edge("ask", "z")
    .compile(InMemorySaver())
)
c = {"configurable": {"thread_id": "q"}}
q.invoke({"log": []}, c)
q.invoke(Command(resume="one"), c)
h = list(q.get_state_history(c))
ran.clear()
at = [s for s in h if s.next == ("ask",)][0]
tried("interrupts in hist", lambda: [[x.value for x in s.interrupts] for s in h])
tried("task results in hist", lambda: [[(t.name, t.result) for t in s.tasks] for s in h])
tried("replay ask", lambda: sorted(q.invoke(None, at.config)))
print(sorted(ran))
tried("answer old", lambda: q.invoke(Command(resume="two"), c))
tried("final", lambda: q.get_state(c).values)
ran.clear()
before = [s for s in h if s.next == ("a",)][0]
tried("replay a", lambda: sorted(q.invoke(None, before.config)))
print(sorted(ran))
tried("resume", lambda: q.invoke(Command(resume="three"), c))
print(sorted(ran))
tried(
    "same ts order",
    lambda: (lambda l: l == sorted(l, reverse=True))(
        [s.config["configurable"]["checkpoint_id"] for s in q.get_state_history(c)]
    ),
)
tried("parent chain", lambda: all(x.parent_config == y.config for x, y in zip(h, h[1:])))
tried("created", lambda: [s.created_at > t.created_at for s, t in zip(h, h[1:])])
