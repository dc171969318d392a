"""What is right for a question of the root graph is right for one in a graph below, however it is reached."""

from __future__ import annotations

from typing import Any

import pytest

from runtime.errors import UnknownInterruptError
from runtime.graph import START, StateGraph
from runtime.types import Command, RetryPolicy, interrupt
from tests.stories.graphs import CONFIG, Log, chain, fan, history
from tests.stories.nests import Runs, asked, questions
from tests.stories.places import PLACES, node

pytestmark = pytest.mark.anyio

UNKNOWN = "0123456789abcdef" * 2


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest) -> Any:
    """Puts a graph below another."""
    return PLACES[request.param]


async def pending(graph: Any) -> list[Any]:
    return sorted(one.value for one in (await graph.aget_state(CONFIG)).interrupts)


async def test_after_the_first_of_two_answers_the_second_waits(saver: Any, place: Any) -> None:
    graph = place(chain(Runs().asker("n", "q1", "q2")), saver)
    await graph.ainvoke({"log": []}, CONFIG)
    assert asked(await graph.ainvoke(Command(resume="A"), CONFIG)) == ["q2"]
    assert await pending(graph) == ["q2"]
    assert (await graph.aget_state(CONFIG)).next != ()
    assert (await graph.ainvoke(Command(resume="B"), CONFIG))["log"] == ["n:A", "n:B"]


async def test_going_on_without_an_answer_never_reuses_an_old_one(saver: Any, place: Any) -> None:
    graph = place(chain(Runs().asker("n", "q1", "q2")), saver)
    await graph.ainvoke({"log": []}, CONFIG)
    second = questions(await graph.ainvoke(Command(resume="A"), CONFIG))
    for _ in range(2):
        assert questions(await graph.ainvoke(None, CONFIG)) == second
        assert await pending(graph) == ["q2"]
    assert (await graph.ainvoke(Command(resume={second["q2"]: "B"}), CONFIG))["log"] == ["n:A", "n:B"]


@pytest.mark.parametrize("known", [False, True])
async def test_an_unknown_id_is_refused_before_anything_is_saved(saver: Any, place: Any, known: bool) -> None:
    runs = Runs()
    graph = place(chain(runs.asker("n")), saver)
    ids = questions(await graph.ainvoke({"log": []}, CONFIG))
    before = await history(graph)
    with pytest.raises(UnknownInterruptError) as raised:
        await graph.ainvoke(Command(resume={UNKNOWN: "no", **({ids["n?"]: "yes"} if known else {})}), CONFIG)
    assert raised.value.pending_ids == (ids["n?"],)
    assert await history(graph) == before
    assert runs["n"] == 1
    assert (await graph.ainvoke(Command(resume={ids["n?"]: "yes"}), CONFIG))["log"] == ["n:yes"]


@pytest.mark.parametrize("answer", [0, "", False, [], {"a": 1}, {}])
async def test_any_value_is_an_answer(saver: Any, place: Any, answer: Any) -> None:
    received: list[Any] = []

    async def ask(_state: Log) -> dict[str, Any]:
        received.append(interrupt("q"))
        return {}

    graph = place(chain(("ask", ask)), saver)
    ids = questions(await graph.ainvoke({"log": []}, CONFIG))
    await graph.ainvoke(Command(resume={ids["q"]: answer}), CONFIG)
    assert received == [answer]
    assert await pending(graph) == []


async def test_except_exception_does_not_swallow_a_pause(saver: Any, place: Any) -> None:
    async def ask(_state: Log) -> dict[str, Any]:
        try:
            return {"log": [interrupt("q")]}
        except Exception:  # noqa: BLE001 - what defensive code does
            return {"log": ["swallowed"]}

    graph = place(chain(("ask", ask)), saver)
    assert asked(await graph.ainvoke({"log": []}, CONFIG)) == ["q"]
    assert (await graph.ainvoke(Command(resume="yes"), CONFIG))["log"] == ["yes"]


async def test_a_retry_policy_does_not_retry_a_pause_and_keeps_answers(saver: Any, place: Any) -> None:
    attempts: list[Any] = []

    async def ask(_state: Log) -> dict[str, Any]:
        attempts.append("asked")
        answer = interrupt("q")
        attempts.append(answer)
        if attempts.count(answer) == 1:
            raise ConnectionError
        return {"log": [answer]}

    builder = StateGraph(Log).add_node("ask", ask, retry_policy=RetryPolicy(initial_interval=0, jitter=False))
    graph = place(builder.set_entry_point("ask"), saver)
    assert asked(await graph.ainvoke({"log": []}, CONFIG)) == ["q"]
    assert attempts == ["asked"]
    assert (await graph.ainvoke(Command(resume="yes"), CONFIG))["log"] == ["yes"]
    assert attempts == ["asked", "asked", "yes", "asked", "yes"]


