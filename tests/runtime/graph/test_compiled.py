"""A compiled graph: settings, what a call can get wrong, and what it tells of runs at work."""

from __future__ import annotations

import copy
import threading
from dataclasses import dataclass
from typing import Annotated, Any, TypedDict

import anyio
import msgspec
import pydantic
import pytest

from persistence.memory import InMemorySaver, InMemoryStore
from runtime.context.runtime import RunControl, Runtime
from runtime.errors import ConfigError, UnknownNodeError, UnknownStreamModeError
from runtime.func import entrypoint
from runtime.graph import START, StateGraph
from runtime.graph.compiled import coerce_context
from runtime.types import RetryPolicy, RunnableConfig, Send
from tests.stories.graphs import CONFIG, Log, chain, collect, note

# ---- settings --------------------------------------------------------------------------------------------------------


async def test_settings_that_every_call_starts_from() -> None:
    seen: list[Any] = []

    def node(_state: Any, config: RunnableConfig) -> None:
        seen.append((config["configurable"]["user"], config["tags"], config["metadata"]["m"]))

    graph = chain(("node", node)).compile()
    mine = graph.with_config({"configurable": {"user": "mine"}, "tags": ["x"]}, metadata={"m": 1})
    await mine.ainvoke({})
    await mine.ainvoke({}, {"user": "another", "tags": ["y"]})
    assert seen == [("mine", ["x"], 1), ("another", ["x", "y"], 1)]
    with pytest.raises(KeyError):
        await graph.ainvoke({})
    again = mine.with_config(tags=["z"])
    await again.ainvoke({})
    assert seen[-1] == ("mine", ["x", "z"], 1)


async def test_a_thread_may_be_one_of_them() -> None:
    graph = chain("a").compile(InMemorySaver()).with_config(CONFIG)
    await graph.ainvoke({})
    assert (await graph.aget_state({})).values["log"] == ["a"]


@pytest.mark.parametrize("inside", [True, False])
async def test_an_approval_asked_for_in_the_wrong_place_is_no_silent_go_ahead(inside: bool) -> None:
    """Nothing runs and nothing is saved, whichever door the call came through."""
    ran: list[str] = []
    graph = chain(("pay", lambda _state: ran.append("paid"))).compile(InMemorySaver())
    gate: dict[str, Any] = {"interrupt_before": ["pay"]}
    config = {"configurable": {"thread_id": "t", **gate}} if inside else {"configurable": {"thread_id": "t"}, **gate}
    outer = chain(("call", lambda _state: graph.invoke({}, config)))
    flow = entrypoint()(lambda _given: None)
    match = "'interrupt_before' .* has no effect. Pass it as the argument interrupt_before="
    for call, given in ((graph, config), (flow, config), (outer.compile(), {})):
        with pytest.raises(ConfigError, match=match):
            await call.ainvoke({}, given)
    with pytest.raises(ConfigError, match=match):
        graph.astream({}, config)
    with pytest.raises(ConfigError, match=match):
        graph.with_config(config)
    with pytest.raises(ConfigError, match=match):
        await graph.aget_state(config)
    assert ran == []
    assert (await graph.aget_state({"configurable": {"thread_id": "t"}})).created_at is None
    await graph.ainvoke({}, {"configurable": {"thread_id": "t"}}, **gate)
    assert ran == []


async def test_a_saver_and_a_store_can_be_assigned() -> None:
    """To a copy alone, if it is made before."""
    graph = chain(("a", lambda state: {"log": [str(len(state["log"]))]})).compile()
    apart = copy.copy(graph)
    graph.checkpointer, graph.store = InMemorySaver(), InMemoryStore()
    await graph.ainvoke({"log": ["in"]}, CONFIG)
    assert (await graph.aget_state(CONFIG)).values["log"] == ["in", "1"]
    assert (apart.checkpointer, apart.store) == (None, None)
    assert await apart.ainvoke({"log": []}) == {"log": ["0"]}
    wrong: Any = "threads.db"
    for name in ("checkpointer", "store"):
        with pytest.raises(TypeError, match=name):
            setattr(graph, name, wrong)


