"""Subgraphs: their state by hand, failures and repairs, contexts and limits."""

import asyncio
import inspect
import operator
from dataclasses import dataclass
from typing import Annotated

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint, task
from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime
from langgraph.types import Command, RetryPolicy, interrupt
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


sub = (
    StateGraph(S)
    .add_node("p", w("p"))
    .add_node("q", lambda s: {"log": [interrupt("q")]})
    .add_node("r", w("r"))
    .add_sequence
    if False
    else None
)
b = (
    StateGraph(S)
    .add_node("p", w("p"))
    .add_node("q", lambda s: {"log": [interrupt("q")]})
    .add_node("r", w("r"))
    .add_edge(START, "p")
    .add_edge("p", "q")
    .add_edge("q", "r")
)
g = (
    StateGraph(S)
    .add_node("sub", b.compile())
    .add_node("z", w("z"))
    .add_edge(START, "sub")
    .add_edge("sub", "z")
    .compile(InMemorySaver())
)
c = cfg()
g.invoke({"log": []}, c)
sc = g.get_state(c).tasks[0].state
print(sorted(sc["configurable"]))
tried(
    "sub state",
    lambda: (lambda s: (s.values, s.next, s.metadata["step"], sorted(s.metadata["parents"])))(g.get_state(sc)),
)
tried("sub hist", lambda: [(s.next, s.values, s.metadata["source"]) for s in g.get_state_history(sc)])
tried("sub hist limit", lambda: [s.next for s in g.get_state_history(sc, limit=1)])
tried("sub update", lambda: sorted(g.update_state(sc, {"log": ["E"]}, as_node="p")["configurable"]))
tried("after", lambda: (g.get_state(sc).values, g.get_state(sc).next, g.get_state(c).next))
tried("go", lambda: V(g.invoke(None, c)))
tried("resume", lambda: V(g.invoke(Command(resume="A"), c)))
c = cfg()
g.invoke({"log": []}, c)
sc = g.get_state(c).tasks[0].state
tried("skip", lambda: g.update_state(sc, {"log": ["skip"]}, as_node="q") and V(g.invoke(None, c)))
c = cfg()
g.invoke({"log": []}, c)
sc = g.get_state(c).tasks[0].state
tried("end sub", lambda: g.update_state(sc, None, as_node=END) and V(g.invoke(None, c)))
c = cfg()
g.invoke({"log": []}, c)
tried("parent update", lambda: g.update_state(c, {"log": ["par"]}) and (g.get_state(c).next, V(g.invoke(None, c))))
c = cfg()
g.invoke({"log": []}, c)
tried(
    "as sub",
    lambda: g.update_state(c, {"log": ["assub"]}, as_node="sub") and (g.get_state(c).next, V(g.invoke(None, c))),
)
tried("unknown ns", lambda: g.get_state({"configurable": {"thread_id": "1", "checkpoint_ns": "nope:1"}}))
c = cfg()
g.invoke({"log": []}, c)
g.invoke(Command(resume="x"), c)
h = [s for s in g.get_state_history(c) if s.next == ("sub",)][0]
tried("task result", lambda: [(t.name, t.result) for t in h.tasks])
tried("replay", lambda: V(g.invoke(None, h.config)))


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


ran = []
flag = {"bad": True}


def inner_a(s):
    ran.append("ia")
    return {"log": ["ia"]}


def inner_b(s):
    ran.append("ib")
    if flag["bad"]:
        raise ValueError("inner")
    return {"log": ["ib"]}


sub = StateGraph(S).add_node("ia", inner_a).add_node("ib", inner_b).add_edge(START, "ia").add_edge("ia", "ib").compile()
for kind, node in (("node", sub), ("fn", lambda s: {"log": sub.invoke({"log": []})["log"]})):
    flag["bad"] = True
    ran.clear()
    g = (
        StateGraph(S)
        .add_node("pre", lambda s: ran.append("pre") or {"log": ["pre"]})
        .add_node("sub", node)
        .add_node("post", w("post"))
        .add_edge(START, "pre")
        .add_edge("pre", "sub")
        .add_edge("sub", "post")
        .compile(InMemorySaver())
    )
    c = cfg()
    tried(kind, lambda: g.invoke({"log": []}, c))
    print(ran)
    st = g.get_state(c, subgraphs=True)
    print(
        st.next,
        st.tasks[0].error,
        type(st.tasks[0].state).__name__,
        st.tasks[0].state.next if hasattr(st.tasks[0].state, "next") else None,
    )
    flag["bad"] = False
    tried("resume", lambda: g.invoke(None, c))
    print(ran)