@pytest.mark.parametrize("order", ["lr", "rl", "both"])
async def test_questions_side_by_side_are_answered_in_any_order(saver: Any, place: Any, order: str) -> None:
    runs = Runs()
    graph = place(fan(runs.asker("l"), runs.asker("r"), first=None), saver)
    ids = questions(await graph.ainvoke({"log": []}, CONFIG))
    assert set(ids) == {"l?", "r?"}
    assert len(set(ids.values())) == 2
    if order == "both":
        result = await graph.ainvoke(Command(resume={ids["l?"]: "L", ids["r?"]: "R"}), CONFIG)
    else:
        one, other = (f"{name}?" for name in order)
        result = await graph.ainvoke(Command(resume={ids[one]: one[0].upper()}), CONFIG)
        assert questions(result) == {other: ids[other]}
        result = await graph.ainvoke(Command(resume={ids[other]: other[0].upper()}), CONFIG)
    assert result["log"] == ["l:L", "r:R", "join"]


async def test_beside_another_node_of_a_graph_that_is_itself_below(saver: Any, place: Any) -> None:
    graph = fan(("a", place(chain(Runs().asker("n")), None)), "b", first=None).compile(saver)
    assert asked(await graph.ainvoke({"log": []}, CONFIG)) == ["n?"]
    assert (await graph.ainvoke(Command(resume="yes"), CONFIG))["log"] == ["n:yes", "b", "join"]


async def test_answered_at_an_old_checkpoint_the_question_makes_another_branch(saver: Any, place: Any) -> None:
    graph = place(chain(Runs().asker("n")), saver)
    await graph.ainvoke({"log": []}, CONFIG)
    paused = (await graph.aget_state(CONFIG)).config
    assert (await graph.ainvoke(Command(resume="first"), CONFIG))["log"] == ["n:first"]
    before = await history(graph)
    assert (await graph.ainvoke(Command(resume="second"), paused))["log"] == ["n:second"]
    assert (await graph.aget_state(before[0].config)).values["log"] == ["n:first"]
    assert (await graph.aget_state(CONFIG)).values["log"] == ["n:second"]


@pytest.mark.parametrize("levels", [1, 2])
@pytest.mark.parametrize("side_by_side", [False, True])
async def test_in_stateless_subgraphs_another_attempt_finds_its_own_answers(
    saver: Any, levels: int, side_by_side: bool
) -> None:
    """A node that fails after its answer asks the same again, and takes none of its neighbours' answers."""
    failed: set[str] = set()
    quick = RetryPolicy(initial_interval=0, jitter=False)

    def flaky(name: str) -> Any:
        async def node(_state: Log) -> dict[str, Any]:
            answers = [interrupt(f"{name}1"), interrupt(f"{name}2")]
            if name not in failed:
                failed.add(name)
                raise ConnectionError
            return {"log": [f"{name}:{' '.join(answers)}"]}

        return node

    builder = StateGraph(Log)
    for name in ("l", "r"):
        builder.add_node(name, flaky(name), retry_policy=quick)
    builder.add_edge(START, "l").add_edge(*((START, "r") if side_by_side else ("l", "r")))
    for _ in range(levels - 1):
        builder = chain(("deeper", builder.compile(checkpointer=False)))
    graph = node(builder, saver, checkpointer=False)
    result = await graph.ainvoke({"log": []}, CONFIG)
    answered: list[str] = []
    while asked(result):
        question = asked(result)[0]
        answered.append(question)
        result = await graph.ainvoke(Command(resume={questions(result)[question]: question.upper()}), CONFIG)
    assert answered == ["l1", "l2", "r1", "r2"]
    assert result["log"] == ["l:L1 L2", "r:R1 R2"]


async def test_replayed_the_question_is_put_again(saver: Any, place: Any) -> None:
    graph = place(chain(Runs().asker("n")), saver)
    ids = questions(await graph.ainvoke({"log": []}, CONFIG))
    paused = (await graph.aget_state(CONFIG)).config
    await graph.ainvoke(Command(resume="first"), CONFIG)
    again = questions(await graph.ainvoke(None, paused))
    assert set(again) == {"n?"}
    assert again != ids
    assert (await graph.ainvoke(Command(resume="second"), CONFIG))["log"] == ["n:second"]
