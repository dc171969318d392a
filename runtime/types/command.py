"""What nodes and callers can say beside plain state: Send, Command, Overwrite."""

from __future__ import annotations

import functools
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, ClassVar, Generic, Literal, TypeVar

from runtime.types.policy import TimeoutPolicy

N = TypeVar("N", bound=str)

ParentMarker = Literal["__parent__"]

_MARKS = (("langgraph.types", "Command"), ("langchain_core.messages.tool", "ToolOutputMixin"))
"""Where, once it is imported, a class is found that others tell a Command by."""


@dataclass(slots=True, frozen=True)
class Send:
    """Run a node in the next superstep with its own input, beside any other run of it."""

    node: str
    arg: Any
    """The node's whole input; it is not merged with the state."""
    timeout: TimeoutPolicy | float | timedelta | None = field(default=None, kw_only=True)
    """Replaces the node's own timeout for this run of it."""

    def __post_init__(self) -> None:
        if not isinstance(self.node, str):
            msg = f"Send takes the node's name first, then its input: Send(node, arg); got Send({self.node!r}, ...)."
            raise TypeError(msg)
        if self.timeout is not None:
            object.__setattr__(self, "timeout", TimeoutPolicy.coerce(self.timeout))

    def __hash__(self) -> int:
        return hash((self.node, repr(self.arg)))

    def __repr__(self) -> str:
        timeout = "" if self.timeout is None else f", timeout={self.timeout!r}"
        return f"Send(node={self.node!r}, arg={self.arg!r}{timeout})"


@dataclass(kw_only=True, slots=True, frozen=True)
class Command(Generic[N]):
    """A state update and a route in one; as a graph's input also an answer to pending questions."""

    PARENT: ClassVar[ParentMarker] = "__parent__"

    graph: str | None = None
    """None: this graph. ``Command.PARENT``: the graph that called this one."""
    update: Any = None
    resume: Any = None
    """The answer to the pending question, or a map from interrupt id to answer."""
    goto: Send | Sequence[Send | N] | N = ()

    @property  # type: ignore[misc]  # an object's class can be set, in general
    def __class__(self) -> type[Command[Any]]:
        """What the object counts as: also a result that LangChain's tools and LangGraph's ToolNode hand on as it is.

        The tools make a text of whatever is not an instance of their mark, and ToolNode refuses what is not one of its
        own Commands, which bear that mark. Their modules may be missing, and are slow to import, so nothing can inherit
        from them beforehand.
        """
        for module, name in _MARKS:
            mark = getattr(sys.modules.get(module), name, None)
            if type(mark) is type:  # not what a test has put in its place
                return _marked(mark)
        return Command

    def __reduce__(self) -> tuple[Any, ...]:
        return _made, (self.graph, self.update, self.resume, self.goto)

    def __repr__(self) -> str:
        shown = ((name, getattr(self, name)) for name in ("graph", "update", "resume", "goto"))
        return f"Command({', '.join(f'{name}={value!r}' for name, value in shown if value not in (None, ()))})"


def _made(graph: str | None, update: Any, resume: Any, goto: Any) -> Command[Any]:
    return Command(graph=graph, update=update, resume=resume, goto=goto)


@functools.cache
def _marked(mark: type) -> type[Command[Any]]:
    """Return a class that Commands show; called, it makes a plain one, as whoever copies them calls it."""

    def make(_cls: type, **fields: Any) -> Command[Any]:
        return Command(**fields)

    return type("Command", (mark,), {"__new__": make, "__module__": __name__, "__slots__": ()})


@dataclass(slots=True, frozen=True)
class Overwrite:
    """Replace a reducer channel's value instead of folding into it; once per channel and superstep."""

    value: Any
    type: Literal["__overwrite__"] = "__overwrite__"
