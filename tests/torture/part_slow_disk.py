"""A disk that takes 100 ms for each sync: runs are held to its pace, memory is bounded, the event loop is free."""

from __future__ import annotations

import operator
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import Annotated, Any, Final, TypedDict

import anyio

from persistence.sqlite import SqliteSaver, opening
from persistence.writer.limits import Limits
from runtime.graph import END, START, StateGraph
from tests.crash.tracing import pass_gate, traced, why_not
from tests.crash.zygote import Forked, Zygote
from tests.torture.appending.operations import Log, facts
from tests.torture.appending.places import places
from tests.torture.appending.processes import SMALL_LOG
from tests.torture.catalog import Report, UnavailableError, part

SYNC: Final = 0.1
"""Seconds."""
LIMITS: Final = Limits(channel_items=8, channel_bytes=60_000, batch_items=4)
RUNS: Final = 6
STEPS: Final = 6
LETTERS: Final = 2_000
TICK: Final = 0.002
OPTIONS: Final = ("-e", "trace=fsync,fdatasync", "-e", f"inject=fsync,fdatasync:delay_enter={int(SYNC * 1e6)}")


@part(
    "slow-disk",
    "Syncs of 100 ms: the channel fills and holds runs back within its bounds, and the event loop goes on meanwhile.",
    full=20,
    short=2,
)
def slow_disk(cases: int, _seed: int) -> Report:
    """Each case is a process of runs that write faster than the disk, in `async` on either event loop."""
    if untraced := why_not():
        raise UnavailableError(untraced)
    violations: list[str] = []
    late, fullest = list[float](), 0
    with places() as made, Zygote(made.file("errors"), [__name__]) as zygote:
        for number in range(cases):
            loop = ("asyncio", "trio")[number % 2]
            log, gate, path = made.file("log"), made.file("gate"), made.file("sqlite")
            told = {"path": str(path), "log": str(log), "loop": loop, "gate": str(gate), "limits": asdict(LIMITS)}

            def start(told: dict[str, Any] = told) -> Forked:
                return zygote.start(flood, told=told)

            files = [word for file in (path, f"{path}-wal") for word in ("-P", str(file))]
            traced(start, gate, [*files, *OPTIONS]).succeed()
            seen = facts(log)
            violations += [f"{loop}, case {number}: {each}" for each in _wrong(seen)]
            late.append(seen["lag"] * 1000)
            fullest = max(fullest, seen["peak_bytes"])
    note = (
        f"The loop's greatest lateness was {min(late):.0f} to {max(late):.0f} ms, {median(late):.0f} in the median, "
        f"which other work on the machine adds to; the channel held {fullest:,} bytes at most."
    )
    return Report(cases, violations, note)


def _wrong(seen: dict[str, Any]) -> list[str]:
    said: list[str] = []
    if seen["peak_items"] != LIMITS.channel_items and seen["peak_bytes"] < LIMITS.channel_bytes - 2 * LETTERS:
        said.append(f"the channel never filled: {seen}")
    if seen["peak_items"] > LIMITS.channel_items or seen["peak_bytes"] > LIMITS.channel_bytes:
        said.append(f"the channel held more than it may: {seen}")
    if seen["ticks"] < 5 * seen["commits"]:  # of fifty that fit into a sync; a loop that waited for it would get none
        said.append(f"the event loop waited for the disk: {seen}")
    if seen["seconds"] < SYNC * seen["commits"]:
        said.append(f"the disk was not slow: {seen}")
    return said


class Book(TypedDict, total=False):
    """A page that is written anew, and a log that grows."""

    page: str
    log: Annotated[list[int], operator.add]


def flood(told: dict[str, Any]) -> None:
    """Be the child: many runs at once, and a task that notes when it is woken up."""
    pass_gate(told["gate"])
    opening.GROWN_LOG = opening._SPILLED_BLOB = SMALL_LOG  # type: ignore[misc]
    seen: dict[str, Any] = {"ticks": 0, "lag": 0.0}

    async def tick() -> None:
        while True:
            before = anyio.current_time()
            await anyio.sleep(TICK)
            seen["lag"] = max(seen["lag"], anyio.current_time() - before - TICK)
            seen["ticks"] += 1

    async def main() -> None:
        async with SqliteSaver(told["path"], limits=Limits(**told["limits"])) as saver:
            graph = _graph().compile(saver)
            began, before = anyio.current_time(), saver.statistics().batches
            async with anyio.create_task_group() as ticking:
                ticking.start_soon(tick)
                async with anyio.create_task_group() as runs:
                    for number in range(RUNS):
                        runs.start_soon(graph.ainvoke, {"log": [0]}, {"configurable": {"thread_id": f"{number}"}})
                ticking.cancel_scope.cancel()
            statistics = saver.statistics()
            seen["seconds"] = anyio.current_time() - began
        Log(Path(told["log"])).told(
            **seen,
            commits=statistics.batches - before,
            peak_items=statistics.peak_items,
            peak_bytes=statistics.peak_bytes,
        )

    anyio.run(main, backend=told["loop"])


def _graph() -> StateGraph[Any]:
    async def write(state: Book) -> Book:
        return {"page": "." * LETTERS, "log": [len(state["log"])]}

    def on(state: Book) -> str:
        return "write" if len(state["log"]) <= STEPS else END

    builder = StateGraph(Book)
    builder.add_node("write", write)
    builder.add_edge(START, "write")
    builder.add_conditional_edges("write", on, ["write", END])
    return builder
