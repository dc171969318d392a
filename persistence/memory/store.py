"""InMemoryStore: long-term memory for tests, notebooks and programs that need it no longer than they run."""

from __future__ import annotations

import time
from threading import Lock
from typing import TYPE_CHECKING, Final

from persistence.memory.shelves import Shelves
from persistence.stores.carrying_out import Reader, write
from persistence.stores.managed import ManagedStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from persistence.contracts.store import IndexConfig, Op, Result, TTLConfig
    from persistence.serde.serializer import Serializer
    from persistence.stores.planning import Plan


class InMemoryStore(ManagedStore):
    """Keeps encoded items in this process's memory.

    Values are encoded like in a database, so no two readers share an object and whatever works here works there. It
    needs no opening (only its sweeper does), and any event loop and thread may use it at once, with either door.
    """

    inline: Final = True

    def __init__(
        self,
        *,
        index: IndexConfig | None = None,
        ttl: TTLConfig | None = None,
        serde: Serializer | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Make an empty store.

        ``index`` says how to search by meaning, ``ttl`` when items expire. ``serde`` turns values into bytes, with the
        safe defaults if it is None. ``clock`` tells the seconds by which items expire.
        """
        super().__init__(index=index, ttl=ttl, serde=serde, clock=clock)
        self._shelves = Shelves()
        self._lock = Lock()

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Carry out operations together; returns one result each, None for puts."""
        return self._carry_out(await self._planned(ops))

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """See ``abatch``. Waits for nothing but the embedding."""
        plan = self._planner.plan(ops)
        if self._index is not None:
            stored, searched = plan.texts()
            if stored or searched:
                self._planner.attach(plan, *self._index.embedder.vectors_here(stored, searched))
        return self._carry_out(plan)

    async def asweep_ttl(self) -> int:
        """Delete what has expired; return how many items that were."""
        return self.sweep_ttl()

    def sweep_ttl(self) -> int:
        """See ``asweep_ttl``."""
        with self._lock:
            return self._shelves.sweep(self._clock())

    def _carry_out(self, plan: Plan) -> list[Result]:
        now = self._clock()
        with self._lock:
            reading = Reader(self._shelves, self._codec, self._dims, now).read(plan)
            write(self._shelves, reading.refreshes, plan.puts, self._dims, now)
        return reading.results

    async def _open(self) -> None:
        """Do nothing: it always is."""

    async def _close(self) -> None:
        """Keep everything: the store can be used again."""

    def __repr__(self) -> str:
        """Tell how much it holds."""
        return f"<InMemoryStore: {len(self._shelves)} items>"
