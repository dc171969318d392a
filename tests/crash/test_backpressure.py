"""A slow database slows the run down: what is on its way to it does not grow with the length of the run."""

from __future__ import annotations

import gc
import weakref
from dataclasses import dataclass, field
from typing import Any, TypedDict

import pytest

from persistence.writer.limits import Limits
from persistence.writer.saver import GroupCommitSaver
from persistence.writer.statistics import WriterStatistics
from runtime.graph import END, START, StateGraph
from tests.crash.programs import CONFIG
from tests.crash.slow_backend import SlowBackend
from tests.crash.third_party import PlainSaver
from tests.crash.virtual_time import both_loops, run

LIMITS = Limits(channel_items=4, channel_bytes=20_000, batch_items=2)


@dataclass
class Page:
    """A part of the state that can be watched being forgotten."""

    text: str


class Book(TypedDict):
    """A number that counts the supersteps, and the newest page."""

    number: int
    page: Page


@dataclass
class Watch:
    """What a graph's node sees of the world at each superstep."""

    lags: list[int] = field(default_factory=list)
    """Supersteps that had run and were not durable."""
    pages: list[weakref.ref[Page]] = field(default_factory=list)
    alive: list[int] = field(default_factory=list)
    """Pages of older supersteps that were still in memory."""


def book(steps: int, watch: Watch, durable: Any, *, letters: int = 100) -> StateGraph[Any]:
    """Build a node that runs again and again, writing a page each time."""

    async def write(state: Book) -> Book:
        number = state["number"] + 1
        watch.lags.append(number - durable())
        if number % (steps // 3) == 0:
            gc.collect()
            watch.alive.append(sum(page() is not None for page in watch.pages))
        page = Page(f"{number} ".ljust(letters, "."))
        watch.pages.append(weakref.ref(page))
        return {"number": number, "page": page}

    async def on(state: Book) -> str:
        return "write" if state["number"] < steps else END

    builder = StateGraph(Book)
    builder.add_node("write", write)
    builder.add_edge(START, "write")
    builder.add_conditional_edges("write", on, ["write", END])
    return builder


def run_book(loop: str, steps: int, durability: Any, *, letters: int = 100) -> tuple[Watch, WriterStatistics]:
    """Run a book through a saver whose commits take a second each."""
    watch, backend = Watch(), SlowBackend(1.0)
    config = {**CONFIG, "recursion_limit": steps + 1}

    async def story() -> WriterStatistics:
        async with GroupCommitSaver(backend, limits=LIMITS) as saver:
            graph = book(steps, watch, lambda: max(backend.steps(), default=-1) + 1, letters=letters)
            compiled = graph.compile(checkpointer=saver)
            result = await compiled.ainvoke({"number": 0, "page": Page("")}, config, durability=durability)
            assert result["number"] == steps
            return saver.statistics()

    statistics = run(loop, story)
    # A checkpoint for the input and one for each superstep, START's included.
    assert len(backend.steps()) == (1 if durability == "exit" else steps + 2)
    return watch, statistics


@both_loops
@pytest.mark.parametrize("steps", [60, pytest.param(600, marks=pytest.mark.slow)])
def test_async_is_never_further_ahead_than_the_channel_and_one_batch(loop: str, steps: int) -> None:
    watch, statistics = run_book(loop, steps, "async")
    assert statistics.peak_items == LIMITS.channel_items
    assert statistics.depth_items == statistics.waiting_senders == 0
    # The database was the slower of the two all along, and the run was held to the pace of its commits.
    assert max(watch.lags[20:]) == LIMITS.channel_items + LIMITS.batch_items
    assert min(watch.lags[20:]) > 0


@both_loops
@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_what_older_supersteps_held_is_forgotten(loop: str, durability: Any) -> None:
    """What waits for the database are bytes, not the state: that is the newest superstep's, and the one before it."""
    watch, _ = run_book(loop, 60, durability)
    assert len(watch.alive) == 3
    assert max(watch.alive) <= 2


@both_loops
def test_what_waits_is_bounded_in_bytes_too(loop: str) -> None:
    """Each superstep sends its page twice, as a write and as a value: two units fit, a third would not."""
    _, statistics = run_book(loop, 30, "async", letters=4_000)
    assert 16_000 < statistics.peak_bytes <= LIMITS.channel_bytes
    assert statistics.peak_items < LIMITS.channel_items


@both_loops
def test_sync_is_not_ahead_at_all(loop: str) -> None:
    watch, statistics = run_book(loop, 30, "sync")
    assert set(watch.lags) == {0}
    assert statistics.peak_items == 2


@both_loops
@pytest.mark.parametrize("durability", ["sync", "async"])
def test_a_third_partys_saver_without_a_channel_is_waited_for(loop: str, durability: Any) -> None:
    watch, saver = Watch(), PlainSaver(lambda: 1.0)
    saver.inner.register_types([Page])  # theirs to do: the runtime knows nothing of their serialiser
    config = {**CONFIG, "recursion_limit": 61}

    def durable() -> int:
        return 1 + max((int(str(step)) for kind, step in saver.events if kind == "put done"), default=-1)

    async def story() -> None:
        graph = book(60, watch, durable).compile(checkpointer=saver)
        await graph.ainvoke({"number": 0, "page": Page("")}, config, durability=durability)

    run(loop, story)
    assert set(watch.lags) == {0}
    assert max(watch.alive) <= 2
