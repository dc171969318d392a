"""From a schema to what nodes get, what they may return and what the caller sees."""

import operator
from collections import UserDict
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Annotated, Any, NotRequired, Required, TypedDict

import pytest
from pydantic import BaseModel

from runtime.channels import Topic
from runtime.errors import InvalidUpdateError
from runtime.graph import END, START, StateGraph
from runtime.managed import RemainingSteps
from runtime.types import Command
from tests.stories.graphs import CONFIG, Log, chain, note

pytestmark = pytest.mark.anyio


# Input, output and private keys


class Full(TypedDict, total=False):
    q: str
    ans: str
    mid: str


class In(TypedDict):
    q: str


class Out(TypedDict, total=False):
    ans: str


class Private(TypedDict, total=False):
    sec: str
    q: str


def filtered(saver: Any, seen: list[Any]) -> Any:
    async def n1(state: Full) -> Private:
        seen.append(dict(state))
        return {"sec": "S", "mid": "m"}  # type: ignore[typeddict-unknown-key]

    async def n2(state: Private) -> Out:
        seen.append(dict(state))
        return {"ans": state["sec"] + state["q"]}

    builder = StateGraph(Full, input_schema=In, output_schema=Out)
    builder.add_node("n1", n1)
    builder.add_node("n2", n2)
    builder.add_edge(START, "n1")
    builder.add_edge("n1", "n2")
    return builder.compile(checkpointer=saver)


async def test_input_and_output_are_filtered_by_their_schemas(saver: Any) -> None:
    seen: list[Any] = []
    graph = filtered(saver, seen)
    assert await graph.ainvoke({"q": "Q", "ans": "zz", "sec": "x"}, CONFIG) == {"ans": "SQ"}
    assert seen == [{"q": "Q"}, {"sec": "S", "q": "Q"}]
    snapshot = await graph.aget_state(CONFIG)
    assert snapshot.values == {"q": "Q", "ans": "SQ", "mid": "m", "sec": "S"}


class Unregistered(dict[str, Any]):
    """A mapping that no store knows to rebuild."""


@pytest.mark.parametrize("mapping", [Unregistered, MappingProxyType, UserDict])
async def test_any_mapping_brings_the_keys_of_the_input(saver: Any, mapping: Any) -> None:
    graph = chain("n").compile(checkpointer=saver)
    assert (await graph.ainvoke(mapping({"a": 1}), CONFIG)) == {"a": 1, "log": ["n"]}
    assert (await graph.ainvoke(mapping({"a": 2}), CONFIG)) == {"a": 2, "log": ["n", "n"]}


async def test_the_values_stream_shows_the_keys_of_all_schemas(saver: Any) -> None:
    graph = filtered(saver, [])
    chunks = [chunk async for chunk in graph.astream({"q": "Q"}, CONFIG, stream_mode="values")]
    assert chunks == [
        {"q": "Q"},
        {"q": "Q", "mid": "m", "sec": "S"},
        {"q": "Q", "ans": "SQ", "mid": "m", "sec": "S"},
    ]


async def test_a_node_gets_only_the_keys_of_its_input_schema() -> None:
    seen: list[Any] = []

    class Part(TypedDict):
        a: int

    builder = StateGraph(Log)
    builder.add_node("by_argument", seen.append, input_schema=Part)
    builder.add_edge(START, "by_argument")
    await builder.compile().ainvoke({"a": 1, "log": ["x"]})
    assert seen == [{"a": 1}]


async def test_absent_keys_are_absent_in_the_node_input() -> None:
    seen: list[Any] = []
    await chain(("n", lambda state: seen.append(dict(state)))).compile().ainvoke({})
    assert seen == [{"log": []}]


async def test_unknown_keys_of_an_update_are_dropped() -> None:
    graph = chain(("n", lambda _state: {"zz": 1, "a": 2})).compile()
    assert await graph.ainvoke({"a": 1, "unknown": 3}) == {"a": 2, "log": []}


