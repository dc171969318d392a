"""Where a saver is open: one event loop in one thread."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from anyio import NoEventLoopError, get_current_task
from anyio.lowlevel import EventLoopToken, current_token

from persistence.blocking import BlockingDoor
from persistence.errors import PersistenceError, SaverLoopError
from persistence.outlasting import outlast

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from anyio.abc import TaskGroup


class Home:
    """The loop, thread and task a saver was opened on."""

    __slots__ = ("task", "thread", "token")

    def __init__(self) -> None:
        """Take the loop that is running here."""
        self.token: EventLoopToken = current_token()
        self.thread = threading.get_ident()
        self.task = get_current_task().id

    async def leave(self, nursery: TaskGroup, saver: object) -> None:
        """End a nursery that was entered here. Raises SaverLoopError, once it has ended, in any other task."""
        try:
            # Without the exception in flight: a nursery would wrap it in a group.
            await nursery.__aexit__(None, None, None)
        except RuntimeError as error:
            if get_current_task().id == self.task:
                raise
            message = (
                f"{saver!r} was opened in one task and is closed in another. What it had accepted is saved and it is "
                "closed, but its 'async with' must begin and end in one task: fixtures of some test plugins, wait_for "
                "around __aenter__ and notebook cells do not. Use 'async with' around all that needs it, or 'with'."
            )
            raise SaverLoopError(message) from error

    def check_thread(self, saver: object) -> None:
        """Refuse another thread. Raises SaverLoopError saying what to do."""
        if threading.get_ident() != self.thread:
            raise self._error(saver, "thread")

    def check(self, saver: object) -> None:
        """Refuse another event loop. Raises SaverLoopError saying what to do."""
        self.check_thread(saver)
        try:
            here = current_token()
        except NoEventLoopError:
            raise self._error(saver, "event loop") from None
        if here != self.token:
            raise self._error(saver, "event loop")

    def _error(self, saver: object, what: str) -> SaverLoopError:
        if isinstance(saver, BlockingDoor) and saver.opened_for_blocking:
            return SaverLoopError(
                f"{saver!r} was opened by 'with', which is for blocking calls (invoke, get_state) and works on another "
                "thread's event loop. In async code open it by 'async with', on the loop that awaits it."
            )
        message = (
            f"{saver!r} is open on another {what}. Await it on the loop that entered its 'async with', "
            "or open another one there; from other threads use anyio.from_thread.run."
        )
        return SaverLoopError(message)


class Homed:
    """What is open on one event loop in one thread, or closed."""

    _home: Home | None = None

    async def _move_in(
        self, kind: str, open_it: Callable[[], Awaitable[None]], close_it: Callable[[], Awaitable[None]]
    ) -> None:
        """Be open here from now on; if opening fails or is cancelled, close what is open of it.

        Raises:
            PersistenceError: It is open already.
        """
        if self._home is not None:
            message = f"{self!r} is open already: share it, or make a second {kind}."
            raise PersistenceError(message)
        self._home = Home()
        try:
            await open_it()
        except BaseException:
            try:
                await outlast(close_it)
            finally:
                self._home = None
            raise

    @property
    def home_token(self) -> EventLoopToken | None:
        """The event loop it is open on; None while closed."""
        return None if self._home is None else self._home.token

    @property
    def home_thread(self) -> int | None:
        """The thread it is open on; None while closed."""
        return None if self._home is None else self._home.thread
