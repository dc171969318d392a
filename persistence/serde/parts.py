"""Parts of stored values, checked for what they are before anything is done with them.

Bytes may put any value in any place. A range takes twenty bytes and can be gone through for years; the text of a number
may stand for one that fills the memory. So what is unpacked, iterated over or computed with is of an exact type first.
"""

from __future__ import annotations

from typing import Any, TypeVar

from persistence.errors import CorruptDataError

T = TypeVar("T")


def exactly(kind: type[T], part: Any, what: str) -> T:
    """Return a part of a stored value. Raises CorruptDataError if it is of another type, be it a subclass."""
    if type(part) is not kind:
        msg = f"{what} is a {type(part).__name__}, where only a {kind.__name__} is ever stored."
        raise CorruptDataError(msg)
    found: T = part
    return found


def attributes_of(part: Any, what: str) -> dict[str, object]:
    """Return stored attributes. Raises CorruptDataError for anything but a dict with texts as keys."""
    attributes: dict[str, object] = exactly(dict, part, what)
    for name in attributes:
        exactly(str, name, f"The name of {what.lower()}")
    return attributes