class Pair(TypedDict, total=False):
    shown: int
    hidden: int


class Shown(TypedDict, total=False):
    shown: int


@pytest.mark.parametrize("called", [False, True])
async def test_observers_see_of_a_subgraph_what_it_returns(called: bool) -> None:
    """Unless it is streamed by itself."""
    builder = StateGraph(Pair, output_schema=Shown).add_node("n", lambda _state: {"hidden": 1})
    inner = (
        builder.add_node("m", lambda _state: {"shown": 2, "hidden": 3})
        .add_edge(START, "n")
        .add_edge("n", "m")
        .compile()
    )

    async def call(state: Pair) -> Any:
        return await inner.ainvoke(state)

    outer = StateGraph(Shown).add_node("sub", call if called else inner).add_edge(START, "sub").compile()
    for mode, expected in (("updates", [{"n": None}, {"m": {"shown": 2}}]), ("values", [{"shown": 1}, {"shown": 2}])):
        stream = outer.astream({"shown": 1}, stream_mode=mode, subgraphs=True)
        assert [chunk for ns, chunk in [each async for each in stream] if ns] == expected
    assert await inner.ainvoke({}, stream_mode="updates") == [{"n": None}, {"m": {"shown": 2}}]
    assert [chunk async for chunk in inner.astream({})] == [{"n": {"hidden": 1}}, {"m": {"shown": 2, "hidden": 3}}]


def test_a_graph_says_what_it_is() -> None:
    saver, store = InMemorySaver(), InMemoryStore()
    graph = chain("a", "b").compile(saver, store=store, name="mine", step_timeout=5)
    assert (graph.name, graph.checkpointer, graph.store, graph.cache) == ("mine", saver, store, None)
    assert repr(graph) == "<CompiledStateGraph 'mine' nodes=['a', 'b']>"
    assert graph.step_timeout == 5
    graph.step_timeout = None
    assert graph.step_timeout is None
    assert chain("a").compile().name == "LangGraph"


# ---- contexts --------------------------------------------------------------------------------------------------------


@dataclass
class Data:
    user: str = "nobody"


class Struct(msgspec.Struct):
    user: str = "nobody"


class Model(pydantic.BaseModel):
    user: str = "nobody"


class Typed(TypedDict):
    user: str


@pytest.mark.parametrize("schema", [Data, Struct, Model])
def test_a_dict_becomes_the_contexts_class(schema: Any) -> None:
    assert coerce_context(schema, {"user": "u"}) == schema(user="u")
    assert coerce_context(schema, made := schema(user="u")) is made
    assert coerce_context(schema, None) is None
    with pytest.raises((TypeError, ValueError)):
        coerce_context(schema, {"user": object(), "no such": 1})


@pytest.mark.parametrize("schema", [Typed, None, dict])
def test_other_contexts_are_handed_on(schema: Any) -> None:
    context = {"user": "u"}
    assert coerce_context(schema, context) is context
    assert coerce_context(schema, "text") == "text"


async def test_a_context_reaches_the_nodes_and_is_never_stored() -> None:
    seen: list[Any] = []

    def node(_state: Any, runtime: Runtime[Any]) -> None:
        seen.append(runtime.context)

    builder: StateGraph[Any, Any, Any, Any] = StateGraph(Log, Data)
    saver = InMemorySaver()
    graph = builder.add_node("node", node).add_edge(START, "node").compile(saver)
    await graph.ainvoke({}, CONFIG, context={"user": "secret-user"})
    assert seen == [Data("secret-user")]
    assert "secret-user" not in repr(saver._tables.threads)


# ---- what a call can get wrong ---------------------------------------------------------------------------------------

