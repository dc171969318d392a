"""Questions that pause a run, their answers, and static breakpoints."""

import operator
import re
from dataclasses import dataclass
from typing import Annotated, Any

import anyio
import pytest
from pydantic import BaseModel

from runtime.errors import InvalidUpdateError, is_invalid_resume
from runtime.types import Command, Interrupt, RetryPolicy, interrupt
from tests.stories.graphs import CONFIG, Log, chain, collect, fan, history

pytestmark = pytest.mark.anyio


def asker(*questions: Any, runs: list[str] | None = None, name: str = "ask") -> tuple[str, Any]:
    """A node that asks these questions in turn and logs the answers."""

    async def ask(_state: Log) -> dict[str, Any]:
        if runs is not None:
            runs.append(name)
        answers = [interrupt(question) for question in questions]
        return {"log": [f"{name}:{answer}" for answer in answers]}

    return name, ask


def pending(result: dict[str, Any]) -> list[Any]:
    """The values of the questions in a result."""
    return [one.value for one in result.get("__interrupt__", ())]


async def test_a_question_ends_the_call_and_is_returned(saver: Any) -> None:
    graph = chain("n", asker("q")).compile(checkpointer=saver)
    result = await graph.ainvoke({"a": 1}, CONFIG)
    (question,) = result.pop("__interrupt__")
    assert isinstance(question, Interrupt)
    assert question.value == "q"
    assert result == {"a": 1, "log": ["n"]}
    snapshot = await graph.aget_state(CONFIG)
    assert snapshot.next == ("ask",)
    assert snapshot.interrupts == (question,)
    assert snapshot.tasks[0].interrupts == (question,)


async def test_an_answer_continues_the_node_and_the_graph(saver: Any) -> None:
    runs: list[str] = []
    graph = chain("n", asker("q", runs=runs), "end").compile(checkpointer=saver)
    await graph.ainvoke({}, CONFIG)
    assert await graph.ainvoke(Command(resume="yes"), CONFIG) == {"log": ["n", "ask:yes", "end"]}
    assert runs == ["ask", "ask"]
    assert (await graph.aget_state(CONFIG)).interrupts == ()


async def test_an_interrupt_id_is_a_stable_hex_text(saver: Any) -> None:
    graph = chain(asker("q")).compile(checkpointer=saver)
    (question,) = (await graph.ainvoke({}, CONFIG))["__interrupt__"]
    assert re.fullmatch(r"[0-9a-f]{32}", question.id)
    (again,) = (await graph.aget_state(CONFIG)).interrupts
    assert again.id == question.id


async def test_questions_of_one_node_are_asked_in_turn_with_their_own_ids(saver: Any) -> None:
    runs: list[str] = []
    graph = chain(asker("q1", "q2", "q3", runs=runs)).compile(checkpointer=saver)
    result = await graph.ainvoke({}, CONFIG)
    ids = []
    for number, answer in enumerate(["A", "B", "C"], 1):
        assert pending(result) == [f"q{number}"]
        ids.append(result["__interrupt__"][0].id)
        assert (await graph.aget_state(CONFIG)).next == ("ask",)
        result = await graph.ainvoke(Command(resume=answer), CONFIG)
    assert result == {"log": ["ask:A", "ask:B", "ask:C"]}
    assert len(set(ids)) == 3
    assert runs == ["ask"] * 4


async def test_none_leaves_the_question_pending(saver: Any) -> None:
    graph = chain(asker("q")).compile(checkpointer=saver)
    (first,) = (await graph.ainvoke({}, CONFIG))["__interrupt__"]
    (again,) = (await graph.ainvoke(None, CONFIG))["__interrupt__"]
    assert (again.value, again.id) == (first.value, first.id)
    assert (await graph.aget_state(CONFIG)).interrupts == (first,)


async def test_questions_side_by_side_are_all_returned(saver: Any) -> None:
    graph = fan(asker("ql", name="l"), asker("qr", name="r")).compile(checkpointer=saver)
    result = await graph.ainvoke({}, CONFIG)
    assert sorted(pending(result)) == ["ql", "qr"]
    assert len({one.id for one in result["__interrupt__"]}) == 2
    assert set((await graph.aget_state(CONFIG)).next) == {"l", "r"}


