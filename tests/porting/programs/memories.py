"""Stores: filters, namespaces, in nodes and routers; caches and retries."""

import asyncio
import inspect
import operator
from typing import Annotated

from langgraph.cache.memory import InMemoryCache
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.config import get_store
from langgraph.graph import START, StateGraph
from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore
from langgraph.store.sqlite import SqliteStore
from langgraph.types import CachePolicy, RetryPolicy, StreamWriter
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


store = InMemoryStore()


def mem(s, config, *, store: BaseStore):
    ns = ("mem", config["configurable"]["user"])
    store.put(ns, f"k{len(store.search(ns))}", {"n": s["n"]})
    return {"log": [sorted(i.value["n"] for i in store.search(ns))]}


g = StateGraph(S).add_node(mem).add_edge(START, "mem").compile(InMemorySaver(), store=store)
tried("u1", lambda: [g.invoke({"n": i}, cfg(user="u1"))["log"] for i in range(3)])
tried("u2", lambda: g.invoke({"n": 9}, cfg(user="u2"))["log"])
tried("ns", lambda: store.list_namespaces())


async def amem(s, runtime: Runtime):
    await runtime.store.aput(("a",), "k", {"v": 1})
    return {"log": [(await runtime.store.aget(("a",), "k")).value]}


tried("async", lambda: StateGraph(S).add_node("m", amem).add_edge(START, "m").compile(store=store).ainvoke({}))
tried("get_store", lambda: seq(("a", lambda s: {"log": [get_store() is store]}), store=store).invoke({}))


def inner(s, *, store):
    return {"log": [store is not None]}


sub = StateGraph(S).add_node("i", inner).add_edge(START, "i").compile()
tried(
    "child inherits",
    lambda: StateGraph(S).add_node("sub", sub).add_edge(START, "sub").compile(store=store).invoke({"log": []}),
)
tried(
    "no store",
    lambda: StateGraph(S).add_node("i", lambda s, store: {"log": [store]}).add_edge(START, "i").compile().invoke({}),
)
tried(
    "required",
    lambda: StateGraph(S).add_node("i", lambda s, *, store: {"log": [store]}).add_edge(START, "i").compile().invoke({}),
)


def typed(s, *, store: BaseStore):
    return {"log": [store]}


tried("typed none", lambda: StateGraph(S).add_node("i", typed).add_edge(START, "i").compile().invoke({}))
tried(
    "router store",
    lambda: (
        StateGraph(S)
        .add_node("i", w("i"))
        .add_conditional_edges(START, lambda s, store: print(store is not None) or "i")
        .compile(store=store)
        .invoke({})
    ),
)
tried(
    "router config",
    lambda: (
        StateGraph(S)
        .add_node("i", w("i"))
        .add_conditional_edges(START, lambda s, config: print(config["configurable"]["user"]) or "i")
        .compile()
        .invoke({}, cfg(user="z"))
    ),
)


def rrouter(s, runtime: Runtime):
    print(runtime.context)
    return "i"


tried(
    "router runtime",
    lambda: (
        StateGraph(S, context_schema=dict)
        .add_node("i", w("i"))
        .add_conditional_edges(START, rrouter)
        .compile()
        .invoke({}, context={"a": 1})
    ),
)


def wr(s, writer: StreamWriter):
    writer("from router")
    return "i"


