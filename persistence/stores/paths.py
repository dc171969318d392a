"""Paths to the texts of a value: ``a.b``, ``a[*].b``, ``a[0]``, ``a[-1]``, ``a.*``, ``{a,b}``; ``$`` is all of it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple, TypeAlias


class Name(NamedTuple):
    """The value of a key."""

    name: str


class Every(NamedTuple):
    """Each value of a dict or element of a list; of lists only, if written as ``[*]``."""

    of_lists_only: bool


class At(NamedTuple):
    """One element of a list; negative from its end."""

    place: int


class Each(NamedTuple):
    """What several paths lead to."""

    paths: tuple[Path, ...]


Step: TypeAlias = Name | Every | At | Each
Path: TypeAlias = tuple[Step, ...]

_PART: Final = re.compile(r"\{(?P<several>[^{}]*)\}|\[(?P<element>\*|-?\d+)\]|(?P<name>[^.\[\]{}]+)")
_ROOT: Final = "$"


def parsed(path: str) -> Path:
    """Return the steps of a path; none for the whole value. Raises ValueError if it is not well formed."""
    steps = [_step(part) for part in _parts(path)]
    return tuple(steps[1:] if steps[:1] == [Name(_ROOT)] else steps)


def tokens(path: str) -> list[str]:
    """Return the parts of a path as they are written, without periods. Raises ValueError likewise."""
    return [part.group() for part in _parts(path)]


def texts(value: Any, path: Path) -> Iterator[str]:
    """Yield the texts that a path leads to; what is missing or None has none."""
    if path:
        for inner in _taken(value, path[0]):
            yield from texts(inner, path[1:])
    elif isinstance(value, str):
        yield value
    elif value is not None:
        is_tree = isinstance(value, Mapping | list | tuple)
        yield json.dumps(_plain(value), ensure_ascii=False, sort_keys=True) if is_tree else str(value)


def _parts(path: str) -> Iterator[re.Match[str]]:
    position = 0
    while position < len(path):
        if path[position] == "." and position:
            position += 1
            continue
        part = _PART.match(path, position)
        if part is None:
            message = f"The path {path!r:.80} is not well formed at {path[position:]!r:.40}: write a.b, a[*].b or a[0]."
            raise ValueError(message)
        yield part
        position = part.end()


def _step(part: re.Match[str]) -> Step:
    several, element, name = part.group("several", "element", "name")
    if several is not None:
        return Each(tuple(parsed(each.strip()) for each in several.split(",")))
    if element is not None:
        return Every(of_lists_only=True) if element == "*" else At(int(element))
    return Every(of_lists_only=False) if name == "*" else Name(name)


def _taken(value: Any, step: Step) -> Iterable[Any]:
    is_list = isinstance(value, list | tuple)
    if isinstance(step, Name):
        return [value[step.name]] if isinstance(value, Mapping) and step.name in value else []
    if isinstance(step, At):
        return [value[step.place]] if is_list and -len(value) <= step.place < len(value) else []
    if isinstance(step, Every):
        if isinstance(value, Mapping) and not step.of_lists_only:
            return value.values()
        return value if is_list else []
    return (found for path in step.paths for found in _followed(value, path))


def _followed(value: Any, path: Path) -> Iterator[Any]:
    if not path:
        yield value
        return
    for inner in _taken(value, path[0]):
        yield from _followed(inner, path[1:])


def _plain(value: Any) -> Any:
    """Return what JSON has for a value: everything it does not know as text."""
    if isinstance(value, Mapping):
        return {str(name): _plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return value if value is None or isinstance(value, str | int | float) else str(value)
