"""Heavy loads, each run by a process that prints what it took: ``python -m tests.torture.loads NAME NUMBER LOOP``."""

from __future__ import annotations

import json
import logging
import operator
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, Any, TypedDict

import anyio
import anyio.lowlevel

from persistence.sqlite import SqliteSaver
from runtime.errors import StreamOverflowError
from runtime.graph import END, START, CompiledStateGraph, StateGraph
from runtime.runtime import Runtime
from tests.crash.places import throwaway_folder
from tests.torture.measuring import measuring, resident

AT_ONCE = 200
"""Runs at a time where the number of threads is what matters."""

LARGE = 10_000_000
"""Bytes of a large state."""

LARGE_AT_ONCE = 4
"""Runs at a time that have one."""


class State(TypedDict):
    """A number that every node adds to, and a value as large as wanted."""

    n: Annotated[int, operator.add]
    value: bytes


def _chain(saver: Any, *nodes: Any) -> CompiledStateGraph:
    builder = StateGraph(State)
    names = [f"node{number}" for number in range(len(nodes))]
    for name, node in zip(names, nodes, strict=True):
        builder.add_node(name, node)
    for source, target in zip([START, *names], [*names, END], strict=True):
        builder.add_edge(source, target)
    return builder.compile(checkpointer=saver)


def _config(thread: int) -> dict[str, Any]:
    return {"configurable": {"thread_id": f"{thread}"}}


async def _adds(_state: State) -> dict[str, int]:
    await anyio.lowlevel.checkpoint()
    return {"n": 1}


def _written(saver: SqliteSaver) -> dict[str, Any]:
    """Return what a saver's channel held, how long units waited in it, and how long its commits took."""
    seen = saver.statistics()
    return {
        "peak_items": seen.peak_items,
        "peak_bytes": seen.peak_bytes,
        "largest_batch": seen.largest_batch,
        "queue": 1000 * seen.queue_seconds_total / max(seen.units, 1),
        "longest_queue": 1000 * seen.queue_seconds_max,
        "commit": 1000 * seen.commit_seconds_total / max(seen.batches, 1),
        "longest_commit": 1000 * seen.commit_seconds_max,
    }


