"""Two runs on one thread, repeated inputs, first checkpoints, finished siblings: nothing is lost or done twice."""

import operator
import subprocess
import sys
import textwrap
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypedDict

import anyio
import pytest

from persistence.sqlite import SqliteSaver
from runtime.errors import EmptyInputError, ThreadBusyError, ThreadConflictError
from runtime.graph import START, StateGraph
from runtime.types import Durability
from tests.stories.graphs import CONFIG, Gate, chain, fan, history, thread
from tests.stories.recording import RecordingSaver

pytestmark = pytest.mark.anyio

every_mode = pytest.mark.parametrize("durability", ["sync", "async", "exit"])


class Numbers(TypedDict, total=False):
    x: int
    log: Annotated[list[int], operator.add]


def slow_graph(running: list[int] | None = None) -> StateGraph:
    """One node that lets others run before it appends its input."""

    async def n(state: Numbers) -> dict[str, Any]:
        if running is not None:
            running.append(state["x"])
        for _ in range(20):
            await anyio.sleep(0)
        return {"log": [state["x"]]}

    builder = StateGraph(Numbers)
    builder.add_node("n", n)
    builder.add_edge(START, "n")
    return builder


# Two runs on one thread


@every_mode
async def test_two_runs_on_one_thread_lose_no_update(saver: Any, durability: Durability) -> None:
    graph = slow_graph().compile(checkpointer=saver)
    await graph.ainvoke({"x": 0}, CONFIG)
    async with anyio.create_task_group() as group:
        for x in (1, 2):
            group.start_soon(partial(graph.ainvoke, {"x": x}, CONFIG, durability=durability))
    assert sorted((await graph.aget_state(CONFIG)).values["log"]) == [0, 1, 2]


async def test_two_graph_objects_on_one_saver_take_turns_too(saver: Any) -> None:
    one, two = (slow_graph().compile(checkpointer=saver) for _ in range(2))
    async with anyio.create_task_group() as group:
        group.start_soon(lambda: one.ainvoke({"x": 1}, CONFIG))
        group.start_soon(lambda: two.ainvoke({"x": 2}, CONFIG))
    assert sorted((await one.aget_state(CONFIG)).values["log"]) == [1, 2]


async def test_the_history_of_two_runs_is_one_line(saver: Any) -> None:
    graph = slow_graph().compile(checkpointer=saver)
    async with anyio.create_task_group() as group:
        for x in range(5):
            group.start_soon(graph.ainvoke, {"x": x}, CONFIG)
    snapshots = await history(graph)
    assert [s.parent_config for s in snapshots] == [s.config for s in snapshots[1:]] + [None]
    assert len(snapshots) == 15


async def test_a_second_run_can_be_refused(saver: Any) -> None:
    graph = slow_graph().compile(checkpointer=saver)
    outcomes: list[Any] = []

    async def run(x: int) -> None:
        try:
            outcomes.append((await graph.ainvoke({"x": x}, CONFIG, multitask_strategy="reject"))["log"])
        except ThreadBusyError as error:
            outcomes.append(error)

    async with anyio.create_task_group() as group:
        group.start_soon(run, 1)
        group.start_soon(run, 2)
    (refused,) = [one for one in outcomes if isinstance(one, ThreadBusyError)]
    assert "'t'" in str(refused)
    assert len((await graph.aget_state(CONFIG)).values["log"]) == 1
    assert len((await graph.ainvoke({"x": 3}, CONFIG, multitask_strategy="reject"))["log"]) == 2


async def test_the_strategy_can_be_chosen_when_compiling(saver: Any) -> None:
    graph = slow_graph().compile(checkpointer=saver, multitask_strategy="reject")
    refused: list[str] = []

    async def run(x: int) -> None:
        try:
            await graph.ainvoke({"x": x}, CONFIG)
        except ThreadBusyError:
            refused.append("refused")

    async with anyio.create_task_group() as group:
        group.start_soon(run, 1)
        group.start_soon(run, 2)
    assert refused == ["refused"]


async def test_runs_on_different_threads_do_not_wait_for_each_other(saver: Any) -> None:
    arrived: list[str] = []
    everyone = anyio.Event()

    async def meet(_state: Any) -> None:
        arrived.append("here")
        if len(arrived) == 2:
            everyone.set()
        await everyone.wait()

    graph = chain(("meet", meet)).compile(checkpointer=saver)
    with anyio.fail_after(10):
        async with anyio.create_task_group() as group:
            for name in ("one", "two"):
                group.start_soon(graph.ainvoke, {}, thread(name))


async def test_a_failed_or_cancelled_run_frees_its_thread(saver: Any) -> None:
    gate = Gate()
    gate.open.set()
    graph = chain(("bad", gate.fail)).compile(checkpointer=saver)
    with pytest.raises(ValueError, match="boom"):
        await graph.ainvoke({}, CONFIG)
    gate.open = anyio.Event()
    with anyio.move_on_after(0.01):
        await graph.ainvoke({}, CONFIG)
    gate.mended = True
    with anyio.fail_after(10):
        await graph.ainvoke({}, CONFIG, multitask_strategy="reject")


async def test_a_waiting_run_that_is_cancelled_leaves_the_queue(saver: Any) -> None:
    gate = Gate()
    graph = chain(("bad", gate.fail)).compile(checkpointer=saver)
    ended: list[str] = []

    async def run(name: str) -> None:
        try:
            await graph.ainvoke({}, CONFIG)
        except ValueError:
            ended.append(name)

    with anyio.fail_after(10):
        async with anyio.create_task_group() as group:
            group.start_soon(run, "first")
            await anyio.wait_all_tasks_blocked()
            with anyio.move_on_after(0.01):
                await graph.ainvoke({}, CONFIG)
            gate.open.set()
    assert ended == ["first"]
    gate.mended = True
    with anyio.fail_after(10):
        assert (await graph.ainvoke({}, CONFIG))["log"] == ["bad"]