WRONG: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "no thread": ({"config": {}}, ConfigError, "the call must name a thread"),
    "a mode of durability": ({"durability": "later"}, ConfigError, "durability must be one of exit, async, sync"),
    "both forms of durability": (
        {"durability": "sync", "checkpoint_during": True},
        ConfigError,
        "durability or checkpoint_during, not both",
    ),
    "a strategy": ({"multitask_strategy": "wait"}, ConfigError, "must be 'enqueue' or 'reject'"),
    "a breakpoint": ({"interrupt_before": ["no such"]}, UnknownNodeError, "interrupt_before: there is no node"),
    "a breakpoint after": ({"interrupt_after": [START]}, UnknownNodeError, "interrupt_after: there is no node"),
    "an output key": ({"output_keys": ["no such"]}, ConfigError, "'no such' is no key of the state. Known: a, log"),
    "a stream mode": ({"stream_mode": "value"}, UnknownStreamModeError, "Unknown stream mode 'value'"),
    "a control": ({"control": True}, TypeError, r"must be a RunControl of runtime.runtime, .* got True"),
    "a limit": ({"config": {**CONFIG, "recursion_limit": 0}}, ConfigError, "recursion_limit must be"),
}


@pytest.mark.parametrize("case", WRONG)
async def test_a_wrong_call_is_refused_before_anything_runs_or_is_saved(case: str) -> None:
    options, error, message = WRONG[case]
    ran: list[Any] = []
    saver = InMemorySaver()
    graph = chain(("node", ran.append)).compile(saver)
    options = {"config": CONFIG, **options}
    with pytest.raises(error, match=message):
        await graph.ainvoke({}, **options)
    if "multitask_strategy" not in options:
        with pytest.raises(error, match=message):
            graph.astream({}, **options)
    assert ran == []
    assert saver._tables.threads == {}


async def test_reading_and_editing_need_a_saver_and_a_thread() -> None:
    for graph, error, message in (
        (chain("a").compile(), ValueError, "No checkpointer set"),
        (chain("a").compile(InMemorySaver()), ConfigError, "must name a thread"),
    ):
        with pytest.raises(error, match=message):
            await graph.aget_state({})
        with pytest.raises(error, match=message):
            graph.aget_state_history({})
        with pytest.raises(error, match=message):
            await graph.aupdate_state({}, {})
        with pytest.raises(error, match=message):
            await graph.abulk_update_state({}, [])


async def test_a_root_graph_keeps_no_state_beside_a_parent() -> None:
    with pytest.raises(RuntimeError, match="checkpointer=True cannot be used for root graphs"):
        await chain("a").compile(True).ainvoke({})
    assert (await chain("a").compile(False).ainvoke({}))["log"] == ["a"]


@pytest.mark.parametrize(("during", "steps"), [(True, [-1, 0, 1]), (False, [1])])
async def test_the_old_form_of_durability(during: bool, steps: list[int]) -> None:
    graph = chain("a").compile(InMemorySaver())
    await graph.ainvoke({}, CONFIG, checkpoint_during=during)
    history = [one async for one in graph.aget_state_history(CONFIG)]
    assert [one.metadata["step"] for one in reversed(history)] == steps


async def test_what_is_returned_may_be_chosen() -> None:
    graph = chain("a").compile()
    assert await graph.ainvoke({"a": 1}, output_keys=["a"]) == {"a": 1}
    assert await graph.ainvoke({"a": 1}, output_keys="a") == 1
    assert await graph.ainvoke({}, output_keys="a") is None
    assert await graph.ainvoke({"a": 1}, output_keys=["log", "a"]) == {"log": ["a"], "a": 1}
    assert await graph.ainvoke({"a": 1}, stream_mode="updates") == [{"a": {"log": ["a"]}}]


# ---- runs at work ----------------------------------------------------------------------------------------------------


