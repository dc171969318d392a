"""Type parameters of graphs: what a program may write between brackets, and need not."""

from __future__ import annotations

from typing import Any

from typing_extensions import TypeVar

StateT = TypeVar("StateT", default=Any)
ContextT = TypeVar("ContextT", default=Any)
InputT = TypeVar("InputT", default=Any)
OutputT = TypeVar("OutputT", default=Any)
