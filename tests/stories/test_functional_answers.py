"""Answers to questions of workflows and tasks: kept beside failures, found by other processes, at any depth."""

from __future__ import annotations

from typing import Any, TypedDict

import anyio
import pytest

from persistence.sqlite import SqliteSaver
from runtime.func import entrypoint, task
from runtime.graph import START, StateGraph
from runtime.types import Command, RetryPolicy, interrupt
from tests.stories.asking import Asking, all_of, ids, pending
from tests.stories.graphs import CONFIG, history

pytestmark = pytest.mark.anyio


# ---- beside failures -------------------------------------------------------------------------------------------------


async def test_an_answer_outlives_a_failure_after_it(saver: Any) -> None:
    broken = [True]
    runs: list[str] = []

    @task
    async def careful(name: str) -> Any:
        runs.append(name)
        answer = interrupt(name)
        if broken[0] and name == "a":
            raise ValueError("after the answer")
        return answer

    @entrypoint(checkpointer=saver)
    async def flow(given: int) -> Any:
        first, second = careful("a"), careful("b")
        return [await first, await second]

    known = ids(await flow.ainvoke(1, CONFIG))
    with pytest.raises(ValueError, match="after the answer"):
        await flow.ainvoke(Command(resume={known["a"]: "A"}), CONFIG)
    assert [one.value for one in (await flow.aget_state(CONFIG)).interrupts] == ["b"]
    with pytest.raises(ValueError, match="after the answer"):
        await flow.ainvoke(None, CONFIG)
    broken[0] = False
    assert pending(await flow.ainvoke(None, CONFIG)) == ["b"]
    assert await flow.ainvoke(Command(resume="B"), CONFIG) == ["A", "B"]


async def test_a_question_beside_a_failure_stays_pending(saver: Any) -> None:
    asking = Asking()
    broken = [True]

    @task
    async def fail_later() -> str:
        asking.runs["fail_later"] += 1
        if broken[0]:
            await anyio.wait_all_tasks_blocked()
            raise ValueError("broken")
        return "mended"

    @entrypoint(checkpointer=saver)
    async def flow(given: int) -> Any:
        question, failure = asking.ask("q"), fail_later()
        return [await failure, await question]

    with pytest.raises(ValueError, match="broken"):
        await flow.ainvoke(1, CONFIG)
    (waiting,) = (await flow.aget_state(CONFIG)).interrupts
    assert waiting.value == "q"
    broken[0] = False
    assert await flow.ainvoke(Command(resume={waiting.id: "Q"}), CONFIG) == ["mended", ["Q"]]
    assert asking.runs == {"q": 2, "fail_later": 2}


async def test_a_failure_beside_a_question_in_a_task_group_is_raised_alone(saver: Any) -> None:
    @task
    async def fail() -> None:
        raise ValueError("broken")

    @entrypoint(checkpointer=saver)
    async def flow(given: int) -> Any:
        async def ask() -> None:
            interrupt("own")

        async def wait() -> None:
            with anyio.CancelScope(shield=True):
                await fail()

        async with anyio.create_task_group() as group:
            group.start_soon(wait)
            group.start_soon(ask)

    with pytest.raises(ExceptionGroup) as failed:
        await flow.ainvoke(1, CONFIG)
    assert [repr(each) for each in failed.value.exceptions] == ["ValueError('broken')"]


async def test_a_retry_keeps_the_answers(saver: Any) -> None:
    attempts: list[int] = []

    @task(retry_policy=RetryPolicy(initial_interval=0, jitter=False, retry_on=ValueError))
    async def shaky() -> Any:
        answer = interrupt("q")
        attempts.append(1)
        if len(attempts) < 3:
            raise ValueError
        return answer

    @entrypoint(checkpointer=saver)
    async def flow(given: int) -> Any:
        return await shaky()

    await flow.ainvoke(1, CONFIG)
    assert await flow.ainvoke(Command(resume="A"), CONFIG) == "A"
    assert len(attempts) == 3


