"""Subgraphs that keep their state, called at once: refused, for no call could be sure to get its own state again."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import anyio
import pytest

from runtime.errors import InvalidUpdateError
from runtime.func import entrypoint, task
from runtime.graph import START, StateGraph
from runtime.types import Command, Send
from tests.stories.graphs import CONFIG, Log, chain, thread
from tests.stories.nests import Runs, asked

pytestmark = pytest.mark.anyio


def keeper(*nodes: Any) -> Any:
    """Compile a graph that keeps its state."""
    return chain(*nodes or ("s",)).compile(checkpointer=True)


def at_once(*calls: Callable[[], Any]) -> Callable[[Any], Any]:
    """Return a node that makes calls at once and returns what they log, or raises what the first to fail raises."""

    async def node(_state: Log) -> dict[str, Any]:
        logs: dict[int, list[str]] = {}
        errors: list[Exception] = []

        async def one(number: int, call: Callable[[], Any]) -> None:
            try:
                logs[number] = (await call())["log"]
            except Exception as error:  # noqa: BLE001 - raised below, outside of the group
                errors.append(error)

        async with anyio.create_task_group() as group:
            for number, call in enumerate(calls):
                group.start_soon(one, number, call)
        if errors:
            raise errors[0]
        return {"log": [entry for number in sorted(logs) for entry in logs[number]]}

    return node


async def refused(graph: Any) -> str:
    """Run a graph that is refused, turn after turn; return the message."""
    for _ in range(2):
        with pytest.raises(InvalidUpdateError, match="checkpointer=True") as caught:
            await graph.ainvoke({"log": []}, CONFIG)
        assert "MULTIPLE_SUBGRAPHS" in str(caught.value)
    return str(caught.value)


async def test_called_twice_at_once_in_one_node(saver: Any) -> None:
    child = keeper()
    calls = [lambda name=name: child.ainvoke({"log": [name]}) for name in "ab"]
    assert "node 'p'" in await refused(chain(("p", at_once(*calls))).compile(checkpointer=saver))


async def test_two_different_ones_at_once_in_one_node(saver: Any) -> None:
    left, right = keeper("left"), keeper("right")
    calls = [lambda child=child: child.ainvoke({"log": []}) for child in (left, right)]
    await refused(chain(("p", at_once(*calls))).compile(checkpointer=saver))


async def test_inside_others_that_are_called_at_once(saver: Any) -> None:
    middle = chain(("k", keeper())).compile()
    calls = [lambda name=name: middle.ainvoke({"log": [name]}) for name in "ab"]
    await refused(chain(("p", at_once(*calls))).compile(checkpointer=saver))


@pytest.mark.parametrize("deep", [False, True])
async def test_called_at_once_though_one_has_ended_before_the_other_starts(saver: Any, deep: bool) -> None:
    child = chain(("k", keeper())).compile() if deep else keeper()

    async def node(_state: Log) -> Any:
        ended = anyio.Event()

        async def first() -> Any:
            result = await child.ainvoke({"log": ["a"]})
            ended.set()
            return result

        async def second() -> Any:
            await ended.wait()
            return await child.ainvoke({"log": ["b"]})

        return await at_once(first, second)({})

    assert "node 'p'" in await refused(chain(("p", node)).compile(checkpointer=saver))


async def test_one_after_the_other_beside_the_node(saver: Any) -> None:
    child = keeper()

    async def both() -> Any:
        first = await child.ainvoke({"log": ["a"]})
        return {"log": [*first["log"], *(await child.ainvoke({"log": ["b"]}))["log"]]}

    graph = chain(("p", at_once(both))).compile(checkpointer=saver)
    assert (await graph.ainvoke({"log": []}, CONFIG))["log"] == ["a", "s", "b", "s"]


async def test_while_another_waits_for_an_answer(saver: Any) -> None:
    waits, other, runs = anyio.Event(), keeper(), Runs()
    refusals: list[Exception] = []

    async def hold(_state: Log) -> dict[str, Any]:
        await waits.wait()
        return {}

    asking, holding = keeper(runs.asker("n")), chain(("h", hold)).compile()

    async def late() -> Any:
        with anyio.CancelScope(shield=True):  # the pause, on its way through the group, may be faster
            while not (await graph.aget_state({"configurable": {"thread_id": "t", "checkpoint_ns": "p"}})).interrupts:
                await anyio.lowlevel.checkpoint()
            try:
                return await other.ainvoke({"log": []})
            except InvalidUpdateError as error:
                refusals.append(error)
                return {"log": []}
            finally:
                waits.set()

    async def node(_state: Log) -> Any:
        async with anyio.create_task_group() as group:
            group.start_soon(holding.ainvoke, {"log": []})
            group.start_soon(late)
            await asking.ainvoke({"log": []})

    graph = chain(("p", node)).compile(checkpointer=saver)
    assert asked(await graph.ainvoke({"log": []}, CONFIG)) == ["n?"]
    assert len(refusals) == 1


async def test_one_beside_others_that_keep_nothing(saver: Any) -> None:
    kept, fresh = keeper(), chain("f").compile()

    async def keep() -> Any:
        return await kept.ainvoke({"log": []})

    async def start(_state: Log) -> Any:
        first = await at_once(lambda: fresh.ainvoke({"log": []}), lambda: fresh.ainvoke({"log": []}))({})
        return {"log": [*first["log"], *(await keep())["log"]]}

    graph = chain(("p", start)).compile(checkpointer=saver)
    assert (await graph.ainvoke({"log": []}, CONFIG))["log"] == ["f", "f", "s"]
    assert (await graph.ainvoke({"log": []}, CONFIG))["log"][3:] == ["f", "f", "s", "s"]


async def test_one_after_the_other_each_in_a_task_of_the_event_loop(saver: Any) -> None:
    child = keeper()

    async def node(_state: Log) -> dict[str, Any]:
        logs = [await at_once(partial(child.ainvoke, {"log": [name]}))({}) for name in "ab"]
        return {"log": ["".join(log["log"]) for log in logs]}

    graph = chain(("p", node)).compile(checkpointer=saver)
    assert (await graph.ainvoke({"log": []}, CONFIG))["log"] == ["as", "bs"]
    assert (await graph.ainvoke({"log": []}, CONFIG))["log"][2:] == ["asas", "bsbs"]


async def test_one_in_a_task_of_the_event_loop_goes_on_whatever_it_is_given_then(saver: Any) -> None:
    runs = Runs()
    child, given = keeper(runs.step("a"), runs.asker("n")), iter("xyz")

    async def node(_state: Log) -> Any:
        return await at_once(lambda: child.ainvoke({"log": [next(given)]}))({})

    graph = chain(("p", node)).compile(checkpointer=saver)
    assert asked(await graph.ainvoke({"log": []}, CONFIG)) == ["n?"]
    assert (await graph.ainvoke(Command(resume="yes"), CONFIG))["log"] == ["x", "a", "n:yes"]
    assert runs == {"a": 1, "n": 2}


async def test_calls_of_one_task_function_at_once(saver: Any) -> None:
    child = keeper()

    @task
    async def keep(name: str) -> Any:
        return (await child.ainvoke({"log": [name]}))["log"]

    @entrypoint(checkpointer=saver)
    async def flow(_given: int) -> Any:
        return [await future for future in (keep("a"), keep("b"))]

    for _ in range(2):
        with pytest.raises(InvalidUpdateError, match="MULTIPLE_SUBGRAPHS"):
            await flow.ainvoke(1, CONFIG)


async def test_even_if_one_had_its_turn_before_the_other(saver: Any) -> None:
    child, ran = keeper(), anyio.Event()

    @task
    async def keep(name: str) -> Any:
        if name == "b":
            await ran.wait()
        result = (await child.ainvoke({"log": [name]}))["log"]
        ran.set()
        return result

    @entrypoint(checkpointer=saver)
    async def flow(_given: int) -> Any:
        return [await future for future in (keep("a"), keep("b"))]

    with pytest.raises(InvalidUpdateError, match="calls of task 'keep'"):
        await flow.ainvoke(1, CONFIG)


async def test_nor_below_calls_of_one_task_function_or_in_sends(saver: Any) -> None:
    middle = chain(("k", keeper())).compile()

    @task
    async def keep(name: str) -> Any:
        return (await middle.ainvoke({"log": [name]}))["log"]

    async def both(_state: Log) -> Any:
        return {"log": [entry for future in (keep("a"), keep("b")) for entry in await future]}

    async def one(state: Any) -> Any:
        return {"log": await keep(state)}

    with pytest.raises(InvalidUpdateError, match="MULTIPLE_SUBGRAPHS"):
        await chain(("p", both)).compile(checkpointer=saver).ainvoke({"log": []}, CONFIG)
    builder = StateGraph(Log)
    builder.add_node("w", one)
    builder.add_conditional_edges(START, lambda _state: [Send("w", "a"), Send("w", "b")])
    with pytest.raises(InvalidUpdateError, match="MULTIPLE_SUBGRAPHS"):
        await builder.compile(checkpointer=saver).ainvoke({"log": []}, {**thread("other"), "max_concurrency": 1})


async def test_calls_of_one_task_function_one_after_the_other_share_a_state(saver: Any) -> None:
    child = keeper()

    @task
    async def keep(name: str) -> Any:
        return "".join((await child.ainvoke({"log": [name]}))["log"])

    @entrypoint(checkpointer=saver)
    async def flow(_given: int) -> Any:
        return [await keep("a"), await keep("b")]

    assert await flow.ainvoke(1, CONFIG) == ["as", "asbs"]
    assert await flow.ainvoke(1, CONFIG) == ["asbsas", "asbsasbs"]


async def test_a_call_after_one_that_took_too_long(saver: Any) -> None:
    runs, reached = Runs(), anyio.Event()

    async def wait(state: Log) -> Any:
        if state["log"][-1] == "a":
            reached.set()
            await anyio.sleep_forever()
        return {"log": ["s"]}

    child = keeper(("wait", wait))

    @task
    async def keep(name: str) -> Any:
        runs[name] += 1
        return (await child.ainvoke({"log": [name]}))["log"]

    @entrypoint(checkpointer=saver)
    async def flow(_given: int) -> Any:
        slow = keep("a")
        await reached.wait()
        with anyio.CancelScope() as scope:
            scope.cancel()
            await slow
        while not slow.done():
            await anyio.lowlevel.checkpoint()
        return await keep("b")

    assert await flow.ainvoke(1, CONFIG) == ["a", "b", "s"]
