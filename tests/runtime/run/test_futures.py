"""Futures of task calls, for what handles several futures of ``concurrent.futures``."""

from __future__ import annotations

import concurrent.futures
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import anyio
import anyio.to_thread
import pytest

from runtime.func import entrypoint, task


@task
def double(number: int) -> int:
    """Double a number."""
    return number * 2


@task
def refuse(number: int) -> int:
    """Fail."""
    raise ValueError(number)


async def test_they_are_waited_for_together() -> None:
    @entrypoint()
    def flow(numbers: list[int]) -> list[int]:
        calls = [double(number) for number in numbers]
        done, left = concurrent.futures.wait(calls)
        assert (done, left) == (set(calls), set())
        return sorted(call.result() for call in concurrent.futures.as_completed(calls))

    assert await flow.ainvoke([1, 2, 3]) == [2, 4, 6]


async def test_they_call_back() -> None:
    @entrypoint()
    def flow(number: int) -> list[Any]:
        told: list[Any] = []
        calls: list[Any] = [double(number), refuse(number)]
        for call in calls:
            call.add_done_callback(lambda ended: told.append(ended.exception() or ended.result()))
        concurrent.futures.wait(calls)
        assert [(call.done(), call.running(), call.cancelled(), call.cancel()) for call in calls] == [
            (True, False, False, False)
        ] * 2
        return sorted(map(repr, told))

    assert await flow.ainvoke(3) == ["6", "ValueError(3)"]


async def test_a_call_at_work_is_running() -> None:
    @entrypoint()
    async def flow(number: int) -> tuple[bool, bool, int]:
        call = double(number)
        return call.running(), call.done(), await call

    assert await flow.ainvoke(3) == (True, False, 6)


async def test_the_first_failure_ends_the_wait() -> None:
    @entrypoint()
    def flow(number: int) -> Any:
        done, _ = concurrent.futures.wait([refuse(number)], return_when=concurrent.futures.FIRST_EXCEPTION)
        return next(iter(done)).result()

    with pytest.raises(ValueError, match="3"):
        await flow.ainvoke(3)


async def test_waiting_for_them_in_async_code_is_refused_as_it_would_never_end() -> None:
    @entrypoint()
    async def flow(number: int) -> int:
        call = double(number)
        with pytest.raises(RuntimeError, match="'double' has not ended; in async code await it"):
            concurrent.futures.wait([call])
        with pytest.raises(RuntimeError, match="'double' has not ended; in async code await it"):
            next(concurrent.futures.as_completed([call]))
        result = await call
        assert concurrent.futures.wait([call]).done == {call}
        return result

    assert await flow.ainvoke(3) == 6


async def test_what_ends_the_program_in_a_callback_ends_the_caller() -> None:
    @entrypoint()
    def flow(number: int) -> int:
        call = double(number)
        call.add_done_callback(lambda _ended: sys.exit(number))
        return call.result()

    with pytest.raises(SystemExit) as ended:
        await flow.ainvoke(3)
    assert ended.value.code == 3


def test_nor_does_it_end_the_event_loop_of_blocking_calls() -> None:
    @entrypoint()
    def flow(number: int) -> int:
        call = double(number)
        if number > 1:
            call.add_done_callback(lambda _ended: sys.exit(number))
        return call.result()

    with pytest.raises(SystemExit):
        flow.invoke(3)
    assert flow.invoke(1) == 2


async def test_one_that_has_ended_cannot_be_cancelled_wherever_that_is_asked() -> None:
    calls: list[Any] = []

    @entrypoint()
    async def flow(number: int) -> int:
        calls.append(double(number))
        return await calls[0]  # type: ignore[no-any-return]

    await flow.ainvoke(3)
    assert await anyio.to_thread.run_sync(calls[0].cancel) is False
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(calls[0].cancel).result() is False
