"""What programs made by chance showed: values that are not kept, what routers see, metadata, edits in one step."""

import asyncio
import operator
import threading
from dataclasses import field, make_dataclass
from typing import Annotated, Any

from langgraph.channels import UntrackedValue
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.config import get_stream_writer
from langgraph.func import entrypoint, task
from langgraph.graph import START, StateGraph
from langgraph.types import Command, Send, StateUpdate, interrupt
from typing_extensions import TypedDict


class S(TypedDict, total=False):
    log: Annotated[list, operator.add]
    n: Annotated[int, operator.add]
    lock: Annotated[Any, UntrackedValue(object)]


class Part(TypedDict, total=False):
    log: Annotated[list, operator.add]


def here(**more):
    return {"configurable": {"thread_id": "1", "user": "me"}, **more}


def plain(value):
    """Return a value without locks and savers."""
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items() if key not in ("ts", "timestamp", "response_schema")}
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    return value if isinstance(value, (str, int, type(None))) else type(value).__name__


async def untracked():
    """A lock is handed on, and never stored: not beside a question, not in a Send."""
    seen = []

    async def asks(state):
        return {"log": [interrupt("?")]}

    async def look(state):
        seen.append(sorted(state))

    graph = StateGraph(S).add_node("a", lambda state: {"log": ["a"], "lock": threading.Lock()}).add_node(asks)
    graph.add_node(look).add_edge(START, "a").add_edge(START, "asks").add_edge("asks", "look")
    graph.add_conditional_edges("a", lambda state: [Send("look", {"lock": state["lock"], "n": 1})])
    app = graph.compile(InMemorySaver())
    print(plain(await app.ainvoke({"log": []}, here())))
    print(plain((await app.aget_state(here())).values), [task.result for task in (await app.aget_state(here())).tasks])
    await app.ainvoke(Command(resume="x"), here())
    print(seen, [plain(task.result) async for one in app.aget_state_history(here()) for task in one.tasks])


async def routers():
    """A router without an annotation sees what its node sees, and what the node returned."""
    for returned in ({}, {"n": 1}, {"n": 1, "log": ["a"]}, {"other": 1}):
        seen = []
        graph = StateGraph(S).add_node("a", lambda state, returned=returned: returned, input_schema=Part)
        graph.add_edge(START, "a").add_conditional_edges("a", lambda state, seen=seen: seen.append(dict(state)) or [])
        await graph.compile().ainvoke({"log": ["in"], "n": 5})
        print(sorted(seen[0].items()))


async def metadata():
    """``tasks`` tells the metadata and tags of the call, ``checkpoints`` only the runtime's own."""
    graph = StateGraph(S).add_node("a", lambda state: {"log": ["a"], "n": 1}, metadata={"own": 1})
    graph.add_node("b", lambda state: {"log": [interrupt("?")]}).add_edge(START, "a").add_edge(START, "b")
    app = graph.compile(InMemorySaver()).with_config({"metadata": {"by": "graph"}, "tags": ["t"]})
    config = here(metadata={"x": 1, "langgraph_step": 9}, tags=["u"])
    for given in ({"log": []}, Command(resume="y")):
        async for mode, chunk in app.astream(given, config, stream_mode=["tasks", "checkpoints"], output_keys=["log"]):
            print(mode, chunk.get("name"), chunk.get("metadata"), plain(chunk.get("tasks")))
    print((await app.aget_state(here())).metadata)
    fresh = graph.compile(InMemorySaver())
    async for chunk in fresh.astream({"log": []}, here(), stream_mode="checkpoints", durability="exit"):
        print(chunk["parent_config"])


async def edits():
    """Edits of one step are folded as they are given."""
    graph = StateGraph(S).add_node("a", lambda state: {}).add_node("b", lambda state: {})
    app = graph.add_edge(START, "a").add_edge(START, "b").compile(InMemorySaver())
    await app.abulk_update_state(here(), [[StateUpdate({"log": ["b"]}, "b"), StateUpdate({"log": ["a"]}, "a")]])
    print((await app.aget_state(here())).values)


