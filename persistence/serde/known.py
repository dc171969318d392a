"""Classes of LangChain that need no registration: its messages and documents.

States often declare them as plain lists. They are looked up by this table among the modules that the program has
loaded: nothing is imported, and no other name leads to one.
"""

from __future__ import annotations

import sys
from typing import Final

_MESSAGES: Final = {
    "ai": ("AIMessage", "AIMessageChunk"),
    "chat": ("ChatMessage", "ChatMessageChunk"),
    "function": ("FunctionMessage", "FunctionMessageChunk"),
    "human": ("HumanMessage", "HumanMessageChunk"),
    "modifier": ("RemoveMessage",),
    "system": ("SystemMessage", "SystemMessageChunk"),
    "tool": ("ToolMessage", "ToolMessageChunk"),
}

NAMES: Final = frozenset(
    {
        "langchain_core.documents.base:Document",
        *(f"langchain_core.messages.{module}:{cls}" for module, found in _MESSAGES.items() for cls in found),
    }
)
"""Their stored names."""


def known_class(name: str) -> type | None:
    """Return the class of a stored name, if it is one of these and loaded."""
    if name not in NAMES:
        return None
    module, _, cls = name.partition(":")
    found = getattr(sys.modules.get(module), cls, None)
    return found if isinstance(found, type) else None


def known_name(cls: type) -> str | None:
    """Return the stored name of a class, if it is one of these."""
    name = f"{cls.__module__}:{cls.__qualname__}"
    return name if known_class(name) is cls else None