async def test_one_answer_for_several_questions_is_ambiguous(saver: Any) -> None:
    graph = fan(asker("ql", name="l"), asker("qr", name="r")).compile(checkpointer=saver)
    await graph.ainvoke({}, CONFIG)
    with pytest.raises((RuntimeError, ValueError), match="(?i)interrupt"):
        await graph.ainvoke(Command(resume="yes"), CONFIG)
    assert len((await graph.aget_state(CONFIG)).interrupts) == 2


async def test_a_map_answers_each_question_by_its_id(saver: Any) -> None:
    graph = fan(asker("ql", name="l"), asker("qr", name="r")).compile(checkpointer=saver)
    questions = (await graph.ainvoke({}, CONFIG))["__interrupt__"]
    answers = {one.id: f"to {one.value}" for one in questions}
    assert (await graph.ainvoke(Command(resume=answers), CONFIG))["log"] == ["st", "l:to ql", "r:to qr", "join"]


async def test_a_partial_map_leaves_the_rest_pending(saver: Any) -> None:
    graph = fan(asker("ql", name="l"), asker("qr", name="r")).compile(checkpointer=saver)
    questions = {one.value: one for one in (await graph.ainvoke({}, CONFIG))["__interrupt__"]}
    result = await graph.ainvoke(Command(resume={questions["ql"].id: "L"}), CONFIG)
    assert pending(result) == ["qr"]
    assert result["__interrupt__"][0].id == questions["qr"].id
    snapshot = await graph.aget_state(CONFIG)
    assert snapshot.next == ("r",)
    assert [one.value for one in snapshot.interrupts] == ["qr"]
    assert (await graph.ainvoke(Command(resume="R"), CONFIG))["log"] == ["st", "l:L", "r:R", "join"]


@pytest.mark.parametrize("answer", [{"approved": True}, {"x": 1, "y": [2]}, ["a", "b"], 7, "text"])
async def test_any_other_value_is_one_answer(saver: Any, answer: Any) -> None:
    async def ask(_state: Log) -> dict[str, Any]:
        received.append(interrupt("q"))
        return {}

    received: list[Any] = []
    graph = chain(("ask", ask)).compile(checkpointer=saver)
    await graph.ainvoke({}, CONFIG)
    await graph.ainvoke(Command(resume=answer), CONFIG)
    assert received == [answer]


@pytest.mark.parametrize("answer", [0, "", False, [], 0.0])
async def test_falsy_answers_are_answers(saver: Any, answer: Any) -> None:
    received: list[Any] = []

    async def ask(_state: Log) -> dict[str, Any]:
        received.append(interrupt("q"))
        return {}

    graph = chain(("ask", ask)).compile(checkpointer=saver)
    await graph.ainvoke({}, CONFIG)
    assert pending(await graph.ainvoke(Command(resume=answer), CONFIG)) == []
    assert received == [answer]


async def test_without_a_checkpointer_a_question_ends_the_run_and_cannot_be_answered() -> None:
    graph = chain("n", asker("q")).compile()
    result = await graph.ainvoke({})
    assert pending(result) == ["q"]
    assert result["log"] == ["n"]
    with pytest.raises((RuntimeError, ValueError), match="(?i)checkpointer"):
        await graph.ainvoke(Command(resume="yes"))


async def test_a_command_to_a_parent_needs_a_parent(saver: Any) -> None:
    graph = chain("n").compile(checkpointer=saver)
    with pytest.raises(InvalidUpdateError, match="(?i)parent"):
        await graph.ainvoke(Command(graph=Command.PARENT, update={"a": 1}), CONFIG)


async def test_a_sync_node_can_ask(saver: Any) -> None:
    def ask(_state: Log) -> dict[str, Any]:
        return {"log": [interrupt("q")]}

    graph = chain(("ask", ask)).compile(checkpointer=saver)
    assert pending(await graph.ainvoke({}, CONFIG)) == ["q"]
    assert (await graph.ainvoke(Command(resume="yes"), CONFIG))["log"] == ["yes"]


