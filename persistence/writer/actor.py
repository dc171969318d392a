"""The persistence actor: one task that commits what waits, for every run that shares the saver.

A batch is whatever is already waiting when the actor is free. So an idle actor commits a single request at once, a
busy one commits many in one transaction, and there is no ticker to tune.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

import anyio

from persistence.contracts.backend import Backend, Beat, DeleteThread, Request, Rows
from persistence.errors import (
    BackendError,
    LeaseLostError,
    PersistenceClosedError,
    StoredDataError,
    TransientBackendError,
)
from persistence.writer.failing import Failure, Losses, delay, halves, personal
from persistence.writer.limits import DEFAULT_LIMITS, Limits
from persistence.writer.mailbox import Mailbox
from persistence.writer.statistics import WriterStatistics

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from persistence.contracts.backend import Page
    from persistence.writer.keeping import Holdings
    from persistence.writer.receipts import Receipt


OF_ONE_THREAD: Final = (Rows, DeleteThread)
"""Requests that touch no other thread than the one they name."""


class PersistenceActor:
    """Owns all writing to one backend. Start ``run`` in a nursery, then send; close to drain."""

    def __init__(
        self,
        backend: Backend,
        limits: Limits = DEFAULT_LIMITS,
        *,
        now: Callable[[], float] = time.perf_counter,
        holdings: Holdings | None = None,
    ) -> None:
        """Make an actor that has not started."""
        self._backend = backend
        self._limits = limits
        self._now = now
        self.holdings = holdings
        """The leases of this saver's runs; None where the backend keeps none."""
        self._mailbox = Mailbox(limits, now)
        self._losses = Losses(limits)
        self._latest: dict[str, Receipt] = {}
        """The newest request in flight per thread; an entry lives as long as it is in flight."""
        self._newest: Receipt | None = None
        self._newest_wide: Receipt | None = None
        """The newest request in flight that may touch any thread."""
        self.stopped = anyio.Event()
        self._batches = self._units = self._largest = self._retries = self._failures = 0
        self._seconds = self._last_seconds = self._max_seconds = 0.0

    def send_nowait(self, request: Request) -> Receipt:
        """Accept a request. Raises anyio.WouldBlock when there is no room, PersistenceClosedError when closed."""
        return self._accepted(self._mailbox.put_nowait(request))

    async def send(self, request: Request) -> Receipt:
        """Accept a request, waiting for room. A cancel here means that it was not accepted."""
        return self._accepted(await self._mailbox.put(request))

    async def barrier(self, thread_id: str | None) -> None:
        """Return once everything accepted for a thread (None: for any) is durable or has failed."""
        receipts = [self._newest] if thread_id is None else [self._latest.get(thread_id), self._newest_wide]
        for receipt in receipts:
            if receipt is not None:
                await receipt.settled()

    def found(self, page: Page) -> None:
        """Note what was read: who goes on from there is not kept from it by a commit whose outcome was unknown."""
        if self._losses:
            self._losses.found(row[:3] for row in page.checkpoints)

    def close(self) -> None:
        """Accept nothing more; ``run`` commits what was accepted and returns."""
        self._mailbox.close()

    async def run(self) -> None:
        """Commit until closed and drained. Accepted requests survive the cancellation of whoever sent them."""
        batch: Sequence[Receipt] = ()
        try:
            with anyio.CancelScope(shield=True):
                while await self._mailbox.wait():
                    batch = self._mailbox.take()
                    await self._settle(batch)
        except PersistenceClosedError as error:
            self._abandon(batch, str(error))
        finally:
            # Reached with requests left only when the actor is torn down from outside, or by a defect.
            self._abandon(batch, "The persistence actor was stopped")
            self.stopped.set()

    def statistics(self) -> WriterStatistics:
        """Return how full the channel is and what was done so far."""
        mailbox = self._mailbox
        return WriterStatistics(
            limits=self._limits.explained(),
            depth_items=len(mailbox),
            depth_bytes=mailbox.bytes,
            peak_items=mailbox.peak_items,
            peak_bytes=mailbox.peak_bytes,
            waiting_senders=mailbox.waiting,
            batches=self._batches,
            units=self._units,
            largest_batch=self._largest,
            queue_seconds_total=mailbox.waited_total,
            queue_seconds_last=mailbox.waited_last,
            queue_seconds_max=mailbox.waited_max,
            commit_seconds_total=self._seconds,
            commit_seconds_last=self._last_seconds,
            commit_seconds_max=self._max_seconds,
            retries=self._retries,
            failures=self._failures,
        )

    def _accepted(self, receipt: Receipt) -> Receipt:
        request = receipt.request
        self._newest = receipt
        if self.holdings is not None and isinstance(request, Rows):
            self.holdings.accepted(request)
        if isinstance(request, OF_ONE_THREAD):
            self._latest[request.thread_id] = receipt
        elif not isinstance(request, Beat):
            self._newest_wide = receipt
        return receipt

    async def _settle(self, batch: Sequence[Receipt]) -> None:
        """Commit a batch; where it is refused, find the guilty request by halving, so that all others commit."""
        barred = self._barred(batch)
        sound = [receipt for receipt in batch if receipt not in barred] if barred else batch
        error = await self._commit(sound) if sound else None
        if error is None or len(sound) == 1 or isinstance(error, TransientBackendError):
            for receipt in batch:
                self._conclude(receipt, barred.get(receipt, error))
        else:
            for part in _parts(batch, error):
                await self._settle(part)

    def _barred(self, batch: Sequence[Receipt]) -> dict[Receipt, Failure]:
        """Return what must fail because it builds on something lost, be it in the same batch."""
        barred: dict[Receipt, Failure] = {}
        if self._losses:
            for receipt in batch:
                error = self._losses.barring(receipt.request, receipt.sequence)
                if error is not None:
                    barred[receipt] = error
                    self._losses.add(receipt.request, self._mailbox.newest, error)
        return barred

    async def _commit(self, batch: Sequence[Receipt]) -> Failure | None:
        """Commit a batch, trying again while the fault may pass; return why it could not be.

        Trying again is safe even if an earlier attempt did reach the disk: commits are idempotent by key.
        """
        requests = [receipt.request for receipt in batch]
        attempt = 0
        while True:
            attempt += 1
            error = await self._attempt(requests)
            if not isinstance(error, TransientBackendError) or attempt == self._limits.attempts:
                return error
            self._retries += 1
            await anyio.sleep(delay(attempt, self._limits))

    async def _attempt(self, requests: Sequence[Request]) -> Failure | None:
        started = self._now()
        beats = False
        if self.holdings is not None:
            requests, beats = self.holdings.with_beat(requests, started)
        # Not anyio.fail_after: what it adds to the scope costs a lone commit more than its encoding.
        scope = anyio.CancelScope(deadline=anyio.current_time() + self._limits.commit_seconds)
        try:
            with scope:
                await self._backend.commit(requests)
        except TimeoutError:
            return self._unanswered()
        except (BackendError, StoredDataError) as error:
            return error
        except PersistenceClosedError:
            raise
        except Exception as error:  # noqa: BLE001 - a row that its driver cannot bind must fail alone, not the actor
            refusal = BackendError(f"The database refused: {type(error).__name__}: {error}")
            refusal.__cause__ = error
            return refusal
        if scope.cancelled_caught:
            return self._unanswered()
        if beats and self.holdings is not None:
            self.holdings.beaten(started)
        self._count(len(requests) - beats, self._now() - started)
        return None

    def _unanswered(self) -> TransientBackendError:
        message = f"The database gave no answer for {self._limits.commit_seconds:g} s; the outcome is unknown."
        return TransientBackendError(message)

    def _count(self, units: int, seconds: float) -> None:
        self._batches += 1
        self._units += units
        self._largest = max(self._largest, units)
        self._seconds += seconds
        self._last_seconds = seconds
        self._max_seconds = max(self._max_seconds, seconds)

    def _conclude(self, receipt: Receipt, error: Failure | None) -> None:
        """Tell the sender how it ended."""
        self._retire(receipt)
        if error is None:
            if self._losses:
                self._losses.forget(receipt.request)
            receipt.settle()
            return
        self._failures += 1
        if self.holdings is not None and isinstance(receipt.request, Rows):
            self.holdings.failed(receipt.request, lost=isinstance(error, LeaseLostError))
        self._losses.add(receipt.request, self._mailbox.newest, error)
        receipt.settle(personal(error))

    def _retire(self, receipt: Receipt) -> None:
        request = receipt.request
        if isinstance(request, OF_ONE_THREAD) and self._latest.get(request.thread_id) is receipt:
            del self._latest[request.thread_id]
        if self._newest is receipt:
            self._newest = None
        if self._newest_wide is receipt:
            self._newest_wide = None

    def _abandon(self, batch: Sequence[Receipt], reason: str) -> None:
        for receipt in (*batch, *self._mailbox.drop()):
            if not receipt.done:
                self._failures += 1
                self._retire(receipt)
                receipt.settle(PersistenceClosedError(f"{reason}; this unit is not known to be saved."))


def _parts(batch: Sequence[Receipt], error: Failure) -> Sequence[Sequence[Receipt]]:
    """Cut a refused batch in two: where the guilty threads are known, in the others and them; else in halves."""
    guilty = error.thread_ids if isinstance(error, LeaseLostError) else frozenset()
    if guilty and all(isinstance(receipt.request, Rows) for receipt in batch):
        others = [receipt for receipt in batch if receipt.request.thread_id not in guilty]  # type: ignore[union-attr]
        if 0 < len(others) < len(batch):
            return others, [receipt for receipt in batch if receipt.request.thread_id in guilty]  # type: ignore[union-attr]
    return halves(batch)
