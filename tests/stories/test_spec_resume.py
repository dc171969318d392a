"""Continuing a thread: with None, with new input, from an old checkpoint, with a Command."""

from typing import Any

import pytest

from runtime.errors import EmptyInputError, GraphInterrupt
from runtime.graph import END, START, StateGraph
from runtime.types import Command, interrupt
from tests.stories.graphs import CONFIG, Gate, Log, at, chain, fan, history, note, steps

pytestmark = pytest.mark.anyio


def counted(runs: list[str], *names: str) -> list[tuple[str, Any]]:
    """Nodes that note their runs."""

    def node(name: str) -> Any:
        async def run(_state: Any) -> dict[str, Any]:
            runs.append(name)
            return {"log": [name]}

        return run

    return [(name, node(name)) for name in names]


# None


async def test_none_on_an_empty_thread_is_an_error(saver: Any) -> None:
    with pytest.raises(EmptyInputError):
        await chain("n").compile(checkpointer=saver).ainvoke(None, CONFIG)
    with pytest.raises(EmptyInputError):
        await chain("n").compile().ainvoke(None)


async def test_none_on_a_finished_thread_returns_its_values_and_saves_nothing(saver: Any) -> None:
    runs: list[str] = []
    graph = chain(*counted(runs, "x", "y")).compile(checkpointer=saver)
    first = await graph.ainvoke({}, CONFIG)
    before = await history(graph)
    assert await graph.ainvoke(None, CONFIG) == first
    assert runs == ["x", "y"]
    assert await history(graph) == before


async def test_none_after_a_failure_runs_the_failed_node_only(saver: Any) -> None:
    runs: list[str] = []
    gate = Gate()
    gate.open.set()
    graph = chain(*counted(runs, "x"), ("bad", gate.fail), *counted(runs, "y")).compile(checkpointer=saver)
    with pytest.raises(ValueError, match="boom"):
        await graph.ainvoke({}, CONFIG)
    gate.mended = True
    assert (await graph.ainvoke(None, CONFIG))["log"] == ["x", "bad", "y"]
    assert runs == ["x", "y"]


async def test_a_resume_streams_stored_results_again_and_marks_them(saver: Any) -> None:
    gate = Gate("ok")
    graph = fan("ok", ("bad", gate.fail), first=None, last=None).compile(checkpointer=saver)
    with pytest.raises(ValueError, match="boom"):
        await gate.run(graph, {}, CONFIG)
    gate.mended = True
    updates = [one async for one in graph.astream(None, CONFIG, stream_mode="updates")]
    assert sorted(updates, key=str) == sorted(
        [{"ok": {"log": ["ok"]}, "__metadata__": {"cached": True}}, {"bad": {"log": ["bad"]}}], key=str
    )


# New input


async def test_new_input_discards_unfinished_work_and_keeps_state(saver: Any) -> None:
    runs: list[str] = []
    graph = chain(*counted(runs, "x", "y")).compile(checkpointer=saver)
    await graph.ainvoke({"a": 1}, CONFIG, interrupt_before=["y"])
    assert (await graph.aget_state(CONFIG)).next == ("y",)
    assert await graph.ainvoke({"log": ["again"]}, CONFIG) == {"a": 1, "log": ["x", "again", "x", "y"]}
    assert runs == ["x", "x", "y"]


async def test_new_input_at_an_old_checkpoint_branches_there(saver: Any) -> None:
    graph = chain("x", "y").compile(checkpointer=saver)
    await graph.ainvoke({"log": ["one"]}, CONFIG)
    before = await history(graph)
    old = at(before, "y")
    assert (await graph.ainvoke({"log": ["two"]}, old.config))["log"] == ["one", "x", "two", "x", "y"]
    after = await history(graph)
    assert after[4:] == before
    assert steps(after[:4]) == [
        (5, "loop", ()),
        (4, "loop", ("y",)),
        (3, "loop", ("x",)),
        (2, "input", ("__start__",)),
    ]
    assert after[3].parent_config == old.config


