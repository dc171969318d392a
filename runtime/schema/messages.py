"""Conversations: the message reducer and the state that uses it.

With langchain_core installed, everything becomes its message classes, as in LangGraph. Without it messages are dicts:
``{"role": ..., "content": ..., "id": ...}``. It is imported at the first fold, because importing it takes long.
"""

from __future__ import annotations

import functools
import uuid
from collections.abc import Callable
from typing import Annotated, Any, Final, Literal, overload

from typing_extensions import TypedDict

REMOVE_ALL_MESSAGES: Final = "__remove_all__"
"""Id of a removal that drops every message before it."""

Messages = Any
"""One message, or a list of them."""

_PAIR: Final = 2
_ONLY_DICTS: Final = frozenset({dict})


@overload
def add_messages(
    left: None = None, right: None = None, *, format: Literal["langchain-openai"] | None = None
) -> Callable[[Messages, Messages], list[Any]]: ...
@overload
def add_messages(
    left: Messages, right: Messages, *, format: Literal["langchain-openai"] | None = None
) -> list[Any]: ...
def add_messages(
    left: Messages = None,
    right: Messages = None,
    *,
    format: Literal["langchain-openai"] | None = None,  # noqa: A002 - LangGraph's public name
) -> Any:
    """Return ``left`` with the messages of ``right`` added.

    A message whose id is already there replaces it, a removal (``RemoveMessage``, or a dict with the role ``remove``)
    takes the message with its id out, and one with the id ``REMOVE_ALL_MESSAGES`` all messages before it. Messages
    without an id get one. Called with ``format`` alone it returns a reducer.

    Raises ValueError for the removal of an unknown id, or an unknown format.
    """
    if left is None and right is None:
        return functools.partial(add_messages, format=format)
    if left is None or right is None:
        msg = "add_messages needs both the messages there are and those to add; one of them is None."
        raise ValueError(msg)
    if format not in (None, "langchain-openai"):
        msg = f"Unrecognized format={format!r}. Expected one of 'langchain-openai', None."
        raise ValueError(msg)
    dialect = _langchain() or _Dicts()
    merged = _merged(dialect, _listed(left), dialect.coerced(_listed(right)))
    return dialect.formatted(merged) if format else merged


def as_message(value: Any) -> Any:
    """Return what may be a message object, a dict, a text or a pair as a message; a chunk stays one, no id is made."""
    dialect = _langchain() or _Dicts()
    return dialect.message(value)


def message_types() -> list[Any]:
    """Return annotations that mention the classes messages may have: those of langchain_core if it is installed."""
    dialect = _langchain()
    return [] if dialect is None else dialect.types()


add_messages.appends = True  # type: ignore[attr-defined]
add_messages.value_types = message_types  # type: ignore[attr-defined]


class MessagesState(TypedDict):
    """A state that is a conversation; extend it with further keys."""

    messages: Annotated[list[Any], add_messages]


def _listed(messages: Messages) -> list[Any]:
    return messages if isinstance(messages, list) else [messages]


def _merged(dialect: _Dicts | _LangChain, left: list[Any], right: list[Any]) -> list[Any]:
    known = dialect.known_ids(left)
    if known is None:
        left = dialect.coerced(left)
        known = dialect.ids(left)
    ids = dialect.ids(right)
    removals = [dialect.is_removal(message) for message in right]
    if not any(removals):
        distinct = set(ids)
        if len(distinct) == len(ids) and distinct.isdisjoint(known):
            return left + right
    cleared = [at for at, removes in enumerate(removals) if removes and ids[at] == REMOVE_ALL_MESSAGES]
    if cleared:
        return right[cleared[-1] + 1 :]
    merged = list(left)
    places = {identity: at for at, identity in enumerate(known)}
    removed: set[str] = set()
    for message, identity, removes in zip(right, ids, removals, strict=True):
        if identity not in places:
            if removes:
                msg = (
                    f"Attempting to delete a message with an ID that doesn't exist ('{identity}'). Take the ids from "
                    "the messages that the state holds, or remove all with RemoveMessage(id=REMOVE_ALL_MESSAGES)."
                )
                raise ValueError(msg)
            places[identity] = len(merged)
            merged.append(message)
        elif removes:
            removed.add(identity)
        else:
            removed.discard(identity)
            merged[places[identity]] = message
    if not removed:
        return merged
    return [message for message, identity in zip(merged, dialect.ids(merged), strict=True) if identity not in removed]


