"""The run that is killed: a chain in a process of its own, whose nodes note what they did where a kill leaves it.

The ledger is a file to which each node appends a byte when its work is done. The kernel holds what was written, so the
ledger of a killed process tells how far it had come, whatever its database knows.
"""

from __future__ import annotations

import os
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import anyio

from benchmarks import peers
from benchmarks.durability.places import Place
from benchmarks.graphs import Counter, chain, config

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

THREAD = "victim"
KILLED_BY = 40
"""The superstep after which no kill comes."""
STEPS = 60
"""Supersteps of the run: on a busy machine a kill may come late, and must not meet a run that is over."""


@dataclass(frozen=True)
class Victim:
    """One run, described so that another process can make it."""

    label: str
    place: Place
    mode: str
    node_ms: float
    ledger: Path
    steps: int = STEPS

    def done(self) -> int:
        """Return how many nodes have done their work, those done again included."""
        return self.ledger.stat().st_size if self.ledger.exists() else 0

    @contextmanager
    def graph(self, side: peers.Side, saver: object) -> Iterator[Any]:
        """Yield the chain; its nodes write to the ledger while it is open."""
        handle = os.open(self.ledger, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
        seconds = self.node_ms / 1_000

        async def node(state: Any) -> dict[str, Any]:
            if seconds:
                await anyio.sleep(seconds)
            os.write(handle, b".")
            return {"count": state["count"] + 1}

        try:
            yield chain(side, self.steps, saver, schema=Counter, node=node)
        finally:
            os.close(handle)

    @property
    def side(self) -> peers.Side:
        """Whose engine runs it."""
        (found,) = peers.sides([self.label])
        return found


def live(victim: Victim) -> None:
    """Run until killed; the process's main function."""

    async def run() -> None:
        async with victim.place.saver(victim.side) as saver:
            with victim.graph(victim.side, saver) as graph:
                await graph.ainvoke({"count": 0}, config(THREAD), durability=victim.mode)

    victim.side.run(run)
    time.sleep(60)  # its end is the kill's, too: what was returned is durable, and the parent sees that it is


async def examine(victim: Victim) -> tuple[int, int]:
    """Return how many supersteps of a killed run are lost, and how many are run again when it goes on.

    Raises RuntimeError if it does not end as if nothing had happened.
    """
    done = victim.done()
    async with victim.place.saver(victim.side) as saver:
        with victim.graph(victim.side, saver) as graph:
            stored = (await graph.aget_state(config(THREAD))).values.get("count")
            given = None if stored is not None else {"count": 0}
            result = await graph.ainvoke(given, config(THREAD), durability="exit")
    if result["count"] != victim.steps:
        message = f"a killed run went on to {result['count']} instead of {victim.steps}"
        raise RuntimeError(message)
    return done - (stored or 0), victim.done() - victim.steps
