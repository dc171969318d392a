"""Rows that somebody changed: whatever reads, shows, edits or goes on from them ends well or in an error of ours."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from typing import Final

from tests.persistence.serde.confined import outcomes
from tests.torture.catalog import Report, part
from tests.torture.rows.reading import KINDS

CHILDREN = (*(("tests.torture.rows.reading", kind) for kind in KINDS), ("tests.torture.rows.items",))
A_SEED: Final = 1_000
"""Changes of one seed; the next ones are of the next seed."""


@part("rows", "Changed rows never become code, a flood or an untyped error.", full=6_000, short=12)
def changed_rows(cases: int, seed: int) -> Report:
    """Change rows of a paused thread, of items and of kept results, and do all that a program may do with them."""
    violations: list[str] = []
    ends: Counter[str] = Counter()
    for number, start in enumerate(range(0, cases, A_SEED)):
        for child, seeds in _shared(min(A_SEED, cases - start), seed + number):
            found = outcomes(seeds, child)
            broken = [(at, end) for at, end in zip(seeds, found, strict=True) if end.startswith("broken")]
            violations += [f"{child} {at}, of seed {seed + number}: {end}" for at, end in broken]
            ends.update(end.split(":")[0] for end in found)
    return Report(sum(ends.values()), violations, f"({', '.join(f'{count} {end}' for end, count in ends.items())})")


def _shared(cases: int, seed: int) -> Iterator[tuple[tuple[str, ...], list[int]]]:
    """Share cases among the children: each with the seeds of its own."""
    for number, child in enumerate(CHILDREN):
        chance = random.Random(f"{seed} {child}")
        share = range(cases * number // len(CHILDREN), cases * (number + 1) // len(CHILDREN))
        yield child, [chance.randrange(2**40) for _ in share]