async def test_required_and_not_required_are_unwrapped() -> None:
    class State(TypedDict):
        must: Required[Annotated[list[int], operator.add]]
        may: NotRequired[int]

    graph = chain(("n", lambda _state: {"must": [2], "may": 3}), schema=State).compile()
    assert await graph.ainvoke({"must": [1]}) == {"must": [1, 2], "may": 3}


async def test_the_same_key_in_two_schemas_shares_a_channel() -> None:
    class Plain(TypedDict, total=False):
        log: list[str]

    builder = StateGraph(Log, output_schema=Plain)
    builder.add_node("n", note("n"))
    builder.add_edge(START, "n")
    assert await builder.compile().ainvoke({"log": ["in"]}) == {"log": ["in", "n"]}


def test_two_different_channels_for_one_key_are_refused() -> None:
    class Other(TypedDict, total=False):
        log: Annotated[list[str], Topic(str)]

    with pytest.raises(ValueError, match="log"):
        StateGraph(Log, input_schema=Other)


def test_managed_values_cannot_be_input_or_output() -> None:
    class State(TypedDict, total=False):
        a: int
        left: RemainingSteps

    with pytest.raises(ValueError, match="left"):
        StateGraph(Log, input_schema=State)
    with pytest.raises(ValueError, match="left"):
        StateGraph(Log, output_schema=State)


async def test_a_schema_without_keys_passes_bare_values(saver: Any) -> None:
    builder = StateGraph(Annotated[list, operator.add])
    builder.add_node("n", lambda state: [len(state)])
    builder.add_edge(START, "n")
    graph = builder.compile(checkpointer=saver)
    assert await graph.ainvoke(["x"], CONFIG) == ["x", 1]
    assert (await graph.aget_state(CONFIG)).values == ["x", 1]
    assert await graph.ainvoke(["y"], CONFIG) == ["x", 1, "y", 3]


# Dataclass and pydantic state


@dataclass
class Data:
    a: int = 5
    log: Annotated[list[str], operator.add] = field(default_factory=lambda: ["default"])


async def test_dataclass_state_reaches_nodes_as_an_instance(saver: Any) -> None:
    seen: list[Any] = []

    async def n(state: Data) -> dict[str, Any]:
        seen.append(state)
        return {"a": state.a + 1}

    graph = chain(("n", n), schema=Data).compile(checkpointer=saver)
    assert await graph.ainvoke({"a": 1}, CONFIG) == {"a": 2, "log": []}
    assert seen == [Data(a=1, log=[])]


async def test_a_dataclass_default_fills_a_missing_plain_key() -> None:
    seen: list[Any] = []
    await chain(("n", lambda state: seen.append(state.a)), schema=Data).compile().ainvoke({"log": []})
    assert seen == [5]


class Model(BaseModel):
    x: int
    y: int = 10


async def test_a_pydantic_node_input_is_validated_and_coerced() -> None:
    seen: list[Any] = []

    async def n(state: Model) -> dict[str, Any]:
        seen.append(state)
        return {"y": state.x}

    await chain(("n", n), schema=Model).compile().ainvoke({"x": "3"})
    assert seen == [Model(x=3, y=10)]


async def test_a_pydantic_instance_is_a_valid_input(saver: Any) -> None:
    graph = chain(("n", lambda state: {"y": state.x + state.y}), schema=Model).compile(checkpointer=saver)
    assert await graph.ainvoke(Model(x=1, y=2), CONFIG) == {"x": 1, "y": 3}


async def test_an_instance_as_input_brings_its_defaults_but_replaces_nothing(saver: Any) -> None:
    @dataclass
    class State:
        n: int = 0
        name: str = "nobody"
        log: Annotated[list[str], operator.add] = field(default_factory=lambda: ["begun"])

    graph = chain(("n", lambda _state: {"log": ["n"]}), schema=State).compile(checkpointer=saver)
    first = await graph.ainvoke(State(name="Ann"), CONFIG)
    assert first == {"n": 0, "name": "Ann", "log": ["begun", "n"]}
    again = await graph.ainvoke(State(n=2), CONFIG)
    assert again == {"n": 2, "name": "Ann", "log": ["begun", "n", "n"]}