async def test_a_repeated_request_with_the_same_run_id_continues(saver: Any) -> None:
    runs: list[str] = []
    gate = Gate()
    gate.open.set()
    graph = chain(*counted(runs, "x"), ("bad", gate.fail)).compile(checkpointer=saver)
    config = {**CONFIG, "metadata": {"run_id": "r-1"}}
    with pytest.raises(ValueError, match="boom"):
        await graph.ainvoke({"log": ["in"]}, config)
    gate.mended = True
    assert (await graph.ainvoke({"log": ["in"]}, config))["log"] == ["in", "x", "bad"]
    assert runs == ["x"]


# Replay


async def test_replay_writes_a_fork_and_runs_what_follows(saver: Any) -> None:
    runs: list[str] = []
    graph = chain(*counted(runs, "x", "y", "z")).compile(checkpointer=saver)
    await graph.ainvoke({}, CONFIG)
    before = await history(graph)
    old = at(before, "y")
    runs.clear()
    assert (await graph.ainvoke(None, old.config))["log"] == ["x", "y", "z"]
    assert runs == ["y", "z"]
    after = await history(graph)
    assert after[3:] == before
    assert steps(after[:3]) == [(4, "loop", ()), (3, "loop", ("z",)), (2, "fork", ("y",))]
    assert after[2].parent_config == old.config
    assert after[2].values == old.values


async def test_replay_of_the_end_returns_its_values_and_runs_nothing(saver: Any) -> None:
    runs: list[str] = []
    graph = chain(*counted(runs, "x")).compile(checkpointer=saver)
    first = await graph.ainvoke({}, CONFIG)
    before = await history(graph)
    assert await graph.ainvoke(None, before[0].config) == first
    assert runs == ["x"]
    assert (await history(graph))[-len(before) :] == before
    assert (await graph.aget_state(CONFIG)).values == first


async def test_replay_runs_finished_siblings_again(saver: Any) -> None:
    runs: list[str] = []
    gate = Gate("ok")
    graph = fan(*counted(runs, "ok"), ("bad", gate.fail), last=None).compile(checkpointer=saver)
    with pytest.raises(ValueError, match="boom"):
        await gate.run(graph, {}, CONFIG)
    gate.mended = True
    head = (await graph.aget_state(CONFIG)).config
    assert (await graph.ainvoke(None, head))["log"] == ["st", "bad", "ok"]
    assert runs == ["ok", "ok"]


async def test_replay_from_the_input_runs_everything(saver: Any) -> None:
    runs: list[str] = []
    graph = chain(*counted(runs, "x", "y")).compile(checkpointer=saver)
    await graph.ainvoke({"a": 1}, CONFIG)
    runs.clear()
    assert await graph.ainvoke(None, (await history(graph))[-1].config) == {"a": 1, "log": ["x", "y"]}
    assert runs == ["x", "y"]


async def test_replay_asks_an_answered_question_again(saver: Any) -> None:
    async def ask(_state: Log) -> dict[str, Any]:
        return {"log": [f"said {interrupt('q')}"]}

    graph = chain("x", ("ask", ask)).compile(checkpointer=saver)
    (first,) = (await graph.ainvoke({}, CONFIG))["__interrupt__"]
    await graph.ainvoke(Command(resume="one"), CONFIG)
    before = await history(graph)
    old = at(before, "ask")
    (again,) = (await graph.ainvoke(None, old.config))["__interrupt__"]
    assert again.value == "q"
    assert again.id != first.id
    assert (await graph.ainvoke(Command(resume="two"), CONFIG))["log"] == ["x", "said two"]
    assert (await graph.aget_state(before[0].config)).values["log"] == ["x", "said one"]
    assert (await history(graph))[-len(before) :] == before


async def test_an_unsuperseded_update_is_continued_without_another_fork(saver: Any) -> None:
    graph = chain("x", "y").compile(checkpointer=saver)
    await graph.ainvoke({}, CONFIG)
    updated = await graph.aupdate_state(at(await history(graph), "y").config, {"a": 1})
    await graph.ainvoke(None, updated)
    assert steps(await history(graph))[:2] == [(3, "loop", ()), (2, "update", ("y",))]


