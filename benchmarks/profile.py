"""``python -m benchmarks.profile WHAT``: where the time of a superstep, a task or a run goes.

First the plain cost, measured without a profiler; then cProfile's view of the same work, divided alike, for the event
loop's thread and for the threads the engine starts. cProfile makes calls dearer than they are: trust the order of its
rows and the call counts more than the microseconds. Times are wall clock, so a thread that waits shows its waiting;
``--cpu`` counts a thread's CPU time instead, which other programs on the machine do not disturb.
"""

from __future__ import annotations

import argparse
import cProfile
import sys
import sysconfig
import tempfile
import threading
import time
from collections import defaultdict
from contextlib import contextmanager
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self

from rich.console import Console
from rich.table import Table

from benchmarks import bench_fanout, bench_waiting, peers
from benchmarks.chains import Load, timed_chain
from benchmarks.files import fresh_path
from benchmarks.harness import MICRO, Stopwatch
from benchmarks.results import Sample, Series, spread

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator

ROOT = Path(__file__).parent.parent
STDLIB = sysconfig.get_path("stdlib")
PACKAGES = sysconfig.get_path("purelib")
NODES = 20
WIDTH = 100
PLAIN_REPEATS = 5


class Work(Protocol):
    """Runs something ``runs`` times under a stopwatch; ``path`` is where a database may be made."""

    def __call__(self, side: peers.Side, runs: int, path: str, stopwatch: Callable[[], Stopwatch]) -> Awaitable[object]:
        """Start."""


@dataclass(frozen=True)
class Scenario:
    """What is profiled, and by what its cost is divided."""

    work: Work
    runs: int
    pieces: int = NODES
    piece: str = "superstep"


def on_chain(saver: str | None, durability: str | None = None, *, together: bool = False) -> Work:
    """Return the work of running a chain with a kind of saver."""

    async def work(side: peers.Side, runs: int, path: str, stopwatch: Callable[[], Stopwatch]) -> object:
        load = Load(NODES, runs, together)
        options = {"durability": durability} if durability else {}
        if saver == "sqlite":
            async with side.sqlite(path) as opened:
                return await timed_chain(side, load, opened, options, stopwatch)
        return await timed_chain(side, load, side.memory() if saver else None, options, stopwatch)

    return work


async def on_sends(side: peers.Side, runs: int, path: str, stopwatch: Callable[[], Stopwatch]) -> object:  # noqa: ARG001
    """Run supersteps of many Sends."""
    return await bench_fanout.wide(side, bench_fanout.sends, WIDTH, runs, stopwatch)


async def on_wide(side: peers.Side, runs: int, path: str, stopwatch: Callable[[], Stopwatch]) -> object:  # noqa: ARG001
    """Run supersteps of many nodes that each write a channel of their own."""
    return await bench_fanout.wide(side, bench_fanout.parallel_nodes, WIDTH, runs, stopwatch)


async def on_waiting(side: peers.Side, runs: int, path: str, stopwatch: Callable[[], Stopwatch]) -> object:  # noqa: ARG001
    """Run many runs of one node that waits a moment, at once."""
    return await bench_waiting.beyond(side, runs, 0.01, stopwatch)


SCENARIOS = {
    "chain": Scenario(on_chain(None), 100),
    "memory-exit": Scenario(on_chain("memory", "exit"), 100),
    "memory-async": Scenario(on_chain("memory", "async"), 100),
    "sqlite-exit": Scenario(on_chain("sqlite", "exit"), 100),
    "sqlite-async": Scenario(on_chain("sqlite", "async"), 100),
    "sqlite-sync": Scenario(on_chain("sqlite", "sync"), 50),
    "sqlite-many-async": Scenario(on_chain("sqlite", "async", together=True), 100),
    "sqlite-many-sync": Scenario(on_chain("sqlite", "sync", together=True), 100),
    "sends": Scenario(on_sends, 10, WIDTH, "task"),
    "wide": Scenario(on_wide, 10, WIDTH, "task"),
    "waiting": Scenario(on_waiting, 1000, 1, "run"),
}


class Cost:
    """What one function cost, summed over calls, in seconds."""

    def __init__(self, entry: Any) -> None:
        """Take over an entry of cProfile."""
        self.name = name_of(entry.code)
        self.room = room_of(entry.code)
        self.calls: int = entry.callcount
        self.own: float = entry.inlinetime
        self.total: float = entry.totaltime
        self.builtins = sum(call.inlinetime for call in entry.calls or () if isinstance(call.code, str))


class ProfiledStopwatch(Stopwatch):
    """A stopwatch that profiles what it times."""

    def __init__(self, profile: cProfile.Profile) -> None:
        """Use this profile."""
        super().__init__()
        self._profile = profile

    def __enter__(self) -> Self:
        """Start both."""
        super().__enter__()
        self._profile.enable()
        return self

    def __exit__(self, *details: object) -> None:
        """Stop both."""
        self._profile.disable()
        super().__exit__(*details)


