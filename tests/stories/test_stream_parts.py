"""``version="v2"``: every chunk is a part that says what it is, and the output keeps questions apart."""

from __future__ import annotations

import operator
from dataclasses import dataclass, field
from typing import Annotated, Any

import msgspec
import pydantic
import pytest

from runtime.config import get_stream_writer
from runtime.errors import ConfigError
from runtime.func import entrypoint
from runtime.graph import START, StateGraph
from runtime.types import Command, GraphOutput, StreamPart, interrupt
from tests.stories.graphs import CONFIG, Log, chain, collect, thread

EVERYTHING = ["values", "updates", "custom", "tasks", "checkpoints", "debug"]


class Model(pydantic.BaseModel):
    """A state that is validated."""

    log: Annotated[list[str], operator.add] = []
    x: int
    y: int = 3


class Struct(msgspec.Struct):
    """A state that msgspec builds."""

    log: Annotated[list[str], operator.add] = []
    x: int = 0
    y: int = 3


@dataclass
class Data:
    """A state that Python builds."""

    log: Annotated[list[str], operator.add] = field(default_factory=list)
    x: int = 0
    y: int = 3


def ask(_state: Any) -> dict[str, Any]:
    """Ask, and note the answer."""
    get_stream_writer()("asking")
    return {"log": [interrupt("really?")]}


def parts(stream: Any) -> Any:
    """Return parts without what differs from run to run."""
    return [{key: value for key, value in part.items() if key != "durable_upto"} for part in stream]


async def test_parts_say_what_they_are(saver: Any) -> None:
    graph = chain("one", ("ask", ask)).compile(saver)
    chunks: list[StreamPart] = await collect(
        graph.astream({"a": 1}, CONFIG, stream_mode=["values", "updates", "custom"], version="v2")
    )
    [question] = (await graph.aget_state(CONFIG)).interrupts
    assert parts(chunks) == [
        {"type": "values", "ns": (), "data": {"a": 1, "log": []}, "interrupts": ()},
        {"type": "updates", "ns": (), "data": {"one": {"log": ["one"]}}},
        {"type": "values", "ns": (), "data": {"a": 1, "log": ["one"]}, "interrupts": ()},
        {"type": "custom", "ns": (), "data": "asking"},
        {"type": "updates", "ns": (), "data": {"__interrupt__": (question,)}},
        {"type": "values", "ns": (), "data": {"a": 1, "log": ["one"]}, "interrupts": (question,)},
    ]
    assert parts(await collect(graph.astream(Command(resume="yes"), CONFIG, version="v2"))) == [
        {"type": "updates", "ns": (), "data": {"ask": {"log": ["yes"]}}}
    ]


async def test_parts_hold_what_the_tuples_hold(saver: Any) -> None:
    """One run tells the same, in either form."""
    child = chain("inner").compile()
    graph = chain("one", ("sub", child)).compile(saver)
    options: dict[str, Any] = {"stream_mode": EVERYTHING, "subgraphs": True}
    plain = await collect(graph.astream({"a": 1}, thread("1"), **options))
    told = await collect(graph.astream({"a": 1}, thread("2"), version="v2", **options))
    assert [(len(ns), mode) for ns, mode, _ in plain] == [(len(part["ns"]), part["type"]) for part in told]
    for (_, mode, payload), part in zip(plain, told, strict=True):
        if mode in ("values", "updates"):
            assert payload == part["data"]
        elif mode != "debug":
            assert payload.keys() == part["data"].keys()


@pytest.mark.parametrize("schema", [Model, Struct, Data])
async def test_state_comes_as_its_class(saver: Any, schema: Any) -> None:
    graph = chain("one", ("ask", ask), schema=schema).compile(saver)
    options: dict[str, Any] = {"stream_mode": ["values", "tasks", "checkpoints"], "version": "v2"}
    chunks = await collect(graph.astream({"log": ["in"], "x": 1}, CONFIG, **options))
    states = [part["data"] for part in chunks if part["type"] == "values"]
    assert states == [schema(log=log, x=1, y=3) for log in (["in"], ["in", "one"], ["in", "one"])]
    shown = [part["data"]["values"] for part in chunks if part["type"] == "checkpoints"]
    assert shown[1:] == [schema(log=log, x=1, y=3) for log in (["in"], ["in", "one"])]
    inputs = [part["data"]["input"] for part in chunks if part["type"] == "tasks" and "input" in part["data"]]
    assert inputs == states[:2]
    output = await graph.ainvoke(Command(resume="yes"), CONFIG, version="v2")
    assert output == GraphOutput(schema(log=["in", "one", "yes"], x=1, y=3))


