"""Modes: however many are asked for, they tell the same run, in the order in which it happened."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from persistence.memory import InMemorySaver
from runtime.errors import GraphRecursionError, InvalidUpdateError
from runtime.graph import START
from runtime.types import Command, GraphOutput, interrupt
from runtime.types.streams import STREAM_MODES
from tests.runtime.engine.reference import Conflict, LimitReached, Reference, Sketch
from tests.runtime.engine.test_reference import CONFIG, build, sketches
from tests.stories.graphs import chain, collect, fan, thread

LOOPS = ["asyncio", "trio"]
INPUT = {"log": ["in"]}
SILENT = ("custom", "messages", "tools")
"""Modes that say nothing unless a node writes, or has or calls something that is heard."""

Chunk = tuple[str, Any]


async def told(sketch: Sketch, random: Any) -> tuple[Reference, list[Chunk], list[Any]]:
    """Return what should happen, what every mode told of it, and the checkpoints that are stored."""
    reference, chunks = Reference(sketch), list[Chunk]()
    graph = build(sketch, lambda: random.randint(0, 3)).compile(InMemorySaver())
    expected: type[BaseException] | None = None
    try:
        reference.input(INPUT)
    except (Conflict, LimitReached) as error:
        expected = type(error)
    try:
        async for chunk in graph.astream(INPUT, CONFIG, stream_mode=list(STREAM_MODES)):
            chunks.append(chunk)
    except (GraphRecursionError, InvalidUpdateError):
        assert expected is not None
    history = [one async for one in graph.aget_state_history(CONFIG)][::-1]
    return reference, chunks, history


@pytest.mark.slow
@pytest.mark.parametrize("backend", LOOPS)
@given(sketches(), st.randoms(use_true_random=False))
@settings(max_examples=40)
def test_all_modes_tell_the_same_run(backend: str, sketch: Sketch, random: Any) -> None:
    reference, chunks, history = anyio.run(told, sketch, random, backend=backend)
    by_mode = {mode: [payload for each, payload in chunks if each == mode] for mode in STREAM_MODES}
    check_checkpoints(by_mode["checkpoints"], history, reference)
    check_values(by_mode["values"], reference)
    check_tasks(chunks)
    check_debug(chunks)


def check_checkpoints(told_of: list[Any], history: list[Any], reference: Reference) -> None:
    """Every stored checkpoint is told of once, as it is read back."""
    assert [(one["config"], one["values"], sorted(one["next"]), one["metadata"]) for one in told_of] == [
        (one.config, one.values, sorted(one.next), one.metadata) for one in history
    ]
    assert [one["values"] for one in told_of] == [point.values for point in reference.points]


def check_values(told_of: list[Any], reference: Reference) -> None:
    """The state is told of after supersteps that changed it, so nothing of its way is missed."""
    after = [point.values for point in reference.points[1:]]
    states = iter(after)
    assert all(value in states for value in told_of)
    for earlier, later in pairwise(after):
        assert earlier == later or later in told_of or set(earlier) - set(later)


def check_tasks(chunks: list[Chunk]) -> None:
    """A task begins once and ends once, its update comes right before its end, and the state after all of them."""
    open_tasks: dict[str, str] = {}
    previous: Chunk = ("", None)
    for mode, payload in chunks:
        if mode == "tasks" and "triggers" in payload:
            assert payload["id"] not in open_tasks
            open_tasks[payload["id"]] = payload["name"]
        elif mode == "tasks":
            assert open_tasks.pop(payload["id"]) == payload["name"]
            assert payload["error"] is not None or (previous[0], set(previous[1])) == ("updates", {payload["name"]})
        elif mode in ("values", "checkpoints"):
            assert not open_tasks
        if mode != "debug":
            previous = (mode, payload)
    assert not open_tasks


def check_debug(chunks: list[Chunk]) -> None:
    """It wraps what tasks and checkpoints tell, one by one."""
    wrapped = [payload for mode, payload in chunks if mode in ("tasks", "checkpoints")]
    debug = [payload for mode, payload in chunks if mode == "debug"]
    assert [one["payload"] for one in debug] == wrapped
    kinds = {"checkpoint" if "config" in one else "task" if "triggers" in one else "task_result" for one in wrapped}
    assert {one["type"] for one in debug} == kinds


# ---- one mode or several ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", STREAM_MODES)
async def test_a_mode_alone_tells_what_it_tells_among_others(mode: str) -> None:
    def alike(chunk: Any) -> str:
        """Leave out what differs from run to run."""
        return "" if mode in ("checkpoints", "debug", "tasks") else repr(chunk)

    graph = chain("a", "b").compile(InMemorySaver())
    alone = await collect(graph.astream({"a": 1}, thread("1"), stream_mode=mode))
    among = await collect(graph.astream({"a": 1}, thread("2"), stream_mode=list(STREAM_MODES)))
    assert [alike(chunk) for chunk in alone] == [alike(payload) for each, payload in among if each == mode]
    assert await collect(graph.astream({"a": 1}, thread("3"), stream_mode=mode, subgraphs=True)) or mode in SILENT


async def test_updates_come_as_nodes_finish_and_fold_by_name() -> None:
    gates = {name: anyio.Event() for name in "abc"}

    def node(name: str, after: str | None) -> Any:
        async def run(_state: Any) -> Any:
            if after is not None:
                await gates[after].wait()
            gates[name].set()
            return {"log": [name]}

        return run

    graph = fan(("a", node("a", "b")), ("b", node("b", "c")), ("c", node("c", None)), first=None, last=None).compile()
    chunks = await collect(graph.astream({}, stream_mode=["updates", "values"]))
    assert [next(iter(payload)) for mode, payload in chunks if mode == "updates"] == ["c", "b", "a"]
    assert chunks[-1] == ("values", {"log": ["a", "b", "c"]})


async def test_the_start_is_hidden_from_tasks_and_updates() -> None:
    chunks = await collect(chain("a").compile().astream({}, stream_mode=["tasks", "updates"]))
    assert START not in {payload.get("name", next(iter(payload))) for _, payload in chunks}


async def test_keys_may_be_chosen_for_values_and_updates() -> None:
    async def node(_state: Any) -> Any:
        return {"a": 2, "log": ["node"]}

    graph = chain(("node", node)).compile()
    chunks = await collect(graph.astream({"a": 1}, stream_mode=["values", "updates"], output_keys=["a"]))
    assert chunks == [("values", {"a": 1}), ("updates", {"node": {"a": 2}}), ("values", {"a": 2})]


async def test_one_key_alone_is_told_by_its_value() -> None:
    async def node(_state: Any) -> Any:
        return [("log", ["one"]), ("log", ["two"])]

    def ask(_state: Any) -> Any:
        return {"a": interrupt("?")}

    graph = chain(("node", node), ("ask", ask)).compile(InMemorySaver())
    options: dict[str, Any] = {"stream_mode": ["values", "updates"], "output_keys": "log"}
    chunks = await collect(graph.astream({"log": ["in"]}, thread("t"), **options))
    [question] = (await graph.aget_state(thread("t"))).interrupts
    asked = {"__interrupt__": (question,)}
    assert chunks == [
        ("values", ["in"]),
        ("updates", {"node": [["one"], ["two"]]}),
        ("values", ["in", "one", "two"]),
        ("updates", asked),
        ("values", asked),
    ]
    assert await graph.ainvoke(None, thread("t"), output_keys="log") == {"__interrupt__": [question]}
    assert await graph.ainvoke(None, thread("t"), output_keys="log", version="v2") == GraphOutput({}, (question,))
    assert await collect(graph.astream(Command(resume=7), thread("t"), **options)) == [
        ("values", ["in", "one", "two"]),
        ("updates", {"ask": None}),
    ]
    assert await graph.ainvoke({"a": 1}, output_keys="a", version="v2", config=thread("u")) == GraphOutput(
        {}, (await graph.aget_state(thread("u"))).interrupts
    )


async def test_a_resumed_run_tells_first_where_it_starts_from() -> None:
    graph = chain("a", "b").compile(InMemorySaver(), interrupt_before=["b"])
    await graph.ainvoke({}, thread("t"))
    chunks = await collect(graph.astream(None, thread("t"), stream_mode=["values", "updates"]))
    assert chunks == [
        ("values", {"log": ["a"]}),
        ("updates", {"b": {"log": ["b"]}}),
        ("values", {"log": ["a", "b"]}),
    ]


async def test_updates_tell_of_questions_task_by_task_and_values_of_all() -> None:
    async def asks(_state: Any) -> Any:
        return {"log": [interrupt("1"), interrupt("2")]}

    graph = fan(("l", asks), ("r", asks), "m", first=None, last=None).compile(InMemorySaver())
    chunks = await collect(graph.astream({}, thread("t"), stream_mode=["updates", "values"]))
    left, right = (await graph.aget_state(thread("t"))).interrupts
    assert chunks[-3:] == [
        ("updates", {"__interrupt__": (left,)}),
        ("updates", {"__interrupt__": (right,)}),
        ("values", {"log": ["m"], "__interrupt__": (left, right)}),
    ]
    answers: Command[Any] = Command(resume={left.id: "one"})  # the other, which is not run, waits as before
    chunks = await collect(graph.astream(answers, thread("t"), stream_mode="updates"))
    asked = [question.value for chunk in chunks for question in chunk.get("__interrupt__", ())]
    assert asked == ["2", "1"]


async def test_several_writes_to_a_key_are_told_apart_in_results() -> None:
    async def writes_twice(_state: Any) -> Any:
        return [{"log": ["1"]}, Command(update={"log": ["2"]})]

    async def asks(_state: Any) -> Any:
        return {"log": [interrupt("?")]}

    graph = fan(("twice", writes_twice), ("ask", asks), first=None, last=None).compile(InMemorySaver())
    chunks = await collect(graph.astream({}, thread("t"), stream_mode=["updates", "tasks"]))
    assert ("updates", {"twice": [{"log": ["1"]}, {"log": ["2"]}]}) in chunks
    results = [chunk["result"] for _, chunk in chunks if "result" in chunk and chunk["name"] == "twice"]
    assert results == [{"log": {"$writes": [["1"], ["2"]]}}]
    chunks = await collect(graph.astream(None, thread("t"), stream_mode="checkpoints"))
    told_of = {task["name"]: task for task in chunks[0]["tasks"]}
    assert told_of["twice"]["result"] == {"log": {"$writes": [["1"], ["2"]]}}
    assert told_of["twice"]["interrupts"] == ()
    assert [question["value"] for question in told_of["ask"]["interrupts"]] == ["?"]
