"""The parts: what each one holds the project to, how often it tries, and what came of it."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple


class Report(NamedTuple):
    """What a part saw."""

    cases: int
    """How many cases were tried, counted as they were, not as planned."""
    violations: list[str]
    """What broke the promise, each with what is needed to try it again; empty when it held."""
    note: str = ""
    """A figure worth printing beside them, such as what the peer does under the same work."""


class UnavailableError(Exception):
    """This machine has not what a part needs; the message says what."""


class Part(NamedTuple):
    """One promise and the trial of it."""

    name: str
    promise: str
    full: int
    """Cases of the full run."""
    short: int
    """Cases of the run beside the other tests; they take a few seconds."""
    try_out: Callable[[int, int], Report]
    """Called with the number of cases and a seed."""


_PARTS: dict[str, Part] = {}


def part(name: str, promise: str, *, full: int, short: int) -> Callable[[Callable[[int, int], Report]], Part]:
    """Add a trial to the table. ``promise`` is one sentence of what must hold."""

    def added(try_out: Callable[[int, int], Report]) -> Part:
        if name in _PARTS:
            message = f"There are two parts named {name!r}."
            raise ValueError(message)
        _PARTS[name] = Part(name, promise, full, short, try_out)
        return _PARTS[name]

    return added


def parts() -> list[Part]:
    """Return all parts: those of the modules beside this one whose name begins with ``part_``."""
    for module in pkgutil.iter_modules([str(Path(__file__).parent)]):
        if module.name.startswith("part_"):
            importlib.import_module(f"tests.torture.{module.name}")
    return list(_PARTS.values())
