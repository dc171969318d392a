"""Leaving a stream by any door: nodes are cancelled, finished work is saved, nothing is left running."""

import gc
from collections.abc import AsyncIterator
from typing import Any

import anyio
import pytest

from runtime.errors import GraphDrained
from runtime.runtime import RunControl
from runtime.types import Durability
from tests.stories.graphs import CONFIG, chain, fan

pytestmark = pytest.mark.anyio


class Slow:
    """``fast | slow``: slow runs until it is cancelled, and notes how it ended."""

    def __init__(self) -> None:
        self.started = anyio.Event()
        self.ended: list[str] = []
        self.cleanups = 0

    async def slow(self, _state: Any) -> dict[str, Any]:
        self.started.set()
        try:
            await anyio.sleep_forever()
        except anyio.get_cancelled_exc_class():
            self.ended.append("cancelled")
            raise
        finally:
            self.ended.append("cleaned up")
        return {"log": ["slow finished"]}

    async def fast(self, _state: Any) -> dict[str, Any]:
        await self.started.wait()
        return {"log": ["fast"]}

    def compile(self, saver: Any) -> Any:
        return fan(("fast", self.fast), ("slow", self.slow)).compile(checkpointer=saver)

    async def check(self, graph: Any) -> None:
        """Slow was cancelled, fast was saved, and the thread can go on at once."""
        assert self.ended == ["cancelled", "cleaned up"]
        snapshot = await graph.aget_state(CONFIG)
        assert snapshot.next == ("slow",)
        assert snapshot.values["log"] == ["st", "fast"]


async def until_fast(stream: AsyncIterator[Any]) -> None:
    """Read a stream until fast has finished."""
    async for chunk in stream:
        if "fast" in chunk:
            return


every_mode = pytest.mark.parametrize("durability", ["sync", "async", "exit"])


@every_mode
async def test_aclose_returns_when_every_node_has_stopped_and_work_is_saved(saver: Any, durability: Durability) -> None:
    story = Slow()
    graph = story.compile(saver)
    stream = graph.astream({}, CONFIG, durability=durability)
    with anyio.fail_after(10):
        await until_fast(stream)
        await stream.aclose()
    await story.check(graph)


@every_mode
async def test_a_context_managed_stream_ends_with_its_block(saver: Any, durability: Durability) -> None:
    story = Slow()
    graph = story.compile(saver)
    with anyio.fail_after(10):
        async with graph.astream({}, CONFIG, durability=durability) as stream:
            await until_fast(stream)
    await story.check(graph)


async def test_break_alone_ends_the_nodes_promptly(saver: Any) -> None:
    story = Slow()
    graph = story.compile(saver)
    with anyio.fail_after(10):
        async for chunk in graph.astream({}, CONFIG):
            if "fast" in chunk:
                break
        gc.collect()
        while len(story.ended) < 2:
            await anyio.sleep(0.001)
        drained = RunControl()
        drained.request_drain()
        with pytest.raises(GraphDrained):  # waits for the run that ends, then goes no further
            await graph.ainvoke(None, CONFIG, control=drained)
    await story.check(graph)


async def test_an_error_in_the_consumers_block_ends_the_run_and_arrives_unchanged(saver: Any) -> None:
    story = Slow()
    graph = story.compile(saver)
    error = ZeroDivisionError("mine")
    with anyio.fail_after(10), pytest.raises(ZeroDivisionError) as caught:
        async with graph.astream({}, CONFIG) as stream:
            await until_fast(stream)
            raise error
    assert caught.value is error
    await story.check(graph)


@every_mode
async def test_a_cancel_scope_around_a_stream_ends_the_run(saver: Any, durability: Durability) -> None:
    story = Slow()
    graph = story.compile(saver)
    with anyio.fail_after(10):
        with anyio.CancelScope() as scope:
            async for chunk in graph.astream({}, CONFIG, durability=durability):
                if "fast" in chunk:
                    scope.cancel()
        await story.check(graph)


@every_mode
async def test_a_cancel_scope_around_a_call_ends_the_run(saver: Any, durability: Durability) -> None:
    story = Slow()
    graph = story.compile(saver)
    with anyio.fail_after(10):
        async with anyio.create_task_group() as group:

            async def stop() -> None:
                await story.started.wait()
                await anyio.wait_all_tasks_blocked()
                group.cancel_scope.cancel()

            group.start_soon(stop)
            await graph.ainvoke({}, CONFIG, durability=durability)
        await story.check(graph)


async def test_a_timeout_around_a_call_ends_the_run(saver: Any) -> None:
    story = Slow()
    graph = story.compile(saver)
    with anyio.move_on_after(0.2) as scope:
        await graph.ainvoke({}, CONFIG)
    assert scope.cancelled_caught
    await story.check(graph)


