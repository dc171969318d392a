"""The bridge to drivers that only know asyncio: on trio they run in one asyncio event-loop thread.

One thread serves the whole process; it starts with the first backend opened on trio and ends with the last one closed.
On asyncio nothing is bridged. A crossing costs two thread switches each way, so backends cross once per batch.
"""

from __future__ import annotations

import asyncio
import os
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

import trio

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

T = TypeVar("T")


class Bridge:
    """An asyncio event loop in a daemon thread, kept alive by its users."""

    def __init__(self) -> None:
        """Make a bridge nobody uses yet."""
        self.forget()

    def forget(self) -> None:
        """Be as new: in a forked child, which has no part in its parent's thread."""
        self._lock = threading.Lock()
        self._users = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._tasks: set[asyncio.Task[Any]] = set()

    @property
    def users(self) -> int:
        """How many backends keep the thread alive."""
        return self._users

    def acquire(self) -> None:
        """Start the loop if nobody uses it yet."""
        with self._lock:
            self._users += 1
            if self._users > 1:
                return
            loop = self._loop = asyncio.new_event_loop()
            # A daemon, so that a program that forgets to close its saver can still exit.
            self._thread = threading.Thread(target=_run, args=(loop,), name="actorgraph asyncio bridge", daemon=True)
            self._thread.start()

    def release(self) -> None:
        """Stop the loop if nobody else uses it, and wait for its thread."""
        with self._lock:
            self._users -= 1
            if self._users > 0 or self._loop is None or self._thread is None:
                return
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop = self._thread = None

    async def call(self, function: Callable[..., Coroutine[Any, Any, T]], *args: object) -> T:
        """Run an asyncio coroutine from trio and return its result.

        A cancel here gives up the wait, not the work: the coroutine runs to its end. So what crosses must be safe to
        lose sight of, as a whole transaction is.
        """
        loop = self._loop
        if loop is None:
            message = "The bridge is not running: acquire() it first."
            raise RuntimeError(message)
        token = trio.lowlevel.current_trio_token()
        done = trio.Event()
        finished: list[asyncio.Task[T]] = []

        def finish(task: asyncio.Task[T]) -> None:
            self._tasks.discard(task)
            if not task.cancelled():
                task.exception()  # nobody may be left to hear of it
            finished.append(task)
            _notify(token, done)

        def start() -> None:
            task = asyncio.get_running_loop().create_task(function(*args))
            self._tasks.add(task)
            task.add_done_callback(finish)

        loop.call_soon_threadsafe(start)
        await done.wait()
        return finished[0].result()


def _run(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
    finally:
        loop.close()


def _notify(token: trio.lowlevel.TrioToken, done: trio.Event) -> None:
    with suppress(trio.RunFinishedError):  # its waiter is gone with the loop it waited on
        token.run_sync_soon(done.set)


BRIDGE = Bridge()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=BRIDGE.forget)


def on_trio() -> bool:
    """Whether the running event loop is trio's."""
    try:
        trio.lowlevel.current_trio_token()
    except RuntimeError:
        return False
    return True