async def test_runs_at_work_tell_where_they_stand() -> None:
    begun, go_on = anyio.Event(), anyio.Event()
    arrived: list[int] = []

    async def node(given: int) -> None:
        arrived.append(given)
        if len(arrived) == 3:
            begun.set()
        await go_on.wait()

    builder: StateGraph[Any, Any, Any, Any] = StateGraph(Log)
    builder.add_node("node", node).add_node("first", note("first")).add_edge(START, "first")
    builder.add_conditional_edges("first", lambda _state: [Send("node", number) for number in range(3)], ["node"])
    graph = builder.compile(InMemorySaver())
    assert graph.statistics() == ()
    async with anyio.create_task_group() as group:
        group.start_soon(collect, graph.with_config(CONFIG).astream({}))
        await begun.wait()
        (run,) = graph.statistics()
        assert (run.thread_id, run.step) == ("t", 2)
        assert run.supervisor is not None
        assert (run.supervisor.workers, run.supervisor.idle, run.supervisor.limit) == (3, 0, None)
        mailbox = run.supervisor.actors["node"]
        assert (mailbox.waiting, mailbox.received) == (0, 3)
        assert run.stream is not None
        assert run.stream.capacity > 0
        go_on.set()
    assert graph.statistics() == ()


async def test_a_run_that_ended_badly_is_at_work_no_more() -> None:
    def fail(_state: Any) -> None:
        raise ValueError("boom")

    graph = chain(("fail", fail)).compile()
    with pytest.raises(ValueError, match="boom"):
        await graph.ainvoke({})
    with anyio.move_on_after(0):
        await graph.ainvoke({})
    assert graph.statistics() == ()


async def test_a_superstep_may_take_so_long() -> None:
    graph = chain(("wait", forever)).compile(step_timeout=0.01, name="slow")
    told = r"took longer than step_timeout \(0.01 s\); unfinished: wait"
    with pytest.raises(TimeoutError, match=rf"Superstep 1 of graph 'slow' {told}"):
        await graph.ainvoke({})
    kept = chain(("wait", forever)).compile(InMemorySaver(), step_timeout=0.01)
    with pytest.raises(TimeoutError, match=rf"Superstep 1 of graph 'LangGraph' on thread '7' {told}"):
        await kept.ainvoke({}, {"configurable": {"thread_id": 7}})
    graph.step_timeout = None
    with anyio.move_on_after(0.05) as scope:
        await graph.ainvoke({})
    assert scope.cancelled_caught


async def forever(_state: Any) -> None:
    await anyio.sleep_forever()


async def test_a_handle_that_asked_to_stop_keeps_asking() -> None:
    control = RunControl()
    control.request_drain("over")
    graph = chain("a").compile(InMemorySaver())
    for _ in range(2):
        with pytest.raises(Exception, match="over"):
            await graph.ainvoke({}, CONFIG, control=control)
    assert (await graph.ainvoke(None, CONFIG))["log"] == ["a"]


# ---- where functions run ---------------------------------------------------------------------------------------------


async def test_sync_nodes_routers_and_handlers_run_in_threads_and_short_functions_on_the_loop() -> None:
    here = threading.get_ident()
    on_loop: dict[str, bool] = {}

    def told(what: str, result: Any = None) -> Any:
        on_loop[what] = threading.get_ident() == here
        return result

    def fail(_state: Any) -> None:
        told("node")
        raise ValueError("boom")

    keys: Any = {"n": Annotated[int, lambda left, right: told("reducer", left + right)]}
    policy = RetryPolicy(retry_on=lambda _error: told("retry predicate", False))
    builder: StateGraph[Any, Any, Any, Any] = StateGraph(TypedDict("State", keys))
    builder.add_node("fail", fail, retry_policy=policy, error_handler=lambda _state: told("handler", {"n": 1}))
    builder.add_conditional_edges(START, lambda _state: told("router", "fail"), ["fail"])
    assert await builder.compile().ainvoke({"n": 1}) == {"n": 2}
    assert on_loop == {"router": False, "node": False, "handler": False, "reducer": True, "retry predicate": True}
