"""GroupCommitSaver: the checkpoint contract over one database and one persistence actor."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Self

import anyio

from persistence.errors import PersistenceClosedError, PersistenceError, UnsupportedOperationError
from persistence.outlasting import outlast
from persistence.writer.actor import PersistenceActor
from persistence.writer.addressing import address
from persistence.writer.contract import RowSaver
from persistence.writer.home import Homed
from persistence.writer.keeping import Holdings, keep, keeps_leases
from persistence.writer.limits import DEFAULT_LIMITS, Limits
from persistence.writer.owners import in_words, is_gone

if TYPE_CHECKING:
    from types import TracebackType

    from anyio.abc import TaskGroup

    from persistence.contracts.backend import Backend, LeasingBackend, Page, Query, Request
    from persistence.contracts.checkpoint import CheckpointTuple
    from persistence.contracts.lease import LeaseRow
    from persistence.contracts.saver import Config
    from persistence.serde.serializer import Serializer
    from persistence.writer.receipts import Receipt
    from persistence.writer.statistics import WriterStatistics


class GroupCommitSaver(Homed, RowSaver):
    """Keeps checkpoints in a database, committing what all its runs send in common transactions.

    Open it with ``async with saver``; leaving it commits what was accepted, then closes the database. Reads of a
    thread wait for what was sent for it before, so every run reads its own writes.
    """

    inline = False

    def __init__(self, backend: Backend, *, serde: Serializer | None = None, limits: Limits = DEFAULT_LIMITS) -> None:
        """Make a closed saver over a backend."""
        super().__init__(serde=serde)
        self._backend = backend
        self._limits = limits
        self._actor: PersistenceActor | None = None
        self._nursery: TaskGroup | None = None
        self._keeping: anyio.CancelScope | None = None
        """Around the keeper of leases, where there is one."""

    async def __aenter__(self) -> Self:
        """Open the database and start the persistence actor.

        Raises:
            BackendOpenError: The database cannot be opened; nothing was changed.
            PersistenceError: The saver is open already.
        """
        await self._move_in("saver", self._backend.open, self._backend.close)
        holdings = Holdings(self._limits.lease_seconds) if keeps_leases(self._backend) else None
        self._actor = PersistenceActor(self._backend, self._limits, holdings=holdings)
        self._nursery = anyio.create_task_group()
        await self._nursery.__aenter__()
        self._nursery.start_soon(self._actor.run, name=f"persistence actor of {self!r}")
        if holdings is not None:
            self._keeping = anyio.CancelScope()
            self._nursery.start_soon(self._keep, self._actor, holdings, self._keeping, name=f"lease keeper of {self!r}")
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Accept no more, commit what was accepted, close. Cancelling the scope around does not cut this short."""
        actor, nursery, home = self._actor, self._nursery, self._home
        if actor is None or nursery is None or home is None:
            return
        if actor.holdings is not None:
            with suppress(PersistenceError):
                for request in actor.holdings.closing():
                    await outlast(partial(actor.send, request))
        actor.close()
        try:
            try:
                await outlast(actor.stopped.wait)
            finally:
                # Not by the nursery's own scope: a cancel that the program has caught and not taken back, here or in a
                # task group of asyncio, would let that scope's cancel through to the program.
                if self._keeping is not None:
                    self._keeping.cancel()
                await home.leave(nursery, self)
        finally:
            self._actor = self._nursery = None
            try:
                await outlast(self._backend.close)
            finally:
                self._home = None

    @staticmethod
    async def _keep(actor: PersistenceActor, holdings: Holdings, scope: anyio.CancelScope) -> None:
        with scope:
            await keep(actor, holdings)

    async def asetup(self) -> None:
        """Create or migrate the tables; opening the saver does it already."""
        self._opened()
        await self._backend.setup()

    def send_nowait(self, request: Request) -> Receipt:
        """Queue an encoded unit.

        Raises:
            anyio.WouldBlock: The channel is full.
            PersistenceClosedError: The saver is not open, or is closing.
            SaverLoopError: The saver is open in another thread.
        """
        actor, home = self._actor, self._home
        if actor is None or home is None:
            raise self._closed()
        home.check_thread(self)
        return actor.send_nowait(request)

    async def send(self, request: Request) -> Receipt:
        """Queue an encoded unit, waiting while the channel is full. A cancel here means it was not accepted."""
        return await self._opened().send(request)

    def statistics(self) -> WriterStatistics:
        """Return how full the channel is and what was committed. Raises PersistenceClosedError while closed."""
        if self._actor is None:
            raise self._closed()
        return self._actor.statistics()

    @property
    def lease_owner(self) -> str | None:
        """What this open saver is called in leases; None where the backend keeps none."""
        holdings = self._opened().holdings
        return None if holdings is None else holdings.owner

    async def aopen_thread(self, config: Config) -> tuple[CheckpointTuple | None, LeaseRow | None]:
        """Return what ``aget_tuple`` does, and the thread's lease, from one state of the database."""
        if type(self).aget_tuple is not RowSaver.aget_tuple:  # what a subclass does there counts
            return await self.aget_tuple(config), await self.alease(address(config).thread_id)
        where = address(config)
        actor = self._opened()
        await actor.barrier(where.thread_id)
        page = await self._leasing().load_leased(*where)
        actor.found(page)
        found = self._decoder.decode(page.checkpoints[0], page) if page.checkpoints else None
        return found, page.lease

    async def alease(self, thread_id: str) -> LeaseRow | None:
        """Return a thread's lease; None if it never had one. Raises UnsupportedOperationError where there are none."""
        await self._opened().barrier(thread_id)
        return await self._leasing().lease(thread_id)

    async def aheld_leases(self) -> list[LeaseRow]:
        """Return every lease that is held, be its owner alive or not; likewise."""
        await self._opened().barrier(None)
        return await self._leasing().held_leases()

    async def afree_leases(self, graph: str, after: str = "", limit: int = 1000) -> list[LeaseRow]:
        """Return leases of a graph's threads that are not held, in order of thread ids; likewise.

        Args:
            graph: the graph's name.
            after: only of threads whose id comes later.
            limit: at most so many.

        """
        await self._opened().barrier(None)
        return await self._leasing().free_leases(graph, after, limit)

    def is_dead(self, lease: LeaseRow) -> bool:
        """Tell whether a lease's owner is surely gone: silent for too long, or its process has ended."""
        return lease.seconds_left <= 0 or is_gone(lease.owner)

    def owner_in_words(self, lease: LeaseRow) -> str:
        """Say which process holds a lease, for people who look for it."""
        return in_words(lease.owner, self.lease_owner)

    def _leasing(self) -> LeasingBackend:
        backend = self._backend
        if not keeps_leases(backend):
            message = f"{self!r} keeps no leases: runs of several processes meet when they commit."
            raise UnsupportedOperationError(message)
        return backend

    async def _submit(self, request: Request) -> None:
        receipt = await self._opened().send(request)
        await outlast(receipt.settled)
        if receipt.error is not None:
            raise receipt.error

    async def _load(self, thread_id: str, checkpoint_ns: str, checkpoint_id: str | None) -> Page:
        actor = self._opened()
        await actor.barrier(thread_id)
        page = await self._backend.load(thread_id, checkpoint_ns, checkpoint_id)
        actor.found(page)
        return page

    async def _list(self, query: Query) -> Page:
        await self._opened().barrier(query.thread_id)
        return await self._backend.page(query)

    def _opened(self) -> PersistenceActor:
        if self._actor is None or self._home is None:
            raise self._closed()
        self._home.check(self)
        return self._actor

    def _closed(self) -> PersistenceClosedError:
        return PersistenceClosedError(f"{self!r} is not open: use it inside 'async with saver:' (or 'with saver:').")

    def __repr__(self) -> str:
        """Tell what it keeps its rows in, and whether it is open."""
        state = "closed" if self._home is None else "closing" if self._actor is None else "open"
        return f"<{type(self).__name__} {self._backend!r}, {state}>"
