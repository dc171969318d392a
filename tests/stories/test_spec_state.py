"""Reading state: the live view, the record of each step, filters and empty threads."""

from typing import Any

import anyio
import pytest

from runtime.types import Command, PregelTask, StateSnapshot, interrupt
from runtime.types.constants import branch_to
from tests.stories.graphs import CONFIG, Gate, Log, at, chain, fan, history, note, steps, thread

pytestmark = pytest.mark.anyio


async def test_an_empty_thread(saver: Any) -> None:
    graph = chain("n").compile(checkpointer=saver)
    snapshot = await graph.aget_state(CONFIG)
    assert isinstance(snapshot, StateSnapshot)
    assert snapshot.values == {}
    assert (snapshot.next, snapshot.tasks, snapshot.interrupts) == ((), (), ())
    assert (snapshot.metadata, snapshot.created_at, snapshot.parent_config) == (None, None, None)
    assert snapshot.config["configurable"]["thread_id"] == "t"
    assert await history(graph) == []


async def test_state_needs_a_checkpointer() -> None:
    graph = chain("n").compile()
    with pytest.raises(ValueError, match="(?i)no checkpointer"):
        await graph.aget_state(CONFIG)
    with pytest.raises(ValueError, match="(?i)no checkpointer"):
        await history(graph)
    with pytest.raises(ValueError, match="(?i)no checkpointer"):
        await graph.aupdate_state(CONFIG, {"a": 1})


class Failed:
    """``st -> ok | bad | slow -> join`` after ``bad`` raised."""

    def __init__(self) -> None:
        self.gate = Gate("ok")
        self.runs: list[str] = []

    def compile(self, saver: Any) -> Any:
        return fan(("ok", self.count("ok")), ("bad", self.gate.fail), ("slow", self.slow)).compile(checkpointer=saver)

    def count(self, name: str) -> Any:
        async def node(_state: Any) -> dict[str, Any]:
            self.runs.append(name)
            return {"log": [name]}

        return node

    async def slow(self, _state: Any) -> dict[str, Any]:
        self.runs.append("slow")
        if not self.gate.mended:
            await anyio.sleep_forever()
        return {"log": ["slow"]}


async def test_the_live_view_of_a_partly_failed_step(saver: Any) -> None:
    story = Failed()
    graph = story.compile(saver)
    with pytest.raises(ValueError, match="boom"):
        await story.gate.run(graph, {}, CONFIG)
    snapshot = await graph.aget_state(CONFIG)
    assert snapshot.next == ("bad", "slow")
    assert snapshot.values["log"] == ["st", "ok"]
    ok, bad, slow = snapshot.tasks
    assert all(isinstance(task, PregelTask) for task in snapshot.tasks)
    assert (ok.name, ok.result, ok.error) == ("ok", {"log": ["ok"]}, None)
    assert (bad.name, bad.result, bad.error) == ("bad", None, "ValueError('boom')")
    assert (slow.name, slow.result) == ("slow", None)
    assert "Cancelled" in str(slow.error)


async def test_what_follows_a_finished_step_is_next_before_its_checkpoint_is_made(saver: Any) -> None:
    graph = chain("a", "b", "c").compile(checkpointer=saver)
    await graph.ainvoke({"log": []}, CONFIG, interrupt_before=["b"])
    (task,) = (paused := await graph.aget_state(CONFIG)).tasks
    # A process killed here leaves what the task wrote, without the checkpoint that follows.
    await saver.aput_writes(paused.config, [("log", ["b"]), (branch_to("c"), None)], task.id)
    snapshot = await graph.aget_state(CONFIG)
    assert [(task.name, task.result) for task in snapshot.tasks] == [("b", {"log": ["b"]})]
    assert (snapshot.values["log"], snapshot.next) == (["a", "b"], ("c",))
    assert (await graph.ainvoke(None, CONFIG))["log"] == ["a", "b", "c"]
    assert (await graph.aget_state(CONFIG)).next == ()


async def test_the_record_of_a_partly_failed_step(saver: Any) -> None:
    story = Failed()
    graph = story.compile(saver)
    with pytest.raises(ValueError, match="boom"):
        await story.gate.run(graph, {}, CONFIG)
    live = await graph.aget_state(CONFIG)
    record = (await history(graph))[0]
    assert record.next == ("ok", "bad", "slow")
    assert record.values["log"] == ["st"]
    assert record.tasks == live.tasks
    assert record == await graph.aget_state(record.config)


async def test_a_resume_runs_what_has_not_finished_and_folds_by_name(saver: Any) -> None:
    story = Failed()
    graph = story.compile(saver)
    with pytest.raises(ValueError, match="boom"):
        await story.gate.run(graph, {}, CONFIG)
    story.gate.mended = True
    story.runs.clear()
    result = await graph.ainvoke(None, CONFIG)
    assert story.runs == ["slow"]
    assert story.gate.runs == 2
    assert result["log"] == ["st", "bad", "ok", "slow", "join"]


async def test_a_task_that_failed_and_then_succeeded_keeps_both(saver: Any) -> None:
    story = Failed()
    graph = story.compile(saver)
    with pytest.raises(ValueError, match="boom"):
        await story.gate.run(graph, {}, CONFIG)
    story.gate.mended = True
    await graph.ainvoke(None, CONFIG)
    bad = at(await history(graph), "ok", "bad", "slow").tasks[1]
    assert (bad.result, bad.error) == ({"log": ["bad"]}, "ValueError('boom')")