async def kept():
    """A subgraph that keeps its state is found by its names, and by its task too; nothing strange is in its metadata."""
    child = StateGraph(S).add_node("k", lambda state: {"log": [interrupt("?")]}).add_edge(START, "k")
    graph = StateGraph(S).add_node("a", child.compile(checkpointer=True)).add_edge(START, "a")
    app = graph.compile(InMemorySaver())
    await app.ainvoke({"log": ["in"]}, here())
    task = (await app.aget_state(here(), subgraphs=True)).tasks[0]
    print(sorted(task.state.metadata), task.state.values, task.state.next)
    for ns in ("a", f"a:{task.id}"):
        config = {"configurable": {"thread_id": "1", "checkpoint_ns": ns}}
        found = await app.aget_state(config)
        print(found.values, found.next, found.config["configurable"]["checkpoint_ns"])
        print(len([one async for one in app.aget_state_history(config)]))
        print((await app.aupdate_state(config, {"n": 1}, as_node=START))["configurable"]["checkpoint_ns"])


async def made():
    """A dataclass that a program made is a state as others are, also where a subgraph is given it."""
    made_here = make_dataclass("Made", [("log", Annotated[list, operator.add], field(default_factory=list))])
    child = StateGraph(S).add_node("k", lambda state: {"log": ["k"]}).add_edge(START, "k").compile()
    app = StateGraph(made_here).add_node("a", child).add_edge(START, "a").compile(InMemorySaver())
    print(await app.ainvoke({"log": ["in"]}, here()))


async def leaving():
    """A Command to the parent ends the subgraph: what others in it asked is not asked any more."""
    child = StateGraph(S).add_node("asks", lambda state: {"log": [interrupt("?")]})
    child.add_node("leaves", lambda state: Command(graph=Command.PARENT, update={"log": ["left"]}, goto="z"))
    inner = child.add_edge(START, "asks").add_edge(START, "leaves").compile()

    async def calls(state):
        return await inner.ainvoke(state)

    for node in (inner, calls):
        graph = StateGraph(S).add_node("a", node).add_node("z", lambda state: {"log": ["z"]}).add_edge(START, "a")
        print(await graph.compile().ainvoke({"log": ["in"]}))
        print(await graph.compile(InMemorySaver()).ainvoke({"log": ["in"]}, here()))


async def stopping():
    """Beside a subgraph that stops at a breakpoint, what others have done is shown; it has no result to tell of."""
    child = StateGraph(S).add_node("k", lambda state: {"log": ["k"]}).add_edge(START, "k")
    graph = StateGraph(S).add_node("a", lambda state: {"log": ["a"]}).add_edge(START, "a").add_edge(START, "b")
    app = graph.add_node("b", child.compile(interrupt_before=["k"])).compile(InMemorySaver())
    print(await app.ainvoke({"log": ["in"]}, here()))
    async for chunk in graph.compile(InMemorySaver()).astream({"log": ["in"]}, here(), stream_mode="tasks"):
        print(chunk["name"], chunk.get("result"))


async def calls():
    """What a call writes comes from where its caller is; a call that asks has no result to tell of."""

    @task
    async def inner(number):
        get_stream_writer()({"inner": number})
        return number

    @task
    async def outer(number):
        get_stream_writer()({"outer": number})
        await inner(number)
        return interrupt("?") if number else number

    @entrypoint(checkpointer=InMemorySaver())
    async def flow(_given):
        get_stream_writer()("flow")
        return [await outer(0), await outer(1)]

    async for ns, mode, chunk in flow.astream(1, here(), stream_mode=["custom", "tasks"], subgraphs=True):
        print([part.partition(":")[0] for part in ns], mode, chunk if mode == "custom" else sorted(chunk.items())[:3])


async def by_hand():
    """The saver takes plain values of the config into the metadata, behind those that are given."""
    saver = InMemorySaver()
    config = here(metadata={"x": 1, "step": 9, "deep": {}})
    config["configurable"] |= {"checkpoint_ns": "", "__own": 1, "deep": [1]}
    checkpoint = {**empty_checkpoint(), "channel_values": {"a": [1]}, "channel_versions": {"a": 1}}
    await saver.aput(config, checkpoint, {"source": "input", "step": -1, "parents": {}}, {"a": 1})
    found = await saver.aget_tuple(here())
    print(found.metadata, found.checkpoint["channel_values"])


for program in (untracked, routers, metadata, edits, kept, made, leaving, stopping, calls, by_hand):
    asyncio.run(program())
