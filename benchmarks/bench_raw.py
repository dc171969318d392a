"""How far a durable run is from what SQLite itself needs for the same bytes.

The floor copies the rows that a run left, table by table, into a new file of the same schema through the plain
``sqlite3`` module (WAL, synchronous FULL): once with a commit per checkpoint, as a lone ``sync`` run must, and once
with many checkpoints per commit, as many runs together can.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING

from benchmarks.chains import Load, on_sqlite
from benchmarks.files import fresh_path
from benchmarks.harness import Session, Stopwatch, question
from benchmarks.results import STEP, ratios

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from benchmarks.peers import Side
    from benchmarks.results import Sample

    Rows = list[tuple[object, ...]]

NODES = 20
BATCH = 100


@question("raw", "distance from plain sqlite3 writing the same rows, durability sync")
def raw(session: Session) -> None:
    """Ask it for one run at a time, and for many at once."""
    measure(session, Load(NODES, session.pick(full=10, quick=3)))
    measure(session, Load(NODES, session.pick(full=50, quick=30), together=True))


def measure(session: Session, load: Load) -> None:
    """Compare each side with the floor of its own rows."""
    name = f"{load.runs} runs at once" if load.together else "one run at a time"
    written: dict[str, str] = {}

    def engine(side: Side) -> Sample:
        written[side.label] = path = fresh_path(session.directory)
        return side.run(on_sqlite, side, load, path, "sync")

    sides = [side for side in session.sides if side.backend == "asyncio"]
    engines = session.compare(
        f"{name}, engine", STEP, {side.label: partial(engine, side) for side in sides}, repeats=2, warmups=0
    )
    batch = BATCH if load.together else 1
    floor = {label: partial(copy, written[label], session.directory, batch, load.steps) for label in engines.series}
    floors = session.compare(f"{name}, floor ({batch} per commit)", STEP, floor, repeats=3)
    floors.baseline = None  # each side has rows of its own: their floors are not rivals
    distance = {
        label: ratios(engines.series[label].values, floors.series[label].values)
        for label in engines.series
        if label in floors.series
    }
    session.record(f"{name}, engine / floor", "x", distance)


def copy(source: str, directory: Path, batch: int, steps: int) -> Sample:
    """Time writing a database's rows anew; microseconds per superstep of the run that made them."""
    with closing(sqlite3.connect(source)) as old:
        schema = [sql for (sql,) in old.execute("SELECT sql FROM sqlite_master WHERE sql NOT NULL ORDER BY rowid")]
        rows = {table: old.execute(f"SELECT * FROM {table}").fetchall() for table in tables(old)}  # noqa: S608
        commits = max(1, old.execute("SELECT count(*) FROM checkpoints").fetchone()[0] // batch)
    with closing(sqlite3.connect(fresh_path(directory), isolation_level=None)) as new:
        new.execute("PRAGMA journal_mode = WAL")
        new.execute("PRAGMA synchronous = FULL")
        for sql in schema:
            new.execute(sql)
        shares = list(deal(rows, commits))
        with Stopwatch() as watch:
            for share in shares:
                new.execute("BEGIN IMMEDIATE")
                for statement, part in share:
                    new.executemany(statement, part)
                new.execute("COMMIT")
    return watch.micros.per(steps)


def tables(connection: sqlite3.Connection) -> list[str]:
    """Return the names of a database's own tables."""
    found = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
    return [name for (name,) in found]


def deal(rows: dict[str, Rows], shares: int) -> Iterator[list[tuple[str, Rows]]]:
    """Deal every table's rows into equal shares, each with its INSERT statement."""
    for share in range(shares):
        dealt = []
        for table, all_rows in rows.items():
            part = all_rows[share * len(all_rows) // shares : (share + 1) * len(all_rows) // shares]
            if part:
                marks = ", ".join("?" * len(part[0]))
                dealt.append((f"INSERT INTO {table} VALUES ({marks})", part))  # noqa: S608
        yield dealt
