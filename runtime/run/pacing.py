"""Whose turn it is to compute, where many runs share an event loop.

A loop goes round once everything that is ready has run. Ten thousand runs that become ready together, because a batch
was committed or a crowd arrived, would keep a heartbeat, a timeout or a health check waiting for seconds. So runs take
turns: what they compute in one round ends after ``ROUND_SECONDS``, and the others go on in the next ones.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from time import perf_counter
from typing import Final, Self

import anyio
from anyio.lowlevel import RunVar

from runtime.run.hosting import next_round

ROUND_SECONDS: Final = 0.01
"""How long runs may compute in one round of the loop."""

FEW: Final = 32
"""Runs that need not take turns: a superstep of each takes about as long as the above."""

RELEASED: Final = 16
"""Runs that waited and go on in a round, even if others use its time up: nobody waits for ever."""

BREATH: Final = 8
"""Supersteps that may pass before one of few runs lets others run, if none of its nodes waited and nobody reads it."""


class Pacer:
    """Lets the runs of one event loop take turns; a run enters it as a context while it lasts."""

    __slots__ = ("_began", "_next_round", "_now", "_told", "_waiting", "runs")

    def __init__(
        self,
        next_round: Callable[[Callable[[], None]], None] = next_round,
        now: Callable[[], float] = perf_counter,
    ) -> None:
        """Start with no run. ``next_round`` has the running loop call something in its next round.

        A pacer must not refer to its loop: anyio keeps it as long as that lives.
        """
        self.runs = 0
        """How many there are, be they at work or waiting for something."""
        self._next_round = next_round
        self._now = now
        self._waiting: deque[anyio.Event] = deque()
        self._told = False
        """Whether it will be told of the next round."""
        self._began = 0.0
        """When the round began, or the first run was seen in it."""

    def __enter__(self) -> Self:
        self.runs += 1
        return self

    def __exit__(self, *_: object) -> None:
        self.runs -= 1

    @property
    def crowded(self) -> bool:
        """Whether runs take turns: there are more than a few."""
        return self.runs > FEW

    @property
    def waiting(self) -> int:
        """How many runs wait for their turn."""
        return len(self._waiting)

    async def turn(self) -> None:
        """Return once a run may compute: at once while there are few."""
        if not self.crowded:
            return
        if not self._told:
            self._began = self._now()
            self._look()
        elif self._now() - self._began > ROUND_SECONDS:
            await self._wait()

    async def _wait(self) -> None:
        event = anyio.Event()
        self._waiting.append(event)
        try:
            await event.wait()
        finally:
            if not event.is_set():
                self._waiting.remove(event)

    def _look(self) -> None:
        self._told = True
        self._next_round(self._begin)

    def _begin(self) -> None:
        """Begin a round."""
        self._told = False
        self._began = self._now()
        for _ in range(min(RELEASED, len(self._waiting))):
            self._waiting.popleft().set()
        if self._waiting:
            self._look()


_HERE: Final[RunVar[Pacer]] = RunVar("actorgraph pacer")


def pacer() -> Pacer:
    """Return the pacer of the running event loop."""
    found = _HERE.get(None)
    if found is None:
        found = Pacer()
        _HERE.set(found)
    return found
