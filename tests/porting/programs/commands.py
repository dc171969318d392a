"""Commands from nodes, tuples and lists in them, and what streams show of it."""

import asyncio
import inspect
import operator
from dataclasses import dataclass
from typing import Annotated, Literal

from langgraph.config import get_stream_writer
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, Overwrite, Send, StreamWriter
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


def two(first, **second):
    b = StateGraph(S).add_node("a", first)
    for k, v in second.items():
        b.add_node(k, v)
    return b.add_edge(START, "a").compile()


L = lambda name: lambda s: {"log": [name]}
tried("goto str", lambda: two(lambda s: Command(goto="b"), b=L("b")).invoke({"log": []}))
tried("goto list", lambda: two(lambda s: Command(goto=["b", "c"]), b=L("b"), c=L("c")).invoke({"log": []}))
tried("goto tuple", lambda: two(lambda s: Command(goto=("b", "c")), b=L("b"), c=L("c")).invoke({"log": []}))
tried("goto send", lambda: two(lambda s: Command(goto=Send("b", {"x": 1})), b=L("b")).invoke({"log": []}))
tried("goto dup", lambda: two(lambda s: Command(goto=["b", "b"]), b=L("b")).invoke({"log": []}))
tried("goto empty", lambda: two(lambda s: Command(goto=[]), b=L("b")).invoke({"log": []}))
tried(
    "list cmds",
    lambda: two(
        lambda s: [Command(update={"log": [1]}, goto="b"), Command(update={"log": [2]}, goto="c")], b=L("b"), c=L("c")
    ).invoke({"log": []}),
)
tried("list cmd+dict", lambda: two(lambda s: [Command(goto="b"), {"log": [5]}], b=L("b")).invoke({"log": []}))
tried(
    "tuple cmds",
    lambda: two(lambda s: (Command(update={"log": [1]}), Command(update={"log": [2]}))).invoke({"log": []}),
)
tried("upd tuples", lambda: two(lambda s: Command(update=[("log", [1]), ("log", [2]), ("n", 3)])).invoke({"log": []}))
tried("upd tuple of tuples", lambda: two(lambda s: Command(update=(("log", [1]), ("log", [2])))).invoke({"log": []}))
tried("upd none", lambda: two(lambda s: Command(update=None)).invoke({"log": []}))
tried("empty cmd", lambda: two(lambda s: Command()).invoke({"log": []}))
tried("unknown key", lambda: two(lambda s: Command(update={"zz": 1})).invoke({"log": []}))


@dataclass
class U:
    log: list
    n: int = 4


class PU(BaseModel):
    log: list = []
    n: int = 4
    o: int | None = None


tried("upd pydantic", lambda: two(lambda s: Command(update=PU(log=[9], n=2))).invoke({"log": []}))
tried("ret dataclass", lambda: two(lambda s: U([9], n=3)).invoke({"log": []}))
tried("ret pydantic", lambda: two(lambda s: PU(log=[9], n=1)).invoke({"log": []}))
tried("resume from node", lambda: two(lambda s: Command(resume="x")).invoke({"log": []}))
tried("overwrite", lambda: two(lambda s: Command(update={"log": Overwrite(["z"])})).invoke({"log": [1]}))
tried(
    "goto self",
    lambda: two(lambda s: Command(update={"n": s.get("n", 0) + 1}, goto="a" if s.get("n", 0) < 3 else END)).invoke(
        {"log": [1]}
    ),
)
tried(
    "repr",
    lambda: (
        Command(update={"a": 1}),
        Command(goto="b"),
        Command(resume=3),
        Command(graph=Command.PARENT, goto=[Send("a", 1)]),
        Command(),
    ),
)
tried(
    "eq",
    lambda: (
        Command(goto="a") == Command(goto="a"),
        Send("a", 1) == Send("a", 1),
        hash(Send("a", 1)) == hash(Send("a", 1)),
        repr(Send("a", {"x": 1})),
    ),
)
tried("send tuple", lambda: [Send(node="a", arg=1).node, Send("a", 2).arg])
tried("frozen", lambda: setattr(Command(), "goto", "x"))
tried(
    "stream",
    lambda: list(
        two(lambda s: [Command(update={"log": [1]}, goto="b"), Command(update={"log": [2]})], b=L("b")).stream(
            {"log": []}
        )
    ),
)
tried("stream2", lambda: list(two(lambda s: Command(goto="b"), b=L("b")).stream({"log": []})))
tried("stream3", lambda: list(two(lambda s: Command(update=[("log", [1]), ("log", [2])])).stream({"log": []})))


