"""Naming the nodes to pause at."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from runtime.errors import ConfigError


def breakpoints(given: Any, what: str) -> frozenset[str] | None:
    """Return the names, or None for all nodes. Raises ConfigError for what names no nodes."""
    if isinstance(given, str):
        return None if given == "*" else frozenset({given})
    names = list(given) if isinstance(given, Iterable) else [given]
    for name in names:
        if not isinstance(name, str):
            msg = f"{what} must be '*' or names of nodes, got {given!r}."
            raise ConfigError(msg)
    return frozenset(names)
