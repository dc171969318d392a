"""What a node can ask for: runtime, config, writer, store, and the functions that find them."""

# String annotations are part of what is tested here, so this file does not postpone all of them.
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, NamedTuple, Optional, TypedDict

import anyio
import pytest
from pydantic import BaseModel, ValidationError

from runtime.config import get_config, get_store, get_stream_writer
from runtime.graph import START, StateGraph
from runtime.runtime import Runtime, get_runtime
from runtime.types import RunnableConfig
from tests.stories.graphs import CONFIG, Log, chain, note

pytestmark = pytest.mark.anyio


@dataclass
class Ctx:
    user: str
    level: int = 1


class PydanticCtx(BaseModel):
    user: str


class DictCtx(TypedDict):
    user: str


def with_context(node: Any, context_schema: Any = None) -> Any:
    builder = StateGraph(Log, context_schema)
    builder.add_node("n", node)
    builder.add_edge(START, "n")
    return builder


# Context


@pytest.mark.parametrize(
    ("schema", "given", "expected"),
    [
        (Ctx, Ctx("eve"), Ctx("eve")),
        (Ctx, {"user": "eve", "level": 2}, Ctx("eve", 2)),
        (PydanticCtx, {"user": "eve"}, PydanticCtx(user="eve")),
        (DictCtx, {"user": "eve"}, {"user": "eve"}),
        (None, {"user": "eve"}, {"user": "eve"}),
        (Ctx, None, None),
    ],
)
async def test_the_context_is_what_the_caller_passed_in_the_schemas_shape(
    schema: Any, given: Any, expected: Any
) -> None:
    seen: list[Any] = []

    async def n(_state: Log, runtime: Runtime) -> None:
        seen.append(runtime.context)

    await with_context(n, schema).compile().ainvoke({}, context=given)
    assert seen == [expected]


async def test_a_context_that_does_not_fit_its_schema_is_refused() -> None:
    graph = with_context(note("n"), Ctx).compile()
    with pytest.raises(TypeError) as refused:
        await graph.ainvoke({}, context={"wrong": 1})
    assert refused.value.__notes__ == [
        "While making a Ctx, the context_schema, of what was given as context= (keys: ['wrong'])."
    ]
    graph = with_context(note("n"), PydanticCtx).compile()
    with pytest.raises(ValidationError) as invalid:
        await graph.ainvoke({}, context={"user": [1]})
    assert "context=" in invalid.value.__notes__[0]


@pytest.mark.parametrize(("schema", "given"), [(Ctx, "eve"), (PydanticCtx, Ctx("eve")), (DictCtx, {"user": 5})])
async def test_only_a_dict_for_a_class_is_checked(schema: Any, given: Any) -> None:
    seen: list[Any] = []

    async def n(_state: Log, runtime: Runtime) -> None:
        seen.append(runtime.context)

    await with_context(n, schema).compile().ainvoke({}, context=given)
    assert seen == [given]


async def test_execution_info_says_which_execution_this_is(saver: Any) -> None:
    seen: list[Any] = []

    async def n(_state: Log, runtime: Runtime) -> None:
        seen.append(runtime.execution_info)

    graph = chain("x", ("n", n)).compile(checkpointer=saver)
    await graph.ainvoke({}, CONFIG)
    (info,) = seen
    history = [s async for s in graph.aget_state_history(CONFIG)]
    assert info.task_id == history[1].tasks[0].id
    assert info.checkpoint_id == history[1].config["configurable"]["checkpoint_id"]
    assert info.thread_id == "t"
    assert info.node_attempt == 1
    assert "n" in info.checkpoint_ns or info.checkpoint_ns == ""


async def test_a_runtime_can_be_had_with_other_values() -> None:
    async def n(_state: Log, runtime: Runtime) -> dict[str, Any]:
        assert runtime.server_info is None
        other = runtime.override(context="other")
        return {"log": [str(runtime.context), other.context, str(other.execution_info == runtime.execution_info)]}

    assert (await chain(("n", n)).compile().ainvoke({}, context="mine"))["log"] == ["mine", "other", "True"]


