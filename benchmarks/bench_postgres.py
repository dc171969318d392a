"""What a chain costs on PostgreSQL, one run at a time and many at once."""

from __future__ import annotations

import importlib
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from benchmarks.chains import Load, timed_chain
from benchmarks.harness import Session, question
from benchmarks.results import STEP

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from benchmarks.peers import Side
    from benchmarks.results import Sample

NODES = 20


@question("postgres-one", "a chain of 20 nodes on PostgreSQL, one run at a time")
def postgres_one(session: Session) -> None:
    """Ask it where runs wait for the disk after each superstep, and where they need not."""
    load = Load(NODES, session.pick(full=5, quick=3))
    with database(session) as server:
        for durability in ("sync", "async"):
            session.compare(durability, STEP, contenders(session, server, load, durability), repeats=7)


@question("postgres-many", "a chain of 20 nodes on PostgreSQL, 200 runs at once")
def postgres_many(session: Session) -> None:
    """Ask it for the strictest durability."""
    load = Load(NODES, session.pick(full=200, quick=50), together=True)
    with database(session) as server:
        found = contenders(session, server, load, "sync")
        session.compare(f"{load.runs} runs, sync", STEP, found, repeats=2, warmups=0)


@contextmanager
def database(session: Session) -> Iterator[Any]:
    """Yield a server with durable settings, or None where nobody can take part."""
    if not any(side.postgres for side in session.sides):
        session.note("Nobody takes part: asyncpg is not installed.")
        yield None
        return
    with importlib.import_module("tests.persistence.postgres.server").running("") as server:
        yield server


def contenders(session: Session, server: Any, load: Load, durability: str) -> dict[str, Callable[[], Sample]]:
    """Return each side's contender, which has a schema of its own for every sample."""

    def sample(side: Side) -> Sample:
        with server.schema() as url:
            return side.run(on_postgres, side, load, url, durability)

    return {side.label: partial(sample, side) for side in session.sides if side.postgres}


async def on_postgres(side: Side, load: Load, url: str, durability: str) -> Sample:
    """Time a chain on PostgreSQL; opening and closing the saver are not in the timing."""
    assert side.postgres is not None  # noqa: S101 - who has none is no contender
    async with side.postgres(url) as saver:
        return await timed_chain(side, load, saver, {"durability": durability})
