"""Counts the steps of an event loop, of whatever task, and does something before some of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import Context
from typing import Any

import trio


class Steps:
    """What happens between two steps can happen between any two."""

    def __init__(self) -> None:
        self.taken = 0
        self._at: list[int] = []
        self._act: Callable[[], object] = int

    def arm(self, at: tuple[int, ...], act: Callable[[], object]) -> None:
        """Count from now on, and act before the steps with these numbers."""
        self.taken, self._at, self._act = 0, sorted(at, reverse=True), act

    def disarm(self) -> bool:
        """Stop acting; return whether there was a step to act before."""
        first = max(self._at, default=0)
        self._at = []
        return self.taken >= first

    def step(self) -> None:
        """Count one step."""
        self.taken += 1
        if self._at and self.taken == self._at[-1]:
            self._at.pop()
            self._act()


class CountingLoop(asyncio.SelectorEventLoop):
    """An asyncio event loop that counts every callback it runs: each step of a task is one."""

    def __init__(self, steps: Steps) -> None:
        super().__init__()
        self._steps = steps

    def call_soon(  # type: ignore[override]  # the types of arguments do not matter to who counts
        self, callback: Any, *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        return super().call_soon(self._counted(callback), *args, context=context)

    def call_soon_threadsafe(  # type: ignore[override]
        self, callback: Any, *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        return super().call_soon_threadsafe(self._counted(callback), *args, context=context)

    def _counted(self, callback: Callable[..., object]) -> Callable[..., None]:
        def counted(*args: object) -> None:
            self._steps.step()
            callback(*args)

        return counted


class CountingInstrument(trio.abc.Instrument):
    """The same for trio."""

    def __init__(self, steps: Steps) -> None:
        self._steps = steps

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        self._steps.step()


def counting_backend(name: str, steps: Steps) -> dict[str, Any]:
    """Return the backend options with which an event loop counts."""
    if name == "trio":
        return {"instruments": [CountingInstrument(steps)]}
    return {"loop_factory": lambda: CountingLoop(steps)}


def living_tasks() -> int:
    """Return how many tasks the running event loop has."""
    if trio.lowlevel.in_trio_run():
        return trio.lowlevel.current_statistics().tasks_living
    return len(asyncio.all_tasks())