@contextmanager
def watched_threads(clock: Callable[[], float]) -> Iterator[list[cProfile.Profile]]:
    """Profile every thread that is started in the block; the list grows as they start."""
    profiles: list[cProfile.Profile] = []

    def begin(*_: object) -> None:
        profile = cProfile.Profile(clock)
        profiles.append(profile)
        profile.enable()

    threading.setprofile(begin)
    try:
        yield profiles
    finally:
        threading.setprofile(None)


def main(argv: list[str] | None = None) -> int:
    """Profile from the command line."""
    options = parse(argv)
    console = Console(width=None if sys.stdout.isatty() else 150)
    side = peers.sides([options.side])[0]
    scenario = SCENARIOS[options.what]
    runs = options.runs or scenario.runs
    pieces = scenario.pieces * runs
    clock = time.thread_time if options.cpu else time.perf_counter
    profile = cProfile.Profile(clock)
    watches: list[Stopwatch] = []
    with tempfile.TemporaryDirectory(prefix="benchmarks-") as place:

        def run(stopwatch: Stopwatch) -> None:
            side.run(scenario.work, side, runs, fresh_path(Path(place)), lambda: stopwatch)

        for _ in range(PLAIN_REPEATS + 1):
            watches.append(Stopwatch())
            run(watches[-1])
        with watched_threads(clock) as others:
            run(ProfiledStopwatch(profile))
    console.print(f"[bold]{options.what}, {side.label}, {runs} x {scenario.pieces} {scenario.piece}s[/]")
    show_plain(console, scenario.piece, [watch.micros.per(pieces) for watch in watches[1:]])
    loop = costs([profile])
    show_rooms(console, loop, pieces)
    show_functions(console, "event loop's thread", loop, pieces, options.top)
    if others:
        show_functions(console, f"{len(others)} other threads", costs(others), pieces, options.top)
    return 0


def parse(argv: list[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.profile", description=__doc__)
    parser.add_argument("what", choices=SCENARIOS)
    parser.add_argument("--side", default=peers.OURS, help="LangGraph, actorgraph (default) or 'actorgraph on trio'")
    parser.add_argument("--runs", type=int, help="how often the work is done")
    parser.add_argument("--cpu", action="store_true", help="count CPU time, not the clock on the wall")
    parser.add_argument("--top", type=int, default=25)
    return parser.parse_args(argv)


def costs(profiles: Iterable[cProfile.Profile]) -> list[Cost]:
    """Return what the profiles saw, dearest first."""
    entries = [Cost(entry) for profile in profiles for entry in profile.getstats()]
    return sorted(entries, key=lambda cost: cost.own, reverse=True)


def show_plain(console: Console, piece: str, samples: list[Sample]) -> None:
    """Print the cost without a profiler."""
    series = Series.of(samples)
    wall, cpu = spread(series.values), spread(series.cpu)
    console.print(f"  wall {wall.median:.1f} µs/{piece} ({wall.low:.1f} .. {wall.high:.1f}), cpu {cpu.median:.1f} µs")


def show_rooms(console: Console, found: list[Cost], pieces: int) -> None:
    """Print how the event loop's thread divides its time; a built-in function counts for the room that calls it."""
    rooms: defaultdict[str, float] = defaultdict(float)
    for cost in found:
        if cost.room is not None:
            rooms[cost.room] += cost.own + cost.builtins
    whole = sum(rooms.values()) or 1.0
    table = Table(title="by room", title_justify="left")
    table.add_column("room")
    for heading in ("µs", "share"):
        table.add_column(heading, justify="right")
    for room, seconds in sorted(rooms.items(), key=itemgetter(1), reverse=True)[:15]:
        table.add_row(room, f"{seconds / pieces * MICRO:.2f}", f"{seconds / whole:.0%}")
    console.print(table)


def show_functions(console: Console, title: str, found: list[Cost], pieces: int, top: int) -> None:
    """Print the dearest functions, per superstep."""
    table = Table(title=title, title_justify="left")
    table.add_column("function", no_wrap=True)
    for heading in ("calls", "own µs", "total µs"):
        table.add_column(heading, justify="right")
    for cost in found[:top]:
        own, total = (f"{seconds / pieces * MICRO:.2f}" for seconds in (cost.own, cost.total))
        table.add_row(cost.name, f"{cost.calls / pieces:.2f}", own, total)
    console.print(table)


def name_of(code: Any) -> str:
    """Return a function's place and name, short enough for a table."""
    if isinstance(code, str):
        return code
    path = code.co_filename
    for base in (str(ROOT), PACKAGES, STDLIB):
        path = path.removeprefix(base + "/")
    return f"{path}:{code.co_firstlineno} {code.co_qualname}"


def room_of(code: Any) -> str | None:
    """Return the folder of ours, or the package, that a function belongs to; None for built-in functions."""
    if isinstance(code, str):
        return None
    path = Path(code.co_filename)
    if path.is_relative_to(ROOT):
        return "/".join(path.relative_to(ROOT).parts[:2])
    if path.is_relative_to(PACKAGES):
        return path.relative_to(PACKAGES).parts[0]
    if path.is_relative_to(STDLIB):
        return path.relative_to(STDLIB).parts[0].removesuffix(".py")
    return str(code.co_filename)


if __name__ == "__main__":
    sys.exit(main())
