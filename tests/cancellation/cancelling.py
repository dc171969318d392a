"""Cancels calls before every step of the event loop, one call after the other, and looks at what is left of each."""

from __future__ import annotations

import asyncio
import sqlite3
import sys
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import ExitStack, asynccontextmanager, closing, suppress
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any, Protocol

import anyio
import anyio.lowlevel
import pytest

from persistence.memory import InMemorySaver
from persistence.sqlite import SqliteSaver
from persistence.writer.limits import Limits
from persistence.writer.saver import GroupCommitSaver
from tests.cancellation.stepping import Steps, counting_backend, living_tasks
from tests.cancellation.working import Work
from tests.crash.slow_backend import SlowBackend
from tests.crash.third_party import PlainSaver

NARROW = Limits(channel_items=1, batch_items=1)

every_saver = pytest.mark.parametrize("kind", ["memory", "sqlite", "narrow", "plain"])
"""Durable at once; behind a channel; behind one with room for a single unit; a third party's, asked call by call."""

every_mode = pytest.mark.parametrize("durability", ["sync", "async", "exit"])

CLEANING = 100
"""Steps, of all tasks together, after which a cancelled call is taken to spin instead of to end."""


@asynccontextmanager
async def opened(kind: str, folder: Path) -> AsyncIterator[Any]:
    """Open a saver."""
    if kind == "sqlite":
        async with SqliteSaver(folder / "threads.sqlite", synchronous="NORMAL") as saver:
            yield saver
    elif kind == "narrow":
        async with GroupCommitSaver(SlowBackend(0), limits=NARROW) as saver:
            yield saver
    else:
        yield PlainSaver() if kind == "plain" else InMemorySaver()


@dataclass(frozen=True)
class Way:
    """A way of cancelling."""

    name: str
    loop: str
    native: bool = False
    """Cancel asyncio's task instead of a scope around the call, as ``asyncio.timeout`` does; shields do not stop it."""
    times: int = 1
    """How often, one step after the other."""

    async def cancel(self, steps: Steps, at: int, call: Callable[[], Any]) -> bool:
        """Make a call and cancel it before a step; return whether it was still on then."""
        moments = tuple(range(at, at + self.times))
        if self.native:
            task, told = asyncio.ensure_future(call()), list[bool]()
            steps.arm(moments, lambda: told.append(task.cancel()))
            with suppress(asyncio.CancelledError):
                await task
            assert task.cancelled() == any(told), f"cancelled before step {at}: it ended as if nobody had"
            return steps.disarm()
        with ExitStack() as around:
            scopes = [around.enter_context(anyio.CancelScope()) for _ in moments]
            steps.arm(moments, lambda: scopes.pop().cancel())  # from the innermost outwards
            try:
                await call()
            finally:
                acted = steps.disarm()
        return acted


WAYS = [Way("asyncio", "asyncio"), Way("task", "asyncio", native=True), Way("trio", "trio")]

TWICE = [replace(way, name=f"{way.name} twice", times=2) for way in WAYS]
"""A cancel while the first is still being seen to."""

every_way = pytest.mark.parametrize("way", WAYS, ids=lambda way: way.name)


class Trial(Protocol):
    """A call to be cancelled again and again, each time on a thread of its own."""

    work: Work

    async def prepare(self, config: Any) -> None:
        """Do, on a fresh thread, what comes before the call."""
        ...

    async def call(self) -> object:
        """Be cancelled."""
        ...

    async def check(self, where: str) -> None:
        """Look at what is left, and go on from there."""
        ...


def sweep(way: Way, kind: str, folder: Path, make: Callable[[Any], Trial]) -> int:
    """Cancel before the first step, the second, and so on until a call gets through; return how many it took."""
    return visit(way, kind, folder, make, lambda _steps: count(1))


def visit(
    way: Way, kind: str, folder: Path, make: Callable[[Any], Trial], moments: Callable[[int], Iterable[int]]
) -> int:
    """Count a call's steps, then cancel others before each of the moments chosen, as long as there are such steps.

    Return how many steps the last call took.
    """
    steps = Steps()

    async def main() -> int:
        async with opened(kind, folder) as saver:
            living, trial = living_tasks(), make(saver)
            await trial.prepare({"configurable": {"thread_id": "whole"}})
            assert not await way.cancel(steps, sys.maxsize - 1, trial.call)
            for at in moments(steps.taken):
                await trial.prepare({"configurable": {"thread_id": f"{at}"}})
                cancelled = await way.cancel(steps, at, trial.call)
                taken, where = steps.taken, f"cancelled before step {at}; returned: {dict(trial.work.returned)}"
                if not cancelled:
                    break
                assert taken - at < CLEANING, where
                check_released(saver, trial.work, where)
                await trial.check(where)
                await check_tasks(living, where)
            return steps.taken

    return anyio.run(main, backend=way.loop, backend_options=counting_backend(way.loop, steps))


def check_released(saver: Any, work: Work, where: str) -> None:
    """No node runs any more, nothing is on its way to the database, and others may write to it at once."""
    assert work.running == 0, where
    if isinstance(saver, GroupCommitSaver):
        assert saver._actor is not None
        assert saver._actor._latest == {}, where
        assert saver.statistics().waiting_senders == 0, where
    if isinstance(saver, SqliteSaver):
        with closing(sqlite3.connect(saver._backend._path, timeout=0)) as other:  # type: ignore[attr-defined]
            other.execute("BEGIN IMMEDIATE")


async def check_tasks(living: int, where: str) -> None:
    """Every task that the call started is gone, after the turns that a finished task takes to be forgotten."""
    for _ in range(10):
        if living_tasks() == living:
            return
        await anyio.lowlevel.checkpoint()
    assert living_tasks() == living, where


def without_a_hole(history: list[int]) -> bool:
    """Whether the steps run from the newest down to the input."""
    return history == list(range(len(history) - 2, -2, -1))


_OUTCOMES: dict[tuple[Callable[[Work], Any], int], Any] = {}
"""What graphs come to, by what builds them and how many calls it takes."""


async def outcome(build: Callable[[Work], Any], *given: Any) -> Any:
    """Return what a graph comes to if nobody cancels it."""
    key = build, len(given)
    if key not in _OUTCOMES:
        graph = build(Work()).compile(checkpointer=InMemorySaver())
        for one in given:
            _OUTCOMES[key] = await graph.ainvoke(one, {"configurable": {"thread_id": "t"}})
    return _OUTCOMES[key]
