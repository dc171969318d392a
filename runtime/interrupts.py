"""A question that a node put to the outside; stands below everything, because an error carries it too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(slots=True)
class Interrupt:
    """A pending question: answer it with ``Command(resume=...)``."""

    value: Any
    """What was asked; any storable value."""
    id: str = ""
    """32 hex characters; stable for (checkpoint, task, number of answers)."""
    response_schema: Any = None
    """JSON schema or type that answers are checked against, if any."""

    def __repr__(self) -> str:
        return f"Interrupt(value={self.value!r}, id={self.id!r})"

    def __hash__(self) -> int:
        return hash(self.id)
