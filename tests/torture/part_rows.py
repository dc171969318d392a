"""Rows that somebody changed: whatever reads, shows, edits or goes on from them ends well or in an error of ours."""

from __future__ import annotations

import random
from collections import Counter

from tests.persistence.serde.confined import outcomes
from tests.torture.catalog import Report, part
from tests.torture.rows.reading import KINDS

CHILDREN = (*(("tests.torture.rows.reading", kind) for kind in KINDS), ("tests.torture.rows.items",))


@part("rows", "Changed rows never become code, a flood or an untyped error.", full=3_000, short=40)
def changed_rows(cases: int, seed: int) -> Report:
    """Change rows of a paused thread, of items and of kept results, and do all that a program may do with them."""
    violations: list[str] = []
    ends: Counter[str] = Counter()
    for number, child in enumerate(CHILDREN):
        chance = random.Random(f"{seed} {child}")
        share = range(cases * number // len(CHILDREN), cases * (number + 1) // len(CHILDREN))
        seeds = [chance.randrange(2**40) for _ in share]
        found = outcomes(seeds, child)
        violations += [f"{child} {at}: {end}" for at, end in zip(seeds, found, strict=True) if end.startswith("broken")]
        ends.update(end.split(":")[0] for end in found)
    return Report(sum(ends.values()), violations, f"({', '.join(f'{count} {end}' for end, count in ends.items())})")
