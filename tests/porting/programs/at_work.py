"""What a node can know of its run: attempts, ids, context, whether to stop; and @task calls inside nodes."""

import asyncio
import operator
from dataclasses import dataclass, field
from typing import Annotated, Any, TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.config import get_config
from langgraph.errors import GraphDrained
from langgraph.func import task
from langgraph.graph import START, StateGraph
from langgraph.runtime import RunControl, Runtime, get_runtime
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command, RetryPolicy, interrupt


class Shift(TypedDict, total=False):
    facts: Annotated[list[Any], operator.add]


@dataclass
class Crew:
    chief: str = "nobody"
    hands: list[str] = field(default_factory=list)


class Broken(Exception):
    pass


def facts(state: Shift, runtime: Runtime[Crew]):
    info = runtime.execution_info
    if info.node_attempt < 3:
        raise Broken
    same = get_runtime(Crew).context is runtime.context
    return {
        "facts": [
            info.node_attempt,
            info.node_first_attempt_time is not None,
            info.thread_id,
            info.run_id,
            bool(info.task_id) and bool(info.checkpoint_id),
            info.checkpoint_ns.split(":")[0],
            runtime.context,
            same,
            runtime.server_info,
            (runtime.drain_requested, runtime.drain_reason, runtime.previous),
            runtime.store is None,
            sorted(get_config()["metadata"]),
        ]
    }


builder = StateGraph(Shift, context_schema=Crew)
builder.add_node(facts, retry_policy=RetryPolicy(initial_interval=0.001, jitter=False, max_attempts=4))
builder.add_edge(START, "facts")
for given in (Crew("Ann", ["Bo"]), {"chief": "Cy"}, None):
    told = builder.compile().invoke({}, {"metadata": {"place": "yard"}}, context=given)
    for fact in told["facts"]:
        print(fact)
kept = builder.compile(InMemorySaver(), store=InMemoryStore())
print(kept.invoke({}, {"configurable": {"thread_id": "day"}, "tags": ["loud"]}, context={"chief": "Di"})["facts"][2:11])
try:
    builder.compile().invoke({}, context={"cheif": "typo"})
except TypeError as error:
    print("TypeError", "cheif" in str(error))

bare = Runtime(context=Crew("Ed"))
print(bare.context.chief, bare.merge(Runtime(context=Crew("Fay"))).context.chief, bare.override(context=None).context)
print(bare.store, bare.previous, bare.drain_requested, bare.execution_info)

calls: list[str] = []


@task
def lift(load: str) -> str:
    calls.append(load)
    return f"lifted {load}"


@task
async def alift(load: str) -> str:
    calls.append(load)
    await asyncio.sleep(0)
    return f"lifted {load}"


def foreman(state: Shift):
    first = lift("beam").result()
    answer = interrupt(f"{first}: more?")
    more = [lift(load) for load in answer]
    return {"facts": [first, *(one.result() for one in more)]}


async def aforeman(state: Shift):
    first = await alift("pipe")
    answer = interrupt(f"{first}: more?")
    return {"facts": [first, *(await asyncio.gather(*(alift(load) for load in answer)))]}


for node in (foreman, aforeman):
    graph = StateGraph(Shift).add_node("node", node).add_edge(START, "node").compile(InMemorySaver())
    thread = {"configurable": {"thread_id": "1"}}
    print(asyncio.run(graph.ainvoke({}, thread))["__interrupt__"][0].value, calls)
    print(asyncio.run(graph.ainvoke(Command(resume=["brick"]), thread)), calls)
    calls.clear()

control = RunControl()
print(control.drain_requested, control.drain_reason)


def stop(state: Shift, runtime: Runtime):
    runtime.control.request_drain("rain")
    return {"facts": ["stopping", runtime.drain_requested, runtime.drain_reason]}


def late(state: Shift, runtime: Runtime):
    return {"facts": ["late", runtime.drain_requested, runtime.drain_reason]}


graph = StateGraph(Shift).add_sequence([stop, late]).add_edge(START, "stop").compile(InMemorySaver())
try:
    graph.invoke({}, thread, control=control)
except GraphDrained as drained:
    print("drained", drained.reason, graph.get_state(thread).next, graph.get_state(thread).values)
print(graph.invoke(None, thread), control.drain_requested)
outer = StateGraph(Shift).add_node("inner", graph.builder.compile()).add_node("after", late)
outer = outer.add_edge(START, "inner").add_edge("inner", "after").compile(InMemorySaver())
try:
    outer.invoke({}, thread, control=RunControl())
except GraphDrained as drained:
    print("drained below", drained.reason, outer.get_state(thread).next)
print(outer.invoke(None, thread)["facts"][-3:])
