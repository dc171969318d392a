"""The demo's graph: a topic is changed, a poem and a joke on it are written side by side, and put together."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, Literal, TypedDict

import anyio

from runtime.graph import END, START, StateGraph

Moment = Literal["start", "end"]
Witness = Callable[[str, Moment], Awaitable[None]]
"""Told when a node's code begins and ends."""

THINKING: Final = 0.03
"""Seconds the model takes for an answer."""
GIVEN: Final = {"topic": "cats"}
NODES: Final = ("change_topic", "poem", "joke", "output")


class State(TypedDict):
    """What the nodes share."""

    topic: str
    poem: str
    joke: str
    final_output: str


class Input(TypedDict):
    """What a run is given."""

    topic: str


class Output(TypedDict):
    """What a run returns."""

    final_output: str


async def ask_model(prompt: str) -> str:
    """Answer like a language model: after a while; but always the same."""
    await anyio.sleep(THINKING)
    kind, _, topic = prompt.partition(" on ")
    if kind == "a breed":
        return f"{topic}: ragdoll"
    if kind == "a poem":
        return f"Of {topic} I sing,\nsoft-footed, quick, and not to be told anything."
    return f"Why do {topic} never save? They always land on the same checkpoint."


async def unwatched(node: str, moment: Moment) -> None:
    """Watch nothing."""


def describe_graph(witness: Witness = unwatched) -> StateGraph[State]:
    """Return the graph, not yet compiled."""

    async def change_topic(state: Input) -> dict[str, str]:
        await witness("change_topic", "start")
        topic = await ask_model(f"a breed on {state['topic']}")
        await witness("change_topic", "end")
        return {"topic": topic}

    async def poem(state: State) -> dict[str, str]:
        await witness("poem", "start")
        text = await ask_model(f"a poem on {state['topic']}")
        await witness("poem", "end")
        return {"poem": text}

    async def joke(state: State) -> dict[str, str]:
        await witness("joke", "start")
        text = await ask_model(f"a joke on {state['topic']}")
        await witness("joke", "end")
        return {"joke": text}

    async def output(state: State) -> dict[str, str]:
        await witness("output", "start")
        text = f"{state['topic']}\n\n{state['poem']}\n\n{state['joke']}"
        await witness("output", "end")
        return {"final_output": text}

    graph = StateGraph[State](State, input_schema=Input, output_schema=Output)
    for node in (change_topic, poem, joke, output):
        graph.add_node(node)
    graph.add_edge(START, "change_topic")
    graph.add_edge("change_topic", "poem")
    graph.add_edge("change_topic", "joke")
    graph.add_edge("poem", "output")
    graph.add_edge("joke", "output")
    graph.add_edge("output", END)
    return graph
