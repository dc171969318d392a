"""Questions that one node asks at once: all are put, each under an id of its own, and each gets its own answer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from itertools import permutations
from typing import Any, TypedDict

import anyio
import numpy  # noqa: ICN001 - as everywhere here
import pytest

from persistence.memory import InMemorySaver
from persistence.sqlite import SqliteSaver
from runtime.errors import UnknownInterruptError
from runtime.graph import START, StateGraph
from runtime.types import Command, RetryPolicy, interrupt
from tests.stories.graphs import CONFIG, Log, chain, history
from tests.stories.nests import Runs, asked, questions

pytestmark = pytest.mark.anyio


class Count(TypedDict):
    """An answer that counts."""

    count: int


Ask = Callable[[Any], Awaitable[Any]]
Gathering = Callable[..., Awaitable[dict[Any, Any]]]


async def by_task_group(ask: Ask, *values: Any) -> dict[Any, Any]:
    """Ask in tasks of an anyio task group."""
    answers: dict[Any, Any] = {}

    async def one(value: Any) -> None:
        answers[value] = await ask(value)

    async with anyio.create_task_group() as group:
        for value in values:
            group.start_soon(one, value)
    return answers


async def by_gather(ask: Ask, *values: Any) -> dict[Any, Any]:
    """Ask with asyncio.gather."""
    return dict(zip(values, await asyncio.gather(*map(ask, values)), strict=True))


@pytest.fixture(params=["task group", "gather"])
def gathering(request: pytest.FixtureRequest, anyio_backend_name: str) -> Gathering:
    """How a node asks at once."""
    if request.param == "gather" and anyio_backend_name == "trio":
        pytest.skip("asyncio.gather is asyncio's own")
    return by_task_group if request.param == "task group" else by_gather


async def plainly(value: Any) -> Any:
    """Ask straight away."""
    return interrupt(value)


def noting(gathering: Gathering, *values: Any, ask: Ask = plainly) -> Callable[[Log], Awaitable[dict[str, Any]]]:
    """Return a node that asks at once and notes the answers by question."""

    async def node(_state: Log) -> dict[str, Any]:
        answers = await gathering(ask, *values)
        return {"log": [f"{value}={answers[value]}" for value in values]}

    return node


async def test_all_are_put_with_ids_of_their_own(saver: Any, gathering: Gathering) -> None:
    graph = chain(("n", noting(gathering, "q1", "q2", "q3"))).compile(checkpointer=saver)
    result = await graph.ainvoke({}, CONFIG)
    assert asked(result) == ["q1", "q2", "q3"]
    assert len(set(questions(result).values())) == 3
    snapshot = await graph.aget_state(CONFIG)
    assert {one.value: one.id for one in snapshot.interrupts} == questions(result)
    assert snapshot.next == ("n",)


async def test_asking_again_keeps_the_ids(saver: Any, gathering: Gathering) -> None:
    graph = chain(("n", noting(gathering, "q1", "q2", "q3"))).compile(checkpointer=saver)
    ids = questions(await graph.ainvoke({}, CONFIG))
    for _ in range(5):
        assert questions(await graph.ainvoke(None, CONFIG)) == ids


async def test_one_answer_without_an_id_is_refused(saver: Any, gathering: Gathering) -> None:
    graph = chain(("n", noting(gathering, "q1", "q2"))).compile(checkpointer=saver)
    await graph.ainvoke({}, CONFIG)
    with pytest.raises(UnknownInterruptError, match="id"):
        await graph.ainvoke(Command(resume="which?"), CONFIG)


@pytest.mark.parametrize("order", [*permutations(["q1", "q2", "q3"])], ids="-".join)
async def test_answers_in_any_order_reach_their_question(
    saver: Any, gathering: Gathering, order: tuple[str, ...]
) -> None:
    graph = chain(("n", noting(gathering, "q1", "q2", "q3"))).compile(checkpointer=saver)
    result = await graph.ainvoke({}, CONFIG)
    ids = questions(result)
    for position, name in enumerate(order):
        left = sorted(order[position:])
        assert questions(result) == {one: ids[one] for one in left}
        assert sorted(one.value for one in (await graph.aget_state(CONFIG)).interrupts) == left
        result = await graph.ainvoke(Command(resume={ids[name]: name.upper()}), CONFIG)
    assert result == {"log": ["q1=Q1", "q2=Q2", "q3=Q3"]}


async def test_all_answers_at_once(saver: Any, gathering: Gathering) -> None:
    graph = chain(("n", noting(gathering, "q1", "q2", "q3"))).compile(checkpointer=saver)
    ids = questions(await graph.ainvoke({}, CONFIG))
    result = await graph.ainvoke(Command(resume={each: name[1] for name, each in ids.items()}), CONFIG)
    assert result == {"log": ["q1=1", "q2=2", "q3=3"]}


async def test_the_last_one_may_be_answered_without_its_id(saver: Any, gathering: Gathering) -> None:
    graph = chain(("n", noting(gathering, "q1", "q2"))).compile(checkpointer=saver)
    ids = questions(await graph.ainvoke({}, CONFIG))
    await graph.ainvoke(Command(resume={ids["q2"]: "B"}), CONFIG)
    assert await graph.ainvoke(Command(resume="A"), CONFIG) == {"log": ["q1=A", "q2=B"]}


async def test_answers_survive_a_restart_of_the_program(database: str, gathering: Gathering) -> None:
    node = noting(gathering, "q1", "q2", "q3")
    ids: dict[str, str] = {}
    result: dict[str, Any] = {}
    for name in (None, "q3", "q1", "q2"):
        async with SqliteSaver.from_conn_string(database) as saver:
            graph = chain(("n", node)).compile(checkpointer=saver)
            result = await graph.ainvoke({} if name is None else Command(resume={ids[name]: name.upper()}), CONFIG)
            ids = ids or questions(result)
    assert result == {"log": ["q1=Q1", "q2=Q2", "q3=Q3"]}


async def test_the_order_of_asking_may_differ_each_time(saver: Any) -> None:
    orders = iter([["a", "b"], ["b", "a"], ["a", "b"], ["b", "a"]])

    async def node(_state: Log) -> dict[str, Any]:
        answers = await by_task_group(plainly, *next(orders))
        return {"log": [f"{name}={answers[name]}" for name in "ab"]}

    graph = chain(("n", node)).compile(checkpointer=saver)
    ids = questions(await graph.ainvoke({}, CONFIG))
    assert questions(await graph.ainvoke(Command(resume={ids["a"]: "A"}), CONFIG)) == {"b": ids["b"]}
    assert await graph.ainvoke(Command(resume={ids["b"]: "B"}), CONFIG) == {"log": ["a=A", "b=B"]}


async def test_an_answer_never_reaches_a_sibling_that_was_not_asked_before(saver: Any) -> None:
    first = [True]

    async def late(value: str) -> Any:
        if value == "late" and first:
            first.clear()
            await anyio.sleep_forever()  # ended by the other's pause, before it could ask
        return interrupt(value)

    graph = chain(("n", noting(by_task_group, "late", "early", ask=late))).compile(checkpointer=saver)
    assert asked(await graph.ainvoke({}, CONFIG)) == ["early"]
    result = await graph.ainvoke(Command(resume="E"), CONFIG)
    assert asked(result) == ["late"]
    assert await graph.ainvoke(Command(resume="L"), CONFIG) == {"log": ["late=L", "early=E"]}


async def test_equal_questions_get_an_answer_each(saver: Any) -> None:
    async def node(_state: Log) -> dict[str, Any]:
        answers: list[Any] = []

        async def one() -> None:
            answers.append(interrupt("same"))

        async with anyio.create_task_group() as group:
            group.start_soon(one)
            group.start_soon(one)
        return {"log": sorted(answers)}

    graph = chain(("n", node)).compile(checkpointer=saver)
    found = (await graph.ainvoke({}, CONFIG))["__interrupt__"]
    assert len({one.id for one in found}) == 2
    result = await graph.ainvoke(Command(resume={one.id: str(place) for place, one in enumerate(found)}), CONFIG)
    assert result == {"log": ["0", "1"]}


async def test_before_at_once_and_after(saver: Any, gathering: Gathering) -> None:
    async def node(_state: Log) -> dict[str, Any]:
        before = interrupt("before")
        answers = await gathering(plainly, "q1", "q2")
        after = interrupt("after")
        return {"log": [before, answers["q1"], answers["q2"], after]}

    graph = chain(("n", node)).compile(checkpointer=saver)
    assert asked(await graph.ainvoke({}, CONFIG)) == ["before"]
    result = await graph.ainvoke(Command(resume="0"), CONFIG)
    assert asked(result) == ["q1", "q2"]
    ids = questions(result)
    assert asked(await graph.ainvoke(Command(resume={ids["q2"]: "2"}), CONFIG)) == ["q1"]
    result = await graph.ainvoke(Command(resume={ids["q1"]: "1"}), CONFIG)
    assert asked(result) == ["after"]
    assert len({*ids.values(), questions(result)["after"]}) == 3
    assert await graph.ainvoke(Command(resume="3"), CONFIG) == {"log": ["0", "1", "2", "3"]}


async def test_two_nodes_that_both_ask_at_once(saver: Any) -> None:
    runs = Runs()

    def node(name: str) -> Any:
        plain = noting(by_task_group, f"{name}1", f"{name}2")

        async def counted(state: Log) -> dict[str, Any]:
            runs[name] += 1
            return await plain(state)

        return counted

    builder = StateGraph(Log)
    for name in "lr":
        builder.add_node(name, node(name))
        builder.add_edge(START, name)
    graph = builder.compile(checkpointer=saver)
    ids = questions(await graph.ainvoke({}, CONFIG))
    assert len(set(ids.values())) == 4
    assert asked(await graph.ainvoke(Command(resume={ids["l2"]: "x"}), CONFIG)) == ["l1", "r1", "r2"]
    assert (runs["l"], runs["r"]) == (2, 1)
    await graph.ainvoke(Command(resume={ids["r1"]: "x", ids["r2"]: "x"}), CONFIG)
    assert (await graph.ainvoke(Command(resume="x"), CONFIG)) == {"log": ["l1=x", "l2=x", "r1=x", "r2=x"]}
    assert (runs["l"], runs["r"]) == (3, 2)


async def test_a_retried_node_keeps_its_answers(saver: Any, gathering: Gathering) -> None:
    attempts: list[Any] = []

    async def node(_state: Log) -> dict[str, Any]:
        answers = await gathering(plainly, "q1", "q2")
        attempts.append(answers)
        if len(attempts) < 2:
            raise ConnectionError
        return {"log": [answers["q1"], answers["q2"]]}

    builder = StateGraph(Log)
    builder.add_node("n", node, retry_policy=RetryPolicy(initial_interval=0.001, jitter=False))
    builder.add_edge(START, "n")
    graph = builder.compile(checkpointer=saver)
    ids = questions(await graph.ainvoke({}, CONFIG))
    result = await graph.ainvoke(Command(resume={ids["q1"]: "1", ids["q2"]: "2"}), CONFIG)
    assert result == {"log": ["1", "2"]}
    assert attempts == [{"q1": "1", "q2": "2"}] * 2


async def test_an_invalid_answer_leaves_that_question_open_and_the_other_answered(saver: Any) -> None:
    async def node(_state: Log) -> dict[str, Any]:
        answers: dict[str, Any] = {}

        async def one(name: str) -> None:
            answers[name] = interrupt(name, response_schema=Count)

        async with anyio.create_task_group() as group:
            for name in ("q1", "q2"):
                group.start_soon(one, name)
        return {"log": [str(answers["q1"]["count"]), str(answers["q2"]["count"])]}

    graph = chain(("n", node)).compile(checkpointer=saver)
    ids = questions(await graph.ainvoke({}, CONFIG))
    await graph.ainvoke(Command(resume={ids["q1"]: {"count": 1}}), CONFIG)
    with pytest.raises(BaseException) as caught:  # noqa: PT011 - in a group or by itself, as the node raised it
        await graph.ainvoke(Command(resume={ids["q2"]: {"count": "many"}}), CONFIG)
    assert isinstance(caught.value, Exception)
    snapshot = await graph.aget_state(CONFIG)
    assert [one.value for one in snapshot.interrupts] == ["q2"]
    assert await graph.ainvoke(Command(resume={ids["q2"]: {"count": 2}}), CONFIG) == {"log": ["1", "2"]}


async def test_history_shows_what_was_asked(saver: Any, gathering: Gathering) -> None:
    graph = chain(("n", noting(gathering, "q1", "q2"))).compile(checkpointer=saver)
    ids = questions(await graph.ainvoke({}, CONFIG))
    await graph.ainvoke(Command(resume={ids["q1"]: "1"}), CONFIG)
    await graph.ainvoke(Command(resume={ids["q2"]: "2"}), CONFIG)
    assert (await graph.aget_state(CONFIG)).interrupts == ()
    (record,) = [one for one in await history(graph) if one.next == ("n",)]
    assert {one.value: one.id for one in record.interrupts} == ids


async def test_a_failure_beside_a_question_is_raised(saver: Any) -> None:
    async def one(value: str) -> Any:
        if value == "bad":
            raise ValueError(value)
        return interrupt(value)

    graph = chain(("n", noting(by_task_group, "bad", "q", ask=one))).compile(checkpointer=saver)
    with pytest.raises(Exception) as caught:  # noqa: PT011 - the group or the error in it
        await graph.ainvoke({}, CONFIG)
    error: BaseException = caught.value
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    assert isinstance(error, ValueError)
    assert "ValueError" in (await graph.aget_state(CONFIG)).tasks[0].error


async def test_an_answer_given_before_the_questions_goes_to_one_of_them(saver: Any, gathering: Gathering) -> None:
    graph = chain(Runs().failer("bad"), ("n", noting(gathering, "q1", "q2"))).compile(checkpointer=saver)
    with pytest.raises(ConnectionError):
        await graph.ainvoke({}, CONFIG)
    result = await graph.ainvoke(Command(resume="early"), CONFIG)
    (left,) = asked(result)
    result = await graph.ainvoke(Command(resume="late"), CONFIG)
    assert sorted(result["log"][1:]) == sorted([f"{left}=late", f"{'q1' if left == 'q2' else 'q2'}=early"])


async def test_values_that_cannot_be_compared_are_told_apart_by_how_they_look() -> None:
    async def node(_state: Log) -> dict[str, Any]:
        answers: dict[str, str] = {}

        async def one(name: str) -> None:
            answers[name] = interrupt({"about": name, "array": numpy.array([1, 2, 3])})

        async with anyio.create_task_group() as group:
            for name in ("q1", "q2"):
                group.start_soon(one, name)
        return {"log": [answers["q1"], answers["q2"]]}

    graph = chain(("n", node)).compile(checkpointer=InMemorySaver())
    found = {one.value["about"]: one.id for one in (await graph.ainvoke({}, CONFIG))["__interrupt__"]}
    await graph.ainvoke(Command(resume={found["q2"]: "2"}), CONFIG)
    assert await graph.ainvoke(Command(resume={found["q1"]: "1"}), CONFIG) == {"log": ["1", "2"]}
