"""What nodes find in their config, and pass on to what they call."""

import asyncio
import inspect
import operator
from typing import Annotated

from langchain_core.runnables import RunnableConfig, RunnableLambda, RunnableParallel
from langgraph.graph import START, StateGraph
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


def cb(s, config: RunnableConfig):
    return {
        "log": [
            type(config.get("callbacks")).__name__ in ("CallbackManager", "NoneType", "AsyncCallbackManager"),
            sorted(k for k in config if k not in ("recursion_limit",)),
        ]
    }


tried(
    "cfg keys2",
    lambda: seq(("a", cb)).invoke(
        {"log": []}, {"tags": ["x"], "run_name": "r", "max_concurrency": 2, "metadata": {"a": 1}}
    ),
)


def pass_cb(s, config):
    return {"log": [RunnableLambda(lambda x: x + 1).invoke(1, {"callbacks": config["callbacks"]})]}


tried("pass", lambda: seq(("a", pass_cb)).invoke({"log": []}))


def pass_all(s, config):
    return {"log": [RunnableLambda(lambda x: x + 1).invoke(1, config)]}


tried("pass all", lambda: seq(("a", pass_all)).invoke({"log": []}))


def merge(s, config):
    return {
        "log": [
            RunnableLambda(lambda x, config: (config["tags"], config["metadata"]["langgraph_node"])).invoke(
                1, {**config, "tags": ["mine"]}
            )
        ]
    }


tried("merge", lambda: seq(("a", merge)).invoke({"log": []}, {"tags": ["t"]}))
tried(
    "batch in node",
    lambda: seq(("a", lambda s, config: {"log": RunnableLambda(lambda x: x + 1).batch([1, 2], config)})).invoke(
        {"log": []}
    ),
)
tried(
    "parallel in node",
    lambda: seq(
        ("a", lambda s, config: {"log": [RunnableParallel(a=lambda x: x, b=lambda x: x * 2).invoke(3, config)]})
    ).invoke({"log": []}),
)


async def anode(s, config):
    return {"log": [await RunnableLambda(lambda x: x + 1).ainvoke(1, config)]}


tried("async", lambda: seq(("a", anode)).ainvoke({"log": []}))


class S(TypedDict, total=False):
    log: Annotated[list, operator.add]


def keys(s, config):
    return {
        "log": [
            config.get("tags"),
            {k: v for k, v in config["metadata"].items() if len(k) == 1},
            {k: v for k, v in config["configurable"].items() if len(k) == 1},
        ]
    }


sub = (
    StateGraph(S)
    .add_node("n", keys)
    .add_edge(START, "n")
    .compile()
    .with_config(tags=["s1", "s2"], metadata={"a": "sub", "b": "sub"}, configurable={"x": "sub", "y": "sub"})
)
top = StateGraph(S).add_node("n", sub).add_edge(START, "n").compile()
cfg = {"tags": ["t"], "metadata": {"a": "call", "c": "call"}, "configurable": {"x": "call", "z": "call"}}
tried(
    "fn", lambda: StateGraph(S).add_node("n", lambda s: sub.invoke({})).add_edge(START, "n").compile().invoke({}, cfg)
)
tried(
    "fn own",
    lambda: (
        StateGraph(S)
        .add_node(
            "n", lambda s: sub.invoke({}, {"tags": ["own"], "metadata": {"a": "own"}, "configurable": {"x": "own"}})
        )
        .add_edge(START, "n")
        .compile()
        .invoke({}, cfg)
    ),
)
tried("dup tags", lambda: sub.invoke({}, {"tags": ["s1", "z"]}))
