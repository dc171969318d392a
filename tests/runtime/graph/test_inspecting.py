"""What a compiled graph tells of itself: nodes that can be called alone, subgraphs, JSON schemas."""

# Annotations are evaluated at once here: the classes below are local to their tests.
import operator
import sys
from dataclasses import dataclass
from typing import Annotated, Any, Required, TypedDict

import msgspec
import pydantic
import pytest

from persistence.memory import InMemorySaver, InMemoryStore
from runtime.channels import Topic
from runtime.errors import ConfigError
from runtime.func import entrypoint, task
from runtime.graph import START, StateGraph
from runtime.runtime import Runtime
from runtime.types import Command, interrupt
from tests.stories.graphs import CONFIG, Log, chain, note


async def test_a_node_is_called_alone() -> None:
    graph = chain("a", ("b", lambda state: {"a": state["a"] + 1})).compile(InMemorySaver())
    assert list(graph.nodes) == [START, "a", "b"]
    assert await graph.nodes["b"].ainvoke({"a": 1}) == {"a": 2}
    assert await graph.nodes[START].ainvoke({"a": 1}) == {"a": 1}
    assert repr(graph.nodes["a"]) == "<node 'a'>"
    assert (await graph.aget_state(CONFIG)).created_at is None  # nothing was saved


def test_a_node_is_called_alone_and_waited_for() -> None:
    graph = chain(("b", lambda state: {"a": state["a"] + 1})).compile()
    assert graph.nodes["b"].invoke({"a": 1}) == {"a": 2}


async def test_a_lone_node_gets_what_its_function_asks_for() -> None:
    async def node(_state: Any, config: dict[str, Any], runtime: Runtime[str]) -> dict[str, Any]:
        await runtime.store.aput(("n",), "k", {"v": 1})
        return {"log": [config["configurable"]["user"], runtime.context]}

    store = InMemoryStore()
    graph = chain(("n", node)).compile(store=store)
    config = {"configurable": {"user": "Ann"}}
    assert await graph.nodes["n"].ainvoke({}, config, context="here") == {"log": ["Ann", "here"]}
    assert await store.aget(("n",), "k") is not None


async def test_a_lone_node_returns_a_command_as_it_is() -> None:
    graph = chain(("n", lambda _state: Command(goto="m")), "m").compile()
    assert await graph.nodes["n"].ainvoke({}) == Command(goto="m")


async def test_a_lone_node_runs_the_tasks_and_the_graph_that_it_consists_of() -> None:
    @task
    async def twice(number: int) -> int:
        return number * 2

    async def node(state: Any) -> dict[str, Any]:
        return {"a": await twice(state["a"])}

    inner = chain(("n", node)).compile()
    graph = chain(("sub", inner)).compile()
    assert await graph.nodes["sub"].ainvoke({"a": 2}) == {"a": 4, "log": []}


async def test_a_lone_nodes_failure_is_its_own() -> None:
    graph = chain(("n", lambda state: state["missing"])).compile()
    with pytest.raises(KeyError, match="missing"):
        await graph.nodes["n"].ainvoke({})


async def nested() -> Any:
    innermost = chain("x").compile()
    inner = chain(("in", innermost)).compile()

    async def calls(state: Any) -> Any:
        return await inner.ainvoke(state)

    return chain("plain", ("out", inner), ("calls", calls)).compile()


async def test_subgraphs_are_told_by_the_names_of_their_nodes() -> None:
    graph = await nested()
    assert [name for name, _ in graph.get_subgraphs()] == ["out", "calls"]
    names = [name for name, _ in graph.get_subgraphs(recurse=True)]
    assert names == ["out", "out|in", "calls", "calls|in"]
    assert [name async for name, _ in graph.aget_subgraphs(recurse=True)] == names
    ((name, found),) = graph.get_subgraphs(namespace="out|in")
    assert (name, await found.ainvoke({})) == ("out|in", {"log": ["x"]})
    assert list(graph.get_subgraphs(namespace="plain")) == []
    assert [name for name, _ in graph.get_subgraphs(namespace="out", recurse=True)] == ["out"]


class Elsewhere:
    """A proxy with nothing behind it yet: whatever it is asked for, it fails."""

    @property  # type: ignore[misc]  # a proxy's is one
    def __class__(self) -> type:
        """Fail."""
        raise RuntimeError

    def __getattr__(self, name: str) -> Any:
        """Fail."""
        raise RuntimeError(name)


class Sealed(list[Any]):
    """A list that cannot be gone through."""

    def __iter__(self) -> Any:
        """Fail."""
        raise RuntimeError


async def test_what_else_a_node_refers_to_is_let_be() -> None:
    proxy, sealed, huge = Elsewhere(), Sealed([1]), {number: number for number in range(5_000)}
    inner = chain("x").compile()

    def node(_state: Any) -> dict[str, list[str]]:
        return {"log": [type(each).__name__ for each in (proxy, sealed, huge, inner)]}

    graph = chain(("n", node)).compile()
    assert (await graph.ainvoke({}))["log"] == ["Elsewhere", "Sealed", "dict", "CompiledStateGraph"]
    assert dict(graph.get_subgraphs()) == {"n": inner}


async def test_a_subgraph_is_told_as_it_was_configured() -> None:
    seen: list[Any] = []

    async def node(_state: Any, config: dict[str, Any]) -> None:
        seen.append(config["metadata"]["from"])

    inner = chain(("n", node)).compile().with_config(metadata={"from": "inside"})
    ((_, found),) = chain(("sub", inner)).compile().get_subgraphs()
    await found.ainvoke({})
    assert seen == ["inside"]


