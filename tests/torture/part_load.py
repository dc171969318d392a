"""Heavy loads in processes of their own: memory stays within the numbers that ARCHITECTURE.md gives."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from persistence.writer.limits import DEFAULT_LIMITS
from runtime.streaming.hub import CAPACITY, OVERFLOW
from tests.torture.catalog import Report, part
from tests.torture.loads import LARGE, LARGE_AT_ONCE
from tests.torture.measuring import MIB
from tests.torture.seeded import LOOPS

ROOT = Path(__file__).parents[2]

SLACK = 32 * MIB
"""What modules, threads, allocator and database caches may take beside the numbers."""

EACH = 48 * 1024
"""A run that waits, with its tasks and its queued writes."""

COPIES = 5
"""Of a large value: as returned, as kept, as stored before it, as bytes, as handed to the driver."""

WRITER = int(DEFAULT_LIMITS.channel_bytes + DEFAULT_LIMITS.batch_bytes)


def _loaded(name: str, number: int, seed: int) -> tuple[dict[str, Any], list[str], str]:
    """Run a load; return what it measured, what it lost, and the figures worth printing."""
    loop = LOOPS[seed % len(LOOPS)]
    done = subprocess.run(
        [sys.executable, "-m", "tests.torture.loads", name, f"{number}", loop],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        return {}, [f"{name} {number} {loop}: {done.stderr[-1000:]}"], ""
    seen: dict[str, Any] = json.loads(done.stdout)
    broken = [f"{loop}: {seen['lost']} of {number} are not as they should be"] if seen["lost"] else []
    note = f"On {loop}: {seen['grown'] / MIB:.0f} MiB more at most; loop lag p99 {seen['lag']:.0f} ms"
    if "commit" in seen:
        bounds = ("peak_items", DEFAULT_LIMITS.channel_items), ("peak_bytes", DEFAULT_LIMITS.channel_bytes)
        broken += [f"{loop}: {what} {seen[what]} > {most}" for what, most in bounds if seen[what] > most]
        note += f", commit {seen['commit']:.0f} ms (at most {seen['longest_commit']:.0f})"
        note += f", queue wait {seen['queue']:.0f} ms (at most {seen['longest_queue']:.0f})"
        note += f", channel {seen['peak_items']:,} units, {seen['peak_bytes'] / MIB:.1f} MiB"
    return seen, broken, note


def _report(number: int, broken: list[str], note: str, seen: dict[str, Any], **most: float) -> Report:
    """Return the report; ``most`` says what each figure may be."""
    broken += [
        f"{what} is {seen[what]:,}, more than {limit:,}" for what, limit in most.items() if seen.get(what, 0) > limit
    ]
    return Report(number, broken, f"({note}.)")


@part("many threads", "Threads that are over take no memory.", full=100_000, short=400)
def threads(cases: int, seed: int) -> Report:
    """Count the memory that comes after the first tenth."""
    seen, broken, note = _loaded("threads", cases, seed)
    note += f"; a run of two nodes in sync, {seen.get('wait', 0):.0f} ms"
    return _report(cases, broken, note, seen, later=SLACK, grown=WRITER + SLACK)


@part("runs at once", "Runs that wait take tens of kilobytes each.", full=10_000, short=300)
def runs(cases: int, seed: int) -> Report:
    """Count the memory of each while all of them wait."""
    seen, broken, note = _loaded("runs", cases, seed)
    note += f"; {seen.get('each', 0) / 1024:.0f} KiB a run"
    return _report(cases, broken, note, seen, each=EACH + SLACK // cases, grown=cases * EACH + WRITER + SLACK)


@part("large states", "States of 10 MB wait in the channel within its 64 MiB, however many follow.", full=60, short=6)
def large(cases: int, seed: int) -> Report:
    """Count copies."""
    seen, broken, note = _loaded("large", cases, seed)
    return _report(cases, broken, note, seen, grown=LARGE_AT_ONCE * COPIES * LARGE + WRITER + SLACK)


@part(
    "flood", "A flood of items waits for its reader, or is stopped where it never waits.", full=1_000_000, short=4_000
)
def flood(cases: int, seed: int) -> Report:
    """Count what waits in the stream's buffer."""
    seen, broken, note = _loaded("flood", cases, seed)
    if seen.get("overflow") != OVERFLOW:
        broken.append(f"a node that never waits was stopped after {seen.get('overflow')} items")
    note += f"; {seen.get('peak')} items waited at most"
    return _report(cases, broken, note, seen, peak=CAPACITY, grown=SLACK)


@part("stalled readers", "A reader that stops stops its run, which ends when the reader leaves.", full=2_000, short=40)
def stalled(cases: int, seed: int) -> Report:
    """Count what each run writes before it waits: what is read, what the buffer holds, what it waits with."""
    seen, broken, note = _loaded("stalled", cases, seed)
    note += f"; {seen.get('most')} items written at most"
    return _report(cases, broken, note, seen, peak=CAPACITY, most=CAPACITY + 2, grown=cases * 2 * EACH + WRITER + SLACK)
