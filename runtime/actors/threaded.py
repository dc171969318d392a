"""Sync functions in worker threads, waited for to their end whoever cancels: a run that is over has no node at work."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, Final
from weakref import WeakKeyDictionary

import anyio
from anyio import CapacityLimiter, from_thread, to_thread

from persistence.outlasting import outlast
from runtime.actors.cancelling import cancelled_class, misplaced, put_off

_LAST: Final[WeakKeyDictionary[CapacityLimiter, _Turn]] = WeakKeyDictionary()
"""The turn that was given out last, of the calls that share a limiter."""


async def in_thread(
    function: Callable[[], Any], limiter: CapacityLimiter, cut_short: Callable[[], None] | None = None
) -> Any:
    """Return what the function returns.

    A cancel before it begins keeps it from beginning. Afterwards the function is waited for, because nothing can stop
    it, what it returns counts, and the cancel is delivered at the next wait. anyio does so for its cancel scopes, which
    also end what the function itself waits for on the event loop; this adds ``asyncio.Task.cancel()``, which reaches
    through them. ``cut_short`` ends what else it may wait for. Functions that share a limiter begin in the order in
    which they were handed over.
    """
    before = _LAST.get(limiter)
    call = _Call(function, before)
    _LAST[limiter] = call.turn
    cancelled: BaseException | None = None
    with anyio.CancelScope() as scope:  # what the thread asks of the event loop runs inside
        try:
            try:
                await to_thread.run_sync(call.run, limiter=limiter)
            finally:
                call.turn.take()  # whatever kept it from beginning: nobody is to wait for it
        except cancelled_class() as error:
            cancelled = error
            if not call.keep_from_beginning():
                scope.cancel()
                if cut_short is not None:
                    cut_short()
                with suppress(cancelled_class()):
                    await outlast(call.ended)
    if cancelled is not None:  # raised only here: the scope would take it for its own
        if not call.ran or isinstance(call.error, cancelled_class()):
            raise cancelled
        put_off()
    if call.error is not None:
        raise call.error
    return call.result


class _Turn:
    """Lets one function begin after another: which worker thread wakes up first is chance."""

    def __init__(self) -> None:
        self.taken = False
        self._signal: SimpleQueue[None] = SimpleQueue()

    def take(self) -> None:
        """Let the next one begin."""
        self.taken = True
        self._signal.put(None)

    def wait(self) -> None:
        """Wait in a worker thread until it is taken. Only one waits, and what is before it has a thread already."""
        if not self.taken:
            self._signal.get()


class _Call:
    """A function that runs at most once.

    Thread and event loop tell each other what they do, and only then look at what the other does; so at least one of
    them sees it, and no lock is needed.
    """

    def __init__(self, function: Callable[[], Any], before: _Turn | None) -> None:
        self._function = function
        self._before = before
        self.turn = _Turn()
        self._begun = False
        self._unwanted = False
        self._over = False
        self._waiter: anyio.Event | None = None
        self.ran = False
        self.result: Any = None
        self.error: BaseException | None = None

    def run(self) -> None:
        """Run the function; called in the thread. Trio would not let it return something to be awaited."""
        if self._before is not None:
            self._before.wait()
            self._before = None
        self.turn.take()
        self._begun = True
        try:
            if not self._unwanted:
                self.ran = True
                self.result = self._function()
        except GeneratorExit as error:
            self.error = misplaced(error)
            raise self.error from error
        except BaseException as error:
            self.error = error
            raise
        finally:
            self._over = True
            if self._waiter is not None:
                from_thread.run_sync(self._waiter.set)

    def keep_from_beginning(self) -> bool:
        """Return whether the function has not begun, and never will."""
        self._unwanted = True
        return not self._begun

    async def ended(self) -> None:
        """Return once the function has ended."""
        self._waiter = anyio.Event()
        if not self._over:
            await self._waiter.wait()
