"""Commits whose answer is lost: done or not done, nobody can tell, and trying again must be safe."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from typing import Any, Final

import anyio

from persistence.contracts.backend import Request
from persistence.errors import TransientBackendError
from persistence.writer.limits import Limits
from tests.torture.appending.clients import Clients, Work, graph_of
from tests.torture.appending.finding import judged
from tests.torture.appending.kits import OURS
from tests.torture.appending.operations import Log, operations
from tests.torture.appending.places import SHARED, Place, Places, places
from tests.torture.catalog import Report, part

LOOPS: Final = ("asyncio", "trio")
MODES: Final = ("sync", "async", "exit")
LIMITS: Final = Limits(attempts=3, first_delay=0.0005, longest_delay=0.001)
"""So few attempts that some units fail although they are stored."""


class LosingAnswers:
    """A backend whose commits fail after they were done, or before, at random."""

    def __init__(self, inner: Any, dice: random.Random) -> None:
        self._inner = inner
        self._dice = dice
        self.lost = 0
        self.heals = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def commit(self, batch: Sequence[Request]) -> None:
        luck = 1.0 if self.heals else self._dice.random()
        if luck >= 0.15:
            await self._inner.commit(batch)
        if luck < 0.45:
            self.lost += 1
            message = "The answer was lost; the outcome is unknown."
            raise TransientBackendError(message)


@part(
    "lost-answers",
    "A commit whose answer is lost, done or not, is tried again: nothing twice, nothing missing, and threads go on.",
    full=300,
    short=6,
)
def lost_answers(cases: int, seed: int) -> Report:
    """Each case is a history in which almost every second answer is lost."""
    violations: list[str] = []
    lost = 0
    with places() as made:
        every = itertools.cycle(itertools.product(SHARED, LOOPS, MODES))
        for number, (kind, loop, mode) in enumerate(itertools.islice(every, cases)):
            with made.watched(kind) as place:
                work = Work(seed + number, mode, operations=8, faults=True)
                said, answers = anyio.run(_history, made, place, work, backend=loop)
            violations += [f"{kind}, {loop}, {mode}, case {number}: {each}" for each in said]
            lost += answers
    return Report(cases, violations, f"{lost:,} answers lost.")


async def _history(made: Places, place: Place, work: Work) -> tuple[list[str], int]:
    path = made.file("log")
    log, losing = Log(path), list[LosingAnswers]()

    def around(backend: Any) -> LosingAnswers:
        losing.append(LosingAnswers(backend, random.Random(work.seed)))
        return losing[0]

    async with place.opened(LIMITS, around) as saver:
        clients = Clients(work, OURS, saver, log)
        await clients.run()
        losing[0].heals = True
        await clients.finish()
    log.close()
    async with place.opened() as saver:
        found = await judged(graph_of(OURS, saver), work.names(), operations([path]), made.epochs(place))
    return [*clients.unexpected, *found], losing[0].lost
