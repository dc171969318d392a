"""Error handlers among everything else: siblings, Sends, subgraphs, timeouts, questions, defaults."""

import operator
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Annotated, Any

import anyio
import pytest

from persistence.memory import InMemoryCache
from persistence.sqlite import SqliteCache
from runtime.errors import GraphDrained, NodeError, NodeTimeoutError
from runtime.graph import START, StateGraph
from runtime.runtime import RunControl
from runtime.types import CachePolicy, Command, RetryPolicy, Send, interrupt
from tests.stories.graphs import CONFIG, Log, chain, collect, history, note, thread

pytestmark = pytest.mark.anyio

TWICE = RetryPolicy(max_attempts=2, initial_interval=0, jitter=False)


@pytest.fixture(params=["memory", "sqlite"])
async def cache(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Any]:
    if request.param == "memory":
        yield InMemoryCache()
        return
    async with SqliteCache(tmp_path / "cache.sqlite") as opened:
        yield opened


async def bad(_state: Any) -> dict[str, Any]:
    raise ValueError("boom")


async def handler(_state: Any, error: NodeError) -> dict[str, Any]:
    return {"log": [f"{error.node}: {type(error.error).__name__}"]}


def single(node: Any, *, name: str = "n", builder: StateGraph[Any, Any, Any, Any] | None = None, **options: Any) -> Any:
    """START -> one node, with options of add_node."""
    builder = StateGraph(Log) if builder is None else builder
    return builder.add_node(name, node, **options).add_edge(START, name)


async def test_it_runs_in_the_superstep_of_its_node_and_siblings_are_left_alone(saver: Any) -> None:
    """A join waits for the failed node's edge, which does not fire."""
    failed = anyio.Event()

    async def sibling(_state: Log) -> dict[str, Any]:
        await failed.wait()
        return {"log": ["sibling"]}

    async def telling(_state: Log, error: NodeError) -> dict[str, Any]:
        failed.set()
        return {"log": [error.node]}

    builder = single(bad, name="bad", error_handler=telling).add_node("sibling", sibling).add_edge(START, "sibling")
    builder.add_node("join", note("join")).add_edge(["bad", "sibling"], "join")
    graph = builder.compile(checkpointer=saver)
    assert (await graph.ainvoke({}, CONFIG))["log"] == ["bad", "sibling"]
    newest, before, _ = await history(graph, CONFIG)
    assert (newest.metadata["step"], newest.next) == (1, ())
    assert [(task.name, task.error, task.result) for task in before.tasks] == [
        ("bad", "ValueError('boom')", None),
        ("sibling", None, {"log": ["sibling"]}),
    ]


async def test_only_its_end_is_told_among_tasks(saver: Any) -> None:
    graph = single(bad, error_handler=handler).compile(checkpointer=saver)
    chunks = await collect(graph.astream({}, CONFIG, stream_mode="tasks"))
    assert [(chunk["name"], "result" in chunk, chunk.get("result")) for chunk in chunks] == [
        ("n", False, None),
        ("n", True, {}),
        ("__error_handler__n", True, {"log": ["n: ValueError"]}),
    ]
    assert isinstance(chunks[1]["error"], ValueError)


async def test_each_sent_task_that_fails_is_handled_with_its_own_input(saver: Any) -> None:
    handled: list[Any] = []

    async def telling(state: Any, error: NodeError) -> dict[str, Any]:
        handled.append((state, error.node))
        return {"log": [f"handled {state['a']}"]}

    builder = StateGraph(Log).add_node("st", note("st")).add_node("bad", bad, error_handler=telling)
    builder.add_edge(START, "st").add_conditional_edges("st", lambda _: [Send("bad", {"a": a}) for a in range(3)])
    graph = builder.compile(checkpointer=saver)
    assert (await graph.ainvoke({}, CONFIG))["log"] == ["st", "handled 0", "handled 1", "handled 2"]
    assert sorted(handled, key=str) == [({"a": a}, "bad") for a in range(3)]


async def test_a_failure_inside_a_subgraph_is_handled_where_a_handler_is(saver: Any) -> None:
    inner = single(bad, name="inner").compile()
    graph = single(inner, name="outer", error_handler=handler).compile(checkpointer=saver)
    assert (await graph.ainvoke({"log": ["in"]}, CONFIG))["log"] == ["in", "outer: ValueError"]


async def test_a_timeout_is_a_failure(saver: Any) -> None:
    told: list[NodeError] = []

    async def slow(_state: Log) -> None:
        await anyio.sleep_forever()

    async def telling(_state: Log, error: NodeError) -> None:
        told.append(error)

    graph = single(slow, error_handler=telling, timeout=0.01).compile(checkpointer=saver)
    await graph.ainvoke({}, CONFIG)
    assert isinstance(told[0].error, NodeTimeoutError)


async def test_a_question_and_a_command_to_the_parent_are_no_failures(saver: Any) -> None:
    async def ask(_state: Log) -> dict[str, Any]:
        return {"log": [interrupt("q")]}

    async def leave(_state: Log) -> Command[Any]:
        return Command(graph=Command.PARENT, update={"log": ["up"]}, goto="other")

    child = single(leave, name="leave", error_handler=handler).compile()
    builder = single(ask, name="ask", error_handler=handler).add_node("child", child).add_edge("ask", "child")
    graph = builder.add_node("other", note("other")).compile(checkpointer=saver)
    (question,) = (await graph.ainvoke({}, CONFIG))["__interrupt__"]
    assert question.value == "q"
    assert (await graph.ainvoke(Command(resume="yes"), CONFIG))["log"] == ["yes", "up", "other"]