async def test_a_timeout_while_reading_a_stream_leaves_it_usable_or_ended(saver: Any) -> None:
    story = Slow()
    graph = story.compile(saver)
    stream = graph.astream({}, CONFIG)
    with anyio.fail_after(10):
        await until_fast(stream)
        with anyio.move_on_after(0.01):
            await stream.__anext__()
        await stream.aclose()
    await story.check(graph)


# Steps from different tasks


async def test_a_stream_may_be_read_and_closed_by_different_tasks(saver: Any) -> None:
    story = Slow()
    graph = story.compile(saver)
    stream = graph.astream({}, CONFIG)
    with anyio.fail_after(10):
        async with anyio.create_task_group() as group:
            group.start_soon(stream.__anext__)
        async with anyio.create_task_group() as group:
            group.start_soon(until_fast, stream)
        async with anyio.create_task_group() as group:
            group.start_soon(stream.aclose)
    await story.check(graph)


async def test_a_stream_read_to_its_end_step_by_step_from_many_tasks() -> None:
    stream = chain("x", "y", "z").compile().astream({})
    seen: list[Any] = []

    async def step() -> None:
        seen.append(await stream.__anext__())

    with anyio.fail_after(10):
        for _ in range(3):
            async with anyio.create_task_group() as group:
                group.start_soon(step)
        with pytest.raises(StopAsyncIteration):
            await stream.__anext__()
    assert [next(iter(one)) for one in seen] == ["x", "y", "z"]


async def test_a_stream_that_is_never_read_starts_nothing(saver: Any) -> None:
    graph = chain("x").compile(checkpointer=saver)
    stream = graph.astream({}, CONFIG)
    await anyio.wait_all_tasks_blocked()
    await stream.aclose()
    assert (await graph.aget_state(CONFIG)).values == {}


async def test_an_abandoned_stream_makes_no_noise(saver: Any) -> None:
    story = Slow()
    graph = story.compile(saver)

    async def abandon() -> None:
        await until_fast(graph.astream({}, CONFIG))

    with anyio.fail_after(10):
        await abandon()
        gc.collect()
        while len(story.ended) < 2:
            await anyio.sleep(0.001)
    assert story.ended == ["cancelled", "cleaned up"]


async def test_closing_is_idempotent_and_a_closed_stream_is_at_its_end(saver: Any) -> None:
    story = Slow()
    graph = story.compile(saver)
    stream = graph.astream({}, CONFIG)
    with anyio.fail_after(10):
        await until_fast(stream)
        await stream.aclose()
        await stream.aclose()
        with pytest.raises(StopAsyncIteration):
            await stream.__anext__()
    await story.check(graph)


async def test_a_finished_stream_can_be_closed() -> None:
    stream = chain("x").compile().astream({})
    assert [one async for one in stream] == [{"x": {"log": ["x"]}}]
    await stream.aclose()


# Cancellation is handled once


async def test_cleanup_code_that_awaits_runs_a_bounded_number_of_times(saver: Any) -> None:
    rounds = 0
    started = anyio.Event()

    async def stubborn(_state: Any) -> None:
        nonlocal rounds
        started.set()
        while rounds < 1000:
            try:
                await anyio.sleep_forever()
            except anyio.get_cancelled_exc_class():
                rounds += 1
                with anyio.CancelScope(shield=True):
                    await anyio.sleep(0)
                raise

    graph = chain(("stubborn", stubborn)).compile(checkpointer=saver)
    with anyio.fail_after(10):
        async with anyio.create_task_group() as group:
            group.start_soon(lambda: graph.ainvoke({}, CONFIG))
            await started.wait()
            group.cancel_scope.cancel()
            group.cancel_scope.cancel()
    assert rounds == 1


async def test_cancelling_while_cancelling_ends_once(saver: Any) -> None:
    started = anyio.Event()
    cleaning = anyio.Event()
    ended: list[str] = []

    async def n(_state: Any) -> None:
        started.set()
        try:
            await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                cleaning.set()
                for _ in range(5):
                    await anyio.sleep(0)
            ended.append("once")

    graph = chain(("n", n)).compile(checkpointer=saver)
    with anyio.fail_after(10), anyio.CancelScope() as outer:
        async with anyio.create_task_group() as group:

            async def cancel_twice() -> None:
                await started.wait()
                group.cancel_scope.cancel()
                with anyio.CancelScope(shield=True):
                    await cleaning.wait()
                outer.cancel()

            group.start_soon(cancel_twice)
            await graph.ainvoke({}, CONFIG)
    assert ended == ["once"]


async def test_a_slow_consumer_gets_everything_in_order() -> None:
    names = [f"n{number:03}" for number in range(60)]
    seen: list[str] = []
    with anyio.fail_after(20):
        async for chunk in chain(*names).compile().astream({}):
            await anyio.sleep(0)
            seen.extend(chunk)
    assert seen == names
