"""One run at a time per thread: turns in order, across event loops, and nobody waits for itself."""

from __future__ import annotations

import asyncio
import gc
import threading
from contextlib import AsyncExitStack
from functools import partial
from random import Random
from typing import Any

import anyio
import pytest
from anyio import to_thread
from hypothesis import given, settings
from hypothesis import strategies as st

from persistence.memory import InMemorySaver
from runtime.errors import ThreadBusyError
from runtime.run import claiming
from runtime.run.claiming import claimed
from tests.stories.graphs import CONFIG, Log, chain, thread

LOOPS = ["asyncio", "trio"]


class Saver:
    """Whatever a claim is made on."""


class Holding:
    """A run that holds a thread until it is told to let go."""

    def __init__(self, saver: Any, thread_id: str = "t") -> None:
        self.place = (saver, thread_id)
        self.entered = anyio.Event()
        self.leave = anyio.Event()

    async def __call__(self) -> None:
        async with claimed(*self.place, reject=False):
            self.entered.set()
            await self.leave.wait()


async def settle() -> None:
    """Let every task go as far as it can."""
    for _ in range(10):
        await anyio.sleep(0)


async def test_turns_come_in_order() -> None:
    saver, turns = Saver(), list[int]()

    async def run(number: int) -> None:
        async with claimed(saver, "t", reject=False):
            turns.append(number)
            await settle()
            turns.append(number)

    async with anyio.create_task_group() as group:
        for number in range(5):
            group.start_soon(run, number)
            await settle()
    assert turns == [number for number in range(5) for _ in range(2)]


async def test_other_threads_and_other_savers_do_not_wait() -> None:
    saver = Saver()
    with anyio.fail_after(5):
        async with AsyncExitStack() as stack:
            for place in ((saver, "t"), (saver, "u"), (Saver(), "t")):
                await stack.enter_async_context(claimed(*place, reject=False))


async def test_a_busy_thread_can_be_refused_and_is_free_afterwards() -> None:
    holding = Holding(Saver())
    async with anyio.create_task_group() as group:
        group.start_soon(holding)
        await holding.entered.wait()
        with pytest.raises(ThreadBusyError, match="'t' is held by another run"):
            async with claimed(*holding.place, reject=True):
                pass
        holding.leave.set()
    async with claimed(*holding.place, reject=True):
        pass


async def test_a_refused_run_leaves_no_trace_in_the_queue() -> None:
    holding = Holding(Saver())
    async with anyio.create_task_group() as group:
        group.start_soon(holding)
        await holding.entered.wait()
        for _ in range(3):
            with pytest.raises(ThreadBusyError):
                async with claimed(*holding.place, reject=True):
                    pass
        assert [len(queue) for queue in claiming._QUEUES[holding.place[0]].values()] == [1]
        holding.leave.set()


async def test_nothing_is_remembered_of_threads_that_nobody_holds() -> None:
    saver = Saver()
    for number in range(100):
        async with claimed(saver, str(number), reject=False):
            pass
    assert claiming._QUEUES[saver] == {}
    del saver
    gc.collect()
    assert not any(isinstance(saver, Saver) for saver in claiming._QUEUES)


# ---- inside and outside ----------------------------------------------------------------------------------------------


async def test_a_run_inside_the_threads_own_run_does_not_wait_for_it() -> None:
    saver = Saver()
    with anyio.fail_after(5):
        async with claimed(saver, "t", reject=True) as outer, claimed(saver, "t", reject=True) as inner:
            assert inner is outer
        async with claimed(saver, "t", reject=True) as after:
            assert after is not outer


async def test_tasks_and_worker_threads_of_a_run_are_inside_it() -> None:
    saver = Saver()

    async def inside() -> None:
        async with claimed(saver, "t", reject=True):
            pass

    with anyio.fail_after(5):
        async with claimed(saver, "t", reject=False):
            async with anyio.create_task_group() as group:
                group.start_soon(inside)
            await to_thread.run_sync(anyio.from_thread.run, inside)


async def test_a_run_two_levels_down_is_inside_too() -> None:
    saver = Saver()
    with anyio.fail_after(5):
        async with (
            claimed(saver, "t", reject=True) as outer,
            claimed(saver, "u", reject=True),
            claimed(saver, "t", reject=True) as inner,
        ):
            assert inner is outer


async def test_a_task_that_outlives_its_run_is_outside_of_the_next() -> None:
    saver, begun, met = Saver(), anyio.Event(), anyio.Event()
    order: list[str] = []

    async def outlives() -> None:
        begun.set()
        await met.wait()
        order.append("wants")
        async with claimed(saver, "t", reject=False):
            order.append("has")

    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            async with claimed(saver, "t", reject=False):
                group.start_soon(outlives)
                await begun.wait()
            async with claimed(saver, "t", reject=False):
                met.set()
                await settle()
                order.append("lets go")
    assert order == ["wants", "lets go", "has"]


# ---- cancels ---------------------------------------------------------------------------------------------------------


async def test_a_waiter_that_is_cancelled_leaves_the_queue() -> None:
    first, last = Holding(Saver()), Holding(None)
    last.place = first.place
    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(first)
            await first.entered.wait()
            with anyio.CancelScope() as scope:
                async with anyio.create_task_group() as waiting:
                    waiting.start_soon(Holding(*first.place))
                    await settle()
                    group.start_soon(last)
                    await settle()
                    scope.cancel()
            first.leave.set()
            await last.entered.wait()
            last.leave.set()