# Node returns


@pytest.mark.parametrize("nothing", [None, {}])
async def test_none_and_the_empty_dict_change_nothing(nothing: Any, saver: Any) -> None:
    graph = chain(("n", lambda _state: nothing)).compile(checkpointer=saver)
    assert await graph.ainvoke({"a": 1}, CONFIG) == {"a": 1, "log": []}


async def test_a_list_may_mix_commands_and_dicts() -> None:
    builder = StateGraph(Log)
    builder.add_node("n", lambda _state: [Command(update={"a": 1}, goto="m"), {"log": ["dict"]}])
    builder.add_node("m", note("m"))
    builder.add_edge(START, "n")
    assert await builder.compile().ainvoke({}) == {"a": 1, "log": ["dict", "m"]}


@pytest.mark.parametrize("wrong", [1, "text", ["text"], object()])
async def test_any_other_return_value_is_refused(wrong: Any, saver: Any) -> None:
    graph = chain(("n", lambda _state: wrong)).compile(checkpointer=saver)
    with pytest.raises(InvalidUpdateError, match="Expected dict"):
        await graph.ainvoke({"a": 1}, CONFIG)
    assert (await graph.aget_state(CONFIG)).next == ("n",)


# What the builder refuses


def builder_with(*names: str) -> StateGraph:
    builder = StateGraph(Log)
    for name in names:
        builder.add_node(name, note(name))
    return builder


def test_a_graph_needs_an_entry() -> None:
    with pytest.raises(ValueError, match="(?i)entry|START"):
        builder_with("a").compile()


def test_edges_name_known_nodes() -> None:
    for source, target in (("a", "nope"), ("nope", "a")):
        builder = builder_with("a")
        builder.add_edge(START, "a")
        with pytest.raises(ValueError, match="nope"):
            builder.add_edge(source, target).compile()


def test_a_join_names_known_nodes() -> None:
    builder = builder_with("a")
    builder.add_edge(START, "a")
    with pytest.raises(ValueError, match="nope"):
        builder.add_edge(["a", "nope"], "a").compile()


def test_a_path_map_names_known_nodes() -> None:
    builder = builder_with("a")
    builder.add_edge(START, "a")
    builder.add_conditional_edges("a", lambda _state: "x", {"x": "nope"})
    with pytest.raises(ValueError, match="nope"):
        builder.compile()


def test_a_name_is_used_once() -> None:
    with pytest.raises(ValueError, match="a"):
        builder_with("a", "a")


@pytest.mark.parametrize("name", [START, END, "with|bar", "with:colon"])
def test_reserved_names_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        builder_with(name)


def test_end_is_no_source_and_start_no_target() -> None:
    builder = builder_with("a")
    with pytest.raises(ValueError, match=r".+"):
        builder.add_edge(END, "a")
    with pytest.raises(ValueError, match=r".+"):
        builder.add_edge("a", START)


def test_a_branch_is_added_once() -> None:
    def route(_state: Any) -> str:
        return END

    builder = builder_with("a")
    builder.add_conditional_edges("a", route)
    with pytest.raises(ValueError, match="route"):
        builder.add_conditional_edges("a", route)


@pytest.mark.parametrize("option", ["interrupt_before", "interrupt_after"])
def test_breakpoints_at_compile_time_name_known_nodes(option: str) -> None:
    options: Any = {option: ["nope"]}
    with pytest.raises(ValueError, match="nope"):
        chain("a").compile(**options)


async def test_unreachable_nodes_and_nodes_named_like_keys_are_allowed() -> None:
    builder = builder_with("a", "log", "island")
    builder.add_edge(START, "a")
    builder.add_edge("a", "log")
    assert (await builder.compile().ainvoke({}))["log"] == ["a", "log"]
