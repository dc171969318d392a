"""Work that fails: what is tried again, who mends it, which policy counts, and what a handler is told."""

import asyncio
import operator
from typing import Annotated, TypedDict

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import NodeError, NodeTimeoutError
from langgraph.func import entrypoint, task
from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime
from langgraph.types import Command, RetryPolicy, Send, TimeoutPolicy, default_retry_on, interrupt


class Order(TypedDict, total=False):
    items: list[str]
    status: str
    log: Annotated[list[str], operator.add]


class Flaky(Exception):
    pass


QUICK = RetryPolicy(initial_interval=0.001, max_attempts=3, jitter=False)


def reserve(state: Order):
    return {"log": ["reserved"]}


def failing(error):
    def charge(state: Order, runtime: Runtime):
        print("attempt", runtime.execution_info.node_attempt)
        raise error

    return charge


def compensate(state: Order, error: NodeError) -> Command:
    return Command(update={"status": f"gave back after {error.node}: {error.error!r}"}, goto="close")


def note(state: Order, error: NodeError, config: RunnableConfig):
    return {"status": f"noted {type(error.error).__name__} on {config['configurable'].get('thread_id')}"}


def close(state: Order):
    return {"log": ["closed"]}


def shop(error, **options):
    builder = StateGraph(Order).add_node(reserve).add_node("charge", failing(error), **options).add_node(close)
    return builder.add_edge(START, "reserve").add_edge("reserve", "charge")


class Strict(Exception):
    pass


def not_strict(error):
    return not isinstance(error, Strict) and default_retry_on(error)


for error in (Flaky("busy"), Strict("never"), ValueError("wrong"), ConnectionError("gone"), RuntimeError("broken")):
    graph = shop(error, retry_policy=QUICK._replace(retry_on=not_strict), error_handler=compensate).compile()
    print(graph.invoke({"log": []}))
    graph = shop(error, retry_policy=[QUICK._replace(retry_on=ConnectionError), QUICK._replace(max_attempts=2)])
    try:
        graph.compile().invoke({"log": []})
    except Exception as raised:
        print("ended with", repr(raised))

print("defaults, before and after the nodes")
graph = shop(Flaky("a")).set_node_defaults(error_handler=note, retry_policy=QUICK).compile(InMemorySaver())
print(graph.invoke({"log": []}, {"configurable": {"thread_id": "7"}}))
print(graph.get_state({"configurable": {"thread_id": "7"}}).next)
graph = StateGraph(Order).set_node_defaults(error_handler=note)
graph = graph.add_node("charge", failing(Flaky("b")), error_handler=compensate).add_node(close).add_edge(START, "charge")
print(graph.compile().invoke({"log": []}))


def bad_handler(state: Order, error: NodeError):
    raise LookupError(f"and {error.error}")


try:
    shop(Flaky("c"), error_handler=bad_handler).set_node_defaults(error_handler=note).compile().invoke({"log": []})
except LookupError as raised:
    print(repr(raised))

print("a subgraph's failure is that of its node")
inner = StateGraph(Order).add_node("deep", failing(Flaky("deep"))).add_edge(START, "deep").compile()
outer = StateGraph(Order).add_node("sub", inner, error_handler=compensate).add_node(close).add_edge(START, "sub")
print(outer.compile().invoke({"log": []}))


def asks(state: Order):
    return {"status": interrupt("sure?")}


graph = StateGraph(Order).add_node(asks, error_handler=note, retry_policy=QUICK).add_edge(START, "asks")
graph = graph.compile(InMemorySaver())
here = {"configurable": {"thread_id": "ask"}}
print([asked.value for asked in graph.invoke({"log": []}, here)["__interrupt__"]], graph.invoke(Command(resume=1), here))

print("time runs out")
seen: list[str] = []


async def slow(item: str, runtime: Runtime):
    seen.append(item)
    for _ in range(3 if item == "beats" else 1):
        if item == "beats":
            runtime.heartbeat()
        await asyncio.sleep(0 if item == "quick" else 0.1)
    return {"log": [f"did {item} at attempt {runtime.execution_info.node_attempt}"]}


def out_of_time(state, error: NodeError):
    late = error.error
    return {"log": [f"{late.node} {late.kind} {late.idle_timeout} {late.run_timeout} {type(late).__name__}"]}


def each(state: Order):
    tight = TimeoutPolicy(idle_timeout=0.25, refresh_on="heartbeat") if "beats" in state["items"] else 0.02
    return [Send("slow", item, timeout=tight) for item in state["items"]]


builder = StateGraph(Order).add_node(slow, timeout=30, error_handler=out_of_time)
graph = builder.add_conditional_edges(START, each, ["slow"]).compile()
for items in (["quick"], ["beats"], ["late"]):
    print(asyncio.run(graph.ainvoke({"items": items, "log": []})))
print(seen)


tries = []


@task(timeout=0.05, retry_policy=QUICK._replace(retry_on=NodeTimeoutError))
async def fetch(address: str) -> str:
    tries.append(address)
    await asyncio.sleep(30 if len(tries) < 2 else 0)
    return f"page of {address}"


@entrypoint(timeout=TimeoutPolicy(run_timeout=20))
async def visit(address: str) -> str:
    return await fetch(address)


print(asyncio.run(visit.ainvoke("here")), tries)
for wrong in (dict(timeout=1),):
    try:
        StateGraph(Order).add_node("n", reserve, **wrong).add_edge(START, "n").add_edge("n", END).compile()
    except ValueError as raised:
        print("a sync node with a timeout:", isinstance(raised, ValueError))
