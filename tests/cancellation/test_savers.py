"""Opening, using and closing a saver are cancelled before every step: no thread, no lock, no half of a write stays."""

from __future__ import annotations

from pathlib import Path

from tests.cancellation.cancelling import Way, every_way, sweep
from tests.cancellation.trials import Session


@every_way
def test_a_saver_can_be_cancelled_from_opening_to_closing(way: Way, folder: Path) -> None:
    assert sweep(way, "memory", folder, lambda _other: Session(folder)) > 20
