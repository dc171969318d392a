"""Error handlers that fail themselves: what they had been called for must not be lost with that."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from runtime.errors import StoredNodeError
from runtime.types.telling import add_note, described

if TYPE_CHECKING:
    from runtime.engine.tasks import HandlerTask


def blame_handler(error: BaseException, stand_in: HandlerTask) -> None:
    """Let the error of an error handler tell of itself, and of the failure that it was to handle."""
    reason = stand_in.reason
    if error is reason:  # raised again
        return
    handler, node = _name_of(stand_in.node.call.function), stand_in.failed.name
    failure = str(reason) if isinstance(reason, StoredNodeError) else described(reason)
    told = f"Raised by {handler!r}, the error handler of node {node!r}, which had failed with {failure}"
    if told not in getattr(error, "__notes__", ()):
        add_note(error, told)
    _link(error, reason)


def _name_of(function: Any) -> str:
    """Return the name of a function, or of the class of what is called otherwise."""
    name = getattr(function, "__name__", None)
    if isinstance(name, str) and name not in ("invoke", "ainvoke"):
        return name
    return type(getattr(function, "__self__", function)).__name__


def _link(error: BaseException, reason: BaseException) -> None:
    """Put the reason where ``except`` puts it: under the first error of those that ended in this one."""
    known = {id(each) for each in _behind(reason)}
    if any(id(each) in known for each in _behind(error)):
        return  # the handler has linked them itself, or raised what the reason had come of
    first = error
    while first.__context__ is not None:
        first = first.__context__
    first.__context__ = reason


def _behind(error: BaseException) -> list[BaseException]:
    """Return an error with all that it came of."""
    found = [error]
    for each in found:
        for origin in (each.__cause__, each.__context__):
            if origin is not None and not any(origin is other for other in found):
                found.append(origin)
    return found
