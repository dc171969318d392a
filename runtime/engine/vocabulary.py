"""The runtime's own records that may stand in stored rows, registered so that they are rebuilt on load."""

from __future__ import annotations

from persistence.serde.registry import register_types
from runtime.types.command import Command, Overwrite, Send
from runtime.types.interrupts import Interrupt
from runtime.types.policy import TimeoutPolicy

STORED = (Command, Interrupt, Overwrite, Send, TimeoutPolicy)


def register(*more: type) -> None:
    """Register them, and ``more``, with every serialiser of the process; safe to call again."""
    register_types(*STORED, *more)