tried(
    "router writer",
    lambda: list(
        StateGraph(S)
        .add_node("i", w("i"))
        .add_conditional_edges(START, wr)
        .compile()
        .stream({}, stream_mode=["custom", "updates"])
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


calls = []


def n(s):
    calls.append(1)
    return {"log": ["n"]}


g = (
    StateGraph(S)
    .add_node("n", n, cache_policy=CachePolicy())
    .add_edge(START, "n")
    .compile(InMemorySaver(), cache=InMemoryCache())
)
tried("thread1", lambda: g.invoke({"n": 1}, cfg()))
tried("thread2", lambda: g.invoke({"n": 1}, cfg()))
print(len(calls))
tried("stream cached", lambda: list(g.stream({"n": 1}, cfg())))
tried("stream values", lambda: list(g.stream({"n": 1}, cfg(), stream_mode=["updates", "values"])))
tried("different", lambda: g.invoke({"n": 2}, cfg()))
print(len(calls))
tried("clear", lambda: g.clear_cache())
tried("after", lambda: g.invoke({"n": 1}, cfg()))
print(len(calls))
tried("clear nodes", lambda: g.clear_cache(nodes=["n"]))
calls.clear()
t = {"k": 0}


def flaky(s):
    t["k"] += 1
    if t["k"] < 3:
        raise ConnectionError("no")
    return {"log": [t["k"]]}


tried(
    "retry",
    lambda: (
        StateGraph(S)
        .add_node("f", flaky, retry_policy=RetryPolicy(initial_interval=0.001, jitter=False))
        .add_edge(START, "f")
        .compile()
        .invoke({})
    ),
)
t["k"] = 0
tried("no retry", lambda: StateGraph(S).add_node("f", flaky).add_edge(START, "f").compile().invoke({}))
t["k"] = 0
tried(
    "default retry",
    lambda: (
        StateGraph(S)
        .set_node_defaults(retry_policy=RetryPolicy(initial_interval=0.001, jitter=False))
        .add_node("f", flaky)
        .add_edge(START, "f")
        .compile()
        .invoke({})
    ),
)
t["k"] = 0
tried(
    "retry with writes",
    lambda: list(
        StateGraph(S)
        .add_node(
            "f",
            lambda s, writer: writer("try") or flaky(s),
            retry_policy=RetryPolicy(initial_interval=0.001, jitter=False),
        )
        .add_edge(START, "f")
        .compile()
        .stream({}, stream_mode=["custom", "updates"])
    ),
)
t["k"] = 0


async def aflaky(s):
    return flaky(s)


tried(
    "async retry",
    lambda: (
        StateGraph(S)
        .add_node("f", aflaky, retry_policy=RetryPolicy(initial_interval=0.001, jitter=False))
        .add_edge(START, "f")
        .compile()
        .ainvoke({})
    ),
)
tried("policies", lambda: [RetryPolicy(max_attempts=k).max_attempts for k in (1, 2)])


def h(s, error: "NodeError"):
    return {"log": [error.node]}


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


for make in (lambda: InMemoryStore(), lambda: SqliteStore.from_conn_string(":memory:")):
    m = make()
    s = m.__enter__() if hasattr(m, "__enter__") else m
    if hasattr(s, "setup"):
        s.setup()
    s.put(("a", "b"), "k1", {"x": 1, "y": {"z": "q"}, "l": [1, 2], "b": True, "n": None, "f": 1.5})
    s.put(("a", "c"), "k2", {"x": 2})
    s.put(("a",), "k3", {"x": "str"})
    tried("get", lambda: s.get(("a", "b"), "k1").value)
    for f in (
        {"x": 1},
        {"b": True},
        {"n": None},
        {"f": 1.5},
        {"x": {"$ne": 1}},
        {"l": [1, 2]},
        {"missing": None},
        {"x": {"$eq": 2}},
    ):
        tried(f, lambda: sorted(i.key for i in s.search(("a",), filter=f)))
    tried(
        "ns",
        lambda: (
            s.list_namespaces(),
            s.list_namespaces(max_depth=1),
            s.list_namespaces(suffix=("b",)),
            s.list_namespaces(prefix=("a", "*")),
        ),
    )
    tried("page", lambda: len(s.search(("a",), limit=2)) + len(s.search(("a",), limit=2, offset=2)))
    s.put(("a",), "k3", {"x": "new"})
    s.delete(("a", "b"), "k1")
    tried("after", lambda: (s.get(("a",), "k3").value, s.get(("a", "b"), "k1"), sorted(i.key for i in s.search(()))))
    tried(
        "types",
        lambda: (
            type(s.get(("a",), "k3").created_at).__name__,
            s.get(("a",), "k3").namespace,
            type(s.search(())[0]).__name__,
            s.search(())[0].score,
        ),
    )
    tried("order", lambda: [i.key for i in s.search(("a",))] and None)
