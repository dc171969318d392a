"""Samples that are over at once: the tests ask whether something is measured, not how long it takes."""

from __future__ import annotations

import pytest

from benchmarks.durability import limits, stepping


@pytest.fixture(autouse=True)
def short_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a sample take a hundredth of a second."""
    monkeypatch.setattr(stepping, "ENOUGH", 0.01)
    monkeypatch.setattr(limits, "ENOUGH", 0.01)
