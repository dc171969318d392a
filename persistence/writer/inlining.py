"""Which channel values live inside the checkpoint's own JSON instead of a blob row.

A row costs about as much as encoding the whole checkpoint, so small primitives are not worth one.
"""

from __future__ import annotations

import math
from typing import cast

MAX_TEXT = 64
MAX_INT = 2**53
"""Beyond it JSON readers that know only doubles would change the number."""


def inlines(value: object) -> bool:
    """Whether JSON gives the value back exactly; types are compared exactly, an IntEnum is no int."""
    if value is None:
        return True
    kind = type(value)
    if kind is str:
        return _inlines_text(cast("str", value))
    if kind is int:
        return -MAX_INT <= cast("int", value) <= MAX_INT
    if kind is float:
        return math.isfinite(cast("float", value))
    return kind is bool


def _inlines_text(text: str) -> bool:
    # Lone surrogates are not printable, so this keeps them out without encoding the text.
    return len(text) <= MAX_TEXT and (text.isascii() or text.isprintable()) and "\0" not in text
