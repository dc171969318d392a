"""What a reader of a thread sees."""

from __future__ import annotations

from typing import Any, NamedTuple

from runtime.types.config import RunnableConfig
from runtime.types.interrupts import Interrupt


class PregelTask(NamedTuple):
    """One execution of a node: due, or done in this superstep."""

    id: str
    name: str
    path: tuple[str | int | tuple[Any, ...], ...]
    error: BaseException | str | None = None
    interrupts: tuple[Interrupt, ...] = ()
    state: Any = None
    """For a subgraph node: its config, or its own snapshot."""
    result: Any = None


class StateSnapshot(NamedTuple):
    """State of a thread at a superstep boundary."""

    values: dict[str, Any] | Any
    next: tuple[str, ...]
    """Nodes that run next; empty when the thread is done."""
    config: RunnableConfig
    metadata: dict[str, Any] | None
    created_at: str | None
    """UTC, ISO 8601."""
    parent_config: RunnableConfig | None
    tasks: tuple[PregelTask, ...]
    interrupts: tuple[Interrupt, ...]
    """Questions that wait for an answer."""


class StateUpdate(NamedTuple):
    """One update of ``bulk_update_state``."""

    values: dict[str, Any] | Any | None
    as_node: str | None = None
    task_id: str | None = None
