"""The same graphs and operations on this library and on LangGraph, as plain data to compare.

Left out is what differs on purpose (README, "Coming from LangGraph"): a Command beside the answer, answers to some of
several questions, work that an edit drops, going back to a fork.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import replace
from random import Random
from types import SimpleNamespace
from typing import Annotated, Any, TypedDict

import langgraph.channels
import langgraph.checkpoint.memory
import langgraph.config
import langgraph.errors
import langgraph.graph
import langgraph.types

from persistence import memory
from runtime import channels, config, errors, graph, types
from tests.model.shapes import Node, Parts, Shape, merged

LIMIT = 14
"""Supersteps of a run; one that reaches it ends the play, because the two count differently."""

MODES: tuple[Any, ...] = ("values", "updates", "tasks", "checkpoints", "debug", "custom")


class Told(TypedDict, total=False):
    """What every node adds to."""

    log: Annotated[list[str], operator.add]
    n: Annotated[int, operator.add]
    last: Annotated[dict[str, Any], merged]


def state_of(names: SimpleNamespace) -> Any:
    """Return the state's schema: what every node adds to, through channels of several kinds."""
    kinds = {
        "all": Annotated[list, names.Topic(str, accumulate=True)],
        "free": Annotated[Any, names.UntrackedValue(str, guard=False)],
        "messages": Annotated[list, names.add_messages],
    }
    return TypedDict("State", {**Told.__annotations__, **kinds}, total=False)


OURS = SimpleNamespace(
    Command=types.Command,
    GraphRecursionError=errors.GraphRecursionError,
    InMemorySaver=memory.InMemorySaver,
    Send=types.Send,
    START=graph.START,
    StateGraph=graph.StateGraph,
    StateUpdate=types.StateUpdate,
    Topic=channels.Topic,
    UntrackedValue=channels.UntrackedValue,
    add_messages=graph.add_messages,
    get_stream_writer=config.get_stream_writer,
    interrupt=types.interrupt,
)
"""The names that a program imports."""

LANGGRAPH = SimpleNamespace(
    Command=langgraph.types.Command,
    GraphRecursionError=langgraph.errors.GraphRecursionError,
    InMemorySaver=langgraph.checkpoint.memory.InMemorySaver,
    Send=langgraph.types.Send,
    START=langgraph.graph.START,
    StateGraph=langgraph.graph.StateGraph,
    StateUpdate=langgraph.types.StateUpdate,
    Topic=langgraph.channels.Topic,
    UntrackedValue=langgraph.channels.UntrackedValue,
    add_messages=langgraph.graph.add_messages,
    get_stream_writer=langgraph.config.get_stream_writer,
    interrupt=langgraph.types.interrupt,
)
"""The same, from there."""


class Thread:
    """One thread of one graph, on one of the two."""

    def __init__(self, names: SimpleNamespace, shape: Shape) -> None:
        self.names = names
        self.graph = self._built(shape)
        self.here: dict[str, Any] = {"configurable": {"thread_id": "t"}}

    def _built(self, shape: Shape) -> Any:
        builder = self.names.StateGraph(state_of(self.names))
        for name, node in shape.nodes.items():
            builder.add_node(name, self._body(node), defer=node.deferred)
            for target in node.edges:
                builder.add_edge(name, target)
            if node.routes:
                builder.add_conditional_edges(name, self._router(node), list(shape.nodes))
        for name in shape.starts:
            builder.add_edge(self.names.START, name)
        for join in shape.joins:
            builder.add_edge(list(join.sources), join.target)
        return builder.compile(checkpointer=self.names.InMemorySaver())

    def _body(self, node: Node) -> Callable[[Any], Any]:
        async def body(state: Any) -> Any:
            label = node.name + state.get("part", "")
            self.names.get_stream_writer()({"at": label})
            answers = [self.names.interrupt(f"{label}?{number}") for number in range(node.questions)]
            update = {"log": [label, *answers], "n": 1, "last": {node.name: state.get("n", 0)}, "all": label}
            update |= {"free": label, "messages": [{"role": "user", "content": label, "id": node.name}]}
            return [update, self.names.Command(update={"log": ["twice"]})] if node.name == "c" else update

        return body

    def _router(self, node: Node) -> Callable[[Any], Any]:
        async def router(state: Any) -> list[Any]:
            targets: list[Any] = []
            for one in node.route(state["n"]):
                if isinstance(one, Parts):
                    given = [{"part": f"<{node.name}{part}>", "n": state["n"]} for part in range(one.number)]
                    targets += [self.names.Send(one.node, each) for each in given]
                else:
                    targets.append(one)
            return targets

        return router

    async def do(self, deed: dict[str, Any]) -> dict[str, Any]:
        """Do one thing; return all that can be seen of it and of the thread afterwards."""
        seen: dict[str, Any] = {}
        where: Any = {**self.here, "recursion_limit": LIMIT, "metadata": {"deed": deed["number"]}}
        state = await self.graph.aget_state(self.here)
        given: Any = {"log": [f"input{deed['number']}"], "n": deed["number"] % 3, "last": {}}
        match deed["what"]:
            case "go on" if state.interrupts:
                return {}
            case "go on":
                given = None
            case "answer" if not state.interrupts:
                return {}
            case "answer":
                answers = {one.id: f"{one.value}!" for one in state.interrupts}
                alone = len(answers) == 1 and deed["alone"]
                given = self.names.Command(resume=next(iter(answers.values())) if alone else answers)
            case "replay":
                history = [one async for one in self.graph.aget_state_history(self.here)][::-1]
                place = history[deed["at"] % len(history)] if history else None
                if place is None or place.metadata["source"] != "loop":
                    return {}
                given, where = None, {**where, **place.config}
            case "edit" if state.next:
                return {}
            case "edit":
                edits = [self.names.StateUpdate(given | {"log": [name]}, name) for name in deed["as"]]
                await self.graph.abulk_update_state(where, [edits])
                return await self._looked_at(seen)
        stops = deed["stops"] | {"durability": "sync"}
        try:
            if deed["modes"]:
                chunks = [one async for one in self.graph.astream(given, where, stream_mode=deed["modes"], **stops)]
                seen["chunks"] = _told(chunks)
            else:
                seen["result"] = await self.graph.ainvoke(given, where, **stops)
        except self.names.GraphRecursionError:
            return {"limit": True}
        return await self._looked_at(seen)

    async def _looked_at(self, seen: dict[str, Any]) -> dict[str, Any]:
        history = [one async for one in self.graph.aget_state_history(self.here)]
        seen["history"], seen["state"] = history, await self.graph.aget_state(self.here)
        return {key: _plain(value, {}) for key, value in seen.items()}


