"""``python -m benchmarks.profile WHAT``: where the time of a superstep goes.

First the plain cost, measured without a profiler; then cProfile's view of the same runs, per superstep, for the event
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
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from rich.console import Console
from rich.table import Table

from benchmarks import peers
from benchmarks.chains import Load, fresh_path, timed_chain
from benchmarks.harness import MICRO, Stopwatch
from benchmarks.results import Sample, Series, spread

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

ROOT = Path(__file__).parent.parent
STDLIB = sysconfig.get_path("stdlib")
PACKAGES = sysconfig.get_path("purelib")
NODES = 20
PLAIN_REPEATS = 5


@dataclass(frozen=True)
class Scenario:
    """What is profiled: the kind of saver, the durability, and whether runs share the event loop."""

    saver: str | None = None
    durability: str | None = None
    together: bool = False


SCENARIOS = {
    "chain": Scenario(),
    "memory-exit": Scenario("memory", "exit"),
    "memory-async": Scenario("memory", "async"),
    "sqlite-exit": Scenario("sqlite", "exit"),
    "sqlite-async": Scenario("sqlite", "async"),
    "sqlite-sync": Scenario("sqlite", "sync"),
    "sqlite-many-async": Scenario("sqlite", "async", together=True),
    "sqlite-many-sync": Scenario("sqlite", "sync", together=True),
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


async def work(
    side: peers.Side, scenario: Scenario, runs: int, path: str, stopwatch: Callable[[], Stopwatch]
) -> Sample:
    """Run the chain as the scenario says; microseconds per superstep."""
    load = Load(NODES, runs, scenario.together)
    options = {"durability": scenario.durability} if scenario.durability else {}
    if scenario.saver != "sqlite":
        saver = side.memory() if scenario.saver else None
        return await timed_chain(side, load, saver, options, stopwatch)
    async with side.sqlite(path) as saver:
        return await timed_chain(side, load, saver, options, stopwatch)


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
    steps = NODES * options.runs
    with tempfile.TemporaryDirectory(prefix="benchmarks-") as place:

        def run(stopwatch: Callable[[], Stopwatch]) -> Sample:
            return side.run(work, side, scenario, options.runs, fresh_path(Path(place)), stopwatch)

        plain = [run(Stopwatch) for _ in range(PLAIN_REPEATS + 1)][1:]
        clock = time.thread_time if options.cpu else time.perf_counter
        profile = cProfile.Profile(clock)
        with watched_threads(clock) as others:
            run(partial(ProfiledStopwatch, profile))
    show_plain(console, f"{options.what}, {side.label}, {options.runs} runs of {NODES} supersteps", plain)
    loop = costs([profile])
    show_rooms(console, loop, steps)
    show_functions(console, "event loop's thread", loop, steps, options.top)
    if others:
        show_functions(console, f"{len(others)} other threads", costs(others), steps, options.top)
    return 0


def parse(argv: list[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.profile", description=__doc__)
    parser.add_argument("what", choices=SCENARIOS)
    parser.add_argument("--side", default=peers.OURS, help="LangGraph, actorgraph (default) or 'actorgraph on trio'")
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--cpu", action="store_true", help="count CPU time, not the clock on the wall")
    parser.add_argument("--top", type=int, default=25)
    return parser.parse_args(argv)


def costs(profiles: Iterable[cProfile.Profile]) -> list[Cost]:
    """Return what the profiles saw, dearest first."""
    entries = [Cost(entry) for profile in profiles for entry in profile.getstats()]
    return sorted(entries, key=lambda cost: cost.own, reverse=True)


def show_plain(console: Console, title: str, samples: list[Sample]) -> None:
    """Print the cost without a profiler."""
    series = Series.of(samples)
    wall, cpu = spread(series.values), spread(series.cpu)
    console.print(f"[bold]{title}[/]")
    console.print(f"  wall {wall.median:.1f} µs/superstep ({wall.low:.1f} .. {wall.high:.1f}), cpu {cpu.median:.1f} µs")


def show_rooms(console: Console, found: list[Cost], steps: int) -> None:
    """Print how the event loop's thread divides its time; a built-in function counts for the room that calls it."""
    rooms: defaultdict[str, float] = defaultdict(float)
    for cost in found:
        if cost.room is not None:
            rooms[cost.room] += cost.own + cost.builtins
    whole = sum(rooms.values()) or 1.0
    table = Table(title="by room", title_justify="left")
    table.add_column("room")
    for heading in ("µs/superstep", "share"):
        table.add_column(heading, justify="right")
    for room, seconds in sorted(rooms.items(), key=itemgetter(1), reverse=True)[:15]:
        table.add_row(room, f"{seconds / steps * MICRO:.2f}", f"{seconds / whole:.0%}")
    console.print(table)


def show_functions(console: Console, title: str, found: list[Cost], steps: int, top: int) -> None:
    """Print the dearest functions, per superstep."""
    table = Table(title=title, title_justify="left")
    table.add_column("function", no_wrap=True)
    for heading in ("calls", "own µs", "total µs"):
        table.add_column(heading, justify="right")
    for cost in found[:top]:
        own, total = (f"{seconds / steps * MICRO:.2f}" for seconds in (cost.own, cost.total))
        table.add_row(cost.name, f"{cost.calls / steps:.2f}", own, total)
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
