"""Clients do everything that can be done to a thread, at random and at once; nothing is lost, doubled or moved."""

from __future__ import annotations

import itertools
from typing import Final

import anyio

from tests.torture.appending.clients import Clients, Work, graph_of
from tests.torture.appending.finding import judged
from tests.torture.appending.kits import OURS
from tests.torture.appending.operations import Log, operations
from tests.torture.appending.places import KINDS, Place, Places, places
from tests.torture.catalog import Report, part

LOOPS: Final = ("asyncio", "trio")
MODES: Final = ("sync", "async", "exit")


@part(
    "list-append",
    "Whatever clients do at once: what was acknowledged is there once, in order, one child a parent, no epoch falls.",
    full=360,
    short=8,
)
def list_append(cases: int, seed: int) -> Report:
    """Each case is a history of its own, on one backend, event loop and mode after the other."""
    violations: list[str] = []
    calls = rows = 0
    with places() as made:
        every = itertools.cycle(itertools.product(KINDS, LOOPS, MODES))
        for number, (kind, loop, mode) in enumerate(itertools.islice(every, cases)):
            with made.watched(kind) as place:
                told, count = anyio.run(_history, made, place, Work(seed + number, mode), backend=loop)
                rows += len(made.epochs(place))
            violations += [f"{kind}, {loop}, {mode}, case {number}: {each}" for each in told]
            calls += count
    return Report(cases, violations, f"{calls:,} calls; {rows:,} rows, each of the epoch in force.")


async def _history(made: Places, place: Place, work: Work) -> tuple[list[str], int]:
    path = made.file("log")
    log = Log(path)
    async with place.opened() as saver:
        clients = Clients(work, OURS, saver, log)
        await clients.run()
        log.close()
        history = operations([path])
        found = await judged(clients.graph, work.names(), history, made.epochs(place))
    # Once more, as a process finds it that has written none of it.
    if place.kind != "memory":
        async with place.opened() as saver:
            found += await judged(graph_of(OURS, saver), work.names(), history, made.epochs(place))
    return [*clients.unexpected, *found], len(history)
