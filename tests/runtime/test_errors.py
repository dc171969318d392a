"""Errors that leave the process: worker processes and task queues hand them back pickled."""

from __future__ import annotations

import copy
import inspect
import pickle
from typing import TYPE_CHECKING, Any

import pytest

from persistence import errors as stored
from runtime import errors
from runtime.interrupts import Interrupt
from runtime.types import Command

if TYPE_CHECKING:
    from collections.abc import Callable

SPECIAL = {
    errors.UnknownInterruptError: errors.UnknownInterruptError("m", reason="not_pending", pending_ids=["1"]),
    errors.NodeCancelledError: errors.NodeCancelledError("n"),
    errors.NodeTimeoutError: errors.NodeTimeoutError("n", 1.5, kind="idle", idle_timeout=1.0),
    errors.GraphDrained: errors.GraphDrained("why", "1"),
    errors.GraphInterrupt: errors.GraphInterrupt([Interrupt("q", "i")]),
    errors.NodeInterrupt: errors.NodeInterrupt("q", "i"),
    errors.ChildCommand: errors.ChildCommand(Command(goto="n")),
    errors.ParentCommand: errors.ParentCommand(Command(goto="n")),
}

KINDS = [
    kind
    for module in (errors, stored)
    for _, kind in inspect.getmembers(module, inspect.isclass)
    if issubclass(kind, BaseException) and kind.__module__ == module.__name__ and not kind.__name__.startswith("_")
]


def pickled(error: Any) -> Any:
    return pickle.loads(pickle.dumps(error))  # noqa: S301 - one's own


@pytest.mark.parametrize("again", [pickled, copy.copy, copy.deepcopy], ids=["pickled", "copied", "deeply copied"])
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: f"{kind.__module__}.{kind.__name__}")
def test_an_error_is_the_same_elsewhere(kind: type[BaseException], again: Callable[[Any], Any]) -> None:
    error = SPECIAL.get(kind) or kind("message")
    error.add_note("a note")
    other = again(error)
    assert type(other) is kind
    assert (str(other), repr(other), vars(other)) == (str(error), repr(error), vars(error))
