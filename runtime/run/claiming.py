"""One run at a time per thread: in this process, whichever event loop or thread the runs live in.

A run claims (saver, thread id) while it lasts. A second one waits its turn, in order, or is refused. A run inside the
thread's own run (a node that calls a graph on the same thread) is recognised and let through: waiting for itself would
never end.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from threading import Lock
from typing import Any, Final
from weakref import WeakKeyDictionary

import anyio
from anyio import from_thread
from anyio.lowlevel import EventLoopToken, current_token

from runtime.errors import ThreadBusyError

_GUARD: Final = Lock()
"""Held for dictionary operations only; runs of several event loops meet here."""

_QUEUES: WeakKeyDictionary[Any, dict[str, deque[_Waiter]]] = WeakKeyDictionary()

_HELD: ContextVar[tuple[_Waiter, ...]] = ContextVar("actorgraph_held_threads", default=())
"""What the current run, and those around it, hold."""


class _Waiter:
    """A run that holds a thread or waits for it."""

    __slots__ = ("event", "token")

    def __init__(self) -> None:
        self.event: anyio.Event | None = None
        """Set when its turn comes; None if it never had to wait."""
        self.token: EventLoopToken = current_token()

    def wake(self, home: EventLoopToken) -> bool:
        """Tell it that its turn has come; False if its event loop is gone, and with it whoever waited there."""
        if self.event is None:
            return True
        if home == self.token:
            self.event.set()
            return True
        try:
            from_thread.run_sync(self.event.set, token=self.token)
        except RuntimeError:
            return False
        return True


@asynccontextmanager
async def claimed(saver: Any, thread_id: str, *, reject: bool) -> AsyncIterator[None]:
    """Hold the thread for the duration of a run. Raises ThreadBusyError when it is held and ``reject`` is set."""
    me = _Waiter()
    with _GUARD:
        queue = _QUEUES.setdefault(saver, {}).setdefault(thread_id, deque())
        nested = bool(queue) and queue[0] in _HELD.get()
        busy = bool(queue) and not nested
        if busy and reject:
            msg = (
                f"Thread {thread_id!r} is held by another run of this process. Wait for it, "
                "or use multitask_strategy='enqueue'."
            )
            raise ThreadBusyError(msg)
        if busy:
            me.event = anyio.Event()
        if not nested:
            queue.append(me)
    if nested:
        yield
        return
    token = None
    try:
        if me.event is not None:
            await me.event.wait()
        token = _HELD.set((*_HELD.get(), me))
        yield
    finally:
        if token is not None:
            _HELD.reset(token)
        _release(saver, thread_id, queue, me)


def _release(saver: Any, thread_id: str, queue: deque[_Waiter], me: _Waiter) -> None:
    with _GUARD:
        held = bool(queue) and queue[0] is me
        if me in queue:
            queue.remove(me)
    while held:
        with _GUARD:
            follower = queue[0] if queue else None
            if follower is None:
                threads = _QUEUES.get(saver)
                if threads is not None and threads.get(thread_id) is queue:
                    del threads[thread_id]
                return
        if follower.wake(me.token):
            return
        with _GUARD:
            if queue and queue[0] is follower:
                queue.popleft()
    if not queue:
        with _GUARD:
            threads = _QUEUES.get(saver)
            if threads is not None and threads.get(thread_id) is queue and not queue:
                del threads[thread_id]