async def test_the_output_schema_decides() -> None:
    class Shown(pydantic.BaseModel):
        log: list[str]

    builder = StateGraph(Model, output_schema=Shown)
    graph = builder.add_node("one", lambda _state: {"log": ["one"]}).add_edge(START, "one").compile()
    assert await graph.ainvoke({"x": 1}, version="v2") == GraphOutput(Shown(log=["one"]))
    last = (await collect(graph.astream({"x": 1}, stream_mode="values", version="v2")))[-1]
    assert last["data"] == Shown(log=["one"])


async def test_values_that_make_no_instance_come_as_they_are() -> None:
    """A run does not fail because of how it is looked at."""
    graph = chain("one", schema=Model).compile()
    assert (await graph.ainvoke({"x": 1}, output_keys=["log"], version="v2")).value == {"log": ["one"]}


async def test_the_output_keeps_questions_apart(saver: Any) -> None:
    graph = chain("one", ("ask", ask)).compile(saver)
    paused = await graph.ainvoke({"a": 1}, CONFIG, version="v2")
    assert paused.value == {"a": 1, "log": ["one"]}
    assert [question.value for question in paused.interrupts] == ["really?"]
    assert await graph.ainvoke(Command(resume="yes"), CONFIG, version="v2") == GraphOutput(
        {"a": 1, "log": ["one", "yes"]}
    )
    stopped = await graph.ainvoke({"a": 2}, thread("2"), version="v2", interrupt_before="*")
    assert stopped == GraphOutput({"a": 2, "log": []}, ())


async def test_a_workflow_returns_its_value(saver: Any) -> None:
    @entrypoint(saver)
    async def flow(number: int) -> int:
        return number + int(interrupt("more?"))

    paused = await flow.ainvoke(1, CONFIG, version="v2")
    assert (paused.value, len(paused.interrupts)) == ({}, 1)
    assert await flow.ainvoke(Command(resume=2), CONFIG, version="v2") == GraphOutput(3)
    [asked] = await collect(flow.astream(1, thread("2"), stream_mode="values", version="v2"))
    assert (asked["data"], len(asked["interrupts"])) == ({}, 1)


async def test_other_modes_return_a_list_of_parts() -> None:
    graph = chain("one").compile()
    assert parts(await graph.ainvoke({}, stream_mode="updates", version="v2")) == [
        {"type": "updates", "ns": (), "data": {"one": {"log": ["one"]}}}
    ]
    assert await graph.ainvoke({"a": 1}, stream_mode=["updates", "values"]) == [
        ("values", {"a": 1, "log": []}),
        ("updates", {"one": {"log": ["one"]}}),
        ("values", {"a": 1, "log": ["one"]}),
    ]


async def test_a_failing_node_ends_a_stream_of_parts() -> None:
    def fail(_state: Log) -> None:
        msg = "boom"
        raise ValueError(msg)

    chunks: list[Any] = []
    with pytest.raises(ValueError, match="boom"):
        async for part in chain("one", ("fail", fail)).compile().astream({}, version="v2"):
            chunks.append(part)
    assert [part["data"] for part in chunks] == [{"one": {"log": ["one"]}}]


def test_the_blocking_door_takes_the_version_too() -> None:
    graph = chain("one").compile()
    assert graph.invoke({"a": 1}, version="v2") == GraphOutput({"a": 1, "log": ["one"]})
    assert [part["type"] for part in graph.stream({"a": 1}, version="v2")] == ["updates"]


@pytest.mark.parametrize("version", ["v3", "", None, 2])
async def test_an_unknown_version_is_refused(version: Any) -> None:
    graph = chain("one").compile()
    with pytest.raises(ConfigError, match=r"version must be one of 'v1', 'v2'"):
        graph.astream({}, version=version)
    with pytest.raises(ConfigError, match=r"version must be one of 'v1', 'v2'"):
        await graph.ainvoke({}, version=version)


def test_an_output_may_be_read_as_the_dict_that_it_was() -> None:
    asked: Any = ("question",)
    output = GraphOutput({"a": 1}, asked)
    for value, made in ((1, output), (1, GraphOutput(Data(x=1)))):
        with pytest.warns(DeprecationWarning, match="move over"):
            assert made["a" if made is output else "x"] == value
        with pytest.warns(DeprecationWarning, match="move over"):
            assert ("a" if made is output else "x") in made
        with pytest.warns(DeprecationWarning, match="move over"):
            assert ("__interrupt__" in made) == (made is output)
        with pytest.warns(DeprecationWarning, match="move over"), pytest.raises(KeyError):
            made["nothing"]
    with pytest.warns(DeprecationWarning, match="move over"):
        assert output["__interrupt__"] == asked