async def test_a_superseded_update_is_forked_when_it_is_replayed(saver: Any) -> None:
    graph = chain("x", "y").compile(checkpointer=saver)
    await graph.ainvoke({}, CONFIG)
    updated = await graph.aupdate_state(at(await history(graph), "y").config, {"a": 1})
    await graph.ainvoke(None, updated)
    await graph.ainvoke(None, updated)
    after = await history(graph)
    assert steps(after)[:2] == [(4, "loop", ()), (3, "fork", ("y",))]
    assert after[1].parent_config == updated


# Command without resume


async def test_a_command_updates_the_head_and_runs_its_goto(saver: Any) -> None:
    builder = chain("x")
    builder.add_node("extra", note("extra"))
    graph = builder.compile(checkpointer=saver)
    await graph.ainvoke({"a": 1}, CONFIG)
    result = await graph.ainvoke(Command(update={"a": 2, "log": ["cmd"]}, goto="extra"), CONFIG)
    assert result == {"a": 2, "log": ["x", "cmd", "extra"]}
    assert (await graph.aget_state(CONFIG)).values == result


async def test_a_command_with_an_update_only_changes_the_values(saver: Any) -> None:
    runs: list[str] = []
    graph = chain(*counted(runs, "x")).compile(checkpointer=saver)
    await graph.ainvoke({"a": 1}, CONFIG)
    assert await graph.ainvoke(Command(update={"a": 2}), CONFIG) == {"a": 2, "log": ["x"]}
    assert runs == ["x"]
    assert (await graph.aget_state(CONFIG)).values == {"a": 2, "log": ["x"]}


async def test_a_command_continues_pending_work(saver: Any) -> None:
    graph = chain("x", "y").compile(checkpointer=saver)
    await graph.ainvoke({}, CONFIG, interrupt_before=["y"])
    assert (await graph.ainvoke(Command(update={"a": 5}), CONFIG)) == {"a": 5, "log": ["x", "y"]}


async def test_a_resume_and_an_update_and_a_goto_in_one_command(saver: Any) -> None:
    async def ask(state: Log) -> dict[str, Any]:
        return {"log": [f"ask a={state['a']} {interrupt('q')}"]}

    builder = StateGraph(Log)
    builder.add_node("ask", ask)
    builder.add_node("side", note("side"))
    builder.add_edge(START, "ask")
    builder.add_edge("ask", END)
    graph = builder.compile(checkpointer=saver)
    await graph.ainvoke({"a": 1}, CONFIG)
    result = await graph.ainvoke(Command(resume="yes", update={"a": 2}, goto="side"), CONFIG)
    assert result == {"a": 2, "log": ["ask a=2 yes", "side"]}


async def test_a_failure_keeps_the_answers_already_given(saver: Any) -> None:
    attempts: list[str] = []

    async def ask(_state: Log) -> dict[str, Any]:
        answer = interrupt("q")
        attempts.append(answer)
        if len(attempts) == 1:
            message = "after the answer"
            raise ValueError(message)
        return {"log": [answer]}

    graph = chain(("ask", ask)).compile(checkpointer=saver)
    await graph.ainvoke({}, CONFIG)
    with pytest.raises(ValueError, match="after the answer"):
        await graph.ainvoke(Command(resume="yes"), CONFIG)
    assert (await graph.ainvoke(None, CONFIG))["log"] == ["yes"]
    assert attempts == ["yes", "yes"]


async def test_an_error_beside_a_question_raises_and_keeps_the_question(saver: Any) -> None:
    gate = Gate()

    async def ask(_state: Log) -> dict[str, Any]:
        try:
            return {"log": [interrupt("q")]}
        except GraphInterrupt:
            gate.open.set()
            raise

    graph = fan(("ask", ask), ("bad", gate.fail), first=None, last=None).compile(checkpointer=saver)
    with pytest.raises(ValueError, match="boom"):
        await graph.ainvoke({}, CONFIG)
    snapshot = await graph.aget_state(CONFIG)
    assert set(snapshot.next) == {"ask", "bad"}
    gate.mended = True
    (pending,) = (await graph.ainvoke(None, CONFIG))["__interrupt__"]
    assert pending.value == "q"
    assert (await graph.ainvoke(Command(resume="yes"), CONFIG))["log"] == ["yes", "bad"]
    assert gate.runs == 2
