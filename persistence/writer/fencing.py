"""Fencing: a unit that follows a head is stored only if that head is still the newest; pure.

Two processes that run one thread both read its head and go on from there. The first to commit wins; the other must
learn it instead of forking the thread in silence. So the head is compared inside the transaction that stores the unit.

A fork follows another checkpoint than the head, and rests on what that one rests on. So it must be there too: a fork
from what was pruned meanwhile would be the newest checkpoint, and could not be read.

What follows no head may need another checkpoint all the same: what a task wrote, the one that it worked on; the first
checkpoint of a namespace, one of the graphs around it. Else it would bring back a thread that was deleted meanwhile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from persistence.errors import CheckpointConflictError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from persistence.contracts.backend import CheckpointKey, CheckpointRow


class Base(NamedTuple):
    """What must be there for a unit to be stored, beside a head."""

    key: CheckpointKey
    """A checkpoint; with an id of ``""``, its namespace must have none."""
    own: CheckpointKey | None
    """The unit's checkpoint: if it is stored, the unit is tried again, and passes."""
    before: str = ""
    """Where there must be none: the newest checkpoint that the batch itself stores there before the unit."""


def check_heads(
    moves: Iterable[tuple[CheckpointRow, str | None]],
    head_of: Callable[[str, str], str | None],
    holds: Callable[[CheckpointKey], bool],
) -> None:
    """Compare what units expect with what is stored, before they are.

    ``moves`` are the checkpoints about to be stored, in order, each with the head it expects; ``head_of`` and
    ``holds`` ask the database. A checkpoint that is stored already is one that is tried again, and passes.

    Raises:
        CheckpointConflictError: The newest checkpoint is not the expected one, or what a fork starts from is gone.
    """
    moves = list(moves)
    for row in forks(moves):
        if not holds(origin(row)) and not holds(row[:3]):
            raise CheckpointConflictError(uprooted(row))
    coming: dict[tuple[str, str], str] = {}
    for row, expected in moves:
        thread_id, ns, checkpoint_id = row[:3]
        place = (thread_id, ns)
        if expected is not None:
            head = max(head_of(thread_id, ns) or "", coming.get(place, ""))
            if head != expected and not holds(row[:3]):
                message = (
                    f"Thread {thread_id!r}, namespace {ns!r} has moved on: another writer stored checkpoint "
                    f"{head or 'none'} where {expected or 'none'} was expected. Checkpoint {checkpoint_id} was not "
                    "saved; load the thread again and repeat the call."
                )
                raise CheckpointConflictError(message)
        coming[place] = max(checkpoint_id, coming.get(place, ""))


def check_bases(
    bases: Iterable[Base], head_of: Callable[[str, str], str | None], holds: Callable[[CheckpointKey], bool]
) -> None:
    """Raise CheckpointConflictError if something is not there that a unit rests on, or is where none must be."""
    for base in bases:
        key = base.key
        sound = holds(key) if key[2] else not (base.before or head_of(*key[:2]))
        if not sound and not (base.own is not None and holds(base.own)):
            raise CheckpointConflictError(baseless(base))


def forks(moves: Iterable[tuple[CheckpointRow, str | None]]) -> list[CheckpointRow]:
    """Return the checkpoints that start elsewhere than at the head they expect, and at none that comes before them."""
    before: set[CheckpointKey] = set()
    found: list[CheckpointRow] = []
    for row, expected in moves:
        parent = row[3]
        if expected is not None and parent is not None and parent != expected and origin(row) not in before:
            found.append(row)
        before.add(row[:3])
    return found


def origin(row: CheckpointRow) -> CheckpointKey:
    """Return the key of the checkpoint that a fork starts from."""
    return row[0], row[1], row[3] or ""


def uprooted(row: CheckpointRow) -> str:
    """Return what to say of a fork whose start is gone."""
    thread_id, ns, checkpoint_id, parent = row[:4]
    return (
        f"Thread {thread_id!r}, namespace {ns!r}: checkpoint {parent} is gone, pruned or deleted by another writer "
        f"while a fork started from it. Checkpoint {checkpoint_id} was not saved; fork from one that is still there."
    )


def baseless(base: Base) -> str:
    """Return what to say of a unit that does not find what it rests on."""
    thread_id, ns, checkpoint_id = base.key
    if not checkpoint_id:
        return (
            f"Thread {thread_id!r}, namespace {ns!r} has moved on: another writer has begun it while a run was at work "
            "on it. What the run stores beside it was not saved; load the thread again and repeat the call."
        )
    return (
        f"Thread {thread_id!r}, namespace {ns!r}: checkpoint {checkpoint_id} is gone, pruned or deleted by another "
        "writer while a run was at work on it. What rests on it was not saved."
    )