class _Dicts:
    """Messages as plain dicts."""

    def coerced(self, messages: list[Any]) -> list[Any]:
        """Return the messages as dicts with ids; dicts without one are copied."""
        return [
            message if type(message) is dict and message.get("id") is not None else self._coerced(message)
            for message in messages
        ]

    def known_ids(self, messages: list[Any]) -> list[str] | None:
        """Return the ids of messages that need no coercing; None if one does."""
        if not _ONLY_DICTS.issuperset(map(type, messages)):
            return None
        ids = [message.get("id") for message in messages]
        return None if None in ids else ids

    def message(self, value: Any) -> Any:
        """Return one message; a dict as it is."""
        return value if isinstance(value, dict) else self._coerced(value)

    def ids(self, messages: list[Any]) -> list[str]:
        return [message["id"] for message in messages]

    def is_removal(self, message: Any) -> bool:
        return bool(message.get("role") == "remove")

    def formatted(self, messages: list[Any]) -> list[Any]:  # noqa: ARG002 - it is refused
        msg = "format='langchain-openai' needs the package langchain-core; install it, or leave format out."
        raise ImportError(msg)

    def _coerced(self, message: Any) -> Any:
        if isinstance(message, str):
            return {"role": "user", "content": message, "id": str(uuid.uuid4())}
        if isinstance(message, (tuple, list)) and len(message) == _PAIR:
            return {"role": message[0], "content": message[1], "id": str(uuid.uuid4())}
        if not isinstance(message, dict):
            msg = f"A message is a dict, a text or a pair (role, content), not {type(message).__name__}: {message!r}."
            raise TypeError(msg)
        return message if message.get("id") is not None else {**message, "id": str(uuid.uuid4())}


class _LangChain:
    """Messages as langchain_core's classes."""

    def __init__(self) -> None:
        from langchain_core import messages  # noqa: PLC0415 - optional, and slow to import

        self._library = messages
        self._whole: set[type] = set()
        """Classes met that are messages and no chunks; asking pydantic's classes takes long."""

    def coerced(self, messages: list[Any]) -> list[Any]:
        """Return the messages as objects with ids, chunks made whole; as in LangGraph, ids are set in place."""
        whole = self._whole
        return [
            message if type(message) in whole and message.id is not None else self._coerced(message)
            for message in messages
        ]

    def known_ids(self, messages: list[Any]) -> list[str] | None:
        """Return the ids of messages that need no coercing; None if one does."""
        if not self._whole.issuperset(map(type, messages)):
            return None
        ids = [message.id for message in messages]
        return None if None in ids else ids

    def message(self, value: Any) -> Any:
        """Return one message, or chunk."""
        return self._library.convert_to_messages([value])[0]

    def ids(self, messages: list[Any]) -> list[str]:
        return [message.id for message in messages]

    def _coerced(self, message: Any) -> Any:
        library = self._library
        if not isinstance(message, library.BaseMessage):
            message = library.convert_to_messages([message])[0]
        if isinstance(message, library.BaseMessageChunk):
            message = library.message_chunk_to_message(message)
        self._whole.add(type(message))
        if message.id is None:
            message.id = str(uuid.uuid4())
        return message

    def is_removal(self, message: Any) -> bool:
        return isinstance(message, self._library.RemoveMessage)

    def formatted(self, messages: list[Any]) -> list[Any]:
        library = self._library
        return list(library.convert_to_messages(library.convert_to_openai_messages(messages)))

    def types(self) -> list[Any]:
        """Return annotations that mention every message class, chunks included."""
        return [self._library.AnyMessage, self._library.RemoveMessage]


@functools.cache
def _langchain() -> _LangChain | None:
    try:
        return _LangChain()
    except ImportError:
        return None
