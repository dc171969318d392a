"""What a database is asked among few threads and among many: a latest state, a page of history, the newest threads."""

from __future__ import annotations

import importlib
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from benchmarks.harness import Session, Stopwatch, question
from benchmarks.peers import OURS
from benchmarks.results import Sample

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from benchmarks.durability.places import Place
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
NAMES = {"sqlite": "SQLite", "postgres": "PostgreSQL", "valkey": "Valkey"}
ROOMS = {"sqlite": "sqlite", "postgres": "postgres", "valkey": "redis"}
TABLES = ("checkpoints", "checkpoint_writes", "checkpoint_blobs")


class Database(NamedTuple):
    """A kind of database, with places that hold few threads and many."""

    name: str
    side: Side
    places: dict[int, Place]


@question("threads", "latest state, history page and thread listing among few and many threads")
def threads(session: Session) -> None:
    """Ask it on each database, of this engine alone: the storing would take a peer's day."""
    sizes = session.pick(full=(100, 10_000), quick=(60, 600))
    steps = session.pick(full=CHECKPOINTS, quick=10)
    for side in session.sides:
        if side.label == OURS:
            for backend, name in NAMES.items():
                if absent := session.places.missing(backend):
                    session.note(absent)
                    continue
                with ExitStack() as stack:
                    places = {size: stack.enter_context(session.places.fresh(backend)) for size in sizes}
                    measure(session, Database(name, side, places), steps)


def measure(session: Session, kind: Database, steps: int) -> None:
    """Fill each place, then ask the same of all of them in turns."""
    for size, place in kind.places.items():
        for first in range(0, size, TOGETHER):
            kind.side.run(fill, kind.side, place, min(TOGETHER, size - first), steps, first)
        for table in TABLES if place.backend == "postgres" else ():
            # As the server does by itself, in a while.
            session.places.server(place.backend).rows(f"ANALYZE {table}", url=place.address)
    for what, ask in {"latest state": latest, f"page of {PAGE}": page, f"newest {LISTED} of all": newest}.items():
        asked = {
            size: partial(kind.side.run, sample, kind.side, place, ask, size) for size, place in kind.places.items()
        }
        compare(session, f"{kind.name}: {what}", asked)
    what = f"{kind.name}: the {LISTED} threads active last"
    compare(session, what, {size: partial(listing, place) for size, place in kind.places.items()})


def compare(session: Session, what: str, asked: Mapping[int, Callable[[], Sample]]) -> None:
    """Ask among few and among many, and say how much longer it takes there."""
    case = session.compare(what, UNIT, {f"{size:,} threads": ask for size, ask in asked.items()}, repeats=7)
    for label in case.series:
        if (better := case.ratio(label)) is not None:
            session.note(f"{what}: {1 / better.median:.2f} times as long among {label}")


def look(place: Place) -> Any:
    """Open a place as the command line does."""
    found = importlib.import_module(f"persistence.{ROOMS[place.backend]}.listing").look_into
    return found(place.address, prefix=place.prefix) if place.prefix else found(place.address)


async def fill(side: Side, place: Place, count: int, steps: int, first: int) -> None:
    """Store threads as they would be after as many runs, one after the other."""
    crowd = importlib.import_module("tests.persistence.backends.crowds").crowd
    async with place.saver(side) as saver:
        await crowd(saver, count, steps, first=first)


async def sample(side: Side, place: Place, ask: Any, size: int) -> Sample:
    """Time a question to an open saver; the first time, which learns the statement, is not counted."""
    async with place.saver(side) as saver:
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


def listing(place: Place) -> Sample:
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
