"""From the loop of a saver or store to that of a driver which knows asyncio only and must not be cancelled."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from persistence.outlasting import outlast
from persistence.writer.bridge import BRIDGE, on_trio

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

T = TypeVar("T")


class Crossing:
    """Runs the driver's coroutines: on asyncio in tasks of their own, on trio over the bridge.

    A cancel gives up the wait, not the work: what was sent is answered, and its connection goes back clean. So what
    runs here must be safe to lose sight of, as a whole transaction is.
    """

    def __init__(self) -> None:
        """Make one that is not open."""
        self._bridged = False
        self._tasks: set[asyncio.Task[Any]] = set()

    @property
    def bridged(self) -> bool:
        """Whether the driver works in another thread."""
        return self._bridged

    def open(self) -> None:
        """Start the bridge if the running loop is trio's."""
        if on_trio():
            BRIDGE.acquire()
            self._bridged = True

    def close(self) -> None:
        """Let the bridge go; safe to call again."""
        if self._bridged:
            self._bridged = False
            BRIDGE.release()

    async def call(self, function: Callable[..., Coroutine[Any, Any, T]], *args: object) -> T:
        """Run a coroutine to its end and return its result."""
        if self._bridged:
            return await BRIDGE.call(function, *args)
        task = asyncio.get_running_loop().create_task(function(*args))
        self._tasks.add(task)
        task.add_done_callback(self._done)
        await asyncio.wait((task,))
        return task.result()

    async def finish(self, function: Callable[..., Coroutine[Any, Any, object]]) -> None:
        """Run a coroutine to its end, once, and deliver a cancel only then: nothing may follow before it has ended."""
        if self._bridged:
            await outlast(partial(BRIDGE.call, function))  # nothing on trio pierces a shield
            return
        task = asyncio.get_running_loop().create_task(function())
        await outlast(partial(asyncio.wait, (task,)))
        task.result()

    async def pass_on(self, function: Callable[..., Coroutine[Any, Any, T]], *args: object) -> T:
        """Do the same for a caller whom nobody cancels but in need: on asyncio without a task of its own."""
        return await (BRIDGE.call(function, *args) if self._bridged else function(*args))

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # nobody may be left to hear of it
