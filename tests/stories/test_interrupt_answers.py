"""Answers reach the question they are meant for, whatever they are, and no other node runs."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from runtime.errors import EmptyInputError, UnknownInterruptError
from runtime.func import entrypoint, task
from runtime.types import Command, interrupt
from tests.stories.graphs import CONFIG, Log, chain, fan, history
from tests.stories.nests import Runs, asked, questions

pytestmark = pytest.mark.anyio

UNKNOWN = "0123456789abcdef" * 2


def collector(received: list[Any]) -> tuple[str, Any]:
    """A node that keeps its answer as it is."""

    async def ask(_state: Log) -> dict[str, Any]:
        received.append(interrupt("q"))
        return {}

    return "ask", ask


@pytest.mark.parametrize("answer", [None, 0, "", False, [], {}, 0.0, {"a": 1}, "yes", {UNKNOWN: "x"}])
async def test_a_map_delivers_any_value(saver: Any, answer: Any) -> None:
    received: list[Any] = []
    graph = chain(collector(received)).compile(checkpointer=saver)
    ids = questions(await graph.ainvoke({}, CONFIG))
    result = await graph.ainvoke(Command(resume={ids["q"]: answer}), CONFIG)
    assert asked(result) == []
    assert received == [answer]
    assert (await graph.aget_state(CONFIG)).next == ()


async def test_none_alone_is_no_answer(saver: Any) -> None:
    graph = chain(Runs().asker("n")).compile(checkpointer=saver)
    await graph.ainvoke({}, CONFIG)
    nothing: list[Command[Any]] = [Command(resume=None), Command()]
    for empty in nothing:
        with pytest.raises(EmptyInputError):
            await graph.ainvoke(empty, CONFIG)
    assert len((await graph.aget_state(CONFIG)).interrupts) == 1


async def test_an_empty_map_answers_nothing(saver: Any) -> None:
    graph = chain(Runs().asker("n")).compile(checkpointer=saver)
    first = await graph.ainvoke({}, CONFIG)
    assert questions(await graph.ainvoke(Command(resume={}), CONFIG)) == questions(first)


async def test_after_the_first_of_two_answers_the_node_is_still_next(saver: Any) -> None:
    graph = chain(Runs().asker("n", "q1", "q2")).compile(checkpointer=saver)
    await graph.ainvoke({}, CONFIG)
    assert asked(await graph.ainvoke(Command(resume="A"), CONFIG)) == ["q2"]
    snapshot = await graph.aget_state(CONFIG)
    assert snapshot.next == ("n",)
    assert [one.value for one in snapshot.interrupts] == ["q2"]


async def test_going_on_without_an_answer_never_reuses_an_old_one(saver: Any) -> None:
    graph = chain(Runs().asker("n", "q1", "q2")).compile(checkpointer=saver)
    await graph.ainvoke({}, CONFIG)
    second = questions(await graph.ainvoke(Command(resume="A"), CONFIG))
    for _ in range(2):
        assert questions(await graph.ainvoke(None, CONFIG)) == second
    snapshot = await graph.aget_state(CONFIG)
    assert snapshot.values == {"log": []}
    assert [one.value for one in snapshot.interrupts] == ["q2"]
    assert await graph.ainvoke(Command(resume="B"), CONFIG) == {"log": ["n:A", "n:B"]}


@pytest.mark.parametrize("known", [False, True])
async def test_an_unknown_id_is_refused_before_anything_is_saved(saver: Any, known: bool) -> None:
    runs = Runs()
    graph = chain(runs.asker("n")).compile(checkpointer=saver)
    ids = questions(await graph.ainvoke({"a": 1}, CONFIG))
    before = await history(graph)
    answers = {UNKNOWN: "yes", **({ids["n?"]: "yes"} if known else {})}
    with pytest.raises(UnknownInterruptError) as caught:
        await graph.ainvoke(Command(resume=answers, update={"a": 2}, goto="n"), CONFIG)
    assert (caught.value.reason, caught.value.interrupt_ids) == ("not_pending", (UNKNOWN,))
    assert caught.value.pending_ids == (ids["n?"],)
    assert ids["n?"] in str(caught.value)
    assert await history(graph) == before
    assert runs["n"] == 1
    assert await graph.ainvoke(Command(resume={ids["n?"]: "ok"}), CONFIG) == {"a": 1, "log": ["n:ok"]}


async def test_an_id_that_was_answered_already_is_unknown(saver: Any) -> None:
    graph = chain(Runs().asker("n", "q1", "q2")).compile(checkpointer=saver)
    first = questions(await graph.ainvoke({}, CONFIG))
    await graph.ainvoke(Command(resume={first["q1"]: "A"}), CONFIG)
    with pytest.raises(UnknownInterruptError):
        await graph.ainvoke(Command(resume={first["q1"]: "B"}), CONFIG)


async def test_one_answer_for_two_questions_changes_nothing(saver: Any) -> None:
    graph = fan(Runs().asker("l"), Runs().asker("r")).compile(checkpointer=saver)
    await graph.ainvoke({}, CONFIG)
    before = await history(graph)
    with pytest.raises(UnknownInterruptError) as caught:
        await graph.ainvoke(Command(resume="yes", update={"log": ["lost"]}), CONFIG)
    assert caught.value.reason == "ambiguous"
    assert await history(graph) == before


@pytest.mark.parametrize("order", ["lr", "rl", "both"])
async def test_only_the_answered_node_runs(saver: Any, order: str) -> None:
    runs = Runs()
    graph = fan(runs.asker("l"), runs.asker("r")).compile(checkpointer=saver)
    ids = questions(await graph.ainvoke({}, CONFIG))
    if order == "both":
        result = await graph.ainvoke(Command(resume={ids["l?"]: "l", ids["r?"]: "r"}), CONFIG)
    else:
        first, second = order[0], order[1]
        result = await graph.ainvoke(Command(resume={ids[f"{first}?"]: first}), CONFIG)
        assert questions(result) == {f"{second}?": ids[f"{second}?"]}
        assert (runs[first], runs[second]) == (2, 1)
        assert (await graph.aget_state(CONFIG)).next == (second,)
        result = await graph.ainvoke(Command(resume={ids[f"{second}?"]: second}), CONFIG)
    assert result == {"log": ["st", "l:l", "r:r", "join"]}
    assert (runs["l"], runs["r"]) == (2, 2)


async def test_two_nodes_with_two_questions_each_are_answered_one_by_one(saver: Any) -> None:
    runs = Runs()
    graph = fan(runs.asker("l", "l1", "l2"), runs.asker("r", "r1", "r2")).compile(checkpointer=saver)
    result = await graph.ainvoke({}, CONFIG)
    for name in ("r1", "l1", "l2", "r2"):
        result = await graph.ainvoke(Command(resume={questions(result)[name]: name.upper()}), CONFIG)
    assert result["log"] == ["st", "l:L1", "l:L2", "r:R1", "r:R2", "join"]
    assert (runs["l"], runs["r"]) == (3, 3)


async def test_an_answer_with_an_update_and_a_route(saver: Any) -> None:
    builder = chain(Runs().asker("n"))
    builder.add_node("extra", lambda state: {"log": [f"extra {state['a']}"]})
    graph = builder.compile(checkpointer=saver)
    await graph.ainvoke({"a": 1}, CONFIG)
    result = await graph.ainvoke(Command(resume="yes", update={"a": 2}, goto="extra"), CONFIG)
    assert result == {"a": 2, "log": ["extra 2", "n:yes"]}


async def test_an_answer_while_nothing_waits_is_kept_for_the_next_question(saver: Any) -> None:
    runs = Runs()
    graph = chain(runs.failer("bad"), runs.asker("n")).compile(checkpointer=saver)
    with pytest.raises(ConnectionError):
        await graph.ainvoke({}, CONFIG)
    assert await graph.ainvoke(Command(resume="early"), CONFIG) == {"log": ["bad", "n:early"]}


async def test_a_failure_after_the_answer_keeps_it(saver: Any) -> None:
    failing = [True]

    async def ask(_state: Log) -> dict[str, Any]:
        answer = interrupt("q")
        if failing.pop() if failing else False:
            raise ConnectionError
        return {"log": [answer]}

    graph = chain(("ask", ask)).compile(checkpointer=saver)
    await graph.ainvoke({}, CONFIG)
    with pytest.raises(ConnectionError):
        await graph.ainvoke(Command(resume="A"), CONFIG)
    assert (await graph.aget_state(CONFIG)).interrupts == ()
    assert await graph.ainvoke(None, CONFIG) == {"log": ["A"]}


async def test_ids_are_the_same_wherever_they_are_read(saver: Any) -> None:
    graph = fan(Runs().asker("l"), Runs().asker("r", "r1", "r2")).compile(checkpointer=saver)
    ids = questions(await graph.ainvoke({}, CONFIG))
    streamed = [
        chunk["__interrupt__"]
        async for chunk in graph.astream(None, CONFIG, stream_mode="updates")
        if "__interrupt__" in chunk
    ]
    assert {one.value: one.id for many in streamed for one in many} == ids
    snapshot = await graph.aget_state(CONFIG)
    assert {one.value: one.id for one in snapshot.interrupts} == ids
    assert {one.value: one.id for task in snapshot.tasks for one in task.interrupts} == ids
    (record,) = [one for one in await history(graph) if set(one.next) == {"l", "r"}]
    assert {one.value: one.id for one in record.interrupts} == ids
    assert len(set(ids.values())) == 2


async def test_another_thread_has_other_ids(saver: Any) -> None:
    graph = chain(Runs().asker("n")).compile(checkpointer=saver)
    ids = set()
    for name in "abc":
        ids |= set(questions(await graph.ainvoke({}, {"configurable": {"thread_id": name}})).values())
    assert len(ids) == 3


async def test_an_answer_that_makes_its_node_fail_stays_until_an_edit_takes_it_back(saver: Any) -> None:
    async def count(_state: Log) -> dict[str, Any]:
        return {"log": ["x" * int(interrupt("how many?"))]}

    graph = chain(("count", count)).compile(checkpointer=saver)
    await graph.ainvoke({"log": []}, CONFIG)
    answers: list[Any] = [Command(resume="some"), None]
    for answer in answers:
        with pytest.raises(ValueError, match="some") as failed:
            await graph.ainvoke(answer, CONFIG)
        assert any("update_state(config, {})" in note for note in failed.value.__notes__)
    await graph.aupdate_state(CONFIG, {})
    assert asked(await graph.ainvoke(None, CONFIG)) == ["how many?"]
    assert (await graph.ainvoke(Command(resume="2"), CONFIG))["log"] == ["xx"]


async def test_a_failure_without_an_answer_says_nothing_of_answers(saver: Any) -> None:
    async def fail(_state: Log) -> dict[str, Any]:
        raise ValueError("no answer")

    graph = chain(("fail", fail)).compile(checkpointer=saver)
    with pytest.raises(ValueError, match="no answer") as failed:
        await graph.ainvoke({"log": []}, CONFIG)
    assert len(failed.value.__notes__) == 1


async def test_a_workflow_is_asked_again_by_a_new_call(saver: Any) -> None:
    @entrypoint(saver)
    async def flow(given: int) -> int:
        return given + int(interrupt("how many?"))

    await flow.ainvoke(1, CONFIG)
    with pytest.raises(ValueError, match="some") as failed:
        await flow.ainvoke(Command(resume="some"), CONFIG)
    assert any("call the workflow with its input" in note for note in failed.value.__notes__)
    assert asked(await flow.ainvoke(1, CONFIG)) == ["how many?"]
    assert await flow.ainvoke(Command(resume="2"), CONFIG) == 3


async def test_an_answer_that_makes_a_call_fail_stays_too(saver: Any) -> None:
    @task
    async def count() -> int:
        return int(interrupt("how many?"))

    @entrypoint(saver)
    async def flow(given: int) -> int:
        return given + await count()

    await flow.ainvoke(1, CONFIG)
    with pytest.raises(ValueError, match="some") as failed:
        await flow.ainvoke(Command(resume="some"), CONFIG)
    assert sum("call the workflow with its input" in note for note in failed.value.__notes__) == 1
    assert asked(await flow.ainvoke(1, CONFIG)) == ["how many?"]


@pytest.mark.parametrize("by_id", [True, False])
async def test_of_two_answers_at_once_one_counts(saver: Any, by_id: bool) -> None:
    received: list[Any] = []
    graph = chain(collector(received)).compile(checkpointer=saver)
    ids = questions(await graph.ainvoke({}, CONFIG))
    refused: list[UnknownInterruptError] = []

    async def answer(given: str) -> None:
        try:
            await graph.ainvoke(Command(resume={ids["q"]: given} if by_id else given), CONFIG)
        except UnknownInterruptError as error:
            refused.append(error)

    async with anyio.create_task_group() as both:
        both.start_soon(answer, "one")
        both.start_soon(answer, "two")
    assert len(received) == 1
    assert len(refused) == by_id
