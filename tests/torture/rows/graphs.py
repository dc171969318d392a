"""A graph with a bit of everything in its rows. Its nodes take whatever state they find."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Annotated, Any, TypedDict

from runtime.graph import END, START, CompiledStateGraph, StateGraph
from runtime.graph.message import add_messages
from runtime.types import Send, interrupt


@dataclass
class Item:
    """Something of the state's own."""

    name: str
    count: int = 0


class State(TypedDict, total=False):
    """Channels of every kind."""

    item: Item
    words: Annotated[list[str], operator.add]
    text: Annotated[str, operator.add]
    messages: Annotated[list[Any], add_messages]
    number: int


def graph(saver: Any) -> CompiledStateGraph:
    """Return it: a chain, a fan-out, a subgraph, a join, and a question on the way."""
    inner = StateGraph(State)
    inner.add_node("deep", lambda _state: {"words": ["deep"] * 9})
    inner.add_node("ask", lambda _state: {"number": 1, "words": [str(interrupt("well?"))[:9]]})
    inner.add_edge(START, "deep")
    inner.add_edge("deep", "ask")
    outer = StateGraph(State)
    outer.add_node("first", lambda _state: {"item": Item("a"), "words": ["w"] * 12, "text": "t" * 300})
    outer.add_node("fan", lambda _state: {"messages": [{"role": "user", "content": "hi", "id": "m1"}]})
    outer.add_node("one", lambda _sent: {"words": ["one"], "text": "x" * 9})
    outer.add_node("child", inner.compile())
    outer.add_node("question", lambda _state: {"number": 2, "words": [str(interrupt({"q": (1, 2)}))[:9]]})
    outer.add_node("join", lambda _state: {"text": "end"})
    outer.add_edge(START, "first")
    outer.add_edge("first", "fan")
    outer.add_conditional_edges("fan", lambda _state: [Send("one", Item("s", each)) for each in range(3)], ["one"])
    outer.add_edge("fan", "child")
    outer.add_edge("fan", "question")
    outer.add_edge(["child", "question"], "join")
    outer.add_edge("join", END)
    return outer.compile(checkpointer=saver)
