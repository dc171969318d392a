"""``TaskFuture``: the result of a ``@task`` call, awaited in async code and waited for in sync code."""

from __future__ import annotations

import concurrent.futures
from collections.abc import Callable, Generator
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any, TypeVar

import anyio
import anyio.lowlevel
from anyio import from_thread

from persistence.portal import is_elsewhere
from runtime.channels import MISSING
from runtime.errors import GraphInterrupt, NodeCancelledError

if TYPE_CHECKING:
    from runtime.run.calls import CallTask
    from runtime.run.conductor import Conductor

T = TypeVar("T")


class TaskFuture(concurrent.futures.Future[T]):
    """The result of a call.

    ``await`` it, as often as wanted; in a sync node ``result()`` waits for it. A wait that is cancelled (a timeout, a
    sibling in a task group that failed) cancels the call too, unless others wait for it as well.

    It is a future of ``concurrent.futures`` for what handles several of them: ``wait``, ``as_completed``, callbacks.
    Async code awaits futures instead: waiting for them there is refused, as it would stop the event loop for ever.
    """

    def __init__(self, task: CallTask, run: Conductor, abandoned: Callable[[TaskFuture[Any]], None]) -> None:
        super().__init__()
        self.set_running_or_notify_cancel()
        self._waiters = _Waiters(self._refuse_here)
        self.task = task
        self.work = anyio.CancelScope()
        """Around the call's work."""
        self.heard = False
        """Whether anybody was told how the call ended."""
        self._run = run
        self._abandoned = abandoned
        self._done = anyio.Event()
        self._value: Any = MISSING
        self._error: BaseException | None = None
        self._waiting = 0

    # ---- for the caller ----------------------------------------------------------------------------------------

    def __await__(self) -> Generator[Any, Any, T]:
        self._waiting += 1
        try:
            yield from self._done.wait().__await__()
        except BaseException as error:
            closed = isinstance(error, GeneratorExit)  # the waiter is gone, maybe with its event loop
            if not closed and self._waiting == 1 and isinstance(error, anyio.get_cancelled_exc_class()):
                self._abandoned(self)
            raise
        finally:
            self._waiting -= 1
        if self.cancelled():  # with its caller, maybe, who has yet to hear of it
            yield from anyio.lowlevel.checkpoint_if_cancelled().__await__()
        return self._outcome()

    def done(self) -> bool:
        """Tell whether the call has ended, in whichever way."""
        return self._done.is_set()

    def cancelled(self) -> bool:
        """Tell whether the call was cancelled."""
        return isinstance(self._error, NodeCancelledError)

    def cancel(self) -> bool:
        """Cancel the call; whoever waits for it gets NodeCancelledError. A sync function is not stopped half-way.

        Tells whether there was something to cancel.
        """
        if self.done():
            return False
        if is_elsewhere(self._run.home_thread):
            from_thread.run_sync(self.work.cancel, token=self._run.home_token)
        else:
            self.work.cancel()
        return True

    def result(self, timeout: float | None = None) -> T:
        """Return the result, waiting for it in a sync node's thread.

        Raises:
            TimeoutError: the call has not ended within ``timeout`` seconds; it goes on.
            RuntimeError: the call has not ended, and waiting here would stop the event loop that it needs.

        """
        self._ended(timeout)
        return self._outcome()

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Return what the call raised, or None, waiting as ``result`` does."""
        self._ended(timeout)
        self.heard = True
        return self._error

    def _ended(self, timeout: float | None) -> None:
        if self.done():
            return
        self._refuse_here()
        try:
            # Without a token the wait belongs to the node's own worker thread, and ends when the node is cancelled.
            token = None if _in_worker_thread() else self._run.home_token
            from_thread.run(self._wait, timeout, token=token)
        except concurrent.futures.CancelledError as error:  # how asyncio's hop back tells of the node's cancellation
            raise self._cut_short() from error

    def _refuse_here(self) -> None:
        if not is_elsewhere(self._run.home_thread):
            msg = f"The call of task {self.task.name!r} has not ended; in async code await it instead of result()."
            raise RuntimeError(msg)

    async def _wait(self, timeout: float | None) -> None:  # noqa: ASYNC109 - the caller's thread cannot cancel
        if anyio.current_effective_deadline() == -inf:  # cancelled on the way here: asyncio would not say it again
            raise self._cut_short()
        with anyio.fail_after(timeout):
            await self._done.wait()

    def _cut_short(self) -> NodeCancelledError:
        return NodeCancelledError(
            self.task.name, f"Waiting for the call of task {self.task.name!r} was cancelled, together with its caller."
        )

    def _outcome(self) -> T:
        self.heard = True
        if self._error is not None:
            raise self._error
        value: T = self._value
        return value

    # ---- for the calls of a run --------------------------------------------------------------------------------

    def settle(self, value: T) -> None:
        """Give it its result."""
        self._value = value
        self._done.set()
        self._tell(partial(self.set_result, value))

    def fail(self, error: BaseException) -> None:
        """Give it its failure."""
        self._error = error
        self._done.set()
        self._tell(partial(self.set_exception, error))

    def _tell(self, tell: Callable[[], None]) -> None:
        """Tell the callbacks. What one raises that is to end the program ends the caller, not the event loop."""
        try:
            tell()
        except BaseException as error:  # noqa: BLE001 - the caller gets it; an Exception never leaves a callback
            self._error = error

    async def ended(self) -> None:
        """Return once the call has ended, however it did; at once, and whatever is cancelled, if it has."""
        if not self.done():
            await self._done.wait()

    @property
    def failure(self) -> BaseException | None:
        """What the call raised, if it failed: a pause and a cancellation are no failures."""
        return None if isinstance(self._error, (GraphInterrupt, NodeCancelledError)) else self._error

    @property
    def questions(self) -> tuple[Any, ...]:
        """What the call waits for."""
        return self._error.interrupts if isinstance(self._error, GraphInterrupt) else ()

    def __repr__(self) -> str:
        return f"<TaskFuture {self.task.name} {'done' if self.done() else 'running'}>"


class _Waiters(list[Any]):
    """Where ``concurrent.futures`` notes who waits, before it does."""

    def __init__(self, refuse: Callable[[], None]) -> None:
        super().__init__()
        self._refuse = refuse

    def append(self, waiter: Any) -> None:
        """Note another one, unless its waiting would never end."""
        self._refuse()
        super().append(waiter)


def _in_worker_thread() -> bool:
    """Tell whether this thread belongs to an event loop that can cancel what runs in it."""
    try:
        from_thread.check_cancelled()
    except RuntimeError:
        return False
    except BaseException:  # noqa: BLE001 - it can, and has
        return True
    return True
