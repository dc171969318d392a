"""Graphs and operations by chance, on the engine and on the reference, under a scheduler by chance."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from persistence.memory import InMemorySaver
from persistence.writer.saver import GroupCommitSaver
from tests.crash.slow_backend import SlowBackend
from tests.model.playing import Play
from tests.model.shapes import shape_by
from tests.torture.catalog import Report, part
from tests.torture.seeded import LOOPS, run_seeded

OPERATIONS = 12
"""What is done to one thread."""


@part(
    "model",
    "Whatever the graph and whatever is done to a thread, states, next, questions, history and parents are those of a "
    "reference of 280 lines.",
    full=4_000,
    short=60,
)
def model(cases: int, seed: int) -> Report:
    """Play so many threads."""
    chance, violations, operations = random.Random(seed), list[str](), 0
    for _ in range(cases):
        play = chance.getrandbits(32)
        try:
            operations += played(play)
        except Exception as error:  # noqa: BLE001 - whatever goes wrong is what is looked for
            violations.append(f"play {play}: {type(error).__name__}: {error}")
    return Report(cases, violations, f"({operations:,} operations on as many graphs as cases.)")


def played(seed: int) -> int:
    """Play one thread; return how many operations were compared."""
    chance = random.Random(seed)
    shape, kind, loop = shape_by(chance), chance.choice(["memory", "slow"]), chance.choice(LOOPS)

    async def story() -> int:
        async with _opened(kind) as saver:
            play = Play(shape, saver)
            for _ in range(OPERATIONS):
                await play.by(chance)
            return len(play.done)

    return run_seeded(loop, seed, story)


@asynccontextmanager
async def _opened(kind: str) -> AsyncIterator[Any]:
    if kind == "memory":
        yield InMemorySaver()
        return
    async with GroupCommitSaver(SlowBackend(0.01)) as saver:
        yield saver
