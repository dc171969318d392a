"""When things become durable in each mode, and what is kept when a run ends early."""

from typing import Any

import anyio
import pytest

from runtime.types import Command, Durability, interrupt
from tests.stories.graphs import CONFIG, Gate, chain, fan, history, note, steps
from tests.stories.recording import RecordingSaver

pytestmark = pytest.mark.anyio

MODES = ["sync", "async", "exit"]
every_mode = pytest.mark.parametrize("durability", MODES)


def traced(saver: RecordingSaver, name: str) -> tuple[str, Any]:
    """A node that notes its run in the saver's event log."""

    async def node(_state: Any) -> dict[str, Any]:
        saver.events.append(f"run {name}")
        return {"log": [name]}

    return name, node


def order(events: list[str], *expected: str) -> bool:
    """Whether these events happened, in this order."""
    positions = [events.index(one) for one in expected]
    return positions == sorted(positions)


async def test_sync_makes_a_checkpoint_durable_before_its_step_runs() -> None:
    saver = RecordingSaver(delay=0.005)
    graph = chain(traced(saver, "n1"), traced(saver, "n2")).compile(checkpointer=saver)
    await graph.ainvoke({}, CONFIG, durability="sync")
    assert order(saver.events, "put -1 done", "put 0 done", "run n1", "put 1 done", "run n2", "put 2 done")


async def test_sync_makes_a_tasks_writes_durable_before_the_checkpoint_that_follows() -> None:
    saver = RecordingSaver(slow_writes=0.01)
    graph = chain(traced(saver, "n1"), traced(saver, "n2")).compile(checkpointer=saver)
    await graph.ainvoke({}, CONFIG, durability="sync")
    assert order(saver.events, "writes n1 done", "put 1", "run n2", "writes n2 done", "put 2")


async def test_async_has_everything_durable_when_the_call_returns() -> None:
    saver = RecordingSaver(delay=0.005)
    graph = chain(traced(saver, "n1"), traced(saver, "n2")).compile(checkpointer=saver)
    await graph.ainvoke({}, CONFIG, durability="async")
    puts = [one for one in saver.events if one.startswith("put") and one.endswith("done")]
    assert puts == ["put -1 done", "put 0 done", "put 1 done", "put 2 done"]


async def test_exit_stores_one_checkpoint_at_the_end() -> None:
    saver = RecordingSaver()
    graph = chain(traced(saver, "n1"), traced(saver, "n2")).compile(checkpointer=saver)
    await graph.ainvoke({}, CONFIG, durability="exit")
    assert saver.events == ["run n1", "run n2", "put 2", "put 2 done"]


async def test_async_is_the_default(saver: Any) -> None:
    graph = chain("n1", "n2").compile(checkpointer=saver)
    await graph.ainvoke({}, CONFIG)
    assert [s[0] for s in steps(await history(graph))] == [2, 1, 0, -1]


@every_mode
async def test_the_result_is_the_same_in_every_mode(saver: Any, durability: Durability) -> None:
    graph = fan("x", "y").compile(checkpointer=saver)
    assert await graph.ainvoke({"a": 1}, CONFIG, durability=durability) == {"a": 1, "log": ["st", "x", "y", "join"]}
    assert (await graph.aget_state(CONFIG)).values == {"a": 1, "log": ["st", "x", "y", "join"]}


async def test_exit_saves_a_chain_of_runs_without_the_steps_between(saver: Any) -> None:
    graph = chain("n1", "n2").compile(checkpointer=saver)
    for _ in range(2):
        await graph.ainvoke({}, CONFIG, durability="exit")
    second, first = await history(graph)
    assert (first.metadata["step"], second.metadata["step"]) == (2, 6)
    assert second.parent_config == first.config
    assert second.values == {"log": ["n1", "n2", "n1", "n2"]}


# A failing node


