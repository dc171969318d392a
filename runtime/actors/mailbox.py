"""A bounded mailbox: a deque and one event, because object streams cost several times as much per message.

Full means wait (``put``) or refuse (``put_nowait``); closing hands back what nobody read.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

import anyio

CAPACITY: Final = 1024
"""Messages per actor. One superstep rarely sends more to one node; beyond it the conductor feeds as workers take."""

Message = TypeVar("Message")


class MailboxClosedError(Exception):
    """The mailbox takes no more messages."""


@dataclass(frozen=True, slots=True)
class MailboxStatistics:
    """How full a mailbox is and was."""

    capacity: int
    waiting: int
    """Messages unread."""
    peak: int
    senders: int
    """Senders parked because it is full."""
    received: int
    """Messages taken in all."""


class Mailbox(Generic[Message]):
    """FIFO, for one event loop; senders that wait are let in one after the other, in order.

    A sender keeps its message until it runs with room before it. So a cancel finds the message either with the sender
    or in the mailbox, and the sender knows which.
    """

    __slots__ = ("_closed", "_messages", "_parked", "_peak", "_received", "capacity")

    def __init__(self, capacity: int = CAPACITY) -> None:
        if capacity < 1:
            msg = f"A mailbox holds at least 1 message, got {capacity}."
            raise ValueError(msg)
        self.capacity = capacity
        self._messages: deque[Message] = deque()
        self._parked: deque[anyio.Event] = deque()
        """One for each sender that waits, set when it may go on: only the first one ever is."""
        self._closed = False
        self._peak = 0
        self._received = 0

    def __len__(self) -> int:
        return len(self._messages)

    def put_nowait(self, message: Message) -> None:
        """Add a message. Raises anyio.WouldBlock when full, MailboxClosedError when closed."""
        if self._closed:
            raise MailboxClosedError
        if len(self._messages) >= self.capacity or self._parked:
            raise anyio.WouldBlock
        self._add(message)

    async def put(self, message: Message) -> None:
        """Add a message, waiting for room. A cancel while waiting means it was not added."""
        try:
            self.put_nowait(message)
        except anyio.WouldBlock:
            await self._put_in_turn(message)

    async def _put_in_turn(self, message: Message) -> None:
        turn = anyio.Event()
        self._parked.append(turn)
        try:
            await turn.wait()
            if self._closed:
                raise MailboxClosedError from None
            self._add(message)
        finally:
            self._parked.remove(turn)
            self._admit()

    def take_nowait(self) -> Message:
        """Return the oldest message. Raises anyio.WouldBlock when there is none."""
        if not self._messages:
            raise anyio.WouldBlock
        message = self._messages.popleft()
        self._received += 1
        if self._parked:
            self._admit()
        return message

    def close(self) -> list[Message]:
        """Refuse further messages and return those unread; parked senders get MailboxClosedError."""
        self._closed = True
        unread = list(self._messages)
        self._messages.clear()
        for turn in self._parked:
            turn.set()
        return unread

    def statistics(self) -> MailboxStatistics:
        """Return how full it is and was."""
        return MailboxStatistics(self.capacity, len(self._messages), self._peak, len(self._parked), self._received)

    def _add(self, message: Message) -> None:
        self._messages.append(message)
        self._peak = max(self._peak, len(self._messages))

    def _admit(self) -> None:
        """Let the first sender that waits go on, if there is room."""
        if self._parked and len(self._messages) < self.capacity:
            self._parked[0].set()

    def __repr__(self) -> str:
        state = "closed" if self._closed else "open"
        return f"<Mailbox {state} {len(self._messages)}/{self.capacity}>"
