"""Every part of the torture table holds in short."""

from __future__ import annotations

import pytest

from tests.torture.catalog import Part, UnavailableError, parts

SEED = 20_261_201


@pytest.mark.slow
@pytest.mark.timeout(60)
@pytest.mark.parametrize("part", parts(), ids=lambda part: part.name)
def test_the_promise_holds(part: Part) -> None:
    """Runs its own event loops and processes, so it needs no loop of ours."""
    try:
        report = part.try_out(part.short, SEED)
    except UnavailableError as reason:
        pytest.skip(str(reason))
    assert report.violations == []
    assert report.cases >= part.short
