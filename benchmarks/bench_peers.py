"""Engines of other kinds doing the same work in the same run: a chain of trivial steps, each stored before the next."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from benchmarks.bench_postgres import on_postgres
from benchmarks.chains import Load, on_sqlite, timed_chain
from benchmarks.harness import Session, question
from benchmarks.others import dbos_workflows, pydantic_graphs, restate_services
from benchmarks.results import STEP

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.peers import Side
    from benchmarks.results import Sample

NODES = 20
TOGETHER = 10
"""Nodes of a run where there are many."""


@question("peers", "engines of other kinds on a chain of trivial steps, each stored before the next")
def peers(session: Session) -> None:
    """Ask it without a database, then on each that they have in common, one run at a time and many at once."""
    for engine in (dbos_workflows, pydantic_graphs, restate_services):
        session.note(f"{engine.LABEL}: {'; '.join(engine.settings()) or 'not installed, left out'}")
    session.note("Of LangGraph's savers none runs on Valkey: the one for Redis needs its JSON and search modules.")
    bare(session, Load(NODES, session.pick(full=20, quick=5)))
    for backend in ("sqlite", "postgres"):
        if absence := session.places.missing(backend):
            session.note(absence)
            continue
        stored(session, backend, Load(NODES, session.pick(full=5, quick=2)), repeats=5)
        stored(session, backend, Load(TOGETHER, session.pick(full=50, quick=20), together=True), repeats=3)


def bare(session: Session, load: Load) -> None:
    """Compare what the engines themselves take."""
    found: dict[str, Callable[[], Sample]] = {
        side.label: partial(side.run, timed_chain, side, load) for side in session.sides
    }
    if pydantic_graphs.settings():
        found[pydantic_graphs.LABEL] = partial(pydantic_graphs.sample, load)
    session.compare("no database, 1 run", STEP, found, repeats=5)


def stored(session: Session, backend: str, load: Load, repeats: int) -> None:
    """Compare them on one database, each sample in a place of its own."""

    def ours(side: Side) -> Sample:
        with session.places.fresh(backend) as place:
            work = on_sqlite if backend == "sqlite" else on_postgres
            return side.run(work, side, load, place.address, "sync")

    def dbos() -> Sample:
        with session.places.fresh(backend) as place:
            return dbos_workflows.sample(place, load)

    sides = [side for side in session.sides if side.backend == "asyncio" and (backend == "sqlite" or side.postgres)]
    found: dict[str, Callable[[], Sample]] = {side.label: partial(ours, side) for side in sides}
    if dbos_workflows.settings():
        found[dbos_workflows.LABEL] = dbos
    if backend == "postgres" and restate_services.settings():
        # It keeps a log of its own, behind a server as PostgreSQL is.
        found[restate_services.LABEL] = partial(restate_services.sample, session.directory, load)
    name = f"{load.runs} runs at once" if load.together else "1 run"
    session.compare(f"{backend}, {name}", STEP, found, repeats=repeats)