async def threads(number: int, folder: Path) -> dict[str, Any]:
    """Run so many threads, some at a time: what is over must take no memory."""
    early = 0
    waits: list[float] = []
    async with SqliteSaver(folder / "threads.sqlite", synchronous="NORMAL") as saver:
        graph = _chain(saver, _adds, _adds)
        waiting = iter(range(number))

        async def worker() -> None:
            nonlocal early
            for thread in waiting:
                began = anyio.current_time()
                assert (await graph.ainvoke({"n": 0}, _config(thread), durability="sync"))["n"] == 2
                waits.append(anyio.current_time() - began)
                if thread == number // 10:
                    early = resident("VmHWM")

        async with anyio.create_task_group() as group:
            for _ in range(AT_ONCE):
                group.start_soon(worker)
        sample = range(0, number, max(number // 50, 1))
        there = [(await graph.aget_state(_config(thread))).values.get("n") for thread in sample]
        waits.sort()
        return {
            "lost": sum(one != 2 for one in there),
            "later": resident("VmHWM") - early,
            "wait": 1000 * waits[len(waits) // 2],
            **_written(saver),
        }


async def runs(number: int, folder: Path) -> dict[str, Any]:
    """Hold so many runs at once in the middle of their work, then let all of them end."""
    arrived, gate, base = 0, anyio.Event(), resident()

    async def waits(_state: State) -> dict[str, int]:
        nonlocal arrived
        arrived += 1
        if arrived == number:
            gate.set()
        await gate.wait()
        return {"n": 1}

    async with SqliteSaver(folder / "threads.sqlite", synchronous="NORMAL") as saver:
        graph = _chain(saver, _adds, waits)
        results: list[int] = []

        async def run(thread: int) -> None:
            results.append((await graph.ainvoke({"n": 0}, _config(thread)))["n"])

        async with anyio.create_task_group() as group:
            for thread in range(number):
                group.start_soon(run, thread)
            await gate.wait()
            held = resident() - base
        return {"lost": number - results.count(2), "each": held // number, **_written(saver)}


async def large(number: int, folder: Path) -> dict[str, Any]:
    """Run so many graphs, a few at once, whose every superstep writes a state of ten megabytes."""

    async def writes(state: State) -> dict[str, Any]:
        return {"n": 1, "value": bytes([state["n"]]) * LARGE}

    async with SqliteSaver(folder / "threads.sqlite", synchronous="NORMAL") as saver:
        graph = _chain(saver, writes, writes, writes)
        waiting, lost = iter(range(number)), 0

        async def worker() -> None:
            nonlocal lost
            for thread in waiting:
                await graph.ainvoke({"n": 0, "value": b""}, _config(thread))
                value = (await graph.aget_state(_config(thread))).values["value"]
                lost += value != bytes([2]) * LARGE
                await saver.adelete_thread(f"{thread}")

        async with anyio.create_task_group() as group:
            for _ in range(LARGE_AT_ONCE):
                group.start_soon(worker)
        return {"lost": lost, **_written(saver)}


async def flood(number: int, _folder: Path) -> dict[str, Any]:
    """Write so many custom items, read them all; then write without waiting where nobody reads."""

    async def writes(_state: State, runtime: Runtime[None]) -> None:
        for item in range(number):
            runtime.stream_writer(item)
            await anyio.lowlevel.checkpoint()

    read = 0
    stream = _chain(None, writes).astream({"n": 0}, stream_mode="custom")
    async for item in stream:
        assert item == read
        read += 1
        for _ in range(2):  # slower than they are written
            await anyio.lowlevel.checkpoint()
    peak = stream.statistics().peak

    async def hurries(_state: State, runtime: Runtime[None]) -> None:
        for item in range(number + 5_000):
            runtime.stream_writer(item)

    told = 0
    try:
        async for _item in _chain(None, hurries).astream({"n": 0}, stream_mode="custom"):
            told += 1
    except StreamOverflowError:
        return {"lost": number - read, "peak": peak, "overflow": told}
    return {"lost": number - read, "peak": peak, "overflow": -1}


async def stalled(number: int, folder: Path) -> dict[str, Any]:
    """Let as many readers stop after a chunk: their runs must wait for them, and end when they leave."""
    told = [0] * number

    async def writes(state: State, runtime: Runtime[None]) -> None:
        while True:
            told[state["n"]] += 1
            runtime.stream_writer(b"x" * 100)
            await anyio.lowlevel.checkpoint()

    async with SqliteSaver(folder / "threads.sqlite", synchronous="NORMAL") as saver:
        graph = _chain(saver, writes)
        streams = [graph.astream({"n": thread}, _config(thread), stream_mode="custom") for thread in range(number)]
        for stream in streams:
            await anext(stream)
        written = -1
        while written != sum(told):  # until none of them writes any more
            written = sum(told)
            for _ in range(50):
                await anyio.lowlevel.checkpoint()
        peak = max(stream.statistics().peak for stream in streams)
        for stream in streams:
            await stream.aclose()
        states = [(await graph.aget_state(_config(thread))).next for thread in range(number)]
    return {"lost": sum(next_ != ("node0",) for next_ in states), "peak": peak, "most": max(told)}


LOADS: dict[str, Callable[[int, Path], Awaitable[dict[str, Any]]]] = {
    load.__name__: load for load in (threads, runs, large, flood, stalled)
}


async def _measured(name: str, number: int) -> dict[str, Any]:
    with throwaway_folder() as folder:
        async with measuring() as measures:
            seen = await LOADS[name](number, folder)
        return {**seen, "grown": measures.grown, "lag": measures.lag(0.99), "longest_lag": measures.lag(1.0)}


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    sys.stdout.write(json.dumps(anyio.run(_measured, sys.argv[1], int(sys.argv[2]), backend=sys.argv[3])))
