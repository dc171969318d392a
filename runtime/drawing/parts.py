"""What a picture is made of: nodes, edges, and the text that stands in them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from runtime.types.constants import END, START

LEVEL: Final = ":"
"""Between the names of a node's subgraphs and its own, in its id."""
_LONGEST: Final = 60
"""Characters of one line of text; a longer one would set the width of the whole picture."""


class Node(NamedTuple):
    """A node of the picture."""

    id: str
    """Its name, after the names of the subgraphs that it lies in: ``outer:inner:name``."""
    name: str
    data: Any = None
    """What runs there; None for the virtual first and last node."""
    metadata: dict[str, Any] | None = None


class Edge(NamedTuple):
    """An arrow of the picture."""

    source: str
    target: str
    data: str | None = None
    """Its label."""
    conditional: bool = False
    """Whether it is taken only sometimes."""


def is_terminal(node: Node) -> bool:
    """Tell whether a node is where a graph begins or ends."""
    return node.data is None and node.name in (START, END)


def notes(node: Node) -> list[str]:
    """Return the lines that stand under a node's name: its metadata."""
    return [line(f"{key} = {value}") for key, value in (node.metadata or {}).items()]


def line(text: object) -> str:
    """Return text as one line that shows every character: controls, line ends and the like are escaped."""
    shown = str(text)
    if not shown.isprintable():
        shown = "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in shown)
    return shown if len(shown) <= _LONGEST else f"{shown[: _LONGEST - 1]}…"


def frame_of(node_id: str) -> str:
    """Return the id of the subgraph that a node or a subgraph lies in; empty for the graph itself."""
    return node_id.rpartition(LEVEL)[0]


def frames(nodes: Mapping[str, Node]) -> list[str]:
    """Return the ids of all subgraphs, outer ones before those inside them."""
    found: dict[str, None] = {}
    for node_id in nodes:
        levels = node_id.split(LEVEL)[:-1]
        found |= dict.fromkeys(LEVEL.join(levels[: depth + 1]) for depth in range(len(levels)))
    return list(found)


def within(frame: str, ids: Iterable[str]) -> list[str]:
    """Return those of the nodes or subgraphs that lie directly in a subgraph."""
    return [each for each in ids if frame_of(each) == frame]
