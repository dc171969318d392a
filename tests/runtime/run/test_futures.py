"""Futures of task calls, for what handles several futures of ``concurrent.futures``."""

from __future__ import annotations

import concurrent.futures
from typing import Any

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
