"""Databases that hold many threads, as they would be after as many runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from persistence.contracts.checkpoint import Unit
from tests.persistence.writer.samples import checkpoint

if TYPE_CHECKING:
    from persistence.writer.receipts import Receipt
    from persistence.writer.saver import GroupCommitSaver

UNDER_WAY = 512
"""Units sent before their receipts are waited for."""


def name(thread: int) -> str:
    """Return the name of a thread."""
    return f"thread {thread:05}"


def checkpoint_id(thread: int, step: int, steps: int) -> str:
    """Return an id that grows with time: one thread ran after the other."""
    return f"{thread * steps + step:012}"


async def crowd(saver: GroupCommitSaver, threads: int, steps: int, *, first: int = 0) -> None:
    """Store so many threads of so many checkpoints, each with two values and a write."""
    under_way: list[Receipt] = []
    for thread in range(first, first + threads):
        parent: str | None = None
        for step in range(steps):
            here = checkpoint_id(thread, step, steps)
            values = {"log": [f"step {step}"] * 5, "count": step}
            versions = {"log": here, "count": here}
            facts = {"source": "loop", "step": step, "parents": {}}
            unit = Unit(name(thread), "", [], checkpoint(here, values, versions), parent, facts, values)
            under_way.append(await saver.send(saver.encode(unit)))
            parent = here
            if len(under_way) == UNDER_WAY:
                for receipt in under_way:
                    await receipt.wait()
                under_way.clear()
    for receipt in under_way:
        await receipt.wait()
