"""How many supersteps a second many concurrent runs get out of one SQLite file."""

from __future__ import annotations

from benchmarks.chains import Load, on_new_sqlite
from benchmarks.harness import Session, question
from benchmarks.results import STEP

NODES = 10


@question("sqlite-many", "a chain of 10 nodes on SQLite, 200 runs at once")
def sqlite_many(session: Session) -> None:
    """Ask it for each durability, the strictest first."""
    load = Load(NODES, session.pick(full=200, quick=50), together=True)
    for durability in ("sync", "async", "exit"):
        contenders = on_new_sqlite(session.sides, load, session.directory, durability)
        session.compare(f"{load.runs} runs, {durability}", STEP, contenders, repeats=2, warmups=0)
