"""Printing chunks of a stream, for whoever watches a run at a terminal."""

from __future__ import annotations

from typing import Any


def show(ns: str, mode: str, payload: Any) -> None:
    """Print a chunk: its mode, in bold, where it comes from, and what it tells."""
    where = f"[{ns}]" if ns else ""
    print(f"\x1b[1m{where}[{mode}]\x1b[0m {payload!r}")  # noqa: T201 - that is what it is for
