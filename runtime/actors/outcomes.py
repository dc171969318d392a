"""How the execution of a task can end; exactly one of these per task, always."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from runtime.types.interrupts import Interrupt


@dataclass(frozen=True, slots=True)
class Completed:
    """The node returned; ``task.writes`` holds what it wrote."""


@dataclass(frozen=True, slots=True)
class Paused:
    """The node waits for answers."""

    interrupts: tuple[Interrupt, ...]
    settled: tuple[Interrupt, ...] = ()
    """Questions asked at once with these that have their answer already."""


@dataclass(frozen=True, slots=True)
class Failed:
    """The node, or a router after it, raised; retries are used up."""

    error: BaseException
    attempts: int = 1
    pending: tuple[Interrupt, ...] | None = None
    """Questions that still wait, of a node that made calls; None: those that are recorded."""


@dataclass(frozen=True, slots=True)
class Cancelled:
    """The framework or the caller cancelled it before it ended."""


@dataclass(frozen=True, slots=True)
class Escalated:
    """The node addressed the parent graph."""

    command: Any


Outcome = Completed | Paused | Failed | Cancelled | Escalated

COMPLETED = Completed()
CANCELLED = Cancelled()
