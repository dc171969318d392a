"""Work on a driver's own loop: what must have ended before anything follows, has."""

from __future__ import annotations

import asyncio

import pytest

from persistence.writer.crossing import Crossing

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_what_is_to_be_finished_is_done_once_however_often_its_caller_is_cancelled() -> None:
    """``Task.cancel`` pierces shields, once a call."""
    begun, may_end, done = asyncio.Event(), asyncio.Event(), list[str]()

    async def work() -> None:
        begun.set()
        await may_end.wait()
        done.append("once")

    task = asyncio.create_task(Crossing().finish(work))
    await begun.wait()
    for _ in range(5):
        task.cancel()
        await asyncio.sleep(0)
        assert not task.done()
    may_end.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert done == ["once"]


async def test_what_goes_wrong_at_the_end_is_told() -> None:
    crossing = Crossing()
    crossing.open()

    async def work() -> None:
        message = "no"
        raise OSError(message)

    try:
        with pytest.raises(OSError, match="no"):
            await crossing.finish(work)
    finally:
        crossing.close()