flag["bad"] = True
ran.clear()
g = (
    StateGraph(S)
    .add_node(
        "sub", sub, retry_policy=RetryPolicy(max_attempts=2, initial_interval=0.001, jitter=False, retry_on=ValueError)
    )
    .add_edge(START, "sub")
    .compile()
)
tried("retry", lambda: g.invoke({"log": []}))
print(ran.count("ib"))
h = StateGraph(S).add_node("sub", sub, error_handler=lambda s: {"log": ["handled"]}).add_edge(START, "sub").compile()
tried("handler", lambda: h.invoke({"log": []}))


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


deep = (
    StateGraph(S)
    .add_node("d", lambda s: {"n": s["n"] + 1})
    .add_edge(START, "d")
    .add_conditional_edges("d", lambda s: "d" if s["n"] < 6 else END)
    .compile()
)
top = StateGraph(S).add_node("deep", deep).add_edge(START, "deep").compile()
tried("ok", lambda: top.invoke({"n": 0}))
tried("limit", lambda: top.invoke({"n": 0}, {"recursion_limit": 4}))
tried(
    "own limit",
    lambda: (
        StateGraph(S)
        .add_node("deep", deep.with_config(recursion_limit=3))
        .add_edge(START, "deep")
        .compile()
        .invoke({"n": 0})
    ),
)


@dataclass
class C:
    who: str = "me"


def who(s, runtime: Runtime[C]):
    return {"log": [runtime.context.who if runtime.context else None]}


child = StateGraph(S, context_schema=C).add_node("who", who).add_edge(START, "who").compile()
par = StateGraph(S, context_schema=C).add_node("c", child).add_edge(START, "c").compile()
tried("ctx", lambda: par.invoke({"log": []}, context=C("x")))
tried("ctx dict", lambda: par.invoke({"log": []}, context={"who": "d"}))
tried("ctx none", lambda: par.invoke({"log": []}))
tried(
    "fn ctx",
    lambda: (
        StateGraph(S, context_schema=C)
        .add_node("c", lambda s: child.invoke({"log": []}))
        .add_edge(START, "c")
        .compile()
        .invoke({"log": []}, context=C("f"))
    ),
)
tried(
    "fn own ctx",
    lambda: (
        StateGraph(S, context_schema=C)
        .add_node("c", lambda s: child.invoke({"log": []}, context=C("own")))
        .add_edge(START, "c")
        .compile()
        .invoke({"log": []}, context=C("f"))
    ),
)
tried("stream ctx", lambda: list(par.stream({"log": []}, context=C("s"))))
tried("batch ctx", lambda: [r["log"] for r in par.batch([{"log": []}, {"log": []}], context=C("b"))])


def rt(s, runtime: Runtime):
    return {"log": [runtime.context, runtime.store, callable(runtime.stream_writer), runtime.previous]}


tried("rt", lambda: seq(("r", rt)).invoke({"log": []}))


def wr(s, runtime: Runtime):
    runtime.stream_writer("via runtime")
    return {}


tried("rt writer", lambda: list(seq(("r", wr)).stream({"log": []}, stream_mode="custom")))


@task
def tctx(x, runtime: Runtime[C]):
    return runtime.context.who + x


tried("task ctx", lambda: entrypoint(context_schema=C)(lambda x: tctx(x).result()).invoke("!", context=C("t")))


def info(s, runtime: Runtime):
    i = runtime.execution_info
    return {"log": [i.thread_id is not None, i.node_attempt, i.checkpoint_ns.split(":")[0], i.run_id]}


tried("info", lambda: seq(("i", info), checkpointer=InMemorySaver()).invoke({"log": []}, cfg()))
