"""What a database is asked among few threads and among many: a latest state, a page of history, the newest threads."""

from __future__ import annotations

import importlib
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from benchmarks.bench_postgres import database
from benchmarks.files import fresh_path
from benchmarks.harness import Session, Stopwatch, question
from benchmarks.peers import OURS
from benchmarks.results import Sample

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.peers import Side

CHECKPOINTS = 100
"""Of each thread."""
PAGE = 20
LISTED = 50
ASKED = 20
"""Times that each is asked in a sample, of threads all over the database."""
TOGETHER = 500
"""Threads that are stored in one go."""
UNIT = "µs/query"


class Database(NamedTuple):
    """A kind of database, with places that hold few threads and many."""

    name: str
    side: Side
    opening: Callable[[str], Any]
    places: dict[int, str]
    server: Any = None

    def look(self, place: str) -> Any:
        """Open a place as the command line does."""
        room = "sqlite" if self.server is None else "postgres"
        return importlib.import_module(f"persistence.{room}.listing").look_into(place)


@question("threads", "latest state, history page and thread listing among few and many threads")
def threads(session: Session) -> None:
    """Ask it on SQLite and on PostgreSQL, of this engine alone: the storing would take a peer's day."""
    sizes = session.pick(full=(100, 10_000), quick=(60, 600))
    steps = session.pick(full=CHECKPOINTS, quick=10)
    for side in session.sides:
        if side.label == OURS:
            files = {size: fresh_path(session.directory) for size in sizes}
            measure(session, Database("SQLite", side, side.sqlite, files), steps)
            with database(session) as server:
                if side.postgres is not None:
                    with server.schema() as few, server.schema() as many:
                        schemas = dict(zip(sizes, (few, many), strict=True))
                        measure(session, Database("PostgreSQL", side, side.postgres, schemas, server), steps)


def measure(session: Session, kind: Database, steps: int) -> None:
    """Fill each place, then ask the same of all of them in turns."""
    for size, place in kind.places.items():
        for first in range(0, size, TOGETHER):
            kind.side.run(fill, kind.opening, place, min(TOGETHER, size - first), steps, first)
        for table in ("checkpoints", "checkpoint_writes", "checkpoint_blobs") if kind.server is not None else ():
            kind.server.rows(f"ANALYZE {table}", url=place)  # as the server does by itself, in a while
    for what, ask in {"latest state": latest, f"page of {PAGE}": page, f"newest {LISTED} of all": newest}.items():
        compare(
            session,
            f"{kind.name}: {what}",
            {
                size: partial(kind.side.run, sample, kind.opening, place, ask, size)
                for size, place in kind.places.items()
            },
        )
    what = f"{kind.name}: the {LISTED} threads active last"
    compare(session, what, {size: partial(listing, kind.look, place) for size, place in kind.places.items()})


def compare(session: Session, what: str, asked: dict[int, Callable[[], Sample]]) -> None:
    """Ask among few and among many, and say how much longer it takes there."""
    case = session.compare(what, UNIT, {f"{size:,} threads": ask for size, ask in asked.items()}, repeats=7)
    found = [min(series.values) for series in case.series.values()]
    if len(found) == len(asked):
        session.note(f"{what}: {found[-1] / found[0]:.2f} times as long among many threads")


async def fill(opening: Callable[[str], Any], place: str, count: int, steps: int, first: int) -> None:
    """Store threads as they would be after as many runs, one after the other."""
    crowd = importlib.import_module("tests.persistence.backends.crowds").crowd
    async with opening(place) as saver:
        await crowd(saver, count, steps, first=first)


async def sample(opening: Callable[[str], Any], place: str, ask: Any, size: int) -> Sample:
    """Time a question to an open saver; the first time, which learns the statement, is not counted."""
    async with opening(place) as saver:
        await ask(saver, 0)
        with Stopwatch() as watch:
            for number in range(ASKED):
                await ask(saver, number * 7919 % size)
    return watch.micros.per(ASKED)


async def latest(saver: Any, thread: int) -> object:
    """Load the newest checkpoint of a thread."""
    return await saver.aget_tuple(config(thread))


async def page(saver: Any, thread: int) -> object:
    """Load a page of a thread's history."""
    return [one async for one in saver.alist(config(thread), limit=PAGE)]


async def newest(saver: Any, _: int) -> object:
    """Load the newest checkpoints of all threads."""
    return [one async for one in saver.alist(None, limit=LISTED)]


def listing(look: Callable[[str], Any], place: str) -> Sample:
    """Time what the command line asks for."""
    with look(place) as opened:
        opened.threads(LISTED)
        with Stopwatch() as watch:
            for _ in range(ASKED):
                opened.threads(LISTED)
    return watch.micros.per(ASKED)


def config(thread: int) -> dict[str, Any]:
    """Address a thread of the crowd."""
    name = importlib.import_module("tests.persistence.backends.crowds").name
    return {"configurable": {"thread_id": name(thread), "checkpoint_ns": ""}}
