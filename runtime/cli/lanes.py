"""A thread's history as lanes, one for each branch: which line of text lies beside which checkpoint."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple


class Lanes(NamedTuple):
    """What stands beside a checkpoint."""

    joining: list[str]
    """Lines above it, in which branches that grew from it come to its lane."""
    mark: str
    """The line it stands in, with a star in its lane."""


def lanes(history: Iterable[tuple[str, str | None]]) -> Iterator[Lanes]:
    """Yield the lanes of checkpoints, given as their id and the id of the one they grew from, newest first."""
    awaited: list[str | None] = []
    """By lane: the checkpoint that the one above grew from; None for a lane that is free."""
    for checkpoint, parent in history:
        here = [lane for lane, expected in enumerate(awaited) if expected == checkpoint]
        if not here:
            here = [_free(awaited)]
        joining = []
        for lane in here[1:]:
            joining.append(_joining(awaited, here[0], lane))
            awaited[lane] = None
        awaited[here[0]] = checkpoint
        yield Lanes(joining, _mark(awaited, here[0]))
        awaited[here[0]] = parent
        while awaited and awaited[-1] is None:
            awaited.pop()


def _free(awaited: list[str | None]) -> int:
    """Return the first lane that is free, made if there is none."""
    if None not in awaited:
        awaited.append(None)
    return awaited.index(None)


def _mark(awaited: list[str | None], here: int) -> str:
    return " ".join("*" if lane == here else _upright(expected) for lane, expected in enumerate(awaited)).rstrip()


def _joining(awaited: list[str | None], target: int, source: int) -> str:
    """Return the line in which one lane comes to another, to the left of it, and ends."""
    text = []
    for lane, expected in enumerate(awaited):
        crossed = target <= lane < source
        upright = "_" if crossed and expected is None else " " if lane == source else _upright(expected)
        text += [upright, "/" if lane == source - 1 else "_" if crossed else " "]
    return "".join(text).rstrip()


def _upright(expected: str | None) -> str:
    return " " if expected is None else "|"
