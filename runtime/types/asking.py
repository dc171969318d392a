"""``interrupt()``: how a node puts a question to the outside.

What answers it is not known here: whoever runs the node sets the asker in the node's context.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any, Protocol


class Asker(Protocol):
    """Answers a question, or raises GraphInterrupt to pause the node."""

    def ask(self, value: Any, response_schema: Any) -> Any:
        """Return the answer given to this call of ``interrupt`` in this task."""
        ...


ASKER: ContextVar[Asker] = ContextVar("actorgraph_asker")


def interrupt(value: Any, *, response_schema: Any = None) -> Any:
    """Pause this node with a question; return the answer once the graph is resumed with one.

    The node starts again from its first line then; earlier questions of the same task return their recorded answers in
    call order, so their number and order must not depend on anything else. Questions asked at once (``gather``, a task
    group) are told apart by their values instead, which must then be the same each time. The pause is a
    BaseException: ``except Exception`` does not catch it.

    Raises:
        RuntimeError: called outside a node.

    """
    try:
        asker = ASKER.get()
    except LookupError:
        msg = "Called interrupt() outside of a node; it only works in code that a graph runs."
        raise RuntimeError(msg) from None
    return asker.ask(value, response_schema)
