"""Where a detached stream's run lives: a task of the event loop itself, because an iterator must hold no nursery.

The host never lets an error escape: it goes to the consumer through the stream.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextvars import copy_context
from typing import Any

import anyio
import trio

_TASKS: set[asyncio.Task[Any]] = set()
"""asyncio keeps only weak references to tasks."""


class Host:
    """Runs one function detached from its caller, and can end it."""

    def __init__(self) -> None:
        self._scope = anyio.CancelScope()
        self._ended = anyio.Event()

    def start(self, function: Callable[[], Awaitable[None]]) -> None:
        """Start the function on the running event loop, in the caller's context."""
        if trio.lowlevel.in_trio_run():
            trio.lowlevel.spawn_system_task(self._run, function, name="actorgraph stream", context=copy_context())
            return
        task = asyncio.get_running_loop().create_task(self._run(function), name="actorgraph stream")
        _TASKS.add(task)
        task.add_done_callback(_TASKS.discard)

    async def _run(self, function: Callable[[], Awaitable[None]]) -> None:
        try:
            with self._scope:
                await function()
        finally:
            self._ended.set()

    def cancel(self) -> None:
        """Ask the function to end; may be called from a finaliser."""
        self._scope.cancel()

    async def ended(self) -> None:
        """Return once it has ended."""
        await self._ended.wait()
