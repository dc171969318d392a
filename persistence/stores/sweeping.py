"""The sweeper: deletes what has expired, again and again. Reads leave it out anyway; sweeping gives the room back."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Final

import anyio
from anyio.abc import TaskGroup

from persistence.errors import PersistenceClosedError, PersistenceError

LOG: Final = logging.getLogger("actorgraph")

SWEPT: Final = 1000
"""Items deleted by one call, so that sweeping many holds nobody up for long."""

_SECONDS: Final = 60.0


class Sweeper:
    """At most one task of a store's nursery."""

    def __init__(self, sweep: Callable[[], Awaitable[int]]) -> None:
        """Take what deletes once and returns how much it deleted."""
        self._sweep = sweep
        self._scope: anyio.CancelScope | None = None
        self._stopped: anyio.Event | None = None

    @property
    def running(self) -> bool:
        """Whether the task is there."""
        return self._scope is not None

    def start(self, nursery: TaskGroup, minutes: float) -> None:
        """Sweep every so many minutes; nothing happens if it does so already."""
        if self._scope is None:
            self._scope, self._stopped = anyio.CancelScope(), anyio.Event()
            nursery.start_soon(self._run, self._scope, self._stopped, minutes, name="store sweeper")

    def cancel(self) -> None:
        """Ask the task to end."""
        if self._scope is not None:
            self._scope.cancel()

    async def stop(self, timeout: float | None) -> bool:  # noqa: ASYNC109 - LangGraph's parameter
        """End the task; return whether it has ended within so many seconds (None: wait for it)."""
        self.cancel()
        stopped = self._stopped
        if stopped is not None:
            with anyio.move_on_after(timeout):
                await stopped.wait()
            return stopped.is_set()
        return True

    async def _run(self, scope: anyio.CancelScope, stopped: anyio.Event, minutes: float) -> None:
        try:
            with scope:
                while True:
                    await anyio.sleep(minutes * _SECONDS)
                    try:
                        await self._sweep()
                    except PersistenceClosedError:
                        return
                    except PersistenceError as error:
                        # What is locked or full now may not be next time, and reads do not depend on it.
                        LOG.warning("Expired items could not be swept, trying again in %g minutes: %s", minutes, error)
        finally:
            self._scope = self._stopped = None
            stopped.set()
