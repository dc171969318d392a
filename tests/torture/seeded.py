"""Event loops whose order of events follows from a seed: in virtual time, and whoever is ready goes on by chance."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import anyio
import pytest
import trio
from trio.testing import MockClock

from tests.crash.virtual_time import VirtualLoop

T = TypeVar("T")

LOOPS = ("asyncio", "trio")


class SeededLoop(VirtualLoop):
    """An asyncio event loop that shuffles, turn by turn, which of the tasks that are ready comes first.

    Only steps of tasks change places among each other. All else stays where it is: that callbacks run in the order in
    which they were registered is a promise of asyncio, that tasks do is none.
    """

    def __init__(self, chance: random.Random, trace: list[int]) -> None:
        super().__init__()
        self._chance = chance
        self._trace = trace
        self._numbers: WeakKeyDictionary[asyncio.Task[Any], int] = WeakKeyDictionary()
        self._born = count()
        self.set_task_factory(self._numbered)

    def _numbered(self, loop: asyncio.AbstractEventLoop, coroutine: Any, **how: Any) -> Any:
        task = asyncio.Task(coroutine, loop=loop, **how)
        self._numbers[task] = next(self._born)
        return task

    def _run_once(self) -> None:
        ready: Any = self._ready  # type: ignore[attr-defined]  # the queue has no public name
        places = [(at, task) for at, handle in enumerate(ready) if (task := _stepped(handle)) is not None]
        # Cancelling visits a set of tasks, so their order is first made one that does not hang on addresses.
        steps = sorted((self._numbers[task], ready[at]) for at, task in places)
        self._chance.shuffle(steps)
        for (at, _task), (number, handle) in zip(places, steps, strict=True):
            ready[at] = handle
            self._trace.append(number)
        super()._run_once()  # type: ignore[misc]  # nor has a turn


def _stepped(handle: asyncio.Handle) -> asyncio.Task[Any] | None:
    """Return the task that a handle carries on, if it does."""
    owner = getattr(handle._callback, "__self__", None)  # type: ignore[attr-defined]
    return owner if isinstance(owner, asyncio.Task) else None


class _Steps(trio.abc.Instrument):
    """Notes whose turn it was, as numbers from the order of birth."""

    def __init__(self, trace: list[int]) -> None:
        self._trace = trace
        self._first: int | None = None

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        number: int = task._counter
        self._first = number if self._first is None else self._first
        self._trace.append(number - self._first)


@contextmanager
def _trio_seeded(chance: random.Random) -> Iterator[None]:
    """Let trio shuffle by a seed, as its own plugins for tests do."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("trio._core._run._ALLOW_DETERMINISTIC_SCHEDULING", True)
        patch.setattr("trio._core._run._r", chance)
        yield


def run_seeded(loop: str, seed: int, function: Callable[[], Awaitable[T]], trace: list[int] | None = None) -> T:
    """Run an async function in virtual time, in an order of steps that follows from the seed.

    ``trace`` gets the number of each task that takes a step. The function must not use threads: they know no seed.
    """
    chance, steps = random.Random(seed), [] if trace is None else trace
    if loop == "trio":
        options: dict[str, Any] = {"clock": MockClock(autojump_threshold=0), "instruments": [_Steps(steps)]}
        with _trio_seeded(chance):
            return anyio.run(function, backend=loop, backend_options=options)
    options = {"loop_factory": lambda: SeededLoop(chance, steps)}
    return anyio.run(function, backend=loop, backend_options=options)
