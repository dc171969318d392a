"""Where a detached stream's run lives: a task of the event loop itself, because an iterator must hold no nursery.

The host never lets an error escape: it goes to the consumer through the stream.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from contextlib import suppress
from contextvars import ContextVar, copy_context
from typing import Any

import anyio
import trio

from runtime.context.scope import SCOPE

_TASKS: set[asyncio.Task[Any]] = set()
"""asyncio keeps only weak references to tasks."""

_AROUND: ContextVar[tuple[Host, ...]] = ContextVar("actorgraph_hosts", default=())
"""Those of the streams whose runs wait for the caller, if it is a node's code."""


def next_round(call: Callable[[], None]) -> None:
    """Have the running event loop call something in its next round."""
    if trio.lowlevel.in_trio_run():
        trio.lowlevel.current_trio_token().run_sync_soon(call)
    else:
        asyncio.get_running_loop().call_soon(call)


class Host:
    """Runs one function detached from its caller, and can end it."""

    def __init__(self) -> None:
        self._scope = anyio.CancelScope()
        self._ended = anyio.Event()
        self._soon: Callable[[Callable[[], None]], object] | None = None
        """Has the event loop call something; safe in any thread."""
        self._process = os.getpid()

    def start(self, function: Callable[[], Awaitable[None]]) -> None:
        """Start the function on the running event loop, in the caller's context."""
        if trio.lowlevel.in_trio_run():
            self._soon = trio.lowlevel.current_trio_token().run_sync_soon
            trio.lowlevel.spawn_system_task(self._run, function, name="actorgraph stream", context=copy_context())
            return
        loop = asyncio.get_running_loop()
        self._soon = loop.call_soon_threadsafe
        task = loop.create_task(self._run(function), name="actorgraph stream")
        _TASKS.add(task)
        task.add_done_callback(self._over)

    def _over(self, task: asyncio.Task[Any]) -> None:
        """Note that it has ended; a task that is cancelled before its first step ends without having begun."""
        _TASKS.discard(task)
        self._ended.set()

    async def _run(self, function: Callable[[], Awaitable[None]]) -> None:
        _AROUND.set((*_AROUND.get(), self))
        try:
            with self._scope:
                await function()
        finally:
            self._ended.set()

    @property
    def waits_for_caller(self) -> bool:
        """Whether it cannot end before the caller does: that is code of a node of its run, or of a run inside it."""
        if self not in _AROUND.get() or self._ended.is_set():
            return False
        scope = SCOPE.get(None)
        return scope is None or not scope.ended  # what a node left behind is not waited for

    def cancel(self) -> None:
        """Ask the function to end."""
        self._scope.cancel()

    def abandon(self, first: Callable[[], None]) -> None:
        """Do something and ask the function to end, from a finaliser: any thread may run one, at any time.

        A forked child leaves it alone: its copy of the loop may hold a lock that nobody there lets go of.
        """
        if os.getpid() != self._process:
            return

        def end() -> None:
            first()
            self._scope.cancel()

        # The event loop may be gone by then, and with it the function.
        with suppress(RuntimeError):
            if self._soon is not None:
                self._soon(end)

    async def ended(self) -> None:
        """Return once it has ended."""
        await self._ended.wait()
