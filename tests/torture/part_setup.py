"""Processes and their tasks set up one empty database of PostgreSQL, all at once."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import anyio
import anyio._backends._asyncio  # anyio imports them at the first run, which every child's is
import anyio._backends._trio

from persistence.postgres import PostgresSaver
from tests.crash.zygote import Zygote
from tests.persistence.writer.samples import put
from tests.torture.appending.places import Places, places
from tests.torture.appending.processes import StartingLine
from tests.torture.catalog import Report, part
from tests.torture.seeded import LOOPS

TASKS: Final = 8
"""In each of two processes, one on each event loop."""

MIGRATED: Final = "SELECT v FROM checkpoint_migrations ORDER BY v"
STORED: Final = "SELECT count(*) FROM checkpoints"


@part(
    "setup",
    "Two processes with eight tasks each set up an empty database of PostgreSQL at once: all can, and it is done once.",
    full=20,
    short=2,
)
def setup(cases: int, seed: int) -> Report:
    """Each case is an empty database; the seed changes nothing, the order is the processes' own."""
    del seed
    violations: list[str] = []
    with places() as made, Zygote(made.file("errors"), (__name__,)) as zygote:
        for number in range(cases):
            violations += [f"round {number}: {each}" for each in _round(made, zygote)]
    return Report(cases, violations)


def _round(made: Places, zygote: Zygote) -> list[str]:
    """Have two processes set up an empty schema, and return what is wrong with it."""
    line = StartingLine(made.file("line"))
    with made.place("postgres") as place:
        with line.kept(len(LOOPS)):
            given = {"where": place.where, "line": str(line.path)}
            running = [zygote.start(set_up, **given, loop=loop, name=loop) for loop in LOOPS]
        failed = [
            f"one on {loop} ended with {code}"
            for loop, each in zip(LOOPS, running, strict=True)
            if (code := each.wait())
        ]
        if failed:
            return [*failed, zygote.errors()]
        migrated = made.server.rows(MIGRATED, url=place.where)
        wanted = [(number,) for number in range(1, len(migrated) + 1)]
        wrong = [] if migrated and migrated == wanted else [f"the migrations are {migrated}"]
        stored = made.server.rows(STORED, url=place.where)[0][0]
        return wrong if stored == TASKS * len(LOOPS) else [*wrong, f"{stored} checkpoints are there"]


def set_up(where: str, line: str, loop: str, name: str) -> None:
    """Be a process whose tasks set up the database and use it at once."""

    async def one(number: int) -> None:
        async with PostgresSaver(where, pool_size=1) as saver:
            await saver.asetup()
            await put(saver, "1", {"a": [number]}, thread_id=f"{name} {number}")

    async def main() -> None:
        StartingLine(Path(line)).wait()
        async with anyio.create_task_group() as group:
            for number in range(TASKS):
                group.start_soon(one, number)

    anyio.run(main, backend=loop)
