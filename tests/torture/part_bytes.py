"""Any bytes as a stored value: nothing is imported or called, little time and memory is spent, errors are typed."""

from __future__ import annotations

from collections import Counter

from tests.persistence.serde.confined import outcomes
from tests.persistence.serde.forging import Forger
from tests.torture.catalog import Report, part


@part("bytes", "Stored bytes never become code, a flood or an untyped error.", full=10_000, short=1_500)
def stored_bytes(cases: int, seed: int) -> Report:
    """Read forged values in watched processes of their own."""
    forger = Forger(seed)
    values = [forger.typed() for _ in range(cases)]
    found = outcomes(values)
    violations = [
        f"{outcome}: {kind!r} {data.hex()}"
        for (kind, data), outcome in zip(values, found, strict=True)
        if outcome.startswith("broken")
    ]
    kinds = Counter(outcome.split(":")[0] for outcome in found)
    told = ", ".join(f"{count} {kind.removeprefix('error ')}" for kind, count in kinds.most_common(4))
    return Report(len(found), violations, f"({told})")
