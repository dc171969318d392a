"""Describing a graph: what is refused, when, and how it is told."""

from __future__ import annotations

import copy
import functools
import inspect
import operator
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Annotated, Any, Literal, TypedDict

import langgraph.types as peer
import pytest

from persistence.memory import InMemorySaver, InMemoryStore
from runtime.channels import BinaryOperatorAggregate, DeltaChannel
from runtime.errors import ConfigError, GraphDefinitionError, NotCallableError, UnsupportedFunctionError
from runtime.func import entrypoint, task
from runtime.graph import END, START, StateGraph
from runtime.graph.arguments import policies
from runtime.types import CachePolicy, Command, RetryPolicy, TimeoutPolicy
from runtime.types.managed import RemainingSteps
from tests.stories.graphs import Log, chain

Graph = StateGraph[Any, Any, Any, Any]


def a(_state: Any) -> None: ...


def b(_state: Any) -> None: ...


async def later(_state: Any) -> None: ...


def way(_state: Any) -> str:
    return "b"


class Limited(TypedDict):
    left: RemainingSteps


def graph() -> Graph:
    """Describe a and b, in a row."""
    return StateGraph(Log).add_node("a", a).add_node("b", b).add_edge(START, "a").add_edge("a", "b")


REFUSED: dict[str, tuple[Callable[[Graph], Any], str]] = {
    "a name twice": (lambda g: g.add_node("a", a), "Node 'a' already present"),
    "the start as a name": (lambda g: g.add_node(START, a), "Node '__start__' is reserved"),
    "the end as a name": (lambda g: g.add_node(END, a), "Node '__end__' is reserved"),
    "the name of edits as input": (lambda g: g.add_node("__input__", a), "Node '__input__' is reserved"),
    "the name of copies": (lambda g: g.add_node("__copy__", a), "Node '__copy__' is reserved"),
    "the name of pauses": (lambda g: g.add_node("__interrupt__", a), "Node '__interrupt__' is reserved"),
    "what stands beside nodes in chunks": (lambda g: g.add_node("__metadata__", a), "Node '__metadata__' is reserved"),
    "the name of a handler": (lambda g: g.add_node("__error_handler__a", a), "Node '__error_handler__a' is reserved"),
    "no name": (lambda g: g.add_node("", a), "no valid node name"),
    "a mark in a name": (lambda g: g.add_node("a|b", a), "must not be empty nor contain"),
    "another mark in a name": (lambda g: g.add_node("a:b", a), "must not be empty nor contain"),
    "no function": (lambda g: g.add_node("c"), r"Node 'c' has no function: add_node\(name, function\)"),
    "nothing that can be called": (lambda g: g.add_node("c", 1), "'c': expected a function, callable or runnable"),
    "a timeout of a sync function": (lambda g: g.add_node("c", a, timeout=1), "'c' is a sync function"),
    "an edge from the end": (lambda g: g.add_edge(END, "a"), "END cannot be a start node"),
    "an edge to the start": (lambda g: g.add_edge("a", START), "START cannot be an end node"),
    "a join of nothing": (lambda g: g.add_edge([], "a"), "join edge to 'a' has no start nodes"),
    "a join from nobody": (lambda g: g.add_edge(["a", "c"], "b"), "starts at 'c', which is not a node"),
    "a join from the start": (lambda g: g.add_edge([START, "a"], "b"), "starts at '__start__'"),
    "a join to nobody": (lambda g: g.add_edge(["a"], "c"), "ends at 'c', which is not a node"),
    "a join to the start": (lambda g: g.add_edge(["a"], START), "ends at '__start__'"),
    "a router after the end": (lambda g: g.add_conditional_edges(END, way), "END cannot have conditional edges"),
    "a router twice": (
        lambda g: g.add_conditional_edges("a", way).add_conditional_edges("a", way),
        "Branch with name 'way' already exists for node 'a'",
    ),
    "an empty sequence": (lambda g: g.add_sequence([]), "Sequence requires at least one node"),
    "an edge from nobody": (lambda g: g.add_edge("c", "a").compile(), "edge starting at unknown node 'c'.*a, b"),
    "an edge to nobody": (lambda g: g.add_edge("a", "c").compile(), "edge ending at unknown node 'c'.*a, b"),
    "a router after nobody": (
        lambda g: g.add_conditional_edges("c", way).compile(),
        "Conditional edges start at unknown node 'c'",
    ),
    "a router to nobody": (
        lambda g: g.add_conditional_edges("a", way, {"b": "c"}).compile(),
        "'way' of 'a' may go to unknown node 'c'",
    ),
    "a Command to nobody": (
        lambda g: g.add_node("c", a, destinations=("b", END, "d")).compile(),
        "A Command of node 'c' may go to unknown node 'd', as its destinations or its return annotation say",
    ),
    "a breakpoint at nobody": (lambda g: g.compile(interrupt_before=["c"]), "Interrupt node 'c' not found"),
    "a breakpoint after nobody": (lambda g: g.compile(interrupt_after=["c"]), "Interrupt node 'c' not found"),
    "an alias for nobody": (lambda g: g.compile(node_aliases={"old": "c"}), "no node 'c' to hand the work of 'old' to"),
    "an alias of a node": (lambda g: g.compile(node_aliases={"a": "b"}), "'a' is a node of this graph"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_makes_no_sense_is_refused(case: str) -> None:
    act, message = REFUSED[case]
    with pytest.raises(GraphDefinitionError, match=message):
        act(graph())


def test_a_graph_needs_a_way_in() -> None:
    for builder in (StateGraph(Log), StateGraph(Log).add_node("a", a).add_edge("a", END)):
        with pytest.raises(GraphDefinitionError, match="must have an entrypoint"):
            builder.compile()


def test_an_edge_in_an_empty_graph_says_that_there_are_no_nodes() -> None:
    with pytest.raises(GraphDefinitionError, match="Known nodes: none"):
        StateGraph(Log).add_edge(START, "a").compile()


UNKNOWN: dict[str, tuple[Callable[[Graph], Any], str]] = {
    "the end by name": (lambda g: g.add_edge("b", "END"), "END is a constant, .*: from runtime.graph import END"),
    "the end in small": (lambda g: g.add_edge("b", "end"), "END is a constant"),
    "the start by name": (
        lambda g: g.add_edge("START", "b"),
        "START is a constant, .* import START",
    ),
    "a way to the end": (lambda g: g.add_conditional_edges("b", way, {"b": "END"}), "END is a constant"),
    "a name nearly right": (lambda g: g.add_node("review", b).add_edge("b", "Reviwe"), "Did you mean 'review'?"),
}


@pytest.mark.parametrize("case", UNKNOWN)
def test_an_unknown_name_says_what_was_meant(case: str) -> None:
    act, message = UNKNOWN[case]
    with pytest.raises(GraphDefinitionError, match=message):
        act(graph()).compile()


def test_an_unknown_name_that_is_like_no_other_is_guessed_at_by_nobody() -> None:
    with pytest.raises(GraphDefinitionError, match=r"Known nodes: a, b\.$"):
        graph().add_edge("b", "weather").compile()
    with pytest.raises(GraphDefinitionError, match=r"Known nodes: a, b\.$"):
        graph().compile(interrupt_before=["END"])  # which no pause can come before


@pytest.mark.parametrize("method", ["invoke", "ainvoke", "stream", "astream", "get_state", "with_config", "batch"])
def test_a_graph_that_is_only_described_says_to_compile_it(method: str) -> None:
    with pytest.raises(AttributeError, match=rf"{method}'.* Call {method} on what its compile\(\) returns"):
        getattr(graph(), method)
    assert not hasattr(graph(), method)


def test_a_graph_that_is_only_described_is_no_node_and_says_to_compile_it() -> None:
    with pytest.raises(NotCallableError, match=r"'inner': .* got StateGraph. Compile it first"):
        graph().add_node("inner", graph())


def test_other_attributes_are_missing_as_ever() -> None:
    with pytest.raises(AttributeError, match=r"'StateGraph' object has no attribute 'nothing'$"):
        _ = graph().nothing  # type: ignore[attr-defined]
    assert copy.deepcopy(graph()).compile().invoke({}) == {"log": []}


def test_managed_values_are_neither_given_nor_returned() -> None:
    for options in ({"input_schema": Limited}, {"output_schema": Limited}):
        with pytest.raises(GraphDefinitionError, match=r"cannot be part of an input or output schema: \['left'\]"):
            StateGraph(Log, **options)
    StateGraph(Limited)


def test_keys_that_disagree_are_refused() -> None:
    class Other(TypedDict):
        log: Annotated[list[str], operator.concat]

    with pytest.raises(GraphDefinitionError, match="'log' already exists with a different type"):
        StateGraph(Log, input_schema=Other)


@pytest.mark.parametrize("saver", [object(), "memory", 1, InMemorySaver])
def test_a_checkpointer_is_a_saver(saver: Any) -> None:
    with pytest.raises(TypeError, match="checkpointer must be a saver"):
        graph().compile(saver)


def test_a_strategy_is_one_of_two() -> None:
    with pytest.raises(ConfigError, match="multitask_strategy must be 'enqueue' or 'reject', got 'wait'"):
        graph().compile(multitask_strategy="wait")  # type: ignore[arg-type]


async def test_a_saver_that_looks_empty_is_a_saver() -> None:
    class Sized(InMemorySaver):
        def __len__(self) -> int:
            return 0

    compiled = chain("a").compile(saver := Sized())
    assert compiled.checkpointer is saver
    await compiled.ainvoke({}, {"configurable": {"thread_id": "t"}})
    assert saver.get_tuple({"configurable": {"thread_id": "t"}}) is not None


# ---- what is allowed -------------------------------------------------------------------------------------------------


async def test_nodes_may_be_named_by_their_functions() -> None:
    class Callable_:  # noqa: N801 - what it is
        def __call__(self, _state: Any) -> None: ...

    class Named(Callable_):
        name = "by attribute"

    builder: Graph = StateGraph(Log)
    for function in (a, functools.partial(b), Callable_(), Named(), lambda _state: None):
        builder.add_node(function)
    assert list(builder.nodes) == ["a", "partial", "Callable_", "Named", "<lambda>"]


async def test_a_sequence_runs_in_a_row() -> None:
    builder: Graph = StateGraph(Log)
    builder.add_sequence([("first", lambda _s: {"log": ["1"]}), a, ("last", lambda _s: {"log": ["2"]})])
    builder.set_entry_point("first").set_finish_point("last")
    assert (await builder.compile().ainvoke({}))["log"] == ["1", "2"]
    assert builder.edge_order == [("first", "a"), ("a", "last"), (START, "first"), ("last", END)]


async def test_an_entry_may_depend_on_the_input() -> None:
    builder = chain("x", "y")
    builder.edges.clear()
    builder.edge_order.clear()
    builder.set_conditional_entry_point(lambda state: "x" if state.get("a") else "y", ["x", "y"])
    compiled = builder.compile()
    assert (await compiled.ainvoke({"a": 1}))["log"] == ["x"]
    assert (await compiled.ainvoke({"a": 0}))["log"] == ["y"]


async def test_the_answers_of_a_router_may_be_annotated() -> None:
    def literal(_state: Any) -> Literal["b"]:
        return "b"

    async def wrong(_state: Any) -> Literal["b", "c"]:
        return "b"

    assert graph().add_conditional_edges("a", literal).branches["a"]["literal"].ends == {"b": "b"}
    with pytest.raises(GraphDefinitionError, match="may go to unknown node 'c'"):
        graph().add_conditional_edges("a", wrong).compile()


def test_an_annotation_that_cannot_be_read_says_nothing() -> None:
    def odd(_state: Any) -> NoSuchType:  # type: ignore[name-defined]  # noqa: F821
        return "b"

    assert graph().add_conditional_edges("a", odd).branches["a"]["odd"].ends is None


def test_the_targets_of_a_command_are_read_from_the_annotation() -> None:
    def one(_state: Any) -> Command[Literal["a", "b"]]: ...  # type: ignore[empty-body]
    def maybe(_state: Any) -> Command[Literal["a"]] | dict[str, Any] | None: ...

    builder = graph().add_node(one).add_node(maybe).add_node("given", a, destinations={"b": "label"})
    assert builder.nodes["one"].destinations == {"a": None, "b": None}
    assert builder.nodes["maybe"].destinations == {"a": None}
    assert builder.nodes["given"].destinations == {"b": "label"}
    assert builder.nodes["a"].destinations == {}


def test_edges_and_joins_are_kept_once() -> None:
    builder = graph().add_edge("a", "b").add_edge(["a"], "b").add_edge(["a"], "b")
    assert builder.edge_order == [(START, "a"), ("a", "b")]
    assert builder.join_order == [(("a",), "b")]


@pytest.mark.parametrize("path_map", ["a", None])
def test_a_text_is_no_map_of_answers(path_map: Any) -> None:
    def route(_state: Any) -> Literal["b", "__end__"]:
        return "b"

    builder = graph().add_edge(START, "a").add_conditional_edges("a", route, path_map)
    assert builder.branches["a"]["route"].ends == {"b": "b", END: END}
    assert builder.compile().invoke({}) is not None


def test_policies_may_come_alone_or_in_numbers() -> None:
    policy = RetryPolicy()
    assert (policies(None), policies(policy), policies([policy, policy])) == ((), (policy,), (policy, policy))


@pytest.mark.parametrize(
    "given", [{"max_attempts": 3}, [{"max_attempts": 3}], "3", 3, TimeoutPolicy(1), peer.RetryPolicy()]
)
def test_what_is_no_policy_is_refused_where_it_is_given(given: Any) -> None:
    for give in (lambda: graph().add_node("c", a, retry_policy=given), lambda: entrypoint(retry_policy=given)):
        with pytest.raises(GraphDefinitionError, match="retry_policy must be a RetryPolicy of runtime.types"):
            give()


@pytest.mark.parametrize(
    "given", [{"ttl": 3}, 3, CachePolicy, peer.CachePolicy()], ids=["dict", "int", "class", "peer"]
)
def test_what_is_no_cache_policy_is_refused_where_it_is_given(given: Any) -> None:
    for give in (
        lambda: graph().add_node("c", a, cache_policy=given),
        lambda: graph().set_node_defaults(cache_policy=given),
        lambda: entrypoint(cache_policy=given),
        lambda: task(a, cache_policy=given),
    ):
        with pytest.raises(GraphDefinitionError, match="cache_policy must be a CachePolicy of runtime.types"):
            give()


@pytest.mark.parametrize("given", ["5", True, {"run_timeout": 5}])
def test_what_is_no_timeout_is_refused_where_it_is_given(given: Any) -> None:
    for give in (
        lambda: graph().add_node("c", later, timeout=given),
        lambda: graph().set_node_defaults(timeout=given),
        lambda: entrypoint(timeout=given)(later),
        lambda: task(later, timeout=given),
    ):
        with pytest.raises(GraphDefinitionError, match="timeout must be seconds, a timedelta or a TimeoutPolicy"):
            give()


def test_what_is_no_error_handler_is_refused_where_it_is_given() -> None:
    for give in (
        functools.partial(graph().add_node, "c", a, error_handler="a"),
        functools.partial(graph().set_node_defaults, error_handler="a"),
    ):
        with pytest.raises(GraphDefinitionError, match="'error_handler': expected a function"):
            give()


def yielding(_state: Any) -> Iterator[dict[str, Any]]:
    yield {}


async def yielding_later(_state: Any) -> AsyncIterator[dict[str, Any]]:
    yield {}


@pytest.mark.parametrize("function", [yielding, yielding_later])
def test_a_generator_is_no_node(function: Any) -> None:
    with pytest.raises(UnsupportedFunctionError, match="Generators cannot be nodes: write to the stream"):
        graph().add_node(function)
    with pytest.raises(UnsupportedFunctionError, match="Generators cannot be error handlers"):
        graph().add_node("c", a, error_handler=function)


def test_names_that_langgraph_gave_up_name_the_new_ones() -> None:
    old: dict[str, Any] = {"retry": RetryPolicy(), "input": dict, "config_schema": dict, "output": dict}
    for give, name, new in (
        (functools.partial(graph().add_node, "c", a), "retry", "retry_policy"),
        (functools.partial(graph().add_node, "c", a), "input", "input_schema"),
        (functools.partial(StateGraph, Log), "config_schema", "context_schema"),
        (functools.partial(StateGraph, Log), "input", "input_schema"),
        (functools.partial(StateGraph, Log), "output", "output_schema"),
        (entrypoint, "retry", "retry_policy"),
        (entrypoint, "config_schema", "context_schema"),
        (task, "retry", "retry_policy"),
    ):
        with pytest.raises(TypeError, match=f"has no keyword '{name}': its name is '{new}'"):
            give(**{name: old[name]})
    assert list(inspect.signature(StateGraph).parameters)[:2] == ["state_schema", "context_schema"]


@pytest.mark.parametrize("wrong", [InMemoryStore, InMemorySaver, object(), {}])
def test_what_is_no_store_is_refused(wrong: Any) -> None:
    with pytest.raises(TypeError, match="store must be a BaseStore"):
        graph().compile(store=wrong)
    with pytest.raises(TypeError, match="store must be a BaseStore"):
        entrypoint(store=wrong)(a)


async def summed(left: int, right: int) -> int:
    return left + right


SUMMED: Any = summed


class Summing:
    async def __call__(self, left: int, right: int) -> int:
        return left + right


@pytest.mark.parametrize(
    "reducer",
    [summed, functools.partial(summed), Summing(), BinaryOperatorAggregate(int, SUMMED), DeltaChannel(SUMMED)],
)
def test_an_async_reducer_is_refused(reducer: Any) -> None:
    schema = TypedDict("schema", {"n": Annotated[int, reducer]})  # noqa: UP013
    with pytest.raises(GraphDefinitionError, match="reducer of key 'n'.* is an async function"):
        StateGraph(schema)


def test_defaults_are_for_nodes_that_say_nothing_themselves() -> None:
    mine, default = RetryPolicy(max_attempts=1), RetryPolicy(max_attempts=9)
    builder = StateGraph(Log).add_node("own", later, retry_policy=mine, timeout=7).add_node("async", later)
    builder.set_node_defaults(retry_policy=default, timeout=5).set_node_defaults()
    plan = builder.add_edge(START, "own").compile().program.plan
    assert [plan.nodes[name].retry for name in ("own", "async")] == [(mine,), (default,)]
    assert [plan.nodes[name].timeout for name in ("own", "async")] == [TimeoutPolicy(7), TimeoutPolicy(5)]


def test_a_default_timeout_refuses_sync_nodes_whenever_it_is_set_and_leaves_their_handlers_alone() -> None:
    before = StateGraph(Log).set_node_defaults(timeout=5).add_node("a", a).add_edge(START, "a")
    after = StateGraph(Log).add_node("a", a).add_edge(START, "a").set_node_defaults(timeout=5)
    for builder in (before, after):
        with pytest.raises(GraphDefinitionError, match="Node 'a' is a sync function"):
            builder.compile()
    handled = StateGraph(Log).set_node_defaults(timeout=5, error_handler=a).add_node("b", later).add_edge(START, "b")
    handled.compile()


def test_a_graph_may_be_compiled_again_after_it_grew() -> None:
    builder = graph()
    before = builder.compile()
    builder.add_node("c", a).add_edge("b", "c")
    assert list(before.program.plan.nodes) == [START, "a", "b"]
    assert list(builder.compile().program.plan.nodes) == [START, "a", "b", "c"]