def ann(s) -> Command[Literal["b", "__end__"]]:
    return Command(goto="b")


g = (
    StateGraph(S)
    .add_node("a", lambda s: Command(goto="b"), destinations=("b", END))
    .add_node("b", L("b"))
    .add_edge(START, "a")
    .compile()
)
g = (
    StateGraph(S)
    .add_node("a", lambda s: Command(goto="b"), destinations={"b": "yes", END: "no"})
    .add_node("b", L("b"))
    .add_edge(START, "a")
    .compile()
)


def ann2(s) -> Command[Literal["zz"]]:
    return Command(goto="b")


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


tried(
    "updates tuples",
    lambda: list(
        seq(("a", lambda s: Command(update=[("log", [1]), ("n", 2), ("log", [3])]))).stream(
            {"log": []}, stream_mode=["updates", "values", "tasks"]
        )
    ),
)
tried("none cmd", lambda: list(seq(("a", lambda s: Command()), ("b", w("b"))).stream({"log": []})))
tried("cmd unknown", lambda: list(seq(("a", lambda s: Command(update={"zz": 1}))).stream({"log": []})))
tried("dict unknown", lambda: list(seq(("a", lambda s: {"zz": 1})).stream({"log": []})))
tried(
    "mixed unknown",
    lambda: list(
        seq(("a", lambda s: {"zz": 1, "n": 2})).stream({"log": []}, stream_mode=["updates", "tasks", "values"])
    ),
)
tried(
    "empty dict", lambda: list(seq(("a", lambda s: {})).stream({"log": []}, stream_mode=["updates", "tasks", "values"]))
)
tried(
    "cmd list upd",
    lambda: list(
        seq(("a", lambda s: [Command(update={"log": [1]}), {"log": [2]}])).stream(
            {"log": []}, stream_mode=["updates", "tasks", "values"]
        )
    ),
)
tried("values none written", lambda: list(seq(("a", lambda s: None)).stream({"n": 1}, stream_mode="values")))
tried("values same", lambda: list(seq(("a", lambda s: {"n": 1})).stream({"n": 1}, stream_mode="values")))
tried("single mode list", lambda: list(seq(("a", w("a"))).stream({"log": []}, stream_mode=["values"])))
tried(
    "custom mix",
    lambda: list(
        seq(
            ("a", lambda s: get_stream_writer()("c") or {"log": ["a"]}), ("b", lambda s: get_stream_writer()({"k": 1}))
        ).stream({"log": []}, stream_mode=["custom", "updates"])
    ),
)
tried("custom invoke", lambda: seq(("a", lambda s: get_stream_writer()("c") or {"log": ["a"]})).invoke({"log": []}))


def gen(s, writer: StreamWriter):
    for i in range(3):
        writer({"i": i})
    return {"n": 3}


tried("writer", lambda: list(seq(("g", gen)).stream({"log": []}, stream_mode="custom")))
tried("next", lambda: next(iter(seq(("g", gen)).stream({"log": []}, stream_mode="custom"))))
tried("enumerate", lambda: [(i, list(c)) for i, c in enumerate(seq(("a", w("a")), ("b", w("b"))).stream({"log": []}))])
tried("lazy", lambda: seq(("a", lambda s: print("ran"))).stream({"log": []}) and "not run")
