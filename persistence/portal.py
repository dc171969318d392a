"""The one door from blocking code into async code: a process-wide event loop in a daemon thread.

Whatever is open on an event loop of its own (a saver entered with ``async with``) is called there instead, so that the
blocking API also works beside a running loop: from worker threads, or from a notebook whose loop is busy with the cell.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from contextvars import Context, copy_context
from typing import Any, ClassVar, Final, TypeVar

import anyio
import trio
from anyio import NoEventLoopError, from_thread
from anyio.from_thread import BlockingPortal, start_blocking_portal
from anyio.lowlevel import EventLoopToken, current_token

from persistence.errors import SaverLoopError

T = TypeVar("T")

_LOCK: Final = threading.Lock()


class _Portal:
    """The process's portal, started at its first use."""

    portal: BlockingPortal | None = None
    forked: bool = False
    """This process is a fork of one in which threads may have been at work; none of them is here."""
    token: EventLoopToken
    thread: int
    keeper: Any
    left_behind: ClassVar[list[Any]] = []


def home() -> tuple[EventLoopToken, int]:
    """Return the portal's event loop and thread, starting them if need be."""
    with _LOCK:
        if _Portal.portal is None:
            _Portal.keeper = start_blocking_portal("asyncio", name="actorgraph portal")
            _Portal.portal = _Portal.keeper.__enter__()
            _Portal.token, _Portal.thread = _Portal.portal.call(_where)
            atexit.register(_close)
        return _Portal.token, _Portal.thread


def _close() -> None:
    """End the event loop; what is still open on it is cancelled, and so closed.

    Not left to garbage collection: by then the interpreter has frozen the thread, and waiting for it would never end.
    """
    _Portal.keeper.__exit__(SystemExit, SystemExit(), None)


def _forget() -> None:
    """Start anew in a forked child, which has the parent's portal but not its thread."""
    if _Portal.portal is not None:
        _Portal.left_behind.append(_Portal.keeper)  # collecting it as garbage would wait for the thread
        _Portal.portal = None
    _Portal.forked = True
    atexit.unregister(_close)
    _LOCK.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_LOCK.acquire, after_in_parent=_LOCK.release, after_in_child=_forget)


def this_thread() -> int:
    """Return what ``is_elsewhere`` knows the caller's thread by."""
    return threading.get_ident()


def is_elsewhere(thread: int) -> bool:
    """Tell whether the caller runs in another thread than this one."""
    return threading.get_ident() != thread


def here() -> tuple[EventLoopToken, int]:
    """Return the running event loop and its thread, for calls from elsewhere to come back to."""
    return current_token(), threading.get_ident()


async def _where() -> tuple[EventLoopToken, int]:
    return current_token(), threading.get_ident()


def call(function: Callable[[], Awaitable[T]], *, at: EventLoopToken | None, thread: int | None, instead: str) -> T:
    """Run an async function to its end on another thread's event loop, and return its result.

    Args:
        function: what to run; the caller's context variables are visible to it.
        at: the event loop that what is called is bound to; None: the portal's.
        thread: that loop's thread.
        instead: the async method to name if waiting here would deadlock.

    Raises:
        SaverLoopError: this is the thread of that loop, or it stayed behind in the process that this is a fork of: so
            waiting for it would never end.

    An interrupt (Ctrl-C) while waiting cancels the function, and is raised once that has ended: a sync node that is at
    work ends first, and what a run has is saved. A second one is raised at once. In a worker thread of that loop, what
    cancels the thread's task cancels the function.

    """
    if at is None:
        at, thread = home()
    if _Portal.forked and thread not in {each.ident for each in threading.enumerate()}:
        msg = "It was opened before this process was forked, and only that process can use it. Open another one here."
        raise SaverLoopError(msg)
    if thread == threading.get_ident():
        if _has_ended(at):
            msg = "The event loop on which it was opened has ended. Open another one here."
            raise SaverLoopError(msg)
        msg = f"Waiting here would deadlock: this thread runs the event loop that is to do the work. Await {instead}()."
        raise SaverLoopError(msg)
    scopes: list[anyio.CancelScope] = []
    results: list[T | _Raised] = []
    ended = threading.Event()

    async def contained() -> None:
        with anyio.CancelScope() as scope:
            scopes.append(scope)
            try:
                results.append(await function())
            except (Exception, trio.Cancelled):
                raise
            except BaseException as error:  # noqa: BLE001 - raised below
                # Not in the task that runs it: a SystemExit would end the event loop, and asyncio complains of a
                # cancelled task when it shuts down while nobody waits any more, as after a Ctrl-C.
                results.append(_Raised(error))
            finally:
                ended.set()

    try:
        if _works_for(at):
            from_thread.run(_within_reach, contained, scopes, results, copy_context())
        else:
            from_thread.run(contained, token=at)
    except BaseException as error:
        if scopes and not isinstance(error, Exception):
            from_thread.run_sync(scopes[0].cancel, token=at)
            ended.wait()
        raise
    result = results[0]
    if not isinstance(result, _Raised):
        return result
    raise result.error


def _has_ended(token: EventLoopToken) -> bool:
    """Tell whether an event loop is closed, as far as it can be told: trio does not let its loops be asked."""
    is_closed: Callable[[], bool] | None = getattr(token.native_token, "is_closed", None)
    return is_closed is not None and is_closed()


class _Raised:
    """What ended a function, if that is no Exception."""

    __slots__ = ("error",)

    def __init__(self, error: BaseException) -> None:
        self.error = error


def _works_for(token: EventLoopToken) -> bool:
    """Tell whether this is a worker thread of a trio loop, where only the thread's own task is within reach of cancels.

    asyncio's side of anyio lets them through to whatever the thread starts.
    """
    if not isinstance(token.native_token, trio.lowlevel.TrioToken):
        return False
    try:
        return from_thread.run_sync(current_token) == token
    except NoEventLoopError:
        return False


async def _within_reach(
    function: Callable[[], Awaitable[None]], scopes: list[anyio.CancelScope], results: list[Any], context: Context
) -> None:
    """Run a function in a trio task with the thread's context; a cancel of this task, the thread's own, ends it.

    Not in this task itself: whoever steps it through a context copy would hide the thread's context variables.
    """
    ended = anyio.Event()
    errors: list[BaseException] = []

    async def run() -> None:
        try:
            await function()
        except BaseException as error:  # noqa: BLE001 - raised where it is waited for
            errors.append(error)
        finally:
            ended.set()

    trio.lowlevel.spawn_system_task(run, name="actorgraph blocking call", context=context)
    try:
        await ended.wait()
    except trio.Cancelled:
        with anyio.CancelScope(shield=True):
            while not (scopes or ended.is_set()):
                await anyio.lowlevel.checkpoint()  # it begins at the loop's next turn
            if scopes:
                scopes[0].cancel()
            await ended.wait()
        if not (results or errors):
            raise
    if errors:
        raise errors[0]


class Entered:
    """An async context manager held open on the portal's loop, by one task from entry to exit."""

    def __init__(self, manager: AbstractAsyncContextManager[Any]) -> None:
        home()
        assert _Portal.portal is not None  # noqa: S101 - home() starts it
        self._process = os.getpid()
        self._held = _Portal.portal.wrap_async_context_manager(manager)
        self.value = self._held.__enter__()

    def exit(self, *error: Any) -> None:
        """Leave it; returns once it has closed. A forked child leaves that to its parent."""
        if os.getpid() != self._process:
            return
        self._held.__exit__(*error)