@every_mode
async def test_a_failure_keeps_what_had_finished(saver: Any, durability: Durability) -> None:
    gate = Gate("ok")
    runs: list[str] = []
    graph = fan(("ok", lambda _state: runs.append("ok") or {"log": ["ok"]}), ("bad", gate.fail)).compile(
        checkpointer=saver
    )
    with pytest.raises(ValueError, match="boom"):
        await gate.run(graph, {}, CONFIG, durability=durability)
    snapshot = await graph.aget_state(CONFIG)
    assert snapshot.next == ("bad",)
    assert snapshot.values["log"] == ["st", "ok"]
    assert {t.name: (t.error, t.result) for t in snapshot.tasks} == {
        "ok": (None, {"log": ["ok"]}),
        "bad": ("ValueError('boom')", None),
    }
    gate.mended = True
    result = await graph.ainvoke(None, CONFIG, durability=durability)
    assert result["log"] == ["st", "bad", "ok", "join"]
    assert (runs, gate.runs) == (["ok"], 2)


@every_mode
async def test_a_failure_in_the_first_step_keeps_the_input(saver: Any, durability: Durability) -> None:
    gate = Gate()
    graph = chain(("bad", gate.fail)).compile(checkpointer=saver)
    gate.open.set()
    with pytest.raises(ValueError, match="boom"):
        await graph.ainvoke({"a": 3, "log": ["in"]}, CONFIG, durability=durability)
    gate.mended = True
    assert await graph.ainvoke(None, CONFIG, durability=durability) == {"a": 3, "log": ["in", "bad"]}


@every_mode
async def test_an_interrupt_is_kept_and_can_be_answered(saver: Any, durability: Durability) -> None:
    async def ask(_state: Any) -> dict[str, Any]:
        return {"log": [interrupt("q")]}

    graph = chain("n", ("ask", ask)).compile(checkpointer=saver)
    result = await graph.ainvoke({}, CONFIG, durability=durability)
    assert [one.value for one in result["__interrupt__"]] == ["q"]
    snapshot = await graph.aget_state(CONFIG)
    assert (snapshot.next, [one.value for one in snapshot.interrupts]) == (("ask",), ["q"])
    assert (await graph.ainvoke(Command(resume="yes"), CONFIG, durability=durability))["log"] == ["n", "yes"]


# Cancellation


@every_mode
async def test_a_cancelled_run_keeps_finished_steps_and_finished_siblings(saver: Any, durability: Durability) -> None:
    started = anyio.Event()
    runs: list[str] = []

    async def slow(_state: Any) -> dict[str, Any]:
        if not started.is_set():
            started.set()
            await anyio.sleep_forever()
        return {"log": ["slow"]}

    graph = fan(("ok", lambda _state: runs.append("ok") or {"log": ["ok"]}), ("slow", slow)).compile(checkpointer=saver)
    with anyio.fail_after(10), anyio.CancelScope() as scope:
        async for update in graph.astream({}, CONFIG, stream_mode="updates", durability=durability):
            if "ok" in update:
                await started.wait()
                scope.cancel()
    snapshot = await graph.aget_state(CONFIG)
    assert snapshot.next == ("slow",)
    assert snapshot.values["log"] == ["st", "ok"]
    assert (await graph.ainvoke(None, CONFIG))["log"] == ["st", "ok", "slow", "join"]
    assert runs == ["ok"]


async def cancelled_error(saver: Any, durability: Durability, *, alone: bool) -> Any:
    """What is recorded for a node that was cancelled from outside."""
    started = anyio.Event()

    async def slow(_state: Any) -> None:
        started.set()
        await anyio.sleep_forever()

    nodes: list[Any] = [("slow", slow)] if alone else ["ok", ("slow", slow)]
    graph = fan(*nodes, last=None).compile(checkpointer=saver)
    with anyio.fail_after(10):
        async with anyio.create_task_group() as group:

            async def run() -> None:
                await graph.ainvoke({}, CONFIG, durability=durability)

            group.start_soon(run)
            await started.wait()
            group.cancel_scope.cancel()
    (task,) = [t for t in (await graph.aget_state(CONFIG)).tasks if t.name == "slow"]
    return task.error


