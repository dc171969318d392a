"""How many bytes a long thread leaves on disk, and how long reading its latest state takes.

LangGraph is asked twice: as most programs are written (a list with ``operator.add``) and with its DeltaChannel, which
is made for lists like this one.
"""

from __future__ import annotations

import operator
import random
import sqlite3
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

from benchmarks import peers
from benchmarks.files import fresh_path
from benchmarks.graphs import Log, config, looping
from benchmarks.harness import Session, Stopwatch, question
from benchmarks.results import Sample, ratios
from persistence.sqlite import SqliteSaver

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.peers import Side

TEXT_BYTES = 200
READS = 20
BYTES = "bytes per step"


@question("storage", "one thread that appends 200 bytes a superstep, on SQLite", short=True)
def storage(session: Session) -> None:
    """Ask it for n appends and for twice as many, and what pruning leaves."""
    measure(session, session.pick(full=500, quick=100))
    pruned(session, session.pick(full=1_000, quick=200))


def measure(session: Session, appends: int) -> None:
    """Compare bytes, their growth when the thread doubles, writing time and reading time."""
    contenders = {side.label: (side, Log) for side in session.sides if side.backend == "asyncio"}
    for side in session.sides:
        if side.delta is not None:
            contenders[f"{side.label}, DeltaChannel"] = (side, delta_log(side.delta))
    sizes = {}
    for count in (appends // 4, appends // 2, appends, 2 * appends):
        at: dict[str, str | float] = {"steps": count}
        paths = {label: fresh_path(session.directory) for label in contenders}
        write = {
            label: partial(side.run, append, side, schema, paths[label], count)
            for label, (side, schema) in contenders.items()
        }
        wrote = session.compare(f"{count} appends, write", "µs/step", write, repeats=1, warmups=0, at=at)
        sizes[count] = {label: [float(on_disk(path))] for label, path in paths.items() if label in wrote.series}
        session.record(f"{count} appends, on disk", "bytes", sizes[count], next(iter(contenders)), at)
        each = {label: [value / count for value in values] for label, values in sizes[count].items()}
        session.record(f"{count} appends, bytes per step", BYTES, each, at=at)
        read = {
            label: partial(side.run, latest, side, schema, paths[label], count)
            for label, (side, schema) in contenders.items()
        }
        session.compare(f"{count} appends, read latest", "µs/read", read, repeats=5, at=at)
    smaller, larger = sizes[appends], sizes[2 * appends]
    growth = {label: ratios(larger[label], smaller[label]) for label in larger if label in smaller}
    session.record("bytes for twice the steps", "x", growth)


def pruned(session: Session, appends: int) -> None:
    """Say how long this project's saver takes to keep only the latest checkpoint, and what is left to read."""
    side = peers.actorgraph()
    path = fresh_path(session.directory)
    filled = session.compare(
        f"{appends} appends, to be pruned",
        "µs/step",
        {side.label: partial(side.run, append, side, Log, path, appends)},
        repeats=1,
        warmups=0,
    )
    if side.label not in filled.series:
        return
    before = in_use(path)
    session.compare(f"prune of {appends}", "µs", {side.label: partial(side.run, prune, path)}, repeats=1, warmups=0)
    session.record(f"left of {appends} by pruning", "of the bytes", {side.label: [in_use(path) / before]})
    session.compare(
        f"{appends} appends, read latest, pruned",
        "µs/read",
        {side.label: partial(side.run, latest, side, Log, path, appends)},
        repeats=5,
    )


async def prune(path: str) -> Sample:
    """Keep only the latest checkpoint of the thread; microseconds."""
    async with SqliteSaver(path) as saver:
        with Stopwatch() as watch:
            await saver.aprune(["log"], strategy="keep_latest")
    return watch.micros


def in_use(path: str) -> int:
    """Return the bytes of a database that hold something: a file does not shrink by itself."""
    with closing(sqlite3.connect(path)) as connection:
        pages, free, size = (
            int(connection.execute(f"PRAGMA {name}").fetchone()[0])
            for name in ("page_count", "freelist_count", "page_size")
        )
    return (pages - free) * size


async def append(side: Side, schema: Any, path: str, count: int) -> Sample:
    """Run the appends in one run and one thread, in mode ``async``; microseconds per append."""
    async with side.sqlite(path) as saver:
        graph = looping(side, schema, add_line, count, saver)
        with Stopwatch() as watch:
            result = await graph.ainvoke({"count": 0, "lines": []}, config("log"), durability="async")
    check(result, count)
    return watch.micros.per(count)


async def latest(side: Side, schema: Any, path: str, count: int) -> Sample:
    """Read the latest state of the thread with a saver opened anew; microseconds per read."""
    async with side.sqlite(path) as saver:
        graph = looping(side, schema, add_line, count, saver)
        check((await graph.aget_state(config("log"))).values, count)
        with Stopwatch() as watch:
            for _ in range(READS):
                await graph.aget_state(config("log"))
    return watch.micros.per(READS)


async def add_line(state: dict[str, Any]) -> dict[str, Any]:
    """Append one text that does not compress."""
    number = state["count"]
    return {"count": number + 1, "lines": [random.Random(number).randbytes(TEXT_BYTES // 2).hex()]}  # noqa: S311


def delta_log(channel: Any) -> Any:
    """Return the state schema with its list declared append-only."""

    def extend(state: list[str], writes: Sequence[list[str]]) -> list[str]:
        for write in writes:
            state = operator.add(state, write)
        return state

    lines: Any = Annotated[list[str], channel(extend)]
    return TypedDict("DeltaLog", {"count": int, "lines": lines})  # type: ignore[operator]


def on_disk(path: str) -> int:
    """Return the size of a database and of whatever its journal left behind."""
    return sum(file.stat().st_size for file in Path(path).parent.glob(Path(path).name + "*"))


def check(values: dict[str, Any], count: int) -> None:
    """Make sure the thread holds what was appended. Raises RuntimeError if not."""
    if values["count"] != count or len(values["lines"]) != count:
        message = f"a thread of {count} appends holds {len(values['lines'])}"
        raise RuntimeError(message)
