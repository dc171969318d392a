"""Time that passes only when everybody waits for it: hours cost nothing, and every order of events can be had."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import anyio
import pytest
from trio.testing import MockClock

T = TypeVar("T")

both_loops = pytest.mark.parametrize("loop", ["asyncio", "trio"])


class _Selector(selectors.SelectSelector):
    """Instead of waiting, moves the clock on."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[Any]:
        if timeout is None:
            return super().select(None)  # a worker thread is at work: no time passes in it
        ready = super().select(0)
        if not ready:
            self.now += timeout
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """An asyncio event loop in virtual time."""

    def __init__(self) -> None:
        self._virtual = _Selector()
        super().__init__(self._virtual)

    def time(self) -> float:
        return self._virtual.now


def run(loop: str, function: Callable[[], Awaitable[T]]) -> T:
    """Run an async function on one of the event loops, in virtual time."""
    options: dict[str, Any] = {"loop_factory": VirtualLoop}
    if loop == "trio":
        options = {"clock": MockClock(autojump_threshold=0)}
    return anyio.run(function, backend=loop, backend_options=options)