@pytest.mark.parametrize("backend", LOOPS)
@given(st.randoms(use_true_random=False), st.lists(st.integers(0, 6), min_size=1, max_size=12))
@settings(max_examples=60)
def test_whoever_is_cancelled_and_whenever_each_turn_is_exclusive_and_the_last_is_free(
    backend: str, random: Random, lives: list[int]
) -> None:
    """Runs are cancelled after so many steps: in the queue, at the moment of their turn, or while they hold."""
    saver = Saver()
    at_work: list[int] = []

    async def run(number: int) -> None:
        async with claimed(saver, "t", reject=False):
            at_work.append(number)
            assert len(at_work) == 1
            try:
                for _ in range(random.randint(0, 3)):
                    await anyio.sleep(0)
            finally:
                at_work.remove(number)

    async def lived(number: int, steps: int) -> None:
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as group:
                group.start_soon(run, number)
                for _ in range(steps):
                    await anyio.sleep(0)
                scope.cancel()

    async def main() -> None:
        async with anyio.create_task_group() as group:
            for number, steps in enumerate(lives):
                group.start_soon(lived, number, steps)
        async with claimed(saver, "t", reject=True):
            pass

    anyio.run(main, backend=backend)
    assert claiming._QUEUES.get(saver, {}) == {}


# ---- several event loops ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("one", "other"), [(one, other) for one in LOOPS for other in LOOPS])
def test_loops_in_two_threads_take_turns_and_never_wait_for_each_other(one: str, other: str) -> None:
    """Each loop keeps handing on threads that the other waits for."""
    saver, places = Saver(), ("t", "u", "v")
    at_work: dict[str, list[str]] = {place: [] for place in places}
    done: list[str] = []
    trouble: list[str] = []

    async def run(loop: str, place: str) -> None:
        for _ in range(20):
            async with claimed(saver, place, reject=False):
                at_work[place].append(loop)
                await anyio.sleep(0)
                if at_work[place] != [loop]:
                    trouble.append(f"{at_work[place]} at once")
                at_work[place].remove(loop)
        done.append(place)

    async def main(loop: str) -> None:
        async with anyio.create_task_group() as group:
            for place in places:
                group.start_soon(run, loop, place)

    threads = [
        threading.Thread(target=anyio.run, args=(main, f"{name} {backend}"), kwargs={"backend": backend}, daemon=True)
        for name, backend in (("one", one), ("other", other))
    ]
    for worker in threads:
        worker.start()
    for worker in threads:
        worker.join(10)
    assert not any(worker.is_alive() for worker in threads)
    assert (len(done), trouble) == (6, [])


@pytest.mark.parametrize("backend", LOOPS)
async def test_a_waiter_whose_loop_is_gone_is_passed_over(backend: str) -> None:
    saver = Saver()
    holding, last = Holding(saver), Holding(saver)

    async def never_ends() -> None:
        context = claimed(saver, "t", reject=False)
        if backend == "asyncio":
            forgotten.append(asyncio.ensure_future(context.__aenter__()))
            await settle()
        else:
            claiming._QUEUES[saver]["t"].append(gone := claiming.Claim())
            gone.event = anyio.Event()

    forgotten: list[Any] = []
    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(holding)
            await holding.entered.wait()
            if backend == "asyncio":
                loop = asyncio.new_event_loop()
                await to_thread.run_sync(loop.run_until_complete, never_ends())
                loop.close()
            else:
                await to_thread.run_sync(lambda: anyio.run(never_ends, backend=backend))
            group.start_soon(last)
            await settle()
            holding.leave.set()
            await last.entered.wait()
            last.leave.set()
    for task in forgotten:
        task._log_destroy_pending = False


async def test_runs_of_a_graph_on_two_loops_lose_no_update() -> None:
    saver = InMemorySaver()

    async def append(state: Any) -> dict[str, Any]:
        await anyio.sleep(0)
        return {"log": [str(len(state["log"]))]}

    graph = chain(("append", append)).compile(saver)

    async def runs() -> None:
        for _ in range(10):
            await graph.ainvoke({}, CONFIG)

    with anyio.fail_after(15):
        async with anyio.create_task_group() as group:
            for backend in LOOPS:
                group.start_soon(to_thread.run_sync, partial(anyio.run, runs, backend=backend))
            group.start_soon(runs)
    assert (await graph.aget_state(CONFIG)).values["log"] == [str(number) for number in range(30)]


# ---- seen from a graph -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["async", "sync"])
async def test_a_node_may_run_and_edit_its_own_thread(kind: str) -> None:
    saver = InMemorySaver()
    inner = chain("node", schema=Log).compile(saver, multitask_strategy="reject")

    async def node(_state: Any) -> dict[str, Any]:
        await inner.ainvoke({}, CONFIG)
        await inner.aupdate_state(CONFIG, {"a": 1}, "node")
        return {"a": (await inner.aget_state(CONFIG)).values["a"]}

    def sync_node(_state: Any) -> dict[str, Any]:
        inner.invoke({}, CONFIG)
        inner.update_state(CONFIG, {"a": 1}, "node")
        return {"a": inner.get_state(CONFIG).values["a"]}

    graph = chain(("node", node if kind == "async" else sync_node)).compile(saver, multitask_strategy="reject")
    with anyio.fail_after(10):
        assert (await graph.ainvoke({}, CONFIG))["a"] == 1


async def test_a_stream_that_is_left_frees_its_thread() -> None:
    graph = chain("one", "two").compile(InMemorySaver(), multitask_strategy="reject")
    async with graph.astream({}, thread("s")) as stream:
        await anext(stream)
    assert (await graph.ainvoke({}, thread("s")))["log"][-2:] == ["one", "two"]
