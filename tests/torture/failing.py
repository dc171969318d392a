"""What goes wrong in a trial is a finding of it: an error that nobody expected as well as a case that hangs."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from traceback import extract_tb
from types import FrameType
from typing import Final

LONGEST: Final = 60.0
"""Seconds after which a case is taken to hang; those of these parts take a few."""
AGAIN: Final = 5.0
"""Seconds between further interruptions, should whatever was interrupted go on, or hang while it is put away."""


def told(error: BaseException) -> str:
    """Return what an error says, and where it was raised."""
    frames = extract_tb(error.__traceback__)
    where = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {error}{where}"


@contextmanager
def case(name: str, violations: list[str], longest: float = LONGEST) -> Iterator[None]:
    """Make whatever is raised inside a violation that names the case; so is taking longer than a case may."""
    try:
        with _limited(longest):
            yield
    except Exception as error:  # noqa: BLE001 - whatever it is, it broke the case
        violations.append(f"{name}: {told(error)}")


@contextmanager
def _limited(seconds: float) -> Iterator[None]:
    """Raise TimeoutError in the main thread, by a signal: it also ends what blocks its event loop or is shielded."""
    late = False

    def ring(_signal: int, _frame: FrameType | None) -> None:
        nonlocal late
        late = True
        message = f"it hung and was ended after {seconds:g} s"
        raise TimeoutError(message)

    usual = signal.signal(signal.SIGALRM, ring)
    waiting = signal.setitimer(signal.ITIMER_REAL, seconds, AGAIN)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, *waiting)  # a test's own limit counts on
        signal.signal(signal.SIGALRM, usual)
    if late:  # and somebody caught it
        message = f"it hung, was interrupted after {seconds:g} s and went on"
        raise TimeoutError(message)
