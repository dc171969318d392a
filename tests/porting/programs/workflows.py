"""Workflows: what they keep and return, futures, retries, questions."""

import asyncio
import concurrent.futures as cf
import inspect
import operator
from typing import Annotated, Optional

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.config import get_stream_writer
from langgraph.func import entrypoint, task
from langgraph.graph import START, StateGraph
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command, RetryPolicy, StreamWriter, interrupt
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


@entrypoint(checkpointer=InMemorySaver())
def acc(x: int, *, previous: Optional[list] = None):
    return (previous or []) + [x]


c = cfg()
tried("acc", lambda: [acc.invoke(i, c) for i in range(3)])
tried("state", lambda: acc.get_state(c).values)
tried("other thread", lambda: acc.invoke(9, cfg()))
tried("update", lambda: acc.update_state(c, ["set"]) and acc.invoke(1, c))
tried("hist", lambda: [(s.values, s.next, s.metadata["source"]) for s in acc.get_state_history(c)])


@entrypoint(checkpointer=InMemorySaver(), store=InMemoryStore())
def st(x, *, store: BaseStore):
    store.put(("a",), "k", {"x": x})
    return store.get(("a",), "k").value


tried("store", lambda: st.invoke(3, cfg()))


@entrypoint()
def writer(x, writer: StreamWriter):
    writer(1)
    get_stream_writer()(2)
    return x


tried("custom", lambda: list(writer.stream(0, stream_mode="custom")))
tried("all", lambda: list(writer.stream(0, stream_mode=["custom", "updates", "values", "tasks"])))
tried("v2", lambda: writer.invoke(0, version="v2"))
tried(
    "stream v2",
    lambda: [(p["type"], p["data"]) for p in writer.stream(0, stream_mode=["updates", "values"], version="v2")],
)


@entrypoint()
def dictout(x):
    return {"a": x}


tried("dict", lambda: dictout.invoke(1))
tried("dict stream", lambda: list(dictout.stream(1)))
tried("none", lambda: entrypoint()(lambda x: None).invoke(1))
tried("none stream", lambda: list(entrypoint()(lambda x: None).stream(1)))


@entrypoint()
def two_args(x, y=3):
    return x + y


tried("two args", lambda: two_args.invoke(1))


@entrypoint()
def nested(x):
    return dictout.invoke(x)


tried("nested", lambda: nested.invoke(4))
tried("nested sub stream", lambda: [(len(n), v) for n, v in nested.stream(4, subgraphs=True)])
tried("batch", lambda: dictout.batch([1, 2]))
tried("in graph node", lambda: seq(("a", lambda s: {"log": [dictout.invoke(s["n"])]})).invoke({"n": 2, "log": []}))
tried(
    "as node",
    lambda: (
        StateGraph(S)
        .add_node("w", entrypoint()(lambda s: {"log": [s["n"]]}))
        .add_edge(START, "w")
        .compile()
        .invoke({"n": 2, "log": []})
    ),
)


@entrypoint(checkpointer=InMemorySaver())
def final(x, *, previous=None):
    return entrypoint.final(value={"now": x, "prev": previous}, save=x * 2)


c = cfg()
tried("final", lambda: [final.invoke(i, c) for i in (1, 2)])
tried("final state", lambda: final.get_state(c).values)
tried("final stream", lambda: list(final.stream(3, c, stream_mode=["values", "updates"])))
tried(
    "tags",
    lambda: entrypoint()(lambda x, config: (config["tags"], config["metadata"]["a"])).invoke(
        1, {"tags": ["t"], "metadata": {"a": 1}}
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


@task
def slow(x):
    import time

    time.sleep(0.01 * (3 - x))
    return x


@task(retry_policy=RetryPolicy(max_attempts=2, initial_interval=0.001, jitter=False, retry_on=KeyError))
def flaky(x, seen=[]):
    seen.append(1)
    if len(seen) < 2:
        raise KeyError(x)
    return len(seen)


@entrypoint()
def wf(xs):
    return [f.result() for f in [slow(x) for x in xs]]


tried("order", lambda: wf.invoke([0, 1, 2]))
tried("stream order values", lambda: list(wf.stream([0, 1, 2], stream_mode="values")))
tried("flaky", lambda: entrypoint()(lambda x: flaky(x).result()).invoke("k"))


@task
def bad(x):
    raise ValueError(x)


@entrypoint(checkpointer=InMemorySaver())
def one_bad(x):
    a = slow(1).result()
    try:
        bad(x).result()
    except ValueError as e:
        return ["caught", str(e), a]


tried("caught", lambda: one_bad.invoke("z", cfg()))
ran = []


@task
def counted(x):
    ran.append(x)
    return x


state = {"fail": True}


@entrypoint(checkpointer=InMemorySaver())
def fails_once(x):
    r = [counted(i).result() for i in range(3)]
    if state["fail"]:
        raise RuntimeError("later")
    return r


c = cfg()
tried("fails", lambda: fails_once.invoke(1, c))
state["fail"] = False
tried("resumes", lambda: fails_once.invoke(None, c))
print(ran)


@entrypoint(checkpointer=InMemorySaver())
def many(x):
    a = interrupt("first")
    b = counted(a).result()
    c_ = interrupt(f"second {b}")
    return [a, b, c_]


c = cfg()
ran.clear()
for v in (None, 1, 2):
    tried(v, lambda: V(many.invoke("go" if v is None else Command(resume=v), c)))
print(ran)
tried("task in graph", lambda: seq(("a", lambda s: {"log": [counted(9).result()]})).invoke({"log": []}))
tried("kwargs", lambda: entrypoint()(lambda x: (lambda f: f.result())(task(lambda a, *, b=2: a * b)(x, b=5))).invoke(3))
tried(
    "future done",
    lambda: entrypoint()(lambda x: (lambda f: (f.result(), f.done(), f.cancelled(), f.running()))(counted(x))).invoke(
        3
    ),
)
tried("result timeout", lambda: entrypoint()(lambda x: counted(x).result(timeout=5)).invoke(3))
tried(
    "as_completed",
    lambda: entrypoint()(lambda x: sorted(f.result() for f in cf.as_completed([counted(i) for i in range(3)]))).invoke(
        3
    ),
)
tried("wait", lambda: entrypoint()(lambda x: len(cf.wait([counted(i) for i in range(3)]).done)).invoke(3))
tried(
    "callback",
    lambda: entrypoint()(
        lambda x: (lambda f, l: (f.add_done_callback(lambda g: l.append(g.result())), f.result(), None)[1])(
            counted(x), []
        )
    ).invoke(3),
)
