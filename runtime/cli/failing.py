"""What a command can fail with, as its caller sees it."""

from __future__ import annotations

from typing import Any


class CommandError(Exception):
    """A command did not do what it was asked to: one message, and facts for programs beside it.

    ``hint`` is printed under the message on a terminal; ``facts`` are keys of the JSON error.
    """

    exit_code = 1

    def __init__(self, message: str, *, kind: str = "CommandError", hint: str | None = None, **facts: Any) -> None:
        super().__init__(message)
        self.kind = kind
        self.hint = hint
        self.facts = facts


class UsageError(CommandError):
    """The command line itself is wrong."""

    exit_code = 2

    def __init__(self, message: str) -> None:
        super().__init__(message, kind="UsageError")