def _told(chunks: list[Any]) -> Any:
    """Return chunks without what is told at another time: pauses come at the end of a superstep here."""
    paused = any("__interrupt__" in str(chunk) for chunk in chunks)
    told = [(mode, _plain(chunk, None)) for mode, chunk in chunks if "__interrupt__" not in str(chunk)]
    # Tasks of a superstep end in any order, and the state that a pause shows holds what its siblings have done.
    return {
        mode: [] if paused and mode == "values" else sorted((one for kind, one in told if kind == mode), key=str)
        for mode, _ in told
    }


def _plain(value: Any, ids: dict[str, str] | None) -> Any:
    """Return a value as builtins, without times, ids by their first appearance, or all alike."""
    if isinstance(value, str):
        known = len(value) in (32, 36) and set(value) <= set("0123456789abcdef-")
        return value if not known else "id" if ids is None else ids.setdefault(value, f"id{len(ids)}")
    if type(value).__name__ == "Interrupt":
        return {"value": value.value, "id": _plain(value.id, ids)}
    if hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, dict):
        unlike = ("created_at", "ts", "timestamp", "thread_id", "checkpoint_map", "response_schema")
        return {key: _plain(each, ids) for key, each in value.items() if key not in unlike}
    return [_plain(each, ids) for each in value] if isinstance(value, (list, tuple)) else value


def deeds_by(chance: Random, shape: Shape) -> list[dict[str, Any]]:
    """Return what to do to a thread, in order."""
    names = [*shape.nodes]
    deeds = []
    for number in range(chance.randint(2, 6)):
        what = chance.choice(["begin", "go on", "answer", "answer", "replay", "edit"]) if number else "begin"
        stops = {}
        if chance.random() < 0.2:
            stops = {chance.choice(["interrupt_before", "interrupt_after"]): [chance.choice(names)]}
        modes = chance.sample(MODES, chance.randint(1, 3)) if chance.random() < 0.6 else []
        deeds.append(
            {
                "number": number,
                "what": what,
                "stops": stops,
                "modes": modes,
                "alone": chance.random() < 0.5,
                "at": chance.randrange(10),
                "as": chance.sample(names, chance.randint(1, 2)),
            }
        )
    return deeds


def comparable(shape: Shape) -> Shape:
    """Return the shape without what the two do not do alike.

    Nodes that fail: what a failure leaves of its siblings is a matter of time. Deferred nodes beside Sends, for which
    they do not wait there.
    """
    sends = any(isinstance(one, Parts) for node in shape.nodes.values() for route in node.routes for one in route)
    nodes = {
        name: replace(node, failures=0, deferred=node.deferred and not sends) for name, node in shape.nodes.items()
    }
    return replace(shape, nodes=nodes)