async def test_the_runtime_is_frozen() -> None:
    async def n(_state: Log, runtime: Runtime) -> None:
        runtime.context = 1  # type: ignore[misc]

    with pytest.raises(AttributeError):
        await chain(("n", n)).compile().ainvoke({})


# Functions that find what belongs to the running node


async def test_functions_find_the_running_nodes_values() -> None:
    seen: dict[str, Any] = {}

    async def helper() -> None:
        await anyio.sleep(0)
        seen["thread"] = get_config()["configurable"]["thread_id"]
        seen["context"] = get_runtime(Ctx).context
        get_stream_writer()("written")

    async def n(_state: Log) -> None:
        await helper()

    graph = with_context(n, Ctx).compile()
    chunks = [one async for one in graph.astream({}, CONFIG, context=Ctx("eve"), stream_mode="custom")]
    assert seen == {"thread": "t", "context": Ctx("eve")}
    assert chunks == ["written"]


async def test_functions_find_them_in_sync_nodes_too() -> None:
    seen: list[Any] = []

    def n(_state: Log) -> None:
        seen.append(get_config()["configurable"]["thread_id"])
        seen.append(get_runtime().context)

    await with_context(n).compile().ainvoke({}, CONFIG, context="c")
    assert seen == ["t", "c"]


@pytest.mark.parametrize("function", [get_config, get_store, get_stream_writer, get_runtime])
def test_outside_a_node_they_say_so(function: Any) -> None:
    with pytest.raises(RuntimeError, match="outside"):
        function()


# Injection


async def test_the_config_is_injected_by_name_and_annotation() -> None:
    seen: list[Any] = []

    def bare(_state: Log, config) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001
        seen.append(config["configurable"]["thread_id"])

    def typed(_state: Log, config: RunnableConfig) -> None:
        seen.append(config["configurable"]["thread_id"])

    def optional(_state: Log, config: Optional[RunnableConfig] = None) -> None:
        assert config is not None
        seen.append(config["configurable"]["thread_id"])

    def text(_state: Log, config: "RunnableConfig") -> None:
        seen.append(config["configurable"]["thread_id"])

    def keyword_only(_state: Log, *, config: RunnableConfig) -> None:
        seen.append(config["configurable"]["thread_id"])

    nodes = [("bare", bare), ("typed", typed), ("optional", optional), ("text", text), ("kw", keyword_only)]
    await chain(*nodes).compile().ainvoke({}, CONFIG)
    assert seen == ["t"] * 5


async def test_a_store_is_none_without_one() -> None:
    seen: list[Any] = []

    def n(_state: Log, store, runtime: Runtime) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001
        seen.extend([store, runtime.store])

    await chain(("n", n)).compile().ainvoke({})
    assert seen == [None, None]


async def test_the_state_parameter_may_have_any_name() -> None:
    seen: list[Any] = []

    def n(whatever: Log) -> None:
        seen.append(whatever["a"])

    await chain(("n", n)).compile().ainvoke({"a": 1})
    assert seen == [1]


async def test_a_required_parameter_that_is_not_known_is_an_error() -> None:
    def n(_state: Log, something: int) -> None: ...

    with pytest.raises(TypeError, match="something"):
        await chain(("n", n)).compile().ainvoke({})


async def test_a_parameter_with_a_default_is_left_alone() -> None:
    seen: list[Any] = []

    def n(_state: Log, something: int = 5) -> None:
        seen.append(something)

    await chain(("n", n)).compile().ainvoke({})
    assert seen == [5]


async def test_metadata_in_a_node_tells_where_it_runs(saver: Any) -> None:
    seen: list[Any] = []

    def n(_state: Log, config: RunnableConfig) -> None:
        seen.append(config["metadata"])

    await chain("x", ("n", n)).compile(checkpointer=saver).ainvoke({}, {**CONFIG, "metadata": {"user": "eve"}})
    (metadata,) = seen
    assert metadata["langgraph_step"] == 2
    assert metadata["langgraph_node"] == "n"
    assert tuple(metadata["langgraph_triggers"]) == ("branch:to:n",)
    assert tuple(metadata["langgraph_path"]) == ("__pregel_pull", "n")
    assert metadata["langgraph_checkpoint_ns"].startswith("n:")
    assert metadata["user"] == "eve"
    assert metadata["thread_id"] == "t"


