"""A question that a node put to the outside; stands below everything, because an error carries it too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from xxhash import xxh3_128_hexdigest


@dataclass(slots=True)
class Interrupt:
    """A pending question: answer it with ``Command(resume=...)``."""

    value: Any
    """What was asked; any storable value."""
    id: str = ""
    """32 hex characters; stable for (checkpoint, task, number of answers)."""
    response_schema: Any = None
    """JSON schema or type that answers are checked against, if any."""

    @classmethod
    def from_ns(cls, value: Any, ns: str, *, response_schema: Any = None) -> Self:
        """Return the first question of the task with this namespace."""
        return cls(value, interrupt_id(ns, 0), response_schema)

    def __repr__(self) -> str:
        return f"Interrupt(value={self.value!r}, id={self.id!r}, response_schema={self.response_schema!r})"

    def __hash__(self) -> int:
        return hash(self.id)


def interrupt_id(task_ns: str, answered: int) -> str:
    """Return the id of the next question of a task that has ``answered`` answers: 32 hex characters."""
    key = task_ns if answered == 0 else f"{task_ns}|{answered}"
    return xxh3_128_hexdigest(key.encode("utf-8", "surrogatepass"))
