"""Graphs to be cancelled, and what they know of how far they came."""

from __future__ import annotations

import operator
import time
from collections import Counter
from collections.abc import Callable
from typing import Annotated, Any, TypedDict

import anyio.lowlevel

from runtime.graph import END, START, StateGraph
from runtime.types import interrupt


class State(TypedDict, total=False):
    """A log that every node adds to."""

    log: Annotated[list[str], operator.add]


class Work:
    """One thread's work: which nodes started, which returned, how many are at it."""

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Forget what was done, for another thread."""
        self.started: Counter[str] = Counter()
        self.returned: Counter[str] = Counter()
        self.answered = 0
        self.running = 0

    def node(self, name: str) -> Callable[[State], Any]:
        """Return a node that lets others run before and after its work."""

        async def node(state: State) -> State:
            self.started[name] += 1
            self.running += 1
            try:
                await anyio.lowlevel.checkpoint()
                await anyio.lowlevel.checkpoint()
                self.returned[name] += 1
            finally:
                self.running -= 1
            return {"log": [name]}

        return node

    def threaded(self, name: str) -> Callable[[State], Any]:
        """Return a node that works in a thread, where it cannot be cancelled."""

        def node(state: State) -> State:
            self.started[name] += 1
            self.running += 1
            time.sleep(0.0005)
            self.running -= 1
            self.returned[name] += 1
            return {"log": [name]}

        return node

    def fan(self) -> StateGraph[Any]:
        """Build first -> left | middle | right -> last."""
        return self._joined(first=self.node, left=self.node, middle=self.node, right=self.node, last=self.node)

    def threads(self) -> StateGraph[Any]:
        """Build the same with nodes in threads, side by side with others and alone."""
        return self._joined(first=self.threaded, left=self.threaded, right=self.node, last=self.node)

    def nest(self) -> StateGraph[Any]:
        """Build first -> inner(left -> right) | middle -> last."""
        inner = StateGraph(State)
        for name in ("left", "right"):
            inner.add_node(name, self.node(name))
        inner.add_edge(START, "left")
        inner.add_edge("left", "right")
        inner.add_edge("right", END)
        graph = inner.compile()
        return self._joined(first=self.node, inner=lambda _name: graph, middle=self.node, last=self.node)

    def ask(self) -> StateGraph[Any]:
        """Build a graph that pauses: first -> ask | middle -> last."""

        async def ask(state: State) -> State:
            answer = interrupt("Which?")
            self.answered += 1
            await anyio.lowlevel.checkpoint()
            return {"log": [answer]}

        return self._joined(first=self.node, ask=lambda _name: ask, middle=self.node, last=self.node)

    def questions(self) -> StateGraph[Any]:
        """Build one that pauses twice at once: first -> inner(asks) | outer -> last."""
        inner = StateGraph(State)
        inner.add_node("asking", self.asking("inner"))
        inner.add_edge(START, "asking")
        inner.add_edge("asking", END)
        graph = inner.compile()
        return self._joined(first=self.node, inner=lambda _name: graph, outer=self.asking, last=self.node)

    def asking(self, name: str) -> Callable[[State], Any]:
        """Return a node that adds the answer to a question."""

        async def node(state: State) -> State:
            await anyio.lowlevel.checkpoint()
            answer = interrupt(f"{name}?")
            self.returned[name] += 1
            return {"log": [answer]}

        return node

    @staticmethod
    def _joined(**nodes: Callable[[str], Any]) -> StateGraph[Any]:
        first, *between, last = nodes
        builder = StateGraph(State)
        for name, make in nodes.items():
            builder.add_node(name, make(name))
        builder.add_edge(START, first)
        for name in between:
            builder.add_edge(first, name)
        builder.add_edge(between, last)
        builder.add_edge(last, END)
        return builder