# ---- across restarts and levels --------------------------------------------------------------------------------------


@pytest.mark.parametrize("depth", [0, 1, 2, 3])
async def test_finished_tasks_are_found_again_at_any_depth(database: str, depth: int) -> None:
    """A task done before a question in a nested graph runs once, with a new saver and a new graph for each run."""
    runs: list[str] = []

    class State(TypedDict, total=False):
        log: list[Any]

    @task
    async def work(name: str) -> str:
        runs.append(name)
        return name

    async def inmost(state: State) -> Any:
        done = await work("inmost")
        answer = interrupt("q")
        return {"log": [done, answer, await work("after")]}

    def build(level: int, saver: Any = None) -> Any:
        builder = StateGraph(State)
        if level == 0:
            builder.add_node("node", inmost)
        elif level % 2:
            below = build(level - 1)

            async def node(state: State) -> Any:
                before = await work(f"before {level}")
                found = await below.ainvoke(state)
                return {"log": [before, *found["log"]]}

            builder.add_node("node", node)
        else:
            builder.add_node("node", build(level - 1))
        builder.add_edge(START, "node")
        return builder.compile(checkpointer=saver)

    async with SqliteSaver.from_conn_string(database) as saver:
        assert pending(await build(depth, saver).ainvoke({}, CONFIG)) == ["q"]
    async with SqliteSaver.from_conn_string(database) as saver:
        assert pending(await build(depth, saver).ainvoke(None, CONFIG)) == ["q"]
    async with SqliteSaver.from_conn_string(database) as saver:
        result = await build(depth, saver).ainvoke(Command(resume="A"), CONFIG)
    before = [f"before {level}" for level in range(depth, 0, -1) if level % 2]
    assert result["log"] == [*before, "inmost", "A", "after"]
    assert sorted(runs) == sorted([*before, "inmost", "after"])


@pytest.mark.parametrize("durability", ["async", "sync", "exit"])
async def test_answers_are_given_by_another_process(database: str, durability: Any) -> None:
    asking = Asking()

    def build(saver: Any) -> Any:
        @task
        async def outer(name: str) -> Any:
            return [await asking.work(f"{name} work"), await asking.ask(name, f"{name} again")]

        @entrypoint(checkpointer=saver)
        async def flow(given: int) -> Any:
            return await all_of([outer("a"), outer("b")])

        return flow

    given: Any = 1
    answers = iter([{"a": 1}, {"a again": 2, "b": 3}, {"b again": 4}])
    for waits in (["a", "b"], ["a again", "b"], ["b again"]):
        async with SqliteSaver.from_conn_string(database) as saver:
            result = await build(saver).ainvoke(given, CONFIG, durability=durability)
            assert sorted(pending(result)) == waits
            known = ids(result)
            given = Command(resume={known[question]: value for question, value in next(answers).items()})
    async with SqliteSaver.from_conn_string(database) as saver:
        result = await build(saver).ainvoke(given, CONFIG, durability=durability)
    assert result == [["a work", [1, 2]], ["b work", [3, 4]]]
    assert asking.runs == {"a work": 1, "b work": 1, "a": 3, "b": 3}


async def test_going_back_asks_again_and_leaves_the_old_branch(saver: Any) -> None:
    asking = Asking()

    @entrypoint(checkpointer=saver)
    async def flow(given: int) -> Any:
        return [await asking.work("w"), await asking.ask("q")]

    first = await flow.ainvoke(1, CONFIG)
    assert await flow.ainvoke(Command(resume="A"), CONFIG) == ["w", ["A"]]
    old = await history(flow)
    again = await flow.ainvoke(None, old[1].config)
    assert pending(again) == ["q"]
    assert ids(again) != ids(first)
    assert await flow.ainvoke(Command(resume="B"), CONFIG) == ["w", ["B"]]
    assert asking.runs == {"w": 2, "q": 4}
    branches = [one.values for one in await history(flow) if not one.next]
    assert branches == [["w", ["B"]], ["w", ["A"]]]
