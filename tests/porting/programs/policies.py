"""Retries, error handlers, timeouts, caches, deferred nodes, limits."""

import asyncio
import operator
import time
from typing import Annotated, TypedDict

from langgraph.cache.memory import InMemoryCache
from langgraph.errors import GraphRecursionError, InvalidUpdateError, NodeError, NodeTimeoutError
from langgraph.graph import END, START, StateGraph
from langgraph.managed import RemainingSteps
from langgraph.types import CachePolicy, Command, RetryPolicy, TimeoutPolicy


class State(TypedDict):
    x: int
    result: int
    log: Annotated[list, operator.add]


tries = []


def flaky(state: State):
    tries.append(1)
    if len(tries) < 3:
        raise ConnectionError("unreachable")
    return {"log": [f"after {len(tries)}"]}


policy = RetryPolicy(max_attempts=4, initial_interval=0.01, jitter=False)
graph = StateGraph(State).add_node(flaky, retry_policy=policy).add_edge(START, "flaky").compile()
print(graph.invoke({"x": 1, "log": []}))


class Odd(Exception):
    pass


def odd(state: State):
    raise Odd("odd")


several = [RetryPolicy(retry_on=KeyError), RetryPolicy(retry_on=lambda e: isinstance(e, OSError))]
try:
    StateGraph(State).add_node(odd, retry_policy=several).add_edge(START, "odd").compile().invoke({"log": []})
except Odd as error:
    print("odd", error)


def handler(state: State, error: NodeError):
    return Command(update={"log": [f"{error.node}: {error.error!r}"]}, goto="after")


handled = StateGraph(State).add_node(odd, error_handler=handler).add_node("after", lambda s: {"log": ["after"]})
print(handled.add_edge(START, "odd").compile().invoke({"log": []}))


async def slow(state: State):
    await asyncio.sleep(5)


late = StateGraph(State).add_node(slow, timeout=0.05).add_edge(START, "slow").compile()
try:
    asyncio.run(late.ainvoke({"log": []}))
except NodeTimeoutError as error:
    print(error.node, error.kind, error.run_timeout)
print(TimeoutPolicy(idle_timeout=1))

runs = []


def expensive(state: State):
    runs.append(state["x"])
    time.sleep(0.01)
    return {"result": state["x"] * 2}


cached = StateGraph(State).add_node("expensive", expensive, cache_policy=CachePolicy(ttl=30))
cached = cached.set_entry_point("expensive").set_finish_point("expensive").compile(cache=InMemoryCache())
print([list(cached.stream({"x": x, "log": []}, stream_mode="updates")) for x in (5, 5, 6)], runs)
cached.clear_cache()
print(cached.invoke({"x": 5, "log": []})["result"], runs)
keyed = StateGraph(State).add_node("expensive", expensive, cache_policy=CachePolicy(key_func=lambda s: str(s["x"] % 2)))
keyed = keyed.add_edge(START, "expensive").compile(cache=InMemoryCache())
print([keyed.invoke({"x": x, "log": []})["result"] for x in (1, 3, 2)])


class Loop(TypedDict):
    n: int
    remaining: RemainingSteps


def step(state: Loop):
    return {"n": state["n"] + 1}


loop = StateGraph(Loop).add_node(step).add_edge(START, "step").add_edge("step", "step").compile()
try:
    loop.invoke({"n": 0}, {"recursion_limit": 5})
except GraphRecursionError as error:
    print(type(error).__name__, isinstance(error, RecursionError))


def fan(name, **options):
    return lambda s: {"log": [name]}


wide = StateGraph(State)
for name in ("a", "b", "c"):
    wide.add_node(name, fan(name), defer=name == "c")
wide.add_node("b2", fan("b2"))
wide.add_edge(START, "a").add_edge(START, "b").add_edge("b", "b2").add_edge("a", "c").add_edge("b2", "c").add_edge("c", END)
print(wide.compile().invoke({"log": []}, {"max_concurrency": 2}))


class Plain(TypedDict):
    x: int


clash = StateGraph(Plain).add_node("a", lambda s: {"x": 1}).add_node("b", lambda s: {"x": 2})
try:
    clash.add_edge(START, "a").add_edge(START, "b").compile().invoke({"x": 0})
except InvalidUpdateError as error:
    print("InvalidUpdateError", "one value per step" in str(error))
