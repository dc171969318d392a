"""Taking turns: few runs never wait, many share the rounds of their loop, and whoever began first goes first."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Coroutine
from contextlib import ExitStack
from typing import Any

import anyio
from anyio.lowlevel import current_token

from runtime.run.pacing import FEW, RELEASED, ROUND_SECONDS, Pacer, pacer

IN_TIME = 10
"""Turns that fit into a round, where each takes a tenth of it."""


class Clock:
    """Each look at it takes a part of a round."""

    def __init__(self, step: float = ROUND_SECONDS / IN_TIME) -> None:
        self.time, self.step = 0.0, step

    def __call__(self) -> float:
        """Return the time."""
        self.time += self.step
        return self.time


class Rounds:
    """An event loop's rounds, by hand."""

    def __init__(self) -> None:
        self.called: list[Callable[[], None]] = []

    def __call__(self, call: Callable[[], None]) -> None:
        """Note what is to be called in the next round."""
        self.called.append(call)

    def next(self) -> None:
        """Begin the next round."""
        called, self.called = self.called, []
        for call in called:
            call()


def at_once(waits: Coroutine[Any, Any, None]) -> bool:
    """Run a coroutine up to where it waits; return whether it has ended without."""
    try:
        waits.send(None)
    except StopIteration:
        return True
    waits.close()
    return False


def crowded() -> tuple[Pacer, Rounds]:
    """Return a pacer with many runs, and its rounds."""
    rounds = Rounds()
    pacer = Pacer(rounds, Clock())
    pacer.runs = FEW + 1
    return pacer, rounds


def test_few_never_wait() -> None:
    rounds = Rounds()
    pacer = Pacer(rounds, Clock(ROUND_SECONDS * 2))
    pacer.runs = FEW
    assert all(at_once(pacer.turn()) for _ in range(1_000))
    assert not rounds.called


async def test_a_round_lets_pass_what_fits_into_it_and_the_next_ones_the_others() -> None:
    pacer, rounds = crowded()
    passed: list[int] = []

    async def run(number: int) -> None:
        await pacer.turn()
        passed.append(number)

    async with anyio.create_task_group() as group:
        for number in range(100):
            group.start_soon(run, number)
            await anyio.wait_all_tasks_blocked()
        assert passed == [*range(len(passed))]
        assert len(passed) in (IN_TIME, IN_TIME + 1)
        while pacer.waiting:
            before = len(passed)
            rounds.next()
            await anyio.wait_all_tasks_blocked()
            assert sorted(passed[before:]) == [*range(before, min(before + RELEASED, 100))]
    assert sorted(passed) == [*range(100)]


async def test_who_leaves_takes_no_turn() -> None:
    pacer, rounds = crowded()
    passed: list[int] = []
    scopes = [anyio.CancelScope() for _ in range(80)]

    async def run(number: int) -> None:
        with scopes[number]:
            await pacer.turn()
            passed.append(number)

    async with anyio.create_task_group() as group:
        for number in range(80):
            group.start_soon(run, number)
            await anyio.wait_all_tasks_blocked()
        for scope in scopes[len(passed) : 60]:
            scope.cancel()
        await anyio.wait_all_tasks_blocked()
        before, left = len(passed), pacer.waiting
        assert left == 20
        rounds.next()
        await anyio.wait_all_tasks_blocked()
        assert len(passed) - before == RELEASED
        rounds.next()
    assert sorted(passed[before:]) == [*range(60, 80)]


def test_an_event_loop_that_has_ended_is_let_go(anyio_backend_name: str) -> None:
    async def crowd() -> weakref.ref[Any]:
        async with anyio.create_task_group() as group:
            with ExitStack() as runs:
                for _ in range(FEW + 1):
                    group.start_soon(runs.enter_context(pacer()).turn)
                await anyio.wait_all_tasks_blocked()
        return weakref.ref(current_token().native_token)

    token = anyio.run(crowd, backend=anyio_backend_name)
    gc.collect()
    assert token() is None
