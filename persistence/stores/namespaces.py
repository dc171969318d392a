"""Namespaces: which labels are legal, and how they match: whole, label by label, with no character being special."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from persistence.contracts.store import MatchCondition, Namespace
from persistence.errors import InvalidNamespaceError

ANY: Final = "*"
SEPARATOR: Final = "."
_AFTER_SEPARATOR: Final = chr(ord(SEPARATOR) + 1)
_RESERVED: Final = "langgraph"


def checked(namespace: object) -> Namespace:
    """Return a namespace, or the part of one, as a tuple; it may be empty.

    Raises:
        InvalidNamespaceError: It is not a tuple of labels: non-empty strings without a period.
    """
    if isinstance(namespace, str) or not isinstance(namespace, Sequence):
        message = f'A namespace is a tuple of labels such as ("users", "Alice"), not {namespace!r:.80}.'
        raise InvalidNamespaceError(message)
    for label in namespace:
        problem = _problem(label)
        if problem is not None:
            message = f"The namespace {tuple(namespace)!r:.200} has the label {label!r:.80}: {problem}."
            raise InvalidNamespaceError(message)
    return tuple(namespace)


def checked_for_writing(namespace: object) -> Namespace:
    """Return the namespace of a put.

    Raises:
        InvalidNamespaceError: It is no namespace, is empty, or begins with a label that is reserved.
    """
    labels = checked(namespace)
    if not labels:
        message = "An item needs a namespace of at least one label; () is the whole store."
        raise InvalidNamespaceError(message)
    if labels[0] == _RESERVED:
        message = f"The namespace {labels!r:.200} begins with {_RESERVED!r}, which is reserved: choose another."
        raise InvalidNamespaceError(message)
    return labels


def checked_key(key: object) -> str:
    """Return a key as text. Raises ValueError if no database can hold it."""
    text = str(key)
    if not text.isprintable() and ("\0" in text or not _encodes(text)):
        message = f"The key {text!r:.80} holds a NUL or a lone surrogate; remove it, databases cannot key on it."
        raise ValueError(message)
    return text


def column(namespace: Namespace) -> str:
    """Return a namespace as one text; no two namespaces give the same, as labels hold no period."""
    return SEPARATOR.join(namespace)


def from_column(text: str) -> Namespace:
    """Return the namespace of a text that ``column`` made."""
    return tuple(text.split(SEPARATOR))


def below(prefix: Namespace) -> tuple[str, str]:
    """Return the bounds of the texts of all namespaces below one: from the first, up to but without the second."""
    text = column(prefix)
    return text + SEPARATOR, text + _AFTER_SEPARATOR


def begins(namespace: Namespace, prefix: Namespace) -> bool:
    """Whether a namespace is the prefix or lies below it."""
    return namespace[: len(prefix)] == prefix


def literal(conditions: Iterable[MatchCondition]) -> Namespace:
    """Return the longest beginning without wildcards that every matching namespace has."""
    longest: Namespace = ()
    for condition in conditions:
        if condition.match_type == "prefix":
            known = condition.path.index(ANY) if ANY in condition.path else len(condition.path)
            longest = max(longest, condition.path[:known], key=len)
    return longest


def checked_conditions(conditions: Iterable[MatchCondition] | None) -> tuple[MatchCondition, ...]:
    """Return the conditions of a listing. Raises ValueError if a kind of match or a label is unknown."""
    found = []
    for kind, path in conditions or ():
        if kind not in {"prefix", "suffix"}:
            message = f"A namespace is matched by 'prefix' or 'suffix', not by {kind!r:.80}."
            raise ValueError(message)
        found.append(MatchCondition(kind, checked(path)))
    return tuple(found)


def listed(
    namespaces: Iterable[Namespace], conditions: Sequence[MatchCondition], max_depth: int | None
) -> list[Namespace]:
    """Return the namespaces that meet all conditions, cut to a depth, each once, in order."""
    matching = (each for each in namespaces if all(_meets(each, condition) for condition in conditions))
    return sorted({each[:max_depth] for each in matching})


def _meets(namespace: Namespace, condition: MatchCondition) -> bool:
    path = condition.path
    if len(path) > len(namespace):
        return False
    part = namespace[: len(path)] if condition.match_type == "prefix" else namespace[len(namespace) - len(path) :]
    return all(wanted in (ANY, label) for wanted, label in zip(path, part, strict=True))


def _problem(label: object) -> str | None:
    if not isinstance(label, str):
        return f"labels are strings, not {type(label).__name__}"
    if not label:
        return "labels are not empty"
    if SEPARATOR in label:
        return f"labels hold no {SEPARATOR!r}"
    if not label.isprintable() and ("\0" in label or not _encodes(label)):
        return "labels hold no NUL and no lone surrogate"
    return None


def _encodes(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
