"""Receipts: what a sender holds until its request is durable."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio

if TYPE_CHECKING:
    from persistence.contracts.backend import Request


class Receipt:
    """The ack of one request, and its place in the channel.

    It makes its event when somebody waits, and only then: most receipts are looked at after they are done.
    """

    __slots__ = ("_event", "confirmed", "done", "error", "request", "sequence", "size")

    def __init__(self, request: Request) -> None:
        self.request = request
        """What to commit; gone once settled, so that a kept receipt does not keep the bytes."""
        self.size = request.size
        self.sequence = 0
        self.confirmed = True
        """False between the moment a waiting sender is given room and the moment it takes it."""
        self.done = False
        self.error: BaseException | None = None
        self._event: anyio.Event | None = None

    async def wait(self) -> None:
        """Return once the request is durable. Raises the error that kept it from being so."""
        await self.settled()
        if self.error is not None:
            raise self.error

    async def settled(self) -> None:
        """Return once the request is durable or has failed."""
        if not self.done:
            if self._event is None:
                self._event = anyio.Event()
            await self._event.wait()

    def settle(self, error: BaseException | None = None) -> None:
        """Mark the request durable, or failed; the bytes it held are let go."""
        self.error = error
        self.done = True
        del self.request
        if self._event is not None:
            self._event.set()

    def __repr__(self) -> str:
        """Tell the state."""
        state = "waiting" if not self.done else "durable" if self.error is None else f"failed: {self.error!r}"
        return f"<Receipt {state}>"


class Done:
    """The receipt of something that was durable, or failed, at once."""

    __slots__ = ("error",)
    done = True

    def __init__(self, error: BaseException | None = None) -> None:
        """Note how it ended."""
        self.error = error

    async def wait(self) -> None:
        """Return at once. Raises the error that kept the request from being durable."""
        if self.error is not None:
            raise self.error


DONE = Done()
