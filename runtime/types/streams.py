"""Names of what a run can be asked to stream."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, get_args

StreamMode = Literal["values", "updates", "custom", "tasks", "checkpoints", "debug"]

STREAM_MODES: tuple[str, ...] = get_args(StreamMode)

StreamWriter = Callable[[Any], None]
"""Writes one item to the ``custom`` stream."""
