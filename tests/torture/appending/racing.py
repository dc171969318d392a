"""Two processes that do the same work on the same threads at once."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Final

import anyio

from tests.crash.zygote import Zygote
from tests.torture.appending import processes
from tests.torture.appending.clients import Work, graph_of
from tests.torture.appending.finding import judged
from tests.torture.appending.kits import OURS
from tests.torture.appending.operations import Operation, facts, operations
from tests.torture.appending.places import Kind, Places
from tests.torture.appending.processes import StartingLine

LOOPS: Final = ("asyncio", "trio")


def race(
    made: Places, zygote: Zygote, kind: Kind, work: Work, *, clocks: tuple[int, int] = (0, 0)
) -> tuple[list[str], list[Operation]]:
    """Run both to their end; return what is wrong, and what they did. ``clocks`` are seeds of clocks that jump."""
    line, logs = StartingLine(made.file("line")), [made.file("log"), made.file("log")]
    works = [replace(work, process=number) for number in range(2)]
    with made.watched(kind) as place:
        with line.kept(2):
            running = [
                processes.start(zygote, place, own, log, loop=loop, line=line, clock=clock)
                for own, log, loop, clock in zip(works, logs, LOOPS, clocks, strict=True)
            ]
        for each in running:
            each.succeed()
        history = operations(logs)

        async def judge() -> list[str]:
            async with place.opened() as saver:
                return await judged(graph_of(OURS, saver), work.names(), history, made.epochs(place))

        said = anyio.run(judge)
    return [*itertools.chain(*(facts(log)["unexpected"] for log in logs)), *said], history
