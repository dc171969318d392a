"""Asking a program's own objects for attributes that they may not have."""

from __future__ import annotations

import inspect
from typing import Any, Final

_NONE: Final = object()


def attribute(value: Any, name: str, default: Any = None) -> Any:
    """Return an attribute, or the default where there is none.

    A ``__getattr__`` should raise AttributeError for what is not there; one that raises anything else means the same.
    """
    try:
        return getattr(value, name, default)
    except Exception:  # noqa: BLE001 - see above
        return default


def field_value(value: Any, name: str, default: Any = None) -> Any:
    """Return a field, or the default where it was never set. What a property or the like raises is raised."""
    try:
        return getattr(value, name)
    except AttributeError:
        return default
    except Exception:
        if inspect.getattr_static(value, name, _NONE) is _NONE:
            return default
        raise
