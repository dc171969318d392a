"""Questions inside user code of every kind: caught exceptions, helpers that retry, threads, routers, handlers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from contextvars import copy_context
from typing import Any

import anyio
import pytest
from anyio import create_task_group, to_thread
from sniffio import current_async_library

from runtime.errors import GraphInterrupt, NodeInterrupt
from runtime.func import entrypoint
from runtime.graph import END, START, StateGraph
from runtime.types import Command, RetryPolicy, Send, interrupt
from tests.stories.graphs import CONFIG, Log, chain, fan, note
from tests.stories.nests import Runs, asked, questions

pytestmark = pytest.mark.anyio


async def test_except_exception_does_not_swallow_a_pause(saver: Any) -> None:
    async def ask(_state: Log) -> dict[str, Any]:
        try:
            answer = interrupt("q")
        except Exception:  # noqa: BLE001 - what defensive code does
            answer = "swallowed"
        return {"log": [answer]}

    graph = chain(("ask", ask)).compile(checkpointer=saver)
    assert asked(await graph.ainvoke({}, CONFIG)) == ["q"]
    assert await graph.ainvoke(Command(resume="yes"), CONFIG) == {"log": ["yes"]}


async def test_a_helper_that_retries_does_not_retry_a_pause(saver: Any) -> None:
    calls: list[str] = []

    def stubborn(function: Callable[[], Any]) -> Any:
        for _ in range(3):
            try:
                calls.append("call")
                return function()
            except Exception:  # noqa: BLE001 - what defensive code does
                continue
        return "gave up"

    def ask(_state: Log) -> dict[str, Any]:
        return {"log": [stubborn(lambda: interrupt("q"))]}

    graph = chain(("ask", ask)).compile(checkpointer=saver)
    assert asked(await graph.ainvoke({}, CONFIG)) == ["q"]
    assert calls == ["call"]
    assert await graph.ainvoke(Command(resume="yes"), CONFIG) == {"log": ["yes"]}


async def test_finally_runs_on_every_pass(saver: Any) -> None:
    done: list[str] = []

    async def ask(_state: Log) -> dict[str, Any]:
        try:
            return {"log": [interrupt("q")]}
        finally:
            await anyio.lowlevel.checkpoint()
            done.append("finally")

    graph = chain(("ask", ask)).compile(checkpointer=saver)
    await graph.ainvoke({}, CONFIG)
    await graph.ainvoke(Command(resume="yes"), CONFIG)
    assert done == ["finally", "finally"]


async def test_a_question_waits_even_if_its_pause_is_caught(saver: Any) -> None:
    runs = Runs()

    async def ask(_state: Log) -> dict[str, Any]:
        runs["ask"] += 1
        try:
            return {"log": [interrupt("q")]}
        except GraphInterrupt as pause:
            return {"log": [f"caught {pause.interrupts[0].value}"]}

    graph = chain(("ask", ask), "end").compile(checkpointer=saver)
    assert asked(await graph.ainvoke({}, CONFIG)) == ["q"]
    assert (await graph.aget_state(CONFIG)).next == ("ask",)
    assert await graph.ainvoke(Command(resume="yes"), CONFIG) == {"log": ["yes", "end"]}
    assert runs["ask"] == 2


async def swallowing(call: Callable[[], Any]) -> Any:
    try:
        return await call()
    except:  # noqa: E722 - what careless code does
        return "swallowed"


async def gathering(call: Callable[[], Any]) -> Any:
    if current_async_library() == "asyncio":
        return (await asyncio.gather(call(), return_exceptions=True))[0]
    got: list[Any] = []

    async def one() -> None:
        got.append(await swallowing(call))

    async with create_task_group() as group:
        group.start_soon(one)
    return got[0]


@pytest.mark.parametrize("around", [swallowing, gathering])
@pytest.mark.parametrize("place", ["node", "child", "child without state", "router", "flow"])
async def test_a_pause_cannot_be_swallowed(saver: Any, place: str, around: Any) -> None:
    async def ask(_given: Any = None) -> Any:
        return interrupt("q")

    async def asking(_state: Log) -> dict[str, Any]:
        return {"log": [await around(ask)]}

    kept = False if place == "child without state" else None
    child = chain(("ask", _node_of(ask))).compile(checkpointer=kept)

    async def calling(_state: Log) -> dict[str, Any]:
        return {"log": [str(await around(lambda: child.ainvoke({})))]}

    async def router(_state: Log) -> str:
        return str(await around(ask))

    graph: Any
    if place == "flow":
        graph = entrypoint(checkpointer=saver)(_flow_of(lambda: around(ask)))
    elif place == "router":
        builder = chain("a", schema=Log)
        builder.add_node("b", note("b"))
        builder.add_conditional_edges("a", router, ["b", END])
        graph = builder.compile(checkpointer=saver)
    else:
        graph = chain(("n", asking if place == "node" else calling)).compile(checkpointer=saver)
    assert asked(await graph.ainvoke({}, CONFIG)) == ["q"]
    assert [one.value for one in (await graph.aget_state(CONFIG)).interrupts] == ["q"]
    result = await graph.ainvoke(Command(resume="b"), CONFIG)
    assert "__interrupt__" not in result
    assert "b" in str(result)
    assert "swallowed" not in str(result)


def _node_of(ask: Any) -> Any:
    async def node(_state: Log) -> dict[str, Any]:
        return {"log": [await ask()]}

    return node


def _flow_of(work: Callable[[], Any]) -> Any:
    async def flow(_given: Any) -> Any:
        return await work()

    return flow


async def test_a_breakpoint_in_a_subgraph_cannot_be_swallowed_either(saver: Any) -> None:
    child = chain("s").compile(interrupt_before=["s"])

    async def calling(_state: Log) -> dict[str, Any]:
        return {"log": [str(await swallowing(lambda: child.ainvoke({})))]}

    graph = chain(("n", calling)).compile(checkpointer=saver)
    await graph.ainvoke({}, CONFIG)
    assert (await graph.aget_state(CONFIG)).next == ("n",)
    assert "'s'" in (await graph.ainvoke(None, CONFIG))["log"][0]


async def test_what_a_failed_attempt_asked_is_forgotten_if_the_next_does_not_ask(saver: Any) -> None:
    runs = Runs()

    async def fickle(_state: Log) -> dict[str, Any]:
        runs["fickle"] += 1
        if runs["fickle"] == 1:
            with suppress(GraphInterrupt):
                interrupt("q")
            raise ConnectionError
        return {"log": ["well"]}

    builder = StateGraph(Log).add_node("f", fickle, retry_policy=RetryPolicy(initial_interval=0, jitter=False))
    child = builder.add_edge(START, "f").compile(checkpointer=False)

    async def calling(_state: Log) -> Any:
        return await child.ainvoke({})

    graph = chain(("n", calling)).compile(checkpointer=saver)
    assert await graph.ainvoke({}, CONFIG) == {"log": ["well"]}


async def test_a_retry_policy_does_not_retry_a_pause(saver: Any) -> None:
    runs = Runs()
    builder = StateGraph(Log)
    name, node = runs.asker("ask")
    builder.add_node(name, node, retry_policy=RetryPolicy(max_attempts=5, retry_on=BaseException, jitter=False))
    builder.add_edge(START, name)
    graph = builder.compile(checkpointer=saver)
    await graph.ainvoke({}, CONFIG)
    assert runs["ask"] == 1


async def test_sync_nodes_ask_in_turn(saver: Any) -> None:
    def ask(_state: Log) -> dict[str, Any]:
        return {"log": [interrupt("q1"), interrupt("q2")]}

    graph = fan(("l", ask), ("r", ask)).compile(checkpointer=saver)
    ids = (await graph.ainvoke({}, CONFIG))["__interrupt__"]
    assert [one.value for one in ids] == ["q1", "q1"]
    result = await graph.ainvoke(Command(resume={one.id: "1" for one in ids}), CONFIG)
    assert [one.value for one in result["__interrupt__"]] == ["q2", "q2"]
    result = await graph.ainvoke(Command(resume={one.id: "2" for one in result["__interrupt__"]}), CONFIG)
    assert result["log"] == ["st", "1", "2", "1", "2", "join"]


def test_blocking_calls_ask_and_answer(blocking_saver: Any) -> None:
    def ask(_state: Log) -> dict[str, Any]:
        return {"log": [interrupt("q1"), interrupt("q2")]}

    graph = chain(("ask", ask)).compile(checkpointer=blocking_saver)
    assert asked(graph.invoke({}, CONFIG)) == ["q1"]
    assert asked(graph.invoke(Command(resume="1"), CONFIG)) == ["q2"]
    assert [one.value for one in graph.get_state(CONFIG).interrupts] == ["q2"]
    assert graph.invoke(Command(resume="2"), CONFIG) == {"log": ["1", "2"]}


async def test_an_async_node_asks_from_a_thread(saver: Any) -> None:
    async def ask(_state: Log) -> dict[str, Any]:
        return {"log": [await to_thread.run_sync(interrupt, "q")]}

    graph = chain(("ask", ask)).compile(checkpointer=saver)
    assert asked(await graph.ainvoke({}, CONFIG)) == ["q"]
    assert await graph.ainvoke(Command(resume="yes"), CONFIG) == {"log": ["yes"]}


async def test_a_thread_asks_the_same_whether_its_node_waits_yet_or_not(saver: Any) -> None:
    """A thread may be at its question before the node that started it has come to wait for it."""
    waits = iter([True, False])

    async def ask(_state: Log) -> dict[str, Any]:
        with ThreadPoolExecutor(1) as pool:
            asking = pool.submit(copy_context().run, interrupt, "q")
            if next(waits):
                await to_thread.run_sync(wait, [asking])
            else:
                wait([asking])
            return {"log": [asking.result()]}

    graph = chain(("ask", ask)).compile(checkpointer=saver)
    assert asked(await graph.ainvoke({}, CONFIG)) == ["q"]
    assert await graph.ainvoke(Command(resume="yes"), CONFIG) == {"log": ["yes"]}


async def test_a_node_may_word_its_question_anew_each_time(saver: Any) -> None:
    count = iter(range(10))

    async def ask(_state: Log) -> dict[str, Any]:
        return {"log": [interrupt(f"draft {next(count)}"), interrupt(f"draft {next(count)}")]}

    graph = chain(("ask", ask)).compile(checkpointer=saver)
    await graph.ainvoke({}, CONFIG)
    assert len(asked(await graph.ainvoke(Command(resume="A"), CONFIG))) == 1
    assert await graph.ainvoke(Command(resume="B"), CONFIG) == {"log": ["A", "B"]}


async def test_each_send_has_its_own_question(saver: Any) -> None:
    runs = Runs()

    async def work(state: Any) -> dict[str, Any]:
        runs["work"] += 1
        return {"log": [f"{state}:{interrupt(f'about {state}')}"]}

    builder = StateGraph(Log)
    builder.add_node("work", work)
    builder.add_conditional_edges(START, lambda _state: [Send("work", name) for name in "abc"])
    graph = builder.compile(checkpointer=saver)
    result = await graph.ainvoke({}, CONFIG)
    ids = questions(result)
    assert list(ids) == ["about a", "about b", "about c"]
    assert len(set(ids.values())) == 3
    result = await graph.ainvoke(Command(resume={ids["about b"]: "B"}), CONFIG)
    assert asked(result) == ["about a", "about c"]
    assert runs["work"] == 4
    result = await graph.ainvoke(Command(resume={ids["about a"]: "A", ids["about c"]: "C"}), CONFIG)
    assert result == {"log": ["a:A", "b:B", "c:C"]}
    assert runs["work"] == 6


async def test_a_router_can_ask(saver: Any) -> None:
    builder = chain("n")
    builder.edges.discard(("n", END))
    builder.add_node("left", lambda _state: {"log": ["left"]})
    builder.add_node("right", lambda _state: {"log": ["right"]})
    builder.add_conditional_edges("n", lambda _state: interrupt("where?"))
    graph = builder.compile(checkpointer=saver)
    assert asked(await graph.ainvoke({}, CONFIG)) == ["where?"]
    assert (await graph.ainvoke(Command(resume="right"), CONFIG))["log"] == ["n", "right"]


async def test_an_error_handler_asks_in_turn(saver: Any) -> None:
    runs = Runs()

    async def bad(_state: Log) -> dict[str, Any]:
        runs["bad"] += 1
        raise ValueError

    async def handler(_state: Log) -> dict[str, Any]:
        return {"log": [interrupt("retry?"), interrupt("sure?")]}

    builder = StateGraph(Log)
    builder.add_node("bad", bad, error_handler=handler)
    builder.add_edge(START, "bad")
    graph = builder.compile(checkpointer=saver)
    assert asked(await graph.ainvoke({}, CONFIG)) == ["retry?"]
    assert asked(await graph.ainvoke(Command(resume="1"), CONFIG)) == ["sure?"]
    assert await graph.ainvoke(Command(resume="2"), CONFIG) == {"log": ["1", "2"]}
    assert runs["bad"] == 1


async def test_a_question_raised_by_hand(saver: Any) -> None:
    async def ask(_state: Log) -> dict[str, Any]:
        raise NodeInterrupt("by hand")

    graph = chain(("ask", ask)).compile(checkpointer=saver)
    assert asked(await graph.ainvoke({}, CONFIG)) == ["by hand"]
    assert (await graph.aget_state(CONFIG)).next == ("ask",)
    assert asked(await graph.ainvoke(None, CONFIG)) == ["by hand"]


async def test_a_question_in_a_node_that_also_failed_a_sibling(saver: Any) -> None:
    runs = Runs()
    graph = fan(runs.asker("ask"), runs.failer("bad")).compile(checkpointer=saver)
    with pytest.raises(ConnectionError):
        await graph.ainvoke({}, CONFIG)
    snapshot = await graph.aget_state(CONFIG)
    if not snapshot.interrupts:  # cancelled before it could ask
        assert asked(await graph.ainvoke(None, CONFIG)) == ["ask?"]
    (question,) = (await graph.aget_state(CONFIG)).interrupts
    result = await graph.ainvoke(Command(resume={question.id: "yes"}), CONFIG)
    assert result["log"] == ["st", "ask:yes", "bad", "join"]


async def test_what_a_loop_asks_each_round_is_a_new_question(saver: Any) -> None:
    async def ask(state: Log) -> dict[str, Any]:
        return {"a": state["a"] + 1, "log": [interrupt(f"round {state['a']}")]}

    builder = StateGraph(Log)
    builder.add_node("ask", ask)
    builder.add_edge(START, "ask")
    builder.add_conditional_edges("ask", lambda state: "ask" if state["a"] < 3 else END)
    graph = builder.compile(checkpointer=saver)
    result = await graph.ainvoke({"a": 0}, CONFIG)
    seen = set()
    for number in range(3):
        assert asked(result) == [f"round {number}"]
        seen |= set(questions(result).values())
        result = await graph.ainvoke(Command(resume=str(number)), CONFIG)
    assert len(seen) == 3
    assert result == {"a": 3, "log": ["0", "1", "2"]}