class Given(TypedDict, total=False):
    """What is asked."""

    question: Required[str]
    tone: str


class Returned(TypedDict):
    answer: str


class Whole(Given, Returned):
    steps: Annotated[list[int], Topic(int)]


@dataclass
class User:
    name: str


TEXT = {"type": "string"}


def test_json_schemas_of_what_comes_and_goes() -> None:
    builder = StateGraph(Whole, input_schema=Given, output_schema=Returned, context_schema=User)
    graph = builder.add_node("n", note("n")).add_edge(START, "n").compile(name="asking")
    assert graph.get_name() == "asking"
    assert sorted(graph.channels) == ["answer", "question", "steps", "tone"]
    assert graph.get_input_jsonschema() == {
        "description": "What is asked.",
        "properties": {"question": {"title": "Question"} | TEXT, "tone": {"title": "Tone"} | TEXT},
        "required": ["question"],
        "title": "Given",
        "type": "object",
    }
    assert list(graph.get_output_jsonschema()["properties"]) == ["answer"]
    context = graph.get_context_jsonschema()
    assert context is not None
    assert context["title"] == "User"
    assert chain("n").compile().get_context_jsonschema() is None


def test_json_schemas_of_models_and_structs() -> None:
    class Model(pydantic.BaseModel):
        number: int = 3

    class Packed(msgspec.Struct):
        number: int = 3

    assert chain("n", schema=Model).compile().get_input_jsonschema()["properties"]["number"]["default"] == 3
    packed = chain("n", schema=Packed).compile().get_input_jsonschema()
    assert packed["$defs"]["Packed"]["properties"]["number"]["default"] == 3


def test_json_schemas_without_pydantic(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pydantic", None)
    schema = chain("n", schema=Given).compile().get_input_jsonschema()
    assert schema["$defs"]["Given"]["properties"] == {"question": TEXT, "tone": TEXT}


async def test_several_inputs_at_once() -> None:
    graph = chain(("n", lambda state: {"a": 10 // state["a"]})).compile()
    assert [output["a"] for output in await graph.abatch([{"a": 1}, {"a": 2}], {"max_concurrency": 1})] == [10, 5]
    with pytest.raises(ZeroDivisionError):
        await graph.abatch([{"a": 1}, {"a": 0}])
    kept = await graph.abatch([{"a": 0}, {"a": 5}], return_exceptions=True)
    assert isinstance(kept[0], ZeroDivisionError)
    assert kept[1]["a"] == 2
    assert await graph.abatch([]) == []


async def test_several_threads_at_once() -> None:
    graph = chain(("n", lambda _state: {"log": [interrupt("?")]})).compile(InMemorySaver())
    configs = [{"configurable": {"thread_id": str(number)}} for number in range(3)]
    await graph.abatch([{}] * 3, configs)
    outputs = await graph.abatch([Command(resume=str(number)) for number in range(3)], configs)
    assert [output["log"] for output in outputs] == [["0"], ["1"], ["2"]]
    with pytest.raises(ConfigError, match="3 inputs and 2 configs"):
        await graph.abatch([{}] * 3, configs[:2])


def test_several_inputs_are_waited_for() -> None:
    graph = chain(("n", lambda state: {"a": state["a"] + 1}), schema=Log).compile()
    assert [output["a"] for output in graph.batch([{"a": 1}, {"a": 2}], version="v1")] == [2, 3]


def test_a_workflow_tells_of_itself() -> None:
    inner = chain("x").compile()

    @entrypoint()
    async def flow(state: dict[str, Any]) -> Any:
        return await inner.ainvoke(state)

    assert list(flow.nodes) == ["flow"]
    assert flow.nodes["flow"].invoke({}) == {"log": ["x"]}
    assert [name for name, _ in flow.get_subgraphs()] == ["flow"]
    assert flow.get_input_jsonschema() == {"additionalProperties": True, "type": "object"}


@dataclass
class Shape:
    """What a workflow takes."""

    sides: list[int]


async def test_a_workflow_tells_what_its_function_says() -> None:
    @entrypoint()
    async def typed(given: Shape) -> list[int]:
        return [len(given.sides)]

    @entrypoint()
    async def remembering(given: int, *, previous: Any = None) -> entrypoint.final[str, int]:
        return entrypoint.final(value=str(previous), save=given)

    @entrypoint()
    async def bare(given):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202 - what it is
        return given

    assert typed.get_input_jsonschema()["properties"]["sides"]["type"] == "array"
    assert typed.get_output_jsonschema() == {"type": "array", "items": {"type": "integer"}}
    assert remembering.get_input_jsonschema() == {"type": "integer"}
    assert remembering.get_output_jsonschema() == {"type": "string"}
    assert (bare.get_input_jsonschema(), bare.get_output_jsonschema()) == ({}, {})


async def test_a_class_that_only_has_annotations_has_a_schema() -> None:
    class Plain:
        a: int
        log: Annotated[list[str], operator.add]

    graph = StateGraph(Plain).add_node("a", lambda _s: {"log": ["x"]}).add_edge(START, "a").compile()
    schema = graph.get_input_jsonschema()
    assert (schema["required"], schema["properties"]["a"]["type"]) == (["a", "log"], "integer")
