"""Workflows that fail, are cancelled or crash: what had finished is found again, by the number of the call."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections import Counter
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

import anyio
import pytest
from hypothesis import given as given_values
from hypothesis import settings
from hypothesis import strategies as st

from persistence.memory import InMemorySaver
from persistence.sqlite import SqliteSaver
from runtime.func import entrypoint, task
from runtime.graph import START, StateGraph
from runtime.types import RetryPolicy
from tests.stories.graphs import CONFIG

pytestmark = pytest.mark.anyio


class Shaky:
    """A task that fails until it is mended, and how often each call of it ran."""

    def __init__(self) -> None:
        self.runs: Counter[Any] = Counter()
        self.broken: set[Any] = set()
        self.work = task(self._work, name="work")

    async def _work(self, given: Any) -> Any:
        self.runs[given] += 1
        await anyio.lowlevel.checkpoint()
        if given in self.broken:
            raise ValueError(given)
        return given


# ---- failures --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("durability", ["async", "sync", "exit"])
async def test_only_what_failed_runs_again(saver: Any, durability: Any) -> None:
    shaky = Shaky()
    shaky.broken = {2}

    @entrypoint(checkpointer=saver)
    async def flow(given: int) -> Any:
        first = await shaky.work(0)
        futures = [shaky.work(number) for number in (1, 2, 3)]
        done = [await futures[0], await futures[2]]
        return [first, *done, await futures[1]]

    with pytest.raises(ValueError, match="2") as failed:
        await flow.ainvoke(9, CONFIG, durability=durability)
    notes = [note.partition(" and id")[0] for note in failed.value.__notes__]
    assert notes == ["During task with name 'work'", "During task with name 'flow'"]
    (pending,) = (await flow.aget_state(CONFIG)).tasks
    assert (pending.name, pending.error, pending.result) == ("flow", "ValueError(2)", None)
    shaky.broken.clear()
    assert await flow.ainvoke(None, CONFIG, durability=durability) == [0, 1, 3, 2]
    assert shaky.runs == {0: 1, 1: 1, 2: 2, 3: 1}
    assert (await flow.aget_state(CONFIG)).next == ()


async def test_a_caller_may_catch_a_failure(saver: Any) -> None:
    shaky = Shaky()
    shaky.broken = {1}

    @entrypoint(checkpointer=saver)
    async def flow(given: int) -> Any:
        try:
            return await shaky.work(given)
        except ValueError as error:
            return [repr(error), await shaky.work(2)]

    assert await flow.ainvoke(1, CONFIG) == ["ValueError(1)", 2]
    (snapshot,) = [one for one in [await flow.aget_state(CONFIG)] if not one.next]
    assert snapshot.values == ["ValueError(1)", 2]


async def test_a_new_call_starts_afresh_after_a_failure(saver: Any) -> None:
    shaky = Shaky()
    shaky.broken = {2}

    @entrypoint(checkpointer=saver)
    async def flow(given: int) -> Any:
        return [await shaky.work(1), await shaky.work(given)]

    with pytest.raises(ValueError, match="2"):
        await flow.ainvoke(2, CONFIG)
    assert await flow.ainvoke(3, CONFIG) == [1, 3]
    assert shaky.runs == {1: 2, 2: 1, 3: 1}


async def test_results_are_found_by_number_and_name(saver: Any) -> None:
    """A program that was changed between failure and resume gets no result of another task."""
    shaky = Shaky()
    version = [1]

    @task
    async def other(given: Any) -> Any:
        return f"other {given}"

    @entrypoint(checkpointer=saver)
    async def flow(given: int) -> Any:
        if version[0] == 1:
            await shaky.work(1)
            raise ValueError("version 1")
        return [await other(1), await shaky.work(2)]

    with pytest.raises(ValueError, match="version 1"):
        await flow.ainvoke(1, CONFIG)
    version[0] = 2
    assert await flow.ainvoke(None, CONFIG) == ["other 1", 2]


async def test_nested_calls_that_finished_do_not_run_again(saver: Any) -> None:
    shaky = Shaky()
    shaky.broken = {"second"}

    @task
    async def outer(name: str) -> Any:
        return [await shaky.work(f"{name} 1"), await shaky.work(name)]

    @entrypoint(checkpointer=saver)
    async def flow(given: int) -> Any:
        return [await outer("first"), await outer("second")]

    with pytest.raises(ValueError, match="second"):
        await flow.ainvoke(1, CONFIG)
    shaky.broken.clear()
    assert await flow.ainvoke(None, CONFIG) == [["first 1", "first"], ["second 1", "second"]]
    assert shaky.runs == {"first 1": 1, "first": 1, "second 1": 1, "second": 2}


async def test_tasks_of_a_node_are_found_again(saver: Any) -> None:
    class State(TypedDict, total=False):
        found: list[Any]

    shaky = Shaky()
    shaky.broken = {"b1"}

    def node(name: str) -> Any:
        async def run(state: State) -> Any:
            return {"found": [await shaky.work(f"{name}0"), await shaky.work(f"{name}1")]} if name == "b" else None

        return run

    builder = StateGraph(State)
    for name in ("a", "b"):
        builder.add_node(name, node(name))
    builder.add_edge(START, "a")
    builder.add_edge("a", "b")
    graph = builder.compile(checkpointer=saver)
    with pytest.raises(ValueError, match="b1"):
        await graph.ainvoke({}, CONFIG)
    shaky.broken.clear()
    assert await graph.ainvoke(None, CONFIG) == {"found": ["b0", "b1"]}
    assert shaky.runs == {"b0": 1, "b1": 2}


async def test_another_attempt_finds_what_finished_in_the_one_before(saver: Any) -> None:
    shaky = Shaky()
    attempts: list[int] = []
    policy = RetryPolicy(initial_interval=0, jitter=False, retry_on=ValueError)

    @task(retry_policy=policy)
    async def outer(given: int) -> Any:
        attempts.append(given)
        done = await shaky.work("nested")
        if len(attempts) == 1:
            raise ValueError(given)
        return done

    @entrypoint(checkpointer=saver, retry_policy=policy)
    async def flow(given: int) -> Any:
        hanging = task(anyio.sleep_forever, name="hang")()
        done = [await shaky.work("own"), await outer(1)]
        attempts.append(0)
        if attempts.count(0) < 3:
            raise ValueError(given)
        hanging.cancel()
        return done

    with anyio.fail_after(10):
        assert await flow.ainvoke(1, CONFIG) == ["own", "nested"]
    assert shaky.runs == {"own": 1, "nested": 1}
    assert attempts == [1, 1, 0, 0, 0]


# ---- restarts --------------------------------------------------------------------------------------------------------


@dataclass
class Receipt:
    """A type of the program's own."""

    amount: int


