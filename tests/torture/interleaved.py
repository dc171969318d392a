"""Runs that meet in every way: on one thread, beside each other, read slowly, cancelled, retried, on one saver."""

from __future__ import annotations

import re
from typing import Any

import anyio
import anyio.lowlevel

from persistence.writer.limits import Limits
from persistence.writer.saver import GroupCommitSaver
from runtime.graph import END, START, CompiledStateGraph, StateGraph
from runtime.types import Command, RetryPolicy, Send, interrupt
from tests.cancellation.working import State
from tests.crash.slow_backend import SlowBackend

_IDS = re.compile(r"[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}")
_TIMES = re.compile(r"\d{4}-\d\d-\d\dT[\d:.+]+")


class Interleaved:
    """Five runs of one graph at once; notes what happens, and what comes of it."""

    def __init__(self) -> None:
        self.trace: list[str] = []
        """What happened, in its order; ids by their first mention."""
        self.facts: dict[str, Any] = {}
        """What the order must not change."""
        self._ids: dict[str, str] = {}
        self._failures: dict[str, int] = {}

    def note(self, *words: object) -> None:
        """Add to the trace."""
        text = _TIMES.sub("TIME", f"{anyio.current_time():.3f} {' '.join(map(str, words))}")
        self.trace.append(_IDS.sub(lambda found: self._ids.setdefault(found[0], f"ID{len(self._ids)}"), text))

    def graph(self, saver: GroupCommitSaver) -> CompiledStateGraph:
        """Build first -> three Sends | inner(two in turn) | flaky | ask -> last."""
        inner = StateGraph(State)
        for name in ("one", "two"):
            inner.add_node(name, self._node(name))
        inner.add_edge(START, "one")
        inner.add_edge("one", "two")
        inner.add_edge("two", END)
        builder = StateGraph(State)
        for name in ("first", "part", "last"):
            builder.add_node(name, self._node(name))
        builder.add_node("flaky", self._flaky, retry_policy=RetryPolicy(max_attempts=3, retry_on=OSError, jitter=False))
        builder.add_node("ask", self._ask)
        builder.add_node("inner", inner.compile())
        builder.add_edge(START, "first")
        for name in ("flaky", "ask", "inner"):
            builder.add_edge("first", name)
        builder.add_conditional_edges("first", _three_parts)
        builder.add_edge(["flaky", "ask", "inner"], "last")
        builder.add_edge("last", END)
        return builder.compile(checkpointer=saver)

    def _node(self, name: str) -> Any:
        async def node(state: State) -> State:
            self.note("starts", name, len(state["log"]))
            await anyio.lowlevel.checkpoint()
            self.note("ends", name)
            return {"log": [name + "".join(state["log"][:1])]}

        return node

    async def _flaky(self, state: State) -> State:
        await anyio.lowlevel.checkpoint()
        key = state["log"][0]
        self._failures[key] = self._failures.get(key, 0) + 1
        self.note("attempt", key, self._failures[key])
        if self._failures[key] == 1:
            raise OSError(key)
        return {"log": ["flaky"]}

    async def _ask(self, _state: State) -> State:
        await anyio.lowlevel.checkpoint()
        return {"log": [interrupt("well?")]}

    async def run(self) -> None:
        """Do it all."""
        backend = SlowBackend(0.01)
        limits = Limits(channel_items=4, batch_items=3)
        async with GroupCommitSaver(backend, limits=limits) as saver, anyio.create_task_group() as group:
            graph = self.graph(saver)
            group.start_soon(self._asked_and_answered, graph, "a", "sync")
            group.start_soon(self._asked_and_answered, graph, "b", "async")
            group.start_soon(self._read_slowly, graph, "c")
            group.start_soon(self._cancelled, graph, "d")
            group.start_soon(self._two_on_one_thread, graph, "e")

    async def _asked_and_answered(self, graph: CompiledStateGraph, name: str, durability: Any) -> None:
        config: dict[str, Any] = {"configurable": {"thread_id": name}}
        await graph.ainvoke({"log": [name]}, config, durability=durability)
        self.note("asked", name)
        await self._finish(graph, name)

    async def _finish(self, graph: CompiledStateGraph, name: str) -> None:
        config: dict[str, Any] = {"configurable": {"thread_id": name}}
        result = await graph.ainvoke(Command(resume="!"), config)
        self.note("done", name)
        self.facts[name] = result
        history = [one async for one in graph.aget_state_history(config)]
        self.facts[f"history of {name}"] = [(one.metadata["step"], one.values, sorted(one.next)) for one in history]

    async def _read_slowly(self, graph: CompiledStateGraph, name: str) -> None:
        config: dict[str, Any] = {"configurable": {"thread_id": name}}
        values, updates = list[Any](), set[str]()
        modes = ["values", "updates", "debug"]
        async for mode, chunk in graph.astream({"log": [name]}, config, stream_mode=modes):
            self.note("read", name, mode, chunk)
            if mode == "values" and "__interrupt__" not in chunk:
                values.append(chunk)
            if mode == "updates":
                updates |= set(chunk)
            await anyio.sleep(0.003)
        self.facts[f"values of {name}"], self.facts[f"updates of {name}"] = values, sorted(updates)
        await self._finish(graph, name)

    async def _cancelled(self, graph: CompiledStateGraph, name: str) -> None:
        """Run a thread that is cancelled in its midst, and go on."""
        config: dict[str, Any] = {"configurable": {"thread_id": name}}
        with anyio.move_on_after(0.015):
            await graph.ainvoke({"log": [name]}, config)
        self.note("cancelled", name)
        await graph.ainvoke(None, config)
        await self._finish(graph, name)

    async def _two_on_one_thread(self, graph: CompiledStateGraph, name: str) -> None:
        """Start two runs of a thread: whichever comes second waits, and begins anew."""
        config: dict[str, Any] = {"configurable": {"thread_id": name}}
        async with anyio.create_task_group() as group:
            for number in range(2):
                group.start_soon(self._run, graph, config, f"{name}{number}")
        state = await graph.aget_state(config)
        self.note("order", state.values["log"])
        self.facts[f"length of {name}"] = len(state.values["log"])

    async def _run(self, graph: CompiledStateGraph, config: Any, log: str) -> None:
        await graph.ainvoke({"log": [log]}, config)
        self.note("run", log)


async def _three_parts(_state: State) -> list[Send]:
    """Route to three parts; async, as threads know no seed."""
    return [Send("part", {"log": [f"{number}"]}) for number in range(3)]
