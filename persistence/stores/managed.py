"""ManagedStore: what every store of this project shares: planning, embedding, opening and closing, sweeping."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from types import TracebackType
from typing import Any, Self

import anyio
from anyio.abc import TaskGroup

from persistence import portal
from persistence.blocking import BlockingDoor
from persistence.contracts.store import BaseStore, GetOp, IndexConfig, Op, PutOp, Result, SearchOp, TTLConfig
from persistence.errors import PersistenceClosedError
from persistence.outlasting import outlast
from persistence.serde.serializer import Serializer
from persistence.stores.coding import Codec
from persistence.stores.embedding import Index
from persistence.stores.lanes import Lane, LaneStatistics
from persistence.stores.planning import Plan, Planner
from persistence.stores.sweeping import Sweeper
from persistence.stores.ttl import expiry, sweep_interval
from persistence.writer.home import Homed


class ManagedStore(Homed, BlockingDoor, BaseStore):
    """A store that can be open: it then owns a nursery, on one event loop.

    Values are encoded before anything is waited for, so they are stored as they were when they were given, and what
    comes out is nobody else's object.
    """

    supports_ttl = True

    def __init__(
        self,
        *,
        index: IndexConfig | None = None,
        ttl: TTLConfig | None = None,
        serde: Serializer | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Check the configs; nothing is opened yet."""
        self.ttl_config = ttl
        self._expiry = expiry(ttl)
        self._clock = clock
        self._codec = Codec(Serializer() if serde is None else serde)
        self._index = None if index is None else Index(index)
        self._dims = 0 if self._index is None else self._index.dims
        self._planner = Planner(self._codec, self._index, ttl)
        self._sweeper = Sweeper(self.asweep_ttl)
        self._lanes: tuple[Lane[Any], ...] | None = None
        self._nursery: TaskGroup | None = None

    def statistics(self) -> tuple[LaneStatistics, ...]:
        """Return, for each open lane to the database, how full it is and what was done; a store in memory has none."""
        return tuple(lane.statistics() for lane in self._lanes or ())

    def register_types(self, types: Iterable[type]) -> None:
        """Allow values of these types to be stored and rebuilt."""
        self._codec.serde.register_types(types)

    async def __aenter__(self) -> Self:
        """Open the store.

        Raises:
            BackendOpenError: The database cannot be opened; nothing was changed.
            PersistenceError: The store is open already.
        """
        await self._move_in("store", self._open, self._close)
        self._nursery = anyio.create_task_group()
        await self._nursery.__aenter__()
        self._lanes = self._lanes_made()
        for lane in self._lanes:
            self._nursery.start_soon(lane.run, name=f"{lane.name} of {self!r}")
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Stop sweeping, do what was asked for, close. Cancelling the scope around does not cut this short."""
        nursery, home = self._nursery, self._home
        if nursery is None or home is None:
            return
        self._sweeper.cancel()
        try:
            try:
                await self._drain()
            finally:
                await home.leave(nursery, self)
        finally:
            self._nursery = None
            try:
                await self._close()
            finally:
                self._home = None

    @abstractmethod
    async def _open(self) -> None:
        """Connect."""

    def _lanes_made(self) -> tuple[Lane[Any], ...]:
        """Return new lanes to the database, for as long as the store is open; none if whoever asks does the work."""
        return ()

    @abstractmethod
    async def _close(self) -> None:
        """Disconnect, cancelled or not; safe to call again."""

    @abstractmethod
    async def asweep_ttl(self) -> int:
        """Delete what has expired; return how many items that were."""

    def sweep_ttl(self) -> int:
        """See ``asweep_ttl``; blocks."""
        swept: int = self._wait("asweep_ttl")
        return swept

    async def astart_ttl_sweeper(self, sweep_interval_minutes: float | None = None) -> None:
        """Sweep in the background, until it is stopped or the store is closed.

        Args:
            sweep_interval_minutes: how often; None: what the config says, or every five minutes.

        Raises:
            PersistenceClosedError: The store is not open: nothing would own the sweeper.
        """
        if self._nursery is None or self._home is None:
            raise self._closed()
        self._home.check(self)
        given = sweep_interval_minutes
        self._sweeper.start(self._nursery, self._expiry.sweep_minutes if given is None else sweep_interval(given))

    def start_ttl_sweeper(self, sweep_interval_minutes: float | None = None) -> None:
        """See ``astart_ttl_sweeper``; blocks until it has started."""
        self._wait("astart_ttl_sweeper", sweep_interval_minutes)

    async def astop_ttl_sweeper(self, timeout: float | None = None) -> bool:  # noqa: ASYNC109 - LangGraph's parameter
        """Stop sweeping; return whether the sweeper has ended within ``timeout`` seconds."""
        return await self._sweeper.stop(timeout)

    def stop_ttl_sweeper(self, timeout: float | None = None) -> bool:
        """See ``astop_ttl_sweeper``; blocks."""
        stopped: bool = self._wait("astop_ttl_sweeper", timeout)
        return stopped

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """See ``abatch``; blocks."""
        given = list(ops)
        # In place of ``_wait``, which would name abatch() to whoever called get().
        return portal.call(
            lambda: self.abatch(given), at=self.home_token, thread=self.home_thread, instead=async_name(given)
        )

    async def _drain(self) -> None:
        """Accept nothing more and return once all that was accepted is done, cancelled or not."""
        lanes, self._lanes = self._lanes or (), None
        for lane in lanes:
            lane.close()
        for lane in lanes:
            await outlast(lane.stopped.wait)

    def _opened(self) -> tuple[Lane[Any], ...]:
        """Return the lanes. Raises PersistenceClosedError, or SaverLoopError on another event loop."""
        if self._lanes is None or self._home is None:
            raise self._closed()
        self._home.check(self)
        return self._lanes

    async def _planned(self, ops: Iterable[Op]) -> Plan:
        plan = self._planner.plan(ops)
        if self._index is not None:
            stored, searched = plan.texts()
            if stored or searched:
                self._planner.attach(plan, *(await self._index.embedder.vectors(stored, searched)))
        return plan

    def _closed(self) -> PersistenceClosedError:
        return PersistenceClosedError(f"{self!r} is not open: use it inside 'async with store:' (or 'with store:').")


def async_name(ops: Sequence[Op]) -> str:
    """Return the name of the async method that does what a blocking one asked for."""
    op = ops[0] if len(ops) == 1 else None
    if isinstance(op, PutOp):
        return "adelete" if op.value is None else "aput"
    if isinstance(op, GetOp):
        return "aget"
    if isinstance(op, SearchOp):
        return "asearch"
    return "abatch" if op is None else "alist_namespaces"
