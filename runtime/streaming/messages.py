"""Messages in what nodes take and return: what they are, and where the ``messages`` stream looks for them.

With langchain_core installed, messages are its classes, as in LangGraph; a dict is none, whatever it holds. Without it
they are dicts with a role and a content. Nothing is imported here: where its module was not loaded, no message exists.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from importlib.util import find_spec
from typing import Any, Final
from uuid import uuid4

from runtime.types.command import Command

_ROLES: Final = frozenset({"user", "human", "assistant", "ai", "system", "developer", "tool", "function"})


@functools.cache
def _installed() -> bool:
    return find_spec("langchain_core") is not None


def is_message(value: Any) -> bool:
    """Tell whether a value is a message, or a chunk of one."""
    if _installed():
        module = sys.modules.get("langchain_core.messages.base")
        return module is not None and isinstance(value, module.BaseMessage)
    return isinstance(value, dict) and "content" in value and value.get("role") in _ROLES


def id_of(message: Any) -> str | None:
    """Return a message's id."""
    found: str | None = message.get("id") if isinstance(message, dict) else message.id
    return found


def identified(message: Any) -> Any:
    """Return the message, with an id if it is an object: set in place, so that the state keeps the one that was told.

    A dict is the program's own, and may be returned again and again: it is left as it is.
    """
    if not isinstance(message, dict) and message.id is None:
        message.id = str(uuid4())
    return message


def messages_in(result: Any) -> Iterator[Any]:
    """Yield the messages that a node's result holds: by itself, in a list, in the state's keys, in Commands."""
    if isinstance(result, Command):
        yield from messages_of(result.update)
    elif _is_list(result) and any(isinstance(item, Command) for item in result):
        for item in result:
            yield from messages_of(item.update if isinstance(item, Command) else item)
    else:
        yield from messages_of(result)


def messages_of(value: Any) -> Iterator[Any]:
    """Yield the messages of a value, of a list, or of the keys of a state and of lists in these."""
    if is_message(value):
        yield value
    elif _is_list(value):
        yield from (item for item in value if is_message(item))
    else:
        for held in _held(value):
            if is_message(held):
                yield held
            elif _is_list(held):
                yield from (item for item in held if is_message(item))


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes, bytearray))


def _held(value: Any) -> Iterator[Any]:
    """Yield the values of a state's keys."""
    if isinstance(value, Mapping):
        yield from value.values()
        return
    kind = type(value)
    names: Any = getattr(kind, "__struct_fields__", None) or getattr(kind, "model_fields", None)
    if names is None and is_dataclass(value):
        names = [field.name for field in fields(value)]
    for name in names or ():
        yield getattr(value, name, None)
