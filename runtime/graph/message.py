"""Conversations: the messages state and its reducer, and how a node tells of a message by itself."""

from __future__ import annotations

from typing import Any

from runtime.context.scope import current_scope
from runtime.errors import InvalidUpdateError
from runtime.schema.messages import REMOVE_ALL_MESSAGES, MessagesState, add_messages, as_message
from runtime.streaming.messages import id_of

__all__ = ["REMOVE_ALL_MESSAGES", "MessagesState", "add_messages", "push_message"]


def push_message(message: Any, *, state_key: str | None = "messages") -> Any:
    """Put a message, or a chunk of one, on the ``messages`` stream at once; return it.

    It is also written to the state's ``state_key`` when the node ends, unless that is None; so a node that makes its
    tokens itself pushes each with ``state_key=None`` and the same id, and returns the whole message, which is then not
    told again.

    Raises:
        ValueError: the message has no id.
        InvalidUpdateError: there is no such key to write to.
        RuntimeError: no node is running.

    """
    scope = current_scope("push_message")
    message = as_message(message)
    if id_of(message) is None:
        msg = "push_message needs a message with an id: chunks and whole message are told apart, and joined, by it."
        raise ValueError(msg)
    if state_key is not None:
        keys = scope.keys
        if state_key not in keys:
            known = f"Known keys: {', '.join(keys)}." if keys else "A workflow function has none: pass state_key=None."
            msg = f"push_message: {scope.task.name!r} has no key {state_key!r} to write to. {known}"
            raise InvalidUpdateError(msg)
    scope.tell("messages", (message, scope.config.get("metadata", {})))
    if state_key is not None:
        scope.pushed.append((state_key, message))
    return message
