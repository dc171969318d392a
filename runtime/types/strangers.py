"""Things of LangGraph's that a program still imports from there: they look like those of here, and say nothing here."""

from __future__ import annotations

from typing import Final

_THERE: Final = "langgraph."
_KEYS: Final = "__pregel_"


def is_of_langgraph(cls: type) -> bool:
    """Tell whether a class is LangGraph's."""
    return str(cls.__module__).startswith(_THERE)


def stranger(value: object) -> str | None:
    """Return what a value of a class of LangGraph's is, and what to do; None for any other value."""
    cls = type(value)
    if not is_of_langgraph(cls):
        return None
    return f"LangGraph's own {cls.__name__} ({cls.__module__}): import {cls.__name__} from runtime.types"


def keeper_of_langgraph(value: object) -> str | None:
    """Return the class of LangGraph's that a saver or store is made of; None if it is of none."""
    bases = filter(is_of_langgraph, type(value).__mro__)
    return next((f"{base.__module__}.{base.__qualname__}" for base in bases), None)


def asked_langgraph(error: BaseException) -> bool:
    """Tell whether an error is how functions of LangGraph's say that no graph of LangGraph's is at work."""
    return isinstance(error, KeyError) and str(error.args[0] if error.args else "").startswith(_KEYS)
