"""What checkpointing itself costs, with no disk under it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from benchmarks.chains import Load, timed_chain
from benchmarks.graphs import DURABILITIES
from benchmarks.harness import Session, question
from benchmarks.results import STEP

if TYPE_CHECKING:
    from benchmarks.peers import Side
    from benchmarks.results import Sample

NODES = 20


@question("memory-saver", "the chain with InMemorySaver")
def memory_saver(session: Session) -> None:
    """Ask it for each durability."""
    load = Load(NODES, session.pick(full=10, quick=5))
    for durability in DURABILITIES:
        contenders = {side.label: partial(side.run, in_memory, side, load, durability) for side in session.sides}
        session.compare(durability, STEP, contenders, repeats=7)


async def in_memory(side: Side, load: Load, durability: str) -> Sample:
    """Time a chain on a new saver; microseconds per superstep."""
    return await timed_chain(side, load, side.memory(), {"durability": durability})
