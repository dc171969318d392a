"""Any bytes as a stored value: nothing is imported or called, little time and memory is spent, errors are typed."""

from __future__ import annotations

from collections import Counter
from typing import Final

from tests.persistence.serde.confined import outcomes
from tests.persistence.serde.forging import Forger
from tests.torture.catalog import Report, part

A_SEED: Final = 5_000
"""Values of one seed; the next ones are of the next seed."""


@part("bytes", "Stored bytes never become code, a flood or an untyped error.", full=50_000, short=1_500)
def stored_bytes(cases: int, seed: int) -> Report:
    """Read forged values in watched processes of their own."""
    violations: list[str] = []
    kinds: Counter[str] = Counter()
    for number, start in enumerate(range(0, cases, A_SEED)):
        forger = Forger(seed + number)
        values = [forger.typed() for _ in range(min(A_SEED, cases - start))]
        found = outcomes(values)
        violations += [
            f"{outcome}: {kind!r} {data.hex()}, of seed {seed + number}"
            for (kind, data), outcome in zip(values, found, strict=True)
            if outcome.startswith("broken")
        ]
        kinds.update(outcome.split(":")[0] for outcome in found)
    told = ", ".join(f"{count} {kind.removeprefix('error ')}" for kind, count in kinds.most_common(4))
    return Report(kinds.total(), violations, f"({told})")
