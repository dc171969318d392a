"""The bridge: asyncio coroutines awaited from trio."""

from __future__ import annotations

import asyncio
import threading

import anyio
import pytest
import trio

from persistence.writer.bridge import BRIDGE, Bridge, on_trio

pytestmark = pytest.mark.anyio
on_trio_only = pytest.mark.parametrize("anyio_backend", ["trio"])


@pytest.fixture
def bridge() -> Bridge:
    return Bridge()


async def double(number: int) -> int:
    await asyncio.sleep(0)
    return 2 * number


async def fail() -> None:
    message = "from the other side"
    raise KeyError(message)


async def test_it_knows_the_loop(anyio_backend_name: str) -> None:
    assert on_trio() == (anyio_backend_name == "trio")


def test_no_loop_is_not_trio() -> None:
    assert not on_trio()


@on_trio_only
async def test_results_and_errors_cross(bridge: Bridge) -> None:
    bridge.acquire()
    try:
        assert await bridge.call(double, 4) == 8
        with pytest.raises(KeyError, match="from the other side"):
            await bridge.call(fail)
    finally:
        bridge.release()


@on_trio_only
async def test_many_cross_at_once(bridge: Bridge) -> None:
    found: list[int] = []

    async def cross(number: int) -> None:
        found.append(await bridge.call(double, number))

    bridge.acquire()
    try:
        async with anyio.create_task_group() as nursery:
            for number in range(50):
                nursery.start_soon(cross, number)
    finally:
        bridge.release()
    assert sorted(found) == [2 * number for number in range(50)]


@on_trio_only
async def test_a_cancel_gives_up_the_wait_not_the_work(bridge: Bridge) -> None:
    started, released, finished = threading.Event(), threading.Event(), threading.Event()

    async def work() -> None:
        started.set()
        while not released.is_set():
            await asyncio.sleep(0.001)
        finished.set()

    bridge.acquire()
    try:
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as nursery:
                nursery.start_soon(bridge.call, work)
                await anyio.to_thread.run_sync(started.wait)
                scope.cancel()
        assert scope.cancel_called
        assert not finished.is_set()
        released.set()
        await anyio.to_thread.run_sync(finished.wait)
        assert await bridge.call(double, 1) == 2
    finally:
        bridge.release()


@on_trio_only
async def test_the_thread_lives_as_long_as_somebody_uses_it(bridge: Bridge) -> None:
    def alive() -> bool:
        return any(thread.name == "actorgraph asyncio bridge" for thread in threading.enumerate())

    before = alive()
    bridge.acquire()
    bridge.acquire()
    assert alive()
    bridge.release()
    assert await bridge.call(double, 1) == 2
    bridge.release()
    assert bridge.users == 0
    assert alive() == before
    with pytest.raises(RuntimeError, match="acquire"):
        await bridge.call(double, 1)


def test_an_answer_for_a_loop_that_has_ended_is_dropped(bridge: Bridge) -> None:
    released, finished = threading.Event(), threading.Event()

    async def work() -> None:
        while not released.is_set():
            await asyncio.sleep(0.001)
        asyncio.get_running_loop().call_soon(finished.set)

    async def leave() -> None:
        with trio.move_on_after(0.01):
            await bridge.call(work)

    bridge.acquire()
    trio.run(leave)
    released.set()
    assert finished.wait(5)
    bridge.release()
    assert BRIDGE.users == 0
