"""What the leases of a batch do to the stored ones; pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from persistence.errors import LeaseLostError
from persistence.writer.owners import in_words

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from persistence.contracts.backend import CheckpointKey, Rows
    from persistence.contracts.lease import Lease

Stored = tuple[int, str]
"""(epoch, owner)"""


class Move(NamedTuple):
    """What one batch asks of one thread's lease, and makes of it."""

    thread_id: str
    epoch: int
    """What must be stored, with the owner beside it ..."""
    owner: str
    seen_epoch: int
    """... or, where ``fresh``, this (0: nothing)."""
    seen_owner: str
    fresh: bool
    new_epoch: int
    new_owner: str
    graph: str
    held: bool
    writes: bool
    """Whether the stored lease changes."""
    proof: CheckpointKey | None
    """If this checkpoint is stored, the batch was: it is tried again, after an answer that was lost."""

    def accepts(self, stored: Stored | None) -> bool:
        """Tell whether what is stored allows the thread's units."""
        return stored == (self.epoch, self.owner) or (
            self.fresh and (stored or (0, "")) == (self.seen_epoch, self.seen_owner)
        )


def moves(units: Iterable[Rows]) -> list[Move]:
    """Return what the units ask of each thread's lease.

    Raises LeaseLostError if one shows what a later one of the same batch has not seen.
    """
    found: dict[str, Move] = {}
    for unit in units:
        lease = unit.lease
        if lease is None:
            continue
        before = found.get(unit.thread_id)
        proof = unit.checkpoint[:3] if unit.checkpoint is not None else before.proof if before is not None else None
        if before is None:
            found[unit.thread_id] = _first(unit.thread_id, lease, proof)
        elif (before.new_epoch, before.new_owner) == (lease.epoch, lease.owner) or (
            lease.fresh and (before.new_epoch, before.new_owner) == (lease.seen_epoch, lease.seen_owner)
        ):
            changes = lease.fresh or lease.ends  # else it leaves the lease as the units before it make it
            found[unit.thread_id] = before._replace(
                new_epoch=lease.epoch,
                new_owner=lease.owner,
                graph=lease.graph,
                held=not lease.ends if changes else before.held,
                writes=before.writes or changes,
                proof=proof,
            )
        else:
            raise lost({unit.thread_id: (before.new_epoch, before.new_owner)})
    return list(found.values())


def _first(thread_id: str, lease: Lease, proof: CheckpointKey | None) -> Move:
    return Move(
        thread_id,
        lease.epoch,
        lease.owner,
        lease.seen_epoch,
        lease.seen_owner,
        lease.fresh,
        lease.epoch,
        lease.owner,
        lease.graph,
        not lease.ends,
        lease.fresh or lease.ends,
        proof,
    )


def settled(asked: Sequence[Move], stored: Mapping[str, Stored], holds: Callable[[CheckpointKey], bool]) -> list[Move]:
    """Compare what is asked with what is stored; return what is to be written.

    Raises LeaseLostError, naming every thread that was taken over.
    """
    gone: dict[str, Stored | None] = {}
    written: list[Move] = []
    for move in asked:
        found = stored.get(move.thread_id)
        if move.accepts(found):
            if move.writes:
                written.append(move)
        elif move.proof is None or not holds(move.proof):
            gone[move.thread_id] = found
    if gone:
        raise lost(gone)
    return written


def lost(gone: Mapping[str, Stored | None]) -> LeaseLostError:
    """Return the error for threads that others have taken, or deleted."""
    thread_id, found = next(iter(gone.items()))
    by = "it was deleted" if found is None else f"a later run took it (epoch {found[0]}, {in_words(found[1])})"
    error = LeaseLostError(
        f"Thread {thread_id!r} is no longer this run's: {by}. Nothing of this unit was saved. Read the thread's state "
        "and call again if it is still needed."
    )
    error.thread_ids = frozenset(gone)
    return error