def asking(saver: Any) -> Any:
    async def n2(_state: Log) -> dict[str, Any]:
        return {"log": [f"n2 {interrupt('q')}"]}

    async def p1(_state: Log) -> dict[str, Any]:
        return {"a": 5}

    return fan(("n2", n2), ("p1", p1), first=None, last=None).compile(checkpointer=saver)


async def test_an_interrupt_beside_a_finished_task(saver: Any) -> None:
    graph = asking(saver)
    result = await graph.ainvoke({}, CONFIG)
    assert result["a"] == 5
    (pending,) = result["__interrupt__"]
    assert pending.value == "q"
    snapshot = await graph.aget_state(CONFIG)
    assert snapshot.next == ("n2",)
    assert snapshot.interrupts == (pending,)
    assert {t.name: (t.interrupts, t.result) for t in snapshot.tasks} == {
        "n2": ((pending,), None),
        "p1": ((), {"a": 5}),
    }


async def test_the_record_keeps_an_answered_interrupt(saver: Any) -> None:
    graph = asking(saver)
    (pending,) = (await graph.ainvoke({}, CONFIG))["__interrupt__"]
    await graph.ainvoke(Command(resume="yes"), CONFIG)
    head, before, *_ = await history(graph)
    assert head.interrupts == ()
    assert head.next == ()
    assert {t.name: t.interrupts for t in before.tasks} == {"n2": (pending,), "p1": ()}
    assert {t.name: t.result for t in before.tasks} == {"n2": {"log": ["n2 yes"]}, "p1": {"a": 5}}


async def test_repeated_writes_to_one_key_are_listed(saver: Any) -> None:
    graph = chain(
        ("n", lambda _state: [Command(update={"log": ["1"]}), {"log": ["2"]}]),
        "end",
    ).compile(checkpointer=saver)
    await graph.ainvoke({}, CONFIG)
    (task,) = at(await history(graph), "n").tasks
    assert task.result == {"log": {"$writes": [["1"], ["2"]]}}


async def test_a_finished_task_without_updates_has_an_empty_result(saver: Any) -> None:
    graph = chain(("n", lambda _state: None)).compile(checkpointer=saver)
    await graph.ainvoke({}, CONFIG)
    (task,) = at(await history(graph), "n").tasks
    assert task.result == {}


# Filters of the history


async def two_runs(saver: Any) -> Any:
    graph = chain("n1", "n2").compile(checkpointer=saver)
    await graph.ainvoke({}, {**CONFIG, "metadata": {"turn": 1}})
    await graph.ainvoke({}, {**CONFIG, "metadata": {"turn": 2}})
    return graph


async def test_history_filters_by_metadata(saver: Any) -> None:
    graph = await two_runs(saver)
    assert [s[:2] for s in steps(await history(graph, filter={"source": "input"}))] == [(3, "input"), (-1, "input")]
    assert [s[0] for s in steps(await history(graph, filter={"turn": 2}))] == [6, 5, 4, 3]
    assert [s[0] for s in steps(await history(graph, filter={"turn": 1, "source": "input"}))] == [-1]
    assert await history(graph, filter={"turn": 3}) == []
    assert await history(graph, filter={"unknown": 1}) == []


async def test_history_before_a_checkpoint(saver: Any) -> None:
    graph = await two_runs(saver)
    everything = await history(graph)
    assert await history(graph, before=everything[5].config) == everything[6:]
    assert await history(graph, before=everything[-1].config) == []


@pytest.mark.parametrize(("limit", "expected"), [(0, 0), (1, 1), (3, 3), (100, 8), (None, 8)])
async def test_history_limit(saver: Any, limit: int | None, expected: int) -> None:
    graph = await two_runs(saver)
    everything = await history(graph)
    assert await history(graph, limit=limit) == everything[:expected]


async def test_filters_combine(saver: Any) -> None:
    graph = await two_runs(saver)
    everything = await history(graph)
    found = await history(graph, filter={"source": "loop"}, before=everything[0].config, limit=2)
    assert [s[0] for s in steps(found)] == [5, 4]


async def test_an_id_in_the_config_restricts_history_to_that_checkpoint(saver: Any) -> None:
    graph = await two_runs(saver)
    everything = await history(graph)
    assert await history(graph, everything[2].config) == [everything[2]]


async def test_state_can_be_read_by_another_graph_object(saver: Any) -> None:
    await chain("n1", "n2").compile(checkpointer=saver).ainvoke({}, CONFIG)
    other = chain("n1", "n2").compile(checkpointer=saver)
    assert (await other.aget_state(CONFIG)).values == {"log": ["n1", "n2"]}


async def test_a_thread_id_that_is_no_text_is_turned_into_text(saver: Any) -> None:
    graph = chain("n").compile(checkpointer=saver)
    await graph.ainvoke({}, {"configurable": {"thread_id": 7}})
    assert (await graph.aget_state(thread("7"))).values == {"log": ["n"]}


async def test_reading_changes_nothing(saver: Any) -> None:
    graph = fan("x", "y").compile(checkpointer=saver, interrupt_before=["x"])
    await graph.ainvoke({}, CONFIG)
    before = [one.checkpoint async for one in saver.alist(CONFIG)]
    for _ in range(3):
        await graph.aget_state(CONFIG)
        await history(graph)
    assert [one.checkpoint async for one in saver.alist(CONFIG)] == before


async def test_the_callers_changes_to_a_snapshot_stay_with_the_caller(saver: Any) -> None:
    graph = chain(("n", note("n"))).compile(checkpointer=saver)
    await graph.ainvoke({}, CONFIG)
    (await graph.aget_state(CONFIG)).values["log"].append("mine")
    assert (await graph.aget_state(CONFIG)).values == {"log": ["n"]}
