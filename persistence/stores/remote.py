"""RemoteStore: what stores on a server share, whichever server it is."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Generic, NamedTuple, TypeVar

from persistence.contracts.store import IndexConfig, Op, Result, TTLConfig
from persistence.errors import BackendError, TransientBackendError
from persistence.serde.serializer import Serializer
from persistence.stores.lanes import Failed, Lane
from persistence.stores.managed import ManagedStore
from persistence.stores.planning import Plan, Put
from persistence.stores.sweeping import SWEPT
from persistence.writer.remote import Remote

S = TypeVar("S")
R = TypeVar("R")


class Changes(NamedTuple, Generic[R]):
    """What a batch leads to."""

    refreshes: Sequence[R]
    """Items that were read, whose time to live starts again."""
    puts: Sequence[Put]
    now: float


class RemoteStore(ManagedStore, Generic[S, R]):
    """A store whose batches read on sessions of a server, and write through one lane."""

    def __init__(
        self,
        server: Remote[S],
        *,
        index: IndexConfig | None,
        ttl: TTLConfig | None,
        serde: Serializer | None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Describe a store on a server; nothing is opened yet."""
        super().__init__(index=index, ttl=ttl, serde=serde, clock=clock)
        self._remote = server

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Carry out operations together; returns one result each, None for puts.

        Reads see the state before the batch's puts. Puts are one transaction, where the server has transactions.
        Cancelled once they are on their way, they are done all the same, and the cancel arrives after that; before
        that, nothing is.

        Raises:
            PersistenceClosedError: The store is not open.
            SaverLoopError: It is open on another event loop.
            TransientBackendError: The server could not be reached for too long.
            BackendError: The server refused.
        """
        (writes,) = self._opened()
        given = list(ops)
        plan = await self._planned(given)
        if not plan.size:
            return []
        now = self._clock()
        results: list[Any] = [None] * plan.size
        refreshes: Sequence[R] = ()
        if plan.reads:
            results, refreshes = await self._remote.read(partial(self._look, plan=plan, given=given, now=now))
        if plan.puts or refreshes:
            await writes.order(Changes(refreshes, plan.puts, now))
        return results

    async def asweep_ttl(self) -> int:
        """Delete what has expired; return how many items that were."""
        self._opened()
        now, swept = self._clock(), 0
        while True:
            found = await self._remote.persist(partial(self._sweep, now=now))
            swept += found
            if found < SWEPT:
                return swept

    @abstractmethod
    async def _look(self, session: S, *, plan: Plan, given: Sequence[Op], now: float) -> tuple[list[Any], Sequence[R]]:
        """Return the results of a plan's reads, None in the places of its puts, and what they refresh."""

    @abstractmethod
    async def _change(self, session: S, *, changes: Sequence[Changes[R]]) -> None:
        """Apply what several batches lead to, in order and together."""

    @abstractmethod
    async def _sweep(self, session: S, *, now: float) -> int:
        """Delete up to ``SWEPT`` expired items; return how many that were."""

    def _lanes_made(self) -> tuple[Lane[Any], ...]:
        return (Lane(self._write),)

    async def _close(self) -> None:
        await self._remote.close()

    async def _write(self, works: Sequence[Changes[R]]) -> Sequence[Any]:
        """Write what many asked for together; if that is refused, each alone."""
        try:
            await self._remote.persist(partial(self._change, changes=works))
        except TransientBackendError:
            raise
        except BackendError:
            if len(works) == 1:
                raise
            return [await self._alone(work) for work in works]
        return [None] * len(works)

    async def _alone(self, work: Changes[R]) -> Failed[Changes[R]] | None:
        try:
            await self._remote.persist(partial(self._change, changes=(work,)))
        except BackendError as error:
            return Failed(error)
        return None

    def __repr__(self) -> str:
        """Name the server without its password, and tell whether it is open."""
        return f"<{type(self).__name__} {self._remote.name}, {'closed' if self._home is None else 'open'}>"
