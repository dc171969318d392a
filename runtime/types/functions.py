"""What kind of function a program gives."""

from __future__ import annotations

import inspect
from functools import partial
from typing import Any


def is_async(function: Any) -> bool:
    """Tell whether calling it returns something to be awaited, also through partials and objects that can be called."""
    while isinstance(function, partial):
        function = function.func
    return inspect.iscoroutinefunction(function) or (
        not inspect.isroutine(function)
        and not inspect.isclass(function)
        and inspect.iscoroutinefunction(getattr(function, "__call__", None))
    )