async def test_a_new_process_reads_results_of_types_that_tasks_declare(database: str) -> None:
    paid: list[int] = []
    broken = [True]

    def build(saver: Any) -> Any:
        @task
        async def pay(amount: int) -> list[Receipt]:
            paid.append(amount)
            return [Receipt(amount)]

        @entrypoint(checkpointer=saver)
        async def flow(given: int) -> Any:
            receipts = await pay(given)
            if broken[0]:
                raise ValueError("broken")
            return receipts[0].amount

        return flow

    async with SqliteSaver.from_conn_string(database) as saver:
        with pytest.raises(ValueError, match="broken"):
            await build(saver).ainvoke(5, CONFIG)
    broken[0] = False
    async with SqliteSaver.from_conn_string(database) as saver:
        assert await build(saver).ainvoke(None, CONFIG) == 5
    assert paid == [5]


class Program:
    """A workflow of parallel and nested calls that finish in a given order and stop at a given moment."""

    def __init__(self, shape: list[int], order: list[int]) -> None:
        self.shape = shape
        """How many calls each round makes at once; each call makes one more."""
        self.order = order
        """Decides which of the calls at work finishes next."""
        self.done: Counter[str] = Counter()
        """Calls whose function returned."""
        self.handed_out: set[str] = set()
        """Calls whose result a caller got."""
        self.gates: dict[str, anyio.Event] = {}
        self.stop_after = -1
        self.stop: Any = None

    def flow(self, saver: Any) -> Any:
        @task
        async def inner(name: str) -> str:
            await self._turn(name)
            return self._finish(name)

        @task
        async def outer(name: str) -> str:
            found = await inner(f"{name}.inner")
            self._got(found)
            await self._turn(name)
            return self._finish(name)

        @entrypoint(checkpointer=saver)
        async def flow(given: int) -> Any:
            results = []
            for number, width in enumerate(self.shape):
                futures = [outer(f"{number}.{place}") for place in range(width)]
                for future in futures:
                    found = await future
                    self._got(found)
                    results.append(found)
            return results

        return flow

    @property
    def expected(self) -> list[str]:
        return [f"{number}.{place}" for number, width in enumerate(self.shape) for place in range(width)]

    async def _turn(self, name: str) -> None:
        self.gates[name] = anyio.Event()
        await self.gates[name].wait()

    def _finish(self, name: str) -> str:
        self.done[name] += 1
        return name

    def _got(self, name: str) -> None:
        self.handed_out.add(name)
        if len(self.handed_out) == self.stop_after:
            self.stop()

    async def run(self, saver: Any, given: Any, **options: Any) -> Any:
        """Run it, letting one call at a time finish, in the given order."""
        found: list[Any] = []
        self.gates = {}
        rounds = 0

        async def call() -> None:
            found.append(await self.flow(saver).ainvoke(given, CONFIG, **options))
            ended.set()

        ended = anyio.Event()
        async with anyio.create_task_group() as group:
            group.start_soon(call)
            while not ended.is_set():
                await anyio.lowlevel.checkpoint()
                if self.gates:
                    names = sorted(self.gates)
                    rounds += 1
                    self.gates.pop(names[self.order[rounds % len(self.order)] % len(names)]).set()
        return found[0]


