"""Leases: who may write to a thread, where several processes share a database.

A lease has an epoch, which grows by one with each run that takes the thread. Every unit of a run shows the run's epoch,
and the transaction that stores the unit compares it with the stored one: a run whose thread was taken over cannot write
any more, however late its units arrive. That is what keeps a thread one line; clocks only decide when a silent owner's
thread may be taken. An owner is an open saver; while it holds leases, it says every few seconds that it lives.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import msgspec


class Lease(msgspec.Struct, frozen=True):
    """What a unit shows, so that it is stored."""

    epoch: int
    owner: str
    graph: str
    """Name of the graph whose run it is: who else could go on with it, if the run dies."""
    seen_epoch: int = 0
    """What was stored when the run began, 0 for nothing: if it still is, the unit takes the thread over."""
    seen_owner: str = ""
    fresh: bool = False
    """Whether the unit may take the thread: none of its run's units is known to be stored."""
    ends: bool = False
    """Whether the thread is free once the unit is stored."""


class LeaseRow(NamedTuple):
    """A stored lease."""

    thread_id: str
    epoch: int
    owner: str
    graph: str
    held: bool
    """Whether the run that took it has not let go of it."""
    seconds_left: float
    """Until its owner counts as dead, by the database's clock; not above zero once it does."""


class LeaseBook(Protocol):
    """A saver whose threads have leases."""

    lease_owner: str
    """What this open saver is called in leases."""

    async def alease(self, thread_id: str) -> LeaseRow | None:
        """Return a thread's lease; None if none was ever taken."""
        ...

    async def aheld_leases(self) -> list[LeaseRow]:
        """Return every lease that is held, be its owner alive or not."""
        ...

    async def afree_leases(self, graph: str, after: str = "", limit: int = 1000) -> list[LeaseRow]:
        """Return leases of a graph's threads that are not held, in order of thread ids, from behind ``after`` on."""
        ...

    def is_dead(self, lease: LeaseRow) -> bool:
        """Tell whether a lease's owner is surely gone: it has been silent for too long, or its process has ended."""
        ...

    def owner_in_words(self, lease: LeaseRow) -> str:
        """Say which process holds a lease, for people who look for it."""
        ...
