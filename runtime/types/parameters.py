"""Type parameters of graphs, which a program may write between brackets, and names for what it compiles them with."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from typing_extensions import TypeVar

from persistence.contracts.saver import BaseCheckpointSaver

StateT = TypeVar("StateT", default=Any)
StateT_co = TypeVar("StateT_co", covariant=True, default=Any)
StateT_contra = TypeVar("StateT_contra", contravariant=True, default=Any)
ContextT = TypeVar("ContextT", default=Any)
InputT = TypeVar("InputT", default=Any)
OutputT = TypeVar("OutputT", default=Any)

All: TypeAlias = Literal["*"]
"""Every node, as a breakpoint."""

Checkpointer: TypeAlias = bool | BaseCheckpointSaver | None
"""What ``compile(checkpointer=)`` takes."""
