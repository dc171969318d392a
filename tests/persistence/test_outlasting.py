"""Waiting to the end: whoever cancels the waiter, it waits, and it is told of the cancel afterwards."""

from __future__ import annotations

import asyncio

import anyio
import anyio.lowlevel
import pytest

from persistence.outlasting import outlast

pytestmark = pytest.mark.anyio


async def test_a_cancelled_scope_waits_and_is_left_as_cancelled() -> None:
    ended, reached = anyio.Event(), list[str]()

    async def end() -> None:
        await anyio.lowlevel.checkpoint()
        reached.append("end")
        ended.set()

    async with anyio.create_task_group() as group:
        with anyio.CancelScope() as scope:
            scope.cancel()
            group.start_soon(end)
            await outlast(ended.wait)
            reached.append("behind")
            await anyio.lowlevel.checkpoint()
            reached.append("never")
    assert reached == ["end", "behind"]
    assert scope.cancelled_caught


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("times", [1, 2, 5])
async def test_a_cancelled_task_waits_and_ends_as_cancelled(times: int) -> None:
    """``Task.cancel`` pierces shields, once a call."""
    ended, begun = asyncio.Event(), asyncio.Event()

    async def wait() -> None:
        begun.set()
        await ended.wait()

    task = asyncio.create_task(outlast(wait))
    await begun.wait()
    for _ in range(times):
        task.cancel()
        await asyncio.sleep(0)
        assert not task.done()
    ended.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert task.cancelled()


async def test_what_it_waited_for_may_fail() -> None:
    async def fail() -> None:
        message = "no"
        raise OSError(message)

    with pytest.raises(OSError, match="no"):
        await outlast(fail)
