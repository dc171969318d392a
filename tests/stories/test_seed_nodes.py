"""What a node is: a callable that gets state, config, runtime and writer, and is triggered by control flow."""

# mypy: ignore-errors
# The node shapes are a user's code as printed in the course that this library follows.
import operator
from dataclasses import dataclass
from typing import Annotated, Any, TypedDict

import pytest

from persistence.memory import InMemorySaver
from runtime.graph import END, START, StateGraph
from runtime.runtime import Runtime
from runtime.types import Command, RunnableConfig, Send, StreamWriter

pytestmark = pytest.mark.anyio


class State(TypedDict, total=False):
    count: int
    log: Annotated[list[str], operator.add]


@dataclass
class Context:
    username: str


CONFIG: dict[str, Any] = {"configurable": {"thread_id": "abc"}}


def one_node(node: Any, **options: Any) -> Any:
    builder = StateGraph(State, context_schema=Context)
    builder.add_node("node_a", node)
    builder.add_edge(START, "node_a")
    builder.add_edge("node_a", END)
    return builder.compile(**options)


def test_a_node_returns_only_what_changed() -> None:
    def node_a(state: State) -> State:
        return {"count": state["count"] + 1}

    assert one_node(node_a).invoke({"count": 1, "log": ["in"]}) == {"count": 2, "log": ["in"]}


async def test_sync_and_async_functions_are_nodes() -> None:
    def sync_node(state: State) -> State:
        return {"log": ["sync"]}

    async def async_node(state: State) -> State:
        return {"log": ["async"]}

    builder = StateGraph(State)
    builder.add_node("sync_node", sync_node)
    builder.add_node("async_node", async_node)
    builder.add_edge(START, "sync_node")
    builder.add_edge("sync_node", "async_node")
    builder.add_edge("async_node", END)
    assert (await builder.compile().ainvoke({}))["log"] == ["sync", "async"]


async def test_other_callables_are_nodes() -> None:
    class Callable:
        def __call__(self, state: State) -> State:
            return {"log": ["callable"]}

    assert (await one_node(Callable()).ainvoke({}))["log"] == ["callable"]
    assert (await one_node(lambda state: {"log": [str(state["count"])]}).ainvoke({"count": 3}))["log"] == ["3"]


def test_a_node_without_a_name_is_called_like_its_function() -> None:
    def node_a(state: State) -> State:
        return {"log": ["a"]}

    builder = StateGraph(State)
    builder.add_node(node_a)
    builder.add_edge(START, "node_a")
    assert builder.compile().invoke({})["log"] == ["a"]


def test_the_full_form_of_a_node_gets_config_runtime_and_writer() -> None:
    seen: dict[str, Any] = {}

    def node(state: State, config: RunnableConfig, runtime: Runtime[Context], writer: StreamWriter) -> State:
        seen["thread_id"] = config["configurable"]["thread_id"]
        seen["recursion_limit"] = config["recursion_limit"]
        seen["metadata"] = config["metadata"]
        seen["context"] = runtime.context
        writer({"progress": 1})
        return {"log": ["a"]}

    graph = one_node(node, checkpointer=InMemorySaver())
    chunks = list(
        graph.stream(
            {}, {**CONFIG, "recursion_limit": 7}, context=Context(username="Alice"), stream_mode=["custom", "updates"]
        )
    )
    assert seen["thread_id"] == "abc"
    assert seen["recursion_limit"] == 7
    assert seen["metadata"]["langgraph_step"] == 1
    assert seen["metadata"]["langgraph_node"] == "node_a"
    assert seen["context"] == Context(username="Alice")
    assert chunks == [("custom", {"progress": 1}), ("updates", {"node_a": {"log": ["a"]}})]


def test_the_order_and_kind_of_injected_parameters_is_free() -> None:
    def node(state: State, *, runtime: Runtime[Context], config: RunnableConfig) -> State:
        return {"log": [runtime.context.username, config["configurable"]["thread_id"]]}

    assert one_node(node).invoke({}, CONFIG, context=Context("Bob"))["log"] == ["Bob", "abc"]


def test_plain_edges_conditional_edges_send_and_goto_all_trigger_nodes() -> None:
    builder = StateGraph(State)

    def note(name: str) -> Any:
        return lambda _state: {"log": [name]}

    builder.add_node("plain", note("plain"))
    builder.add_node("conditional", note("conditional"))
    builder.add_node("sent", lambda item: {"log": [f"sent {item}"]})
    builder.add_node("jump", lambda _state: Command(update={"log": ["jump"]}, goto="target"))
    builder.add_node("target", note("target"))
    builder.add_edge(START, "plain")
    builder.add_conditional_edges("plain", lambda _state: "conditional")
    builder.add_conditional_edges("conditional", lambda _state: [Send("sent", 1), Send("sent", 2)])
    builder.add_edge("sent", "jump")
    assert builder.compile().invoke({})["log"] == ["plain", "conditional", "sent 1", "sent 2", "jump", "target"]


def test_trigger_channels_are_visible_in_the_stored_checkpoint() -> None:
    saver = InMemorySaver()
    builder = StateGraph(State)
    for name in ("node_a", "node_b", "node_c"):
        builder.add_node(name, lambda _state, name=name: {"log": [name]})
    builder.add_edge(START, "node_a")
    builder.add_edge(START, "node_b")
    builder.add_edge(["node_a", "node_b"], "node_c")
    graph = builder.compile(checkpointer=saver)
    graph.invoke({}, CONFIG, interrupt_before=["node_c"])
    stored = [one.checkpoint for one in saver.list(CONFIG)]
    assert stored[0]["channel_values"]["join:node_a+node_b:node_c"] == {"node_a", "node_b"}
    assert set(stored[1]["channel_versions"]) >= {"branch:to:node_a", "branch:to:node_b"}
    assert graph.get_state(CONFIG).next == ("node_c",)
    assert graph.invoke(None, CONFIG)["log"] == ["node_a", "node_b", "node_c"]
