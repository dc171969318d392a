"""Where a saver is open: one event loop in one thread."""

from __future__ import annotations

import threading

from anyio import NoEventLoopError
from anyio.lowlevel import EventLoopToken, current_token

from persistence.errors import SaverLoopError


class Home:
    """The loop and thread a saver was opened on."""

    __slots__ = ("thread", "token")

    def __init__(self) -> None:
        """Take the loop that is running here."""
        self.token: EventLoopToken = current_token()
        self.thread = threading.get_ident()

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
        message = (
            f"{saver!r} is open on another {what}. Await it on the loop that entered its 'async with', "
            "or open another one there; from other threads use anyio.from_thread.run."
        )
        return SaverLoopError(message)