async def test_a_drain_is_no_failure(saver: Any) -> None:
    """It stops the run between supersteps; the handler of the node that comes next is not asked."""
    control = RunControl()

    async def first(_state: Log) -> dict[str, Any]:
        control.request_drain("enough")
        return {"log": ["first"]}

    builder = single(first, name="first", error_handler=handler).add_node("next", note("next"), error_handler=handler)
    graph = builder.add_edge("first", "next").compile(checkpointer=saver)
    with pytest.raises(GraphDrained):
        await graph.ainvoke({}, CONFIG, control=control)
    assert (await graph.ainvoke(None, CONFIG))["log"] == ["first", "next"]


# Defaults for all nodes


async def test_a_nodes_own_handler_wins_over_the_default(saver: Any) -> None:
    async def own(_state: Log, error: NodeError) -> dict[str, Any]:
        return {"log": [f"own of {error.node}"]}

    builder = single(bad, name="a", builder=StateGraph(Log).set_node_defaults(error_handler=handler), error_handler=own)
    graph = single(bad, name="b", builder=builder).compile(checkpointer=saver)
    assert (await graph.ainvoke({}, CONFIG))["log"] == ["own of a", "b: ValueError"]


async def test_defaults_may_be_set_after_the_nodes(saver: Any) -> None:
    builder = single(bad).set_node_defaults(error_handler=handler)
    assert (await builder.compile(checkpointer=saver).ainvoke({}, CONFIG))["log"] == ["n: ValueError"]


async def test_subgraphs_do_not_inherit_defaults(saver: Any) -> None:
    runs: list[str] = []

    async def inner(_state: Log) -> None:
        runs.append("inner")
        raise ConnectionError

    child = single(inner, name="inner").compile()
    defaults = StateGraph(Log).set_node_defaults(error_handler=handler)
    graph = single(child, name="outer", builder=defaults).compile(checkpointer=saver)
    assert (await graph.ainvoke({}, CONFIG))["log"] == ["outer: ConnectionError"]
    assert runs == ["inner"]


async def test_a_default_handler_does_not_handle_itself(saver: Any) -> None:
    async def failing(_state: Log, error: NodeError) -> None:
        raise KeyError(error.node)

    builder = single(bad, builder=StateGraph(Log).set_node_defaults(error_handler=failing))
    with pytest.raises(KeyError, match="n") as raised:
        await builder.compile(checkpointer=saver).ainvoke({}, CONFIG)
    assert repr(raised.value.__context__) == "ValueError('boom')"  # and not another KeyError


async def test_handlers_have_the_default_timeout(saver: Any) -> None:
    async def waiting(_state: Log, error: NodeError) -> None:
        await anyio.sleep_forever()

    builder = single(bad, error_handler=waiting).set_node_defaults(timeout=0.01)
    with anyio.fail_after(10), pytest.raises(NodeTimeoutError, match="__error_handler__n"):
        await builder.compile(checkpointer=saver).ainvoke({}, CONFIG)


async def test_handlers_are_retried_by_default_but_not_cached(saver: Any, cache: Any) -> None:
    runs: list[str] = []

    async def flaky(_state: Log) -> None:
        runs.append("node")
        raise ConnectionError

    async def telling(_state: Log, error: NodeError) -> dict[str, Any]:
        runs.append("handler")
        if runs.count("handler") == 1:
            raise ConnectionError
        return {"log": ["handled"]}

    builder = StateGraph(Log).set_node_defaults(
        error_handler=telling, retry_policy=TWICE, cache_policy=CachePolicy(key_func=lambda _: "same")
    )
    graph = single(flaky, builder=builder).compile(checkpointer=saver, cache=cache)
    assert (await graph.ainvoke({}, CONFIG))["log"] == ["handled"]
    assert runs == ["node", "node", "handler", "handler"]
    assert (await graph.ainvoke({}, CONFIG))["log"] == ["handled", "handled"]
    assert runs[4:] == ["node", "node", "handler"]


async def test_a_nodes_own_timeout_wins_over_the_default(saver: Any) -> None:
    async def waits(_state: Log) -> dict[str, Any]:
        await anyio.sleep(0.02)
        return {"log": ["waited"]}

    builder = single(waits, name="patient", builder=StateGraph(Log).set_node_defaults(timeout=0.001), timeout=60)
    graph = builder.compile(checkpointer=saver)
    assert (await graph.ainvoke({}, CONFIG))["log"] == ["waited"]
    hasty = single(waits, builder=StateGraph(Log).set_node_defaults(timeout=0.001)).compile(checkpointer=saver)
    with pytest.raises(NodeTimeoutError):
        await hasty.ainvoke({}, thread("hasty"))


async def test_handlers_write_any_key_of_the_state(saver: Any) -> None:
    class Wide(Log):
        failures: Annotated[list[str], operator.add]

    async def telling(_state: Wide, error: NodeError) -> dict[str, Any]:
        return {"failures": [error.node], "a": 7}

    graph = chain("x", schema=Wide).add_node("bad", bad, error_handler=telling).add_edge("x", "bad")
    result = await graph.compile(checkpointer=saver).ainvoke({}, CONFIG)
    assert result == {"log": ["x"], "failures": ["bad"], "a": 7}
