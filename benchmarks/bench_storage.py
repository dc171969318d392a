"""How many bytes a long thread leaves on disk, and how long reading its latest state takes.

LangGraph is asked twice: as most programs are written (a list with ``operator.add``) and with its DeltaChannel, which
is made for lists like this one.
"""

from __future__ import annotations

import operator
import random
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

from benchmarks.files import fresh_path
from benchmarks.graphs import Log, config, looping
from benchmarks.harness import Session, Stopwatch, question
from benchmarks.results import Sample, ratios

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.peers import Side

TEXT_BYTES = 200
READS = 20


@question("storage", "one thread that appends 200 bytes a superstep, on SQLite")
def storage(session: Session) -> None:
    """Ask it for n appends and for twice as many."""
    measure(session, session.pick(full=500, quick=100))


def measure(session: Session, appends: int) -> None:
    """Compare bytes, their growth when the thread doubles, writing time and reading time."""
    contenders = {side.label: (side, Log) for side in session.sides if side.backend == "asyncio"}
    for side in session.sides:
        if side.delta is not None:
            contenders[f"{side.label}, DeltaChannel"] = (side, delta_log(side.delta))
    sizes = {}
    for count in (appends, 2 * appends):
        paths = {label: fresh_path(session.directory) for label in contenders}
        write = {
            label: partial(side.run, append, side, schema, paths[label], count)
            for label, (side, schema) in contenders.items()
        }
        wrote = session.compare(f"{count} appends, write", "µs/step", write, repeats=1, warmups=0)
        sizes[count] = {label: [float(on_disk(path))] for label, path in paths.items() if label in wrote.series}
        session.record(f"{count} appends, on disk", "bytes", sizes[count], next(iter(contenders)))
        read = {
            label: partial(side.run, latest, side, schema, paths[label], count)
            for label, (side, schema) in contenders.items()
        }
        session.compare(f"{count} appends, read latest", "µs/read", read, repeats=5)
    smaller, larger = sizes[appends], sizes[2 * appends]
    growth = {label: ratios(larger[label], smaller[label]) for label in larger if label in smaller}
    session.record("bytes for twice the steps", "x", growth)


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
