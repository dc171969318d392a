"""Speaking of other people's exceptions: whatever they do when asked, the failure itself is what is reported."""

from __future__ import annotations

from contextlib import suppress


def described(error: BaseException) -> str:
    """Return ``repr(error)``, or the class's name where that raises."""
    try:
        return repr(error)
    except Exception:  # noqa: BLE001 - somebody else's __repr__
        return f"<{type(error).__name__}, whose repr() raises>"


def add_note(error: BaseException, note: str) -> None:
    """Add a note, where the exception takes one."""
    with suppress(Exception):
        error.add_note(note)
