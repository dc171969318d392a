"""Runs that meet are run under seeded schedulers: a seed gives one order of events, and no order changes a result."""

from __future__ import annotations

import random
from typing import Any

from tests.torture.catalog import Report, part
from tests.torture.interleaved import Interleaved
from tests.torture.seeded import LOOPS, run_seeded


@part(
    "schedules",
    "A seed of the scheduler gives one order of events, other seeds other orders, and none changes a result.",
    full=1_000,
    short=12,
)
def schedules(cases: int, seed: int) -> Report:
    """Run each schedule twice, on both event loops."""
    violations, seen = list[str](), set[tuple[str, ...]]()
    fixed: dict[str, Any] = {}
    chance = random.Random(seed)
    for number in range(cases):
        loop, schedule = LOOPS[number % len(LOOPS)], chance.getrandbits(32)
        events, facts, steps = trace_of(loop, schedule)
        if (events, facts, steps) != trace_of(loop, schedule):
            violations.append(f"{loop}, schedule {schedule}: two orders of events")
        fixed = fixed or facts
        violations.extend(
            f"{loop}, schedule {schedule}: {name} is {facts.get(name)!r}, with another it is {fixed.get(name)!r}"
            for name in sorted(facts.keys() | fixed.keys())
            if facts.get(name) != fixed.get(name)
        )
        seen.add(tuple(events))
    if len(seen) < cases * 9 // 10:
        violations.append(f"{cases} schedules gave only {len(seen)} orders of events")
    return Report(cases, violations, f"({len(seen):,} different orders of events.)")


def trace_of(loop: str, schedule: int) -> tuple[list[str], dict[str, Any], list[int]]:
    """Return what happened, what came of it, and whose turn it was."""
    program, steps = Interleaved(), list[int]()
    run_seeded(loop, schedule, program.run, steps)
    return program.trace, program.facts, steps