async def test_a_question_in_a_called_function_pauses_the_node(saver: Any) -> None:
    async def helper(question: str) -> Any:
        await anyio.sleep(0)
        return interrupt(question)

    async def ask(_state: Log) -> dict[str, Any]:
        return {"log": [await helper("deep")]}

    graph = chain(("ask", ask)).compile(checkpointer=saver)
    assert pending(await graph.ainvoke({}, CONFIG)) == ["deep"]
    assert (await graph.ainvoke(Command(resume="ok"), CONFIG))["log"] == ["ok"]


async def test_what_a_paused_node_wrote_is_dropped_and_its_siblings_results_kept(saver: Any) -> None:
    runs: list[str] = []
    graph = fan(asker("q", runs=runs), ("ok", lambda _s: runs.append("ok") or {"log": ["ok"]})).compile(
        checkpointer=saver
    )
    await graph.ainvoke({}, CONFIG)
    assert (await graph.aget_state(CONFIG)).values["log"] == ["st", "ok"]
    await graph.ainvoke(Command(resume="yes"), CONFIG)
    assert sorted(runs) == ["ask", "ask", "ok"]


async def test_a_question_outside_a_node_is_an_error() -> None:
    with pytest.raises((RuntimeError, LookupError, KeyError)):
        interrupt("q")


async def test_interrupts_are_streamed(saver: Any) -> None:
    graph = chain("n", asker("q")).compile(checkpointer=saver)
    chunks = [one async for one in graph.astream({}, CONFIG, stream_mode=["updates", "values"])]
    (question,) = (await graph.aget_state(CONFIG)).interrupts
    assert ("updates", {"__interrupt__": (question,)}) in chunks
    assert chunks[-1][1]["__interrupt__"] == (question,)
    assert [mode for mode, chunk in chunks if "__interrupt__" in chunk].count("updates") == 1


async def test_a_retried_node_keeps_its_answers(saver: Any) -> None:
    attempts: list[str] = []

    async def ask(_state: Log) -> dict[str, Any]:
        attempts.append(interrupt("q"))
        if len(attempts) < 3:
            raise ConnectionError
        return {"log": [attempts[-1]]}

    builder = chain()
    builder.add_node("ask", ask, retry_policy=RetryPolicy(initial_interval=0.001, jitter=False))
    builder.add_edge("__start__", "ask")
    graph = builder.compile(checkpointer=saver)
    await graph.ainvoke({}, CONFIG)
    assert (await graph.ainvoke(Command(resume="yes"), CONFIG))["log"] == ["yes"]
    assert attempts == ["yes"] * 3


async def test_a_state_without_keys_leaves_only_the_question(saver: Any) -> None:
    async def ask(_state: list[str]) -> list[str]:
        return [interrupt("q")]

    graph = chain(("ask", ask), schema=Annotated[list[str], operator.add]).compile(checkpointer=saver)  # type: ignore[arg-type]
    asked = await graph.ainvoke(["in"], CONFIG)
    assert [one.value for one in asked.pop("__interrupt__")] == ["q"]
    assert asked == {}
    chunks = await collect(graph.astream(None, CONFIG, stream_mode="values"))
    assert chunks[0] == ["in"]
    assert [one.value for one in chunks[1]["__interrupt__"]] == ["q"]
    assert await graph.ainvoke(Command(resume="yes"), CONFIG) == ["in", "yes"]


# response_schema


class Answer(BaseModel):
    count: int


@dataclass
class Point:
    x: int


async def test_a_response_schema_validates_and_converts_the_answer(saver: Any) -> None:
    received: list[Any] = []

    async def ask(_state: Log) -> dict[str, Any]:
        received.append(interrupt("how many?", response_schema=Answer))
        return {}

    graph = chain(("ask", ask)).compile(checkpointer=saver)
    (question,) = (await graph.ainvoke({}, CONFIG))["__interrupt__"]
    assert question.response_schema["properties"]["count"]["type"] == "integer"
    with pytest.raises(ValueError, match="count") as raised:
        await graph.ainvoke(Command(resume={"count": "many"}), CONFIG)
    assert is_invalid_resume(raised.value)
    assert not is_invalid_resume(ValueError("count"))
    assert [one.value for one in (await graph.aget_state(CONFIG)).interrupts] == ["how many?"]
    await graph.ainvoke(Command(resume={"count": "3"}), CONFIG)
    assert received == [Answer(count=3)]


