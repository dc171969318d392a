"""Receipts: what a sender holds until its request is durable."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio

if TYPE_CHECKING:
    from persistence.contracts.backend import Request


class Round:
    """What the receipts of one batch share: one event for everybody who waits for one of them.

    It makes its event when somebody waits, and only then: most receipts are looked at after they are done. Setting it
    wakes all waiters, also those of a receipt that a later batch takes; they look and wait again.
    """

    __slots__ = ("event",)

    def __init__(self) -> None:
        self.event: anyio.Event | None = None

    async def wait(self) -> None:
        """Return after the next ``wake``."""
        if self.event is None:
            self.event = anyio.Event()
        await self.event.wait()

    def wake(self) -> None:
        """Let everybody who waits look again."""
        event, self.event = self.event, None
        if event is not None:
            event.set()


class Receipt:
    """The ack of one request, and its place in the channel."""

    __slots__ = ("_round", "accepted_at", "confirmed", "done", "error", "request", "sequence", "size")

    def __init__(self, request: Request, round_: Round | None = None) -> None:
        self._round = Round() if round_ is None else round_
        self.request = request
        """What to commit; gone once settled, so that a kept receipt does not keep the bytes."""
        self.size = request.size
        self.sequence = 0
        self.accepted_at = 0.0
        self.confirmed = True
        """False between the moment a waiting sender is given room and the moment it takes it."""
        self.done = False
        self.error: BaseException | None = None

    async def wait(self) -> None:
        """Return once the request is durable. Raises the error that kept it from being so."""
        await self.settled()
        if self.error is not None:
            raise self.error

    async def settled(self) -> None:
        """Return once the request is durable or has failed."""
        while not self.done:
            await self._round.wait()

    def settle(self, error: BaseException | None = None) -> None:
        """Mark the request durable, or failed; the bytes it held are let go."""
        self.error = error
        self.done = True
        del self.request
        self._round.wake()

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
