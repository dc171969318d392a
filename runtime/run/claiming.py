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

_HELD: ContextVar[frozenset[tuple[int, str]]] = ContextVar("actorgraph_held_threads", default=frozenset())


class _Waiter:
    __slots__ = ("event", "token")

    def __init__(self) -> None:
        self.event = anyio.Event()
        self.token: EventLoopToken = current_token()

    def wake(self, home: EventLoopToken) -> None:
        if home == self.token:
            self.event.set()
            return
        try:
            from_thread.run_sync(self.event.set, token=self.token)
        except RuntimeError:
            # Its event loop is gone, and so is whoever waited there.
            return


@asynccontextmanager
async def claimed(saver: Any, thread_id: str, *, reject: bool) -> AsyncIterator[None]:
    """Hold the thread for the duration of a run. Raises ThreadBusyError when it is held and ``reject`` is set."""
    key = (id(saver), thread_id)
    if key in _HELD.get():
        yield
        return
    me = _Waiter()
    with _GUARD:
        queue = _QUEUES.setdefault(saver, {}).setdefault(thread_id, deque())
        busy = bool(queue)
        if busy and reject:
            msg = (
                f"Thread {thread_id!r} is held by another run of this process. Wait for it, "
                "or use multitask_strategy='enqueue'."
            )
            raise ThreadBusyError(msg)
        queue.append(me)
    token = None
    try:
        if busy:
            await me.event.wait()
        token = _HELD.set(_HELD.get() | {key})
        yield
    finally:
        if token is not None:
            _HELD.reset(token)
        _release(saver, thread_id, queue, me)


def _release(saver: Any, thread_id: str, queue: deque[_Waiter], me: _Waiter) -> None:
    with _GUARD:
        was_first = bool(queue) and queue[0] is me
        if me in queue:
            queue.remove(me)
        follower = queue[0] if was_first and queue else None
        if not queue:
            _QUEUES.get(saver, {}).pop(thread_id, None)
    if follower is not None:
        follower.wake(me.token)
