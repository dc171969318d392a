"""An app to run, what a command leaves behind, and what its process is given."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]

APP = """
import dataclasses
import operator
import os
from pathlib import Path
from typing import Annotated, TypedDict

from persistence.memory import InMemorySaver
from runtime.func import entrypoint
from runtime.graph import END, START, StateGraph
from runtime.types import interrupt


@dataclasses.dataclass
class Message:
    role: str
    text: str


class State(TypedDict, total=False):
    count: int
    log: Annotated[list[str], operator.add]
    messages: Annotated[list[Message], operator.add]


def first(state):
    print("printed by a node", flush=True)
    os.system("echo printed by a child of a node")
    return {"count": state["count"] + 1, "log": ["first"], "messages": [Message("user", "hello")]}


async def second(state):
    if Path("broken").exists():
        raise ValueError("boom [bold]")
    return {"count": state["count"] * 10, "log": ["second"]}


def describe(*nodes):
    graph = StateGraph(State)
    before = START
    for node in nodes:
        graph.add_node(node)
        graph.add_edge(before, node.__name__)
        before = node.__name__
    return graph.add_edge(before, END)


def asking(state):
    return {"log": [interrupt("which colour?")]}


def kept(state):
    assert isinstance(state["message"], Message), state
    return {"log": [state["message"].text, *(message.role for message in state["messages"])]}


class Single(State):
    message: Message


def wanting(state, runtime):
    return {"log": [interrupt(f"for {runtime.context['who']}?")]}


def counting(state):
    return {"count": int(interrupt("how many?"))}


@entrypoint()
def flow(given):
    return f"made of {given}"


receiving = StateGraph(Single).add_node(kept).add_edge(START, "kept")
contextual = StateGraph(State, context_schema=dict).add_node(wanting).add_edge(START, "wanting")
graph = describe(first, second)
compiled = graph.compile()
own = graph.compile(InMemorySaver())
both = StateGraph(State).add_node("one", asking).add_node("two", asking).add_edge(START, "one").add_edge(START, "two")
paused = graph.compile(interrupt_before=["second"])
questioning = describe(asking)
numbers = describe(counting)


def build():
    return describe(first, second)


async def build_slowly():
    return describe(first, second).compile()


def build_for(tenant):
    return graph


def build_badly():
    raise RuntimeError("no graph today")


not_a_graph = 7
headless = StateGraph(State).add_node(first)
"""


@dataclass
class Result:
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """The JSON document on standard output, which must be all there is."""
        return json.loads(self.out)

    @property
    def error(self) -> Any:
        """The JSON error on standard error."""
        return json.loads(self.err)["error"]


Command = Callable[..., Result]


def environment() -> dict[str, str]:
    """Return the environment of a command's process: neither a terminal nor a width is known."""
    kept = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "FORCE_COLOR")}
    return {**kept, "PYTHONPATH": str(ROOT)}
