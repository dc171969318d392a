"""How much memory a process takes and how late its event loop is, while it works."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import anyio

MIB = 2**20
TICK = 0.01
"""Seconds between two looks."""


def resident(what: str = "VmRSS") -> int:
    """Return the bytes of memory that the process has now, or with ``VmHWM`` the most that it ever had."""
    for line in Path("/proc/self/status").read_text("ascii").splitlines():
        if line.startswith(f"{what}:"):
            return int(line.split()[1]) * 1024
    raise AssertionError(what)


@dataclass
class Measures:
    """What was seen."""

    before: int = field(default_factory=resident)
    lags: list[float] = field(default_factory=list)
    """By how many seconds each tick came late."""

    @property
    def grown(self) -> int:
        """The bytes by which the process grew, at most."""
        return resident("VmHWM") - self.before

    def lag(self, share: float) -> float:
        """Return the lag in milliseconds that this share of the ticks did not exceed."""
        lags = sorted(self.lags) or [0.0]
        return lags[min(int(len(lags) * share), len(lags) - 1)] * 1000


@asynccontextmanager
async def measuring() -> AsyncIterator[Measures]:
    """Measure what is done inside."""
    measures = Measures()

    async def tick() -> None:
        while True:
            due = anyio.current_time() + TICK
            await anyio.sleep_until(due)
            measures.lags.append(anyio.current_time() - due)

    async with anyio.create_task_group() as group:
        group.start_soon(tick)
        yield measures
        group.cancel_scope.cancel()