async def test_two_savers_on_one_file_never_lose_an_update_in_silence(database: str) -> None:
    async with SqliteSaver.from_conn_string(database) as one, SqliteSaver.from_conn_string(database) as two:
        graphs = [slow_graph().compile(checkpointer=saver) for saver in (one, two)]
        await graphs[0].ainvoke({"x": 0}, CONFIG)
        outcomes: list[Any] = []

        async def run(graph: Any, x: int) -> None:
            try:
                await graph.ainvoke({"x": x}, CONFIG, durability="sync")
                outcomes.append(x)
            except ThreadConflictError as error:
                outcomes.append(error)

        async with anyio.create_task_group() as group:
            for x, graph in enumerate(graphs, 1):
                group.start_soon(run, graph, x)
        succeeded = [one for one in outcomes if isinstance(one, int)]
        log = (await graphs[0].aget_state(CONFIG)).values["log"]
        assert sorted(log) == sorted([0, *succeeded])
        assert succeeded


# The input is durable before user code runs


async def test_sync_stores_the_input_before_the_first_node_runs() -> None:
    saver = RecordingSaver(delay=0.01)
    seen: list[Any] = []

    async def first(_state: Any) -> None:
        seen.append(await saver.aget_tuple(CONFIG))

    await chain(("first", first)).compile(checkpointer=saver).ainvoke({"a": 1}, CONFIG, durability="sync")
    assert seen[0] is not None


PROGRAM = """
    import os, sys
    import anyio
    from persistence.sqlite import SqliteSaver
    from runtime.errors import EmptyInputError
    from tests.stories.graphs import CONFIG, chain

    async def first(state):
        with open(LEDGER, "a") as ledger:
            ledger.write("first\\n")
        if MODE == "die":
            os._exit(9)
        return {"log": ["first"]}

    async def main():
        async with SqliteSaver.from_conn_string(DATABASE) as saver:
            graph = chain(("first", first), "second").compile(checkpointer=saver)
            try:
                print(await graph.ainvoke({"a": 1} if MODE == "die" else None, CONFIG, durability=DURABILITY))
            except EmptyInputError as error:
                print("EmptyInputError", error)

    MODE, DURABILITY, DATABASE, LEDGER = sys.argv[1:]
    anyio.run(main)
"""


def run_program(*arguments: str) -> subprocess.CompletedProcess[str]:
    root = str(Path(__file__).parents[2])
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(PROGRAM), *arguments],
        cwd=root,
        env={"PYTHONPATH": root, "PATH": ""},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.slow
def test_a_process_that_dies_in_the_first_node_can_be_continued(database: str, tmp_path: Path) -> None:
    ledger = tmp_path / "ledger"
    assert run_program("die", "sync", database, str(ledger)).returncode == 9
    continued = run_program("continue", "sync", database, str(ledger))
    assert continued.stdout.strip() == "{'a': 1, 'log': ['first', 'second']}", continued.stderr
    assert ledger.read_text().split() == ["first", "first"]


@pytest.mark.slow
def test_a_process_that_dies_before_anything_was_saved_leaves_a_clear_error(database: str, tmp_path: Path) -> None:
    ledger = tmp_path / "ledger"
    assert run_program("die", "exit", database, str(ledger)).returncode == 9
    continued = run_program("continue", "exit", database, str(ledger))
    assert "EmptyInputError" in continued.stdout, continued.stderr
    assert ledger.read_text().split() == ["first"]


async def test_nothing_saved_is_said_clearly(saver: Any) -> None:
    with pytest.raises(EmptyInputError, match="t"):
        await chain("n").compile(checkpointer=saver).ainvoke(None, CONFIG)


# A finished sibling does not run again


@every_mode
async def test_a_finished_sibling_does_not_run_again_after_a_restart(database: str, durability: Durability) -> None:
    gate = Gate("ok")
    runs: list[str] = []

    def build(saver: Any) -> Any:
        ok = ("ok", lambda _state: runs.append("ok") or {"log": ["ok"]})
        return fan(ok, ("bad", gate.fail)).compile(checkpointer=saver)

    async with SqliteSaver.from_conn_string(database) as saver:
        with pytest.raises(ValueError, match="boom"):
            await gate.run(build(saver), {}, CONFIG, durability=durability)
    gate.mended = True
    async with SqliteSaver.from_conn_string(database) as saver:
        graph = build(saver)
        assert (await graph.ainvoke(None, CONFIG, durability=durability))["log"] == ["st", "bad", "ok", "join"]
        assert (await graph.aget_state(CONFIG)).values["log"].count("ok") == 1
    assert (runs, gate.runs) == (["ok"], 2)


@every_mode
async def test_failing_again_and_again_never_repeats_the_sibling(saver: Any, durability: Durability) -> None:
    gate = Gate("ok")
    runs: list[str] = []
    graph = fan(("ok", lambda _state: runs.append("ok") or {"log": ["ok"]}), ("bad", gate.fail)).compile(
        checkpointer=saver
    )
    inputs: list[Any] = [{}, None, None]
    for value in inputs:
        gate.error = ValueError("boom")
        with pytest.raises(ValueError, match="boom"):
            await gate.run(graph, value, CONFIG, durability=durability)
    gate.mended = True
    await graph.ainvoke(None, CONFIG, durability=durability)
    assert (runs, gate.runs) == (["ok"], 4)