async def test_a_nodes_own_metadata_are_seen_in_it_and_among_tasks(saver: Any) -> None:
    seen: list[Any] = []

    def n(_state: Log, config: RunnableConfig) -> None:
        seen.append(config["metadata"])

    builder = StateGraph(Log).add_node("n", n, metadata={"team": "red", "user": "node"}).add_edge(START, "n")
    graph = builder.compile(checkpointer=saver)
    call: Any = {**CONFIG, "metadata": {"user": "call", "plan": "b"}}
    chunks = [chunk async for chunk in graph.astream({}, call, stream_mode="tasks")]
    (metadata,) = seen
    assert {key: metadata[key] for key in ("team", "user", "plan", "langgraph_node")} == {
        "team": "red",
        "user": "node",
        "plan": "b",
        "langgraph_node": "n",
    }
    assert chunks[0]["metadata"] == {"team": "red", "user": "node", "plan": "b"}
    stored = (await graph.aget_state(CONFIG)).metadata
    assert "team" not in stored
    assert stored["user"] == "call"


async def test_configurable_values_reach_the_node() -> None:
    seen: list[Any] = []

    def n(_state: Log, config: RunnableConfig) -> None:
        seen.append(config["configurable"]["tenant"])

    await chain(("n", n)).compile().ainvoke({}, {"configurable": {"tenant": "acme"}})
    assert seen == ["acme"]


# What a call's config must have


async def test_a_checkpointer_needs_a_thread_id(saver: Any) -> None:
    graph = chain("n").compile(checkpointer=saver)
    with pytest.raises((ValueError, KeyError), match="thread_id"):
        await graph.ainvoke({})
    with pytest.raises((ValueError, KeyError), match="thread_id"):
        await graph.ainvoke({}, {"configurable": {"other": 1}})


async def test_without_a_checkpointer_no_thread_id_is_needed() -> None:
    assert await chain("n").compile().ainvoke({}) == {"log": ["n"]}
    assert await chain("n").compile().ainvoke({}, {}) == {"log": ["n"]}


class Who(NamedTuple):
    """No class that is made of a dict."""

    user: str


def looking(context_schema: Any, look: Any) -> Any:
    async def node(_state: Any, runtime: Runtime[Any]) -> dict[str, Any]:
        return {"log": [look(runtime.context)]}

    builder = StateGraph(Log, context_schema=context_schema).add_node("node", node)
    return builder.add_edge(START, "node").compile()


def context_notes(error: BaseException) -> list[str]:
    return [note for note in error.__notes__ if note.startswith("The graph has a context_schema")]


LOOKS: dict[str, tuple[Any, type[Exception]]] = {
    "an attribute": (lambda context: context.user, AttributeError),
    "an item": (lambda context: context["user"], TypeError),
}


@pytest.mark.parametrize("look", LOOKS)
async def test_a_forgotten_context_is_noted_once_on_the_error_of_who_looked_for_it(look: str) -> None:
    looks, kind = LOOKS[look]
    inner = looking(Who, looks)
    outer = StateGraph(Log, context_schema=Who).add_node("inner", inner).add_edge(START, "inner").compile()
    for compiled in (inner, outer):
        with pytest.raises(kind) as raised:
            await compiled.ainvoke({})
        expected = "The graph has a context_schema, and this call gave no context: pass it as context=..."
        assert context_notes(raised.value) == [expected]


async def test_other_errors_and_other_calls_are_not_told_of_a_context() -> None:
    for schema, look, context in (
        (Who, lambda context: context.age, Who("Ann")),
        (None, lambda context: context.user, None),
        (Who, lambda _context: {}["user"], None),
        (Who, lambda _context: attrgetter("user")(""), None),
    ):
        with pytest.raises((AttributeError, KeyError)) as raised:
            await looking(schema, look).ainvoke({}, context=context)
        assert context_notes(raised.value) == []