async def test_a_json_schema_is_passed_on_without_validation(saver: Any) -> None:
    received: list[Any] = []
    schema = {"type": "object", "properties": {"x": {"type": "integer"}}}

    async def ask(_state: Log) -> dict[str, Any]:
        received.append(interrupt("q", response_schema=schema))
        return {}

    graph = chain(("ask", ask)).compile(checkpointer=saver)
    (question,) = (await graph.ainvoke({}, CONFIG))["__interrupt__"]
    assert question.response_schema == schema
    await graph.ainvoke(Command(resume={"x": "no number"}), CONFIG)
    assert received == [{"x": "no number"}]


# Static breakpoints


@pytest.mark.parametrize("where", ["compile", "call"])
async def test_a_breakpoint_before_a_node(saver: Any, where: str) -> None:
    options: dict[str, Any] = {"interrupt_before": ["y"]}
    graph = chain("x", "y").compile(checkpointer=saver, **(options if where == "compile" else {}))
    call = options if where == "call" else {}
    result = await graph.ainvoke({}, CONFIG, **call)
    assert result == {"log": ["x"]}
    snapshot = await graph.aget_state(CONFIG)
    assert (snapshot.next, snapshot.interrupts) == (("y",), ())
    assert (await graph.ainvoke(None, CONFIG, **call))["log"] == ["x", "y"]


async def test_a_breakpoint_after_a_node(saver: Any) -> None:
    graph = chain("x", "y", "z").compile(checkpointer=saver, interrupt_after=["x"])
    assert (await graph.ainvoke({}, CONFIG))["log"] == ["x"]
    assert (await graph.aget_state(CONFIG)).next == ("y",)
    assert (await graph.ainvoke(None, CONFIG))["log"] == ["x", "y", "z"]


async def test_a_star_stops_at_every_node_but_not_at_start(saver: Any) -> None:
    graph = chain("x", "y").compile(checkpointer=saver, interrupt_before="*")
    seen = []
    value: Any = {}
    for _ in range(3):
        await graph.ainvoke(value, CONFIG)
        seen.append((await graph.aget_state(CONFIG)).next)
        value = None
    assert seen == [("x",), ("y",), ()]


async def test_a_breakpoint_is_met_on_every_pass_of_a_loop(saver: Any) -> None:
    builder = chain()
    builder.add_node("n", lambda state: {"a": state["a"] + 1})
    builder.add_edge("__start__", "n")
    builder.add_conditional_edges("n", lambda state: "n" if state["a"] < 3 else "__end__")
    graph = builder.compile(checkpointer=saver, interrupt_before=["n"])
    await graph.ainvoke({"a": 0}, CONFIG)
    seen = []
    while (await graph.aget_state(CONFIG)).next:
        seen.append((await graph.aget_state(CONFIG)).values["a"])
        await graph.ainvoke(None, CONFIG)
    assert seen == [0, 1, 2]


async def test_a_breakpoint_is_streamed_as_an_empty_interrupt(saver: Any) -> None:
    graph = chain("x", "y").compile(checkpointer=saver, interrupt_before=["y"])
    chunks = [one async for one in graph.astream({}, CONFIG, stream_mode="updates")]
    assert chunks == [{"x": {"log": ["x"]}}, {"__interrupt__": ()}]


async def test_state_can_be_edited_at_a_breakpoint(saver: Any) -> None:
    graph = chain("x", ("y", lambda state: {"log": [f"y {state['a']}"]})).compile(
        checkpointer=saver, interrupt_before=["y"]
    )
    await graph.ainvoke({"a": 1}, CONFIG)
    await graph.aupdate_state(CONFIG, {"a": 2})
    assert (await graph.ainvoke(None, CONFIG))["log"] == ["x", "y 2"]


async def test_a_conversation_of_questions_over_several_turns(saver: Any) -> None:
    graph = chain(asker("q"), "end").compile(checkpointer=saver)
    for turn in ("one", "two"):
        assert pending(await graph.ainvoke({"log": [turn]}, CONFIG)) == ["q"]
        await graph.ainvoke(Command(resume=turn), CONFIG)
    assert (await graph.aget_state(CONFIG)).values["log"] == ["one", "ask:one", "end", "two", "ask:two", "end"]
    assert len(await history(graph)) == 8