SHAPES = st.lists(st.integers(1, 3), min_size=1, max_size=3)
ORDERS = st.lists(st.integers(0, 5), min_size=1, max_size=8)


@given_values(shape=SHAPES, order=ORDERS)
@settings(max_examples=40)
@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_results_belong_to_their_calls_in_whatever_order_calls_finish(
    backend: str, shape: list[int], order: list[int]
) -> None:
    async def main() -> None:
        program = Program(shape, order)
        assert await program.run(InMemorySaver(), 1) == program.expected
        assert set(program.done.values()) == {1}

    anyio.run(main, backend=backend)


MODES = st.sampled_from(["async", "sync", "exit"])


@pytest.mark.slow
@given_values(shape=SHAPES, order=ORDERS, moment=st.integers(1, 6), failing=st.booleans(), mode=MODES)
@settings(max_examples=15)
@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_stopped_workflow_goes_on_where_it_stopped(
    backend: str, shape: list[int], order: list[int], moment: int, failing: bool, mode: Any
) -> None:
    """It fails, or is cancelled, once some results were handed out; a new saver on the file runs the rest only."""

    async def main(database: str) -> None:
        program = Program(shape, order)
        program.stop_after = moment

        def fail() -> None:
            raise ConnectionError

        stopped = False
        async with SqliteSaver.from_conn_string(database) as saver:
            with anyio.CancelScope() as scope:
                program.stop = fail if failing else scope.cancel
                try:
                    await program.run(saver, 1, durability=mode)
                except* ConnectionError:
                    stopped = True
        if not (stopped or scope.cancelled_caught):
            return  # it had ended before its moment
        before = Counter(program.done)
        program.stop_after = -1
        async with SqliteSaver.from_conn_string(database) as saver:
            assert await program.run(saver, None, durability=mode) == program.expected
        assert all(program.done[name] == 1 for name in before), "what had finished was not run again"
        assert set(program.done.values()) == {1}

    with tempfile.TemporaryDirectory() as folder:
        anyio.run(main, str(Path(folder) / "threads.sqlite"), backend=backend)


@pytest.mark.slow
@given_values(shape=SHAPES, order=ORDERS, moment=st.integers(1, 6))
@settings(max_examples=12)
@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_in_sync_mode_a_result_that_was_handed_out_is_never_computed_again(
    backend: str, shape: list[int], order: list[int], moment: int
) -> None:
    """Another process goes on from the file as it is at a random moment: what a crash there would leave."""

    async def main(folder: Path) -> None:
        program = Program(shape, order)
        program.stop_after = moment
        handed_out: set[str] = set()

        def crash() -> None:
            (folder / "crashed").mkdir()
            for name in ("threads.sqlite", "threads.sqlite-wal"):
                shutil.copy(folder / name, folder / "crashed" / name)
            with closing(sqlite3.connect(folder / "crashed" / "threads.sqlite")) as copied, copied:
                copied.execute("DELETE FROM checkpoint_owners")  # the process that it was copied from is alive
            handed_out.update(program.handed_out)

        program.stop = crash
        async with SqliteSaver.from_conn_string(str(folder / "threads.sqlite")) as saver:
            assert await program.run(saver, 1, durability="sync") == program.expected
        if not handed_out:
            return
        program.done.clear()
        program.stop_after = -1
        async with SqliteSaver.from_conn_string(str(folder / "crashed" / "threads.sqlite")) as saver:
            assert await program.run(saver, None, durability="sync") == program.expected
        assert not handed_out & set(program.done)
        assert max(program.done.values(), default=1) == 1

    with tempfile.TemporaryDirectory() as folder:
        anyio.run(main, Path(folder), backend=backend)
