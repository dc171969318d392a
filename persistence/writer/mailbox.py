"""The persistence actor's mailbox: a bounded FIFO of receipts.

Purpose-built because an object stream costs several times as much as the work it carries. Bounded twice, by items and
by bytes; what is being committed has left it, so a saver holds at most the mailbox and one batch.
"""

from __future__ import annotations

import time
from collections import deque
from typing import TYPE_CHECKING

import anyio

from persistence.errors import PersistenceClosedError
from persistence.writer.receipts import Receipt, Round

if TYPE_CHECKING:
    from collections.abc import Callable

    from persistence.contracts.backend import Request
    from persistence.writer.limits import Limits


class Mailbox:
    """One receiver, many senders. Senders that wait for room get it in the order they came."""

    def __init__(self, limits: Limits, now: Callable[[], float] = time.perf_counter) -> None:
        """Make an empty, open mailbox."""
        self._limits = limits
        self._now = now
        self._queue: deque[Receipt] = deque()
        self._waiting: deque[tuple[Receipt, anyio.Event]] = deque()
        self._wake: anyio.Event | None = None
        self._round = Round()
        """Shared by what is accepted until the next batch is taken."""
        self._sequence = 0
        self.closed = False
        self.bytes = 0
        self.peak_items = 0
        self.peak_bytes = 0
        self.waited_total = self.waited_last = self.waited_max = 0.0
        """Seconds between being accepted and being taken: of all requests; of the oldest of the last batch; the most"""

    def __len__(self) -> int:
        """Return how many requests wait to be committed."""
        return len(self._queue)

    @property
    def waiting(self) -> int:
        """How many senders wait for room."""
        return len(self._waiting)

    @property
    def newest(self) -> int:
        """Sequence number of the request accepted last."""
        return self._sequence

    def put_nowait(self, request: Request) -> Receipt:
        """Accept a request.

        Raises:
            anyio.WouldBlock: There is no room, or others wait for it.
            PersistenceClosedError: The mailbox is closed.
        """
        if self.closed:
            message = "The saver is closed: nothing more is accepted. Open it again with 'async with saver'."
            raise PersistenceClosedError(message)
        if self._waiting or not self._has_room(request.size):
            raise anyio.WouldBlock
        receipt = Receipt(request, self._round)
        self._append(receipt)
        self._notify()
        return receipt

    async def put(self, request: Request) -> Receipt:
        """Accept a request, waiting for room. A cancel here means that it was not accepted."""
        try:
            return self.put_nowait(request)
        except anyio.WouldBlock:
            pass
        receipt, event = Receipt(request, self._round), anyio.Event()
        receipt.confirmed = False
        self._waiting.append((receipt, event))
        try:
            await event.wait()
        except BaseException:
            self._withdraw(receipt, event)
            raise
        if receipt.error is not None:
            raise receipt.error
        receipt.confirmed = True
        self._notify()
        return receipt

    async def wait(self) -> bool:
        """Return True once there is something to take, False once closed and empty."""
        while not (self._queue and self._queue[0].confirmed):
            if self.closed and not self._queue:
                return False
            self._wake = anyio.Event()
            await self._wake.wait()
        return True

    def take(self) -> list[Receipt]:
        """Return what waits, up to the limits of a batch, and give its room to waiting senders."""
        batch: list[Receipt] = []
        size, accepted = 0, 0.0
        self._round = Round()
        queue, most, largest = self._queue, self._limits.batch_items, self._limits.batch_bytes
        while queue and len(batch) < most:
            receipt = queue[0]
            if not receipt.confirmed:
                break  # its sender has been given this place and takes it, or leaves it, when it runs next
            size += receipt.size
            if batch and size > largest:
                break
            batch.append(queue.popleft())
            self.bytes -= receipt.size
            accepted += receipt.accepted_at
        if batch:
            self._count_wait(batch, accepted)
        if self._waiting:
            self._admit()
        return batch

    def close(self) -> None:
        """Accept no more; what was accepted can still be taken, senders that wait for room are turned away."""
        self.closed = True
        while self._waiting:
            receipt, event = self._waiting.popleft()
            receipt.settle(PersistenceClosedError("The saver was closed while this unit waited for room: not saved."))
            event.set()
        self._notify()

    def drop(self) -> list[Receipt]:
        """Close, and return everything that waits: nobody will commit it."""
        self.close()
        dropped = list(self._queue)
        self._queue.clear()
        self.bytes = 0
        return dropped

    def _has_room(self, size: int) -> bool:
        held = len(self._queue)
        return not held or (held < self._limits.channel_items and self.bytes + size <= self._limits.channel_bytes)

    def _append(self, receipt: Receipt) -> None:
        self._sequence += 1
        receipt.sequence = self._sequence
        receipt.accepted_at = self._now()
        self._queue.append(receipt)
        self.bytes += receipt.size
        self.peak_items = max(self.peak_items, len(self._queue))
        self.peak_bytes = max(self.peak_bytes, self.bytes)

    def _count_wait(self, batch: list[Receipt], accepted: float) -> None:
        """Add up how long a batch waited; ``accepted`` is the sum of the moments at which its requests came."""
        taken = self._now()
        self.waited_total += len(batch) * taken - accepted
        self.waited_last = taken - batch[0].accepted_at
        self.waited_max = max(self.waited_max, self.waited_last)

    def _admit(self) -> None:
        """Give room to waiting senders, in order. They keep their place in the queue and confirm it when they run."""
        while self._waiting and self._has_room(self._waiting[0][0].size):
            receipt, event = self._waiting.popleft()
            self._append(receipt)
            event.set()

    def _withdraw(self, receipt: Receipt, event: anyio.Event) -> None:
        """Forget a sender that was cancelled, whether or not it had been given room."""
        if receipt.done:
            return
        try:
            self._waiting.remove((receipt, event))
        except ValueError:
            self._queue.remove(receipt)
            self.bytes -= receipt.size
        self._admit()
        self._notify()

    def _notify(self) -> None:
        if self._wake is not None:
            self._wake.set()
            self._wake = None
