"""What a run can be asked to stream, and what it returns; the shapes of chunks are in ``parts``."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, Literal, get_args

from runtime.interrupts import Interrupt
from runtime.types.constants import INTERRUPT
from runtime.types.parameters import OutputT

StreamMode = Literal["values", "updates", "custom", "messages", "tools", "tasks", "checkpoints", "debug"]

STREAM_MODES: tuple[str, ...] = get_args(StreamMode)

StreamVersion = Literal["v1", "v2"]
"""``v1``: payloads, in tuples with mode and namespace where several were asked for. ``v2``: ``StreamPart``."""

STREAM_VERSIONS: tuple[str, ...] = get_args(StreamVersion)

StreamWriter = Callable[[Any], None]
"""Writes one item to the ``custom`` stream."""


@dataclass(frozen=True, slots=True)
class GraphOutput(Generic[OutputT]):
    """What ``ainvoke(version="v2")`` returns."""

    value: OutputT
    """The output; an instance of the output schema, if that is a class with instances."""
    interrupts: tuple[Interrupt, ...] = ()
    """The questions that the run stopped at."""

    def __getitem__(self, key: str) -> Any:
        """Read the output like the dict of ``version="v1"``; for programs that move over."""
        _deprecated("output[key]")
        if key == INTERRUPT:
            return self.interrupts
        if isinstance(self.value, dict):
            return self.value[key]
        try:
            return getattr(self.value, key)
        except AttributeError:
            raise KeyError(key) from None

    def __contains__(self, key: object) -> bool:
        """Tell whether the dict of ``version="v1"`` would have a key; for programs that move over."""
        _deprecated("key in output")
        if key == INTERRUPT:
            return bool(self.interrupts)
        if isinstance(self.value, dict):
            return key in self.value
        return isinstance(key, str) and hasattr(self.value, key)


def _deprecated(what: str) -> None:
    msg = f"`{what}` is there for programs that move over: read `output.value` and `output.interrupts` instead."
    warnings.warn(msg, DeprecationWarning, stacklevel=3)
