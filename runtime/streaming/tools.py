"""The ``tools`` stream: which tools a node calls, what they put out while they work, and how they end.

``tool-started`` (tool_call_id, tool_name, input), ``tool-output-delta`` (tool_call_id, delta), then ``tool-finished``
(tool_call_id, output) or ``tool-error`` (tool_call_id, message). A tool that pauses ends with neither: it runs again.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar, Token
from typing import Any, Protocol

from runtime.errors import GraphBubbleUp

_WRITER: ContextVar[Callable[[Any], None] | None] = ContextVar("actorgraph_tool_writer", default=None)


class Teller(Protocol):
    """What a handler tells."""

    def __call__(self, mode: str, item: Any, *, once: bool = False) -> None:
        """Put an item on the stream of a mode; ``once``: unless its message was told before."""
        ...


def get_tool_writer() -> Callable[[Any], None]:
    """Return what puts a part of the running tool's output on the ``tools`` stream.

    Outside of a tool, or where nobody listens, what is written is lost.
    """
    return _WRITER.get() or _unheard


def _unheard(_delta: Any) -> None:
    return None


class ToolCall:
    """One call of a tool, as the stream tells it."""

    __slots__ = ("_id", "_tell", "_token")

    def __init__(self, tell: Teller, call_id: str, name: str, given: Any) -> None:
        self._tell = tell
        self._id = call_id
        self._say("tool-started", tool_name=name, **({} if given is None else {"input": given}))
        self._token: Token[Callable[[Any], None] | None] = _WRITER.set(self._delta)

    def finished(self, output: Any) -> None:
        """Tell that it returned."""
        self._leave()
        self._say("tool-finished", output=output)

    def failed(self, error: BaseException) -> None:
        """Tell that it raised; a pause is no failure."""
        self._leave()
        if isinstance(error, GraphBubbleUp):
            return
        self._say("tool-error", message=str(error))

    def _delta(self, delta: Any) -> None:
        self._say("tool-output-delta", delta=delta)

    def _leave(self) -> None:
        with suppress(ValueError):  # it ends in another context than it began in
            _WRITER.reset(self._token)

    def _say(self, event: str, **more: Any) -> None:
        self._tell("tools", {"event": event, "tool_call_id": self._id, **more})
