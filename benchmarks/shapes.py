"""The shapes of graph that LangGraph's own benchmarks time, written anew, once for every side.

Each builder returns a compiled graph and the input of a run. Nodes do next to nothing: what is timed is the engine.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

from benchmarks.graphs import chain

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from benchmarks.peers import Side

FIELDS = 12
"""Fields of a wide state beside its log."""
TURNS = 5
"""Supersteps that a wide state passes through."""


@dataclass(frozen=True)
class Shape:
    """A graph ready to run, what to give it, and what its result must satisfy."""

    graph: Any
    given: Any
    right: Callable[[Any], bool]


class Subjects(TypedDict):
    """Subjects to write about, and what was written."""

    subjects: list[str]
    texts: Annotated[list[str], operator.add]


class Draft(TypedDict):
    """One text in the making."""

    subject: str
    text: str
    revision: int
    texts: Annotated[list[str], operator.add]


def fan_out_to_subgraph(side: Side, width: int, saver: object = None) -> Shape:
    """Send each of ``width`` subjects to a subgraph of three nodes, one of which runs until it is content."""

    async def outline(state: Draft) -> dict[str, Any]:
        return {"text": f"about {state['subject']}", "revision": 0}

    async def revise(state: Draft) -> dict[str, Any]:
        return {"text": state["text"] + "!", "revision": state["revision"] + 1}

    async def publish(state: Draft) -> dict[str, Any]:
        return {"texts": [state["text"]]}

    async def content(state: Draft) -> str:
        return "publish" if state["revision"] > 1 else "revise"

    async def each(state: Subjects) -> list[Any]:
        return [side.send("write", {"subject": subject}) for subject in state["subjects"]]

    inner = side.state_graph(Draft)
    inner.add_node("outline", outline)
    inner.add_node("revise", revise)
    inner.add_node("publish", publish)
    inner.add_edge(side.start, "outline")
    inner.add_edge("outline", "revise")
    inner.add_conditional_edges("revise", content, ["revise", "publish"])
    inner.add_edge("publish", side.end)
    outer = side.state_graph(Subjects)
    outer.add_node("write", inner.compile())
    outer.add_conditional_edges(side.start, each, ["write"])
    outer.add_edge("write", side.end)
    return Shape(
        outer.compile(checkpointer=saver),
        {"subjects": [f"subject {number}" for number in range(width)]},
        lambda result: len(result["texts"]) == width,
    )


def react_agent(side: Side, turns: int, saver: object = None) -> Shape:
    """Let a model that is a script call a tool ``turns`` times, in a conversation that keeps every message."""
    whole = 2 * turns + 2
    schema: Any = _typed_dict("Conversation", {"messages": Annotated[list[Any], side.add_messages]})

    async def model(state: Any) -> dict[str, Any]:
        turn = len(state["messages"]) // 2
        if turn == turns:
            return {"messages": [{"role": "assistant", "content": "done", "id": f"a{turn}"}]}
        call = {"name": "look", "args": {"at": turn}, "id": f"call{turn}", "type": "tool_call"}
        return {"messages": [{"role": "assistant", "content": "", "tool_calls": [call], "id": f"a{turn}"}]}

    async def tool(state: Any) -> dict[str, Any]:
        number = len(state["messages"]) // 2
        answer = {"role": "tool", "content": f"saw {number}", "tool_call_id": f"call{number - 1}", "id": f"t{number}"}
        return {"messages": [answer]}

    async def further(state: Any) -> str:
        return "tool" if len(state["messages"]) < whole else side.end

    builder = side.state_graph(schema)
    builder.add_node("model", model)
    builder.add_node("tool", tool)
    builder.add_edge(side.start, "model")
    builder.add_conditional_edges("model", further, ["tool", side.end])
    builder.add_edge("tool", "model")
    question = {"role": "user", "content": "look around", "id": "u"}
    return Shape(
        builder.compile(checkpointer=saver),
        {"messages": [question]},
        lambda result: len(result["messages"]) == whole,
    )


def wide_state(side: Side, length: int, saver: object = None) -> Shape:
    """Pass a state of a dozen lists of ``length`` small dicts through five supersteps that each change a few."""
    fields = {f"f{number}": Annotated[list, operator.add] if number % 3 == 0 else list for number in range(FIELDS)}
    return _passed_on(side, _typed_dict("Wide", {"log": Annotated[list, operator.add], **fields}), length, saver)


class Whole(TypedDict):
    """A log, and everything else in one dict."""

    log: Annotated[list[int], operator.add]
    all: Annotated[dict[str, Any], operator.or_]


def wide_dict(side: Side, length: int, saver: object = None) -> Shape:
    """Do the same with the dozen lists in one dict that each superstep merges into."""

    async def step(state: Any) -> dict[str, Any]:
        turn = len(state["log"])
        return {"log": [turn], "all": {f"f{turn}": _records(1)}}

    given = {"log": [], "all": {f"f{number}": _records(length) for number in range(FIELDS)}}
    return Shape(_turns(side, Whole, step, saver), given, lambda result: len(result["log"]) == TURNS)


def pydantic_state(side: Side, length: int, saver: object = None) -> Shape:
    """Do the same with a pydantic model as state, which validates what each node gets."""
    from pydantic import create_model  # noqa: PLC0415 - a package that may be missing

    fields: dict[str, Any] = {
        f"f{number}": (Annotated[list, operator.add] if number % 3 == 0 else list, ...) for number in range(FIELDS)
    }
    fields["log"] = (Annotated[list, operator.add], ...)
    schema: Any = create_model("WideModel", **fields)
    return _passed_on(side, schema, length, saver)


def sequential(side: Side, nodes: int, saver: object = None) -> Shape:
    """Chain ``nodes`` nodes that each count one up and note it."""
    return Shape(chain(side, nodes, saver), {"count": 0, "trail": []}, lambda result: result["count"] == nodes)


SHAPES: dict[str, tuple[Callable[..., Shape], Sequence[int], Sequence[int]]] = {
    "fan-out to subgraph": (fan_out_to_subgraph, (10, 100), (10,)),
    "react agent": (react_agent, (10, 100), (10,)),
    "wide state": (wide_state, (300,), (50,)),
    "wide dict": (wide_dict, (300,), (50,)),
    "pydantic state": (pydantic_state, (300,), (50,)),
    "sequential": (sequential, (10, 1000), (10,)),
}
"""By name: the builder, its sizes in full, its sizes when quick."""


def _typed_dict(name: str, fields: dict[str, Any]) -> Any:
    return TypedDict(name, fields)  # type: ignore[operator]


def _passed_on(side: Side, schema: Any, length: int, saver: object) -> Shape:
    async def step(state: Any) -> dict[str, Any]:
        log = state["log"] if isinstance(state, dict) else state.log
        turn = len(log)
        return {"log": [turn], f"f{turn}": _records(1), f"f{turn + TURNS}": _records(1)}

    given = {"log": [], **{f"f{number}": _records(length) for number in range(FIELDS)}}
    return Shape(_turns(side, schema, step, saver), given, lambda result: len(result["log"]) == TURNS)


def _turns(side: Side, schema: Any, step: Any, saver: object) -> Any:
    builder = side.state_graph(schema)
    previous = side.start
    for number in range(TURNS):
        builder.add_node(f"n{number}", step)
        builder.add_edge(previous, f"n{number}")
        previous = f"n{number}"
    builder.add_edge(previous, side.end)
    return builder.compile(checkpointer=saver)


def _records(length: int) -> list[Any]:
    return [{"id": number, "text": f"record {number}", "tags": ["a", "b"]} for number in range(length)]
