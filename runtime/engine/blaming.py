"""Whose writes to one key of the state could not be folded together."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from runtime.types.constants import START
from runtime.types.telling import add_note

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from runtime.engine.tasks import Task

_SHOWN: Final = 8


def note_writers(error: Exception, key: str, writers: Iterable[str]) -> None:
    """Note on an error which nodes wrote to the key, by name, and how often where it was more than once."""
    counted = Counter("the input" if name == START else repr(name) for name in writers)
    told = [name if times == 1 else f"{name} ({times} times)" for name, times in sorted(counted.items())]
    if len(told) > _SHOWN:
        told[_SHOWN:] = [f"{len(told) - _SHOWN} more"]
    if told:
        add_note(error, f"Key {key!r} was written in this superstep by: {', '.join(told)}.")


def writers_of(key: str, tasks: Sequence[Task]) -> list[str]:
    """Return the node of each write to a key."""
    return [task.name for task in tasks for written, _ in task.writes or () if written == key]
