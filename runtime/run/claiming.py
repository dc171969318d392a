"""One run at a time per thread: in this process, whichever event loop or thread the runs live in.

A run claims (saver, thread id) while it lasts. A second one waits its turn, in order, or is refused. A run inside the
thread's own run (a node that calls a graph on the same thread) is recognised and let through: waiting for itself would
never end.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from contextvars import ContextVar
from functools import partial
from threading import RLock
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

import anyio
from anyio.lowlevel import EventLoopToken, current_token

from runtime.errors import ThreadBusyError
from runtime.run.heads import Heads

if TYPE_CHECKING:
    from runtime.run.leasing import RunLease
    from runtime.streaming.hub import Hub

_GUARD: Final = RLock()
"""Held for dictionary operations only; runs of several event loops meet here.

Reentrant, because garbage collection may finalise an abandoned run, which lets go of its thread, in the middle of them.
"""

_QUEUES: WeakKeyDictionary[Any, dict[str, deque[Claim]]] = WeakKeyDictionary()

_HELD: ContextVar[tuple[Claim, ...]] = ContextVar("actorgraph_held_threads", default=())
"""What the current run, and those around it, hold."""


class Claim:
    """A run that holds a thread or waits for it."""

    __slots__ = ("_hubs", "_waiting", "event", "heads", "lease", "owns", "token")

    def __init__(self) -> None:
        self.event: anyio.Event | None = None
        """Set when its turn comes; None if it never had to wait."""
        self.heads = Heads()
        """What the holder, and the runs inside it, know to be stored."""
        self.lease: RunLease | None = None
        """What tells other processes that the thread is held (see run/leasing); None before it is known."""
        self.owns = False
        """Whether the lease is not that of a run around, which holds the thread through another saver."""
        self.token: EventLoopToken = current_token()
        self._hubs: list[Hub] = []
        """Streams of the holder, and of the runs inside it."""
        self._waiting: set[int] = set()
        """Tasks that wait, or waited, for the thread."""

    @contextmanager
    def hurrying(self, hub: Hub | None) -> Iterator[None]:
        """Have a stream's run go on without its reader as soon as another waits for the thread.

        The reader may be that other: it would wait for the run, and the run for it to read on.
        """
        if hub is None:
            yield
            return
        with _GUARD:
            self._hubs.append(hub)
            for task in self._waiting:
                hub.hurry(task)
        try:
            yield
        finally:
            with _GUARD:
                self._hubs.remove(hub)

    def hurry(self) -> None:
        """Say that the current task waits; called under the guard, on whichever event loop."""
        task = anyio.get_current_task().id
        self._waiting.add(task)
        for hub in self._hubs:
            with suppress(RuntimeError):  # its event loop is gone
                _soon(self.token, partial(hub.hurry, task))

    def wake(self, home: EventLoopToken) -> bool:
        """Tell it that its turn has come; False if its event loop is gone, and with it whoever waited there."""
        assert self.event is not None  # noqa: S101 - whoever stands behind another waits
        try:
            if home == self.token:
                self.event.set()
            else:
                _soon(self.token, self.event.set)
        except RuntimeError:
            return False
        return True


def _soon(token: EventLoopToken, function: Callable[[], object]) -> None:
    """Have another thread's event loop call a function, without waiting: two loops that wait for each other never end.

    Raises RuntimeError if the loop is gone.
    """
    loop: Any = token.native_token
    schedule = getattr(loop, "call_soon_threadsafe", None) or loop.run_sync_soon
    schedule(function)


def hurry(owner: str, thread_id: str) -> None:
    """Say that a run of another saver waits for a thread, to those who hold it by a lease of this owner."""
    with _GUARD:
        for threads in list(_QUEUES.values()):
            queue = threads.get(thread_id, ())
            if any(claim.lease is not None and claim.lease.owner == owner for claim in queue):
                for claim in queue:
                    claim.hurry()


def held() -> tuple[Claim, ...]:
    """Return what the current run, and those around it, hold, through whichever saver."""
    return _HELD.get()


@asynccontextmanager
async def claimed(saver: Any, thread_id: str, *, reject: bool) -> AsyncIterator[Claim]:
    """Hold the thread for the duration of a run; yield the claim of the outermost run that holds it.

    Raises ThreadBusyError when it is held and ``reject`` is set.
    """
    me = Claim()
    with _GUARD:
        queue = _QUEUES.setdefault(saver, {}).setdefault(thread_id, deque())
        holder = queue[0] if queue else me
        nested = holder in _HELD.get()
        busy = holder is not me and not nested
        if busy and reject:
            msg = (
                f"Thread {thread_id!r} is held by another run of this process. Wait for it, "
                "or use multitask_strategy='enqueue'."
            )
            raise ThreadBusyError(msg)
        if busy:
            me.event = anyio.Event()
            for claim in queue:
                claim.hurry()
        if not nested:
            queue.append(me)
    if nested:
        yield holder
        return
    try:
        if me.event is not None:
            await me.event.wait()
        token = _HELD.set((*_HELD.get(), me))
        try:
            yield me
        finally:
            _HELD.reset(token)
    finally:
        _release(saver, thread_id, queue, me)


def _release(saver: Any, thread_id: str, queue: deque[Claim], me: Claim) -> None:
    """Leave the queue; if it was our turn, hand on to the next whose event loop is there."""
    with _GUARD:
        held = bool(queue) and queue[0] is me
        if me in queue:
            queue.remove(me)
        while held and queue and not queue[0].wake(me.token):
            queue.popleft()
        threads = _QUEUES.get(saver, {})
        if not queue and threads.get(thread_id) is queue:
            del threads[thread_id]