@every_mode
@pytest.mark.parametrize("alone", [True, False])
async def test_cancellation_is_recorded_the_same_way_in_every_mode(
    saver: Any, durability: Durability, alone: bool
) -> None:
    assert "Cancelled" in str(await cancelled_error(saver, durability, alone=alone))


@every_mode
async def test_a_cancelled_call_raises_the_cancellation(saver: Any, durability: Durability) -> None:
    started = anyio.Event()
    ended: list[str] = []

    async def slow(_state: Any) -> None:
        started.set()
        try:
            await anyio.sleep_forever()
        finally:
            ended.append("slow")

    graph = chain(("slow", slow)).compile(checkpointer=saver)
    with anyio.fail_after(10), anyio.CancelScope() as scope:
        async with anyio.create_task_group() as group:

            async def stop() -> None:
                await started.wait()
                scope.cancel()

            group.start_soon(stop)
            await graph.ainvoke({}, CONFIG, durability=durability)
            ended.append("returned")
    assert scope.cancelled_caught
    assert ended == ["slow"]


# A failing saver


async def test_sync_stops_at_the_step_whose_checkpoint_could_not_be_stored() -> None:
    saver = RecordingSaver(fail_at=1)
    graph = chain(traced(saver, "n1"), traced(saver, "n2"), traced(saver, "n3")).compile(checkpointer=saver)
    with pytest.raises(OSError, match="no room for step 1"):
        await graph.ainvoke({}, CONFIG, durability="sync")
    assert "run n1" in saver.events
    assert "run n2" not in saver.events
    assert (await graph.aget_state(CONFIG)).metadata["step"] == 0


async def test_async_reports_a_failed_checkpoint_and_stores_none_after_it() -> None:
    saver = RecordingSaver(fail_at=1)
    graph = chain(traced(saver, "n1"), traced(saver, "n2"), traced(saver, "n3")).compile(checkpointer=saver)
    with pytest.raises(OSError, match="no room for step 1"):
        await graph.ainvoke({}, CONFIG, durability="async")
    assert "put 2" not in saver.events
    assert (await graph.aget_state(CONFIG)).metadata["step"] == 0


async def test_exit_reports_a_failed_checkpoint_at_the_end() -> None:
    saver = RecordingSaver(fail_at=2)
    graph = chain(traced(saver, "n1"), traced(saver, "n2")).compile(checkpointer=saver)
    with pytest.raises(OSError, match="no room for step 2"):
        await graph.ainvoke({}, CONFIG, durability="exit")
    assert saver.events[:2] == ["run n1", "run n2"]


@every_mode
async def test_a_value_that_cannot_be_stored_fails_the_run_and_its_node_runs_again(
    saver: Any, durability: Durability
) -> None:
    runs: list[Any] = []

    async def n(_state: Any) -> dict[str, Any]:
        runs.append("n")
        return {"a": object() if len(runs) == 1 else 1}

    graph = chain("first", ("n", n)).compile(checkpointer=saver)
    with pytest.raises(TypeError):
        await graph.ainvoke({}, CONFIG, durability=durability)
    if durability != "exit":
        assert await graph.ainvoke(None, CONFIG, durability=durability) == {"a": 1, "log": ["first"]}
        assert runs == ["n", "n"]


# Options


@every_mode
async def test_durability_without_a_checkpointer_does_nothing(durability: Durability) -> None:
    assert await chain("n").compile().ainvoke({}, durability=durability) == {"log": ["n"]}


async def test_an_unknown_durability_is_refused(saver: Any) -> None:
    graph = chain("n").compile(checkpointer=saver)
    unknown: Any = "sometimes"
    with pytest.raises(ValueError, match="(?i)durability"):
        await graph.ainvoke({}, CONFIG, durability=unknown)


@every_mode
async def test_a_third_party_saver_needs_only_the_async_contract(durability: Durability) -> None:
    graph = fan("x", ("y", note("y"))).compile(checkpointer=RecordingSaver())
    await graph.ainvoke({}, CONFIG, durability=durability)
    assert (await graph.ainvoke({}, CONFIG, durability=durability))["log"] == ["st", "x", "y", "join"] * 2
