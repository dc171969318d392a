"""What durability adds when one run at a time is on SQLite."""

from __future__ import annotations

from benchmarks.chains import Load, on_new_sqlite
from benchmarks.graphs import DURABILITIES
from benchmarks.harness import Session, question
from benchmarks.results import STEP, ratios

NODES = 20


@question("sqlite-one", "the chain on SQLite, one run at a time", short=True)
def sqlite_one(session: Session) -> None:
    """Ask it for each durability, and what the stricter ones cost over ``exit``."""
    load = Load(NODES, session.pick(full=5, quick=3))
    cases = {}
    for durability in DURABILITIES:
        contenders = on_new_sqlite(session.sides, load, session.directory, durability)
        cases[durability] = session.compare(durability, STEP, contenders, repeats=7)
    lazy = cases["exit"].series
    for stricter in ("async", "sync"):
        found = cases[stricter].series
        values = {label: ratios(found[label].values, lazy[label].values) for label in found if label in lazy}
        session.record(f"{stricter} / exit", "x", values)
