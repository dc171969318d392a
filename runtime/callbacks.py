"""Callbacks of a graph's life, under LangGraph's import path."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from runtime.streaming.lifecycle import (
    GraphInterruptEvent,
    GraphLifecycleEvent,
    GraphLifecycleStatus,
    GraphResumeEvent,
    LifecycleHandler,
)

if TYPE_CHECKING:

    class GraphCallbackHandler(LifecycleHandler):
        """Base class for what is told when a graph pauses and goes on; given in ``config["callbacks"]``."""


__all__ = [
    "GraphCallbackHandler",
    "GraphInterruptEvent",
    "GraphLifecycleEvent",
    "GraphLifecycleStatus",
    "GraphResumeEvent",
]


def __getattr__(name: str) -> Any:
    if name == "GraphCallbackHandler":
        return _handler_class()
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)


@functools.cache
def _handler_class() -> type:
    """Return the base class of handlers: also LangChain's, if that is installed, so that models take them as well."""
    bases: tuple[type, ...] = (LifecycleHandler,)
    try:
        from langchain_core.callbacks import BaseCallbackHandler  # noqa: PLC0415 - optional, and slow to import
    except ImportError:
        pass
    else:
        bases = (LifecycleHandler, BaseCallbackHandler)
    doc = 'Base class for what is told when a graph pauses and goes on; given in ``config["callbacks"]``.'
    return type("GraphCallbackHandler", bases, {"__doc__": doc, "__module__": __name__})
