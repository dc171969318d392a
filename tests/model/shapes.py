"""Small graphs by chance, as plain data: what the engine builds and what the reference reads."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any, NamedTuple

NAMES = "abcdef"

MOST = 60
"""Tasks of a thread after which routers lead nowhere."""


class Parts(NamedTuple):
    """A router's wish for several tasks of one node, each with an input of its own."""

    node: str
    number: int


class Join(NamedTuple):
    """An edge that waits for all its sources."""

    sources: tuple[str, ...]
    target: str


@dataclass(frozen=True)
class Node:
    """What a node does: ask, fail, and else add its label to the log and one to the count; and what follows it."""

    name: str
    edges: tuple[str, ...] = ()
    routes: tuple[tuple[str | Parts, ...], ...] = ()
    """Where its router may go; which of them the count says."""
    questions: int = 0
    failures: int = 0
    """How often it fails before it succeeds, unless it runs as a part."""
    deferred: bool = False

    def route(self, count: int) -> tuple[str | Parts, ...]:
        """Return where to go on at this count; often enough nowhere, so that loops end and parts of parts stay few."""
        return self.routes[count % len(self.routes)] if self.routes and count % 8 < 6 and count < MOST else ()


@dataclass(frozen=True)
class Shape:
    """A graph."""

    starts: tuple[str, ...]
    nodes: dict[str, Node]
    joins: tuple[Join, ...]


def merged(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """Reduce to the latest entries: tells in which order writes were folded."""
    return {**old, **new}


def shape_by(chance: Random) -> Shape:
    """Return a graph of two to six nodes."""
    names = NAMES[: chance.randint(2, len(NAMES))]

    def some(most: int, least: int = 0) -> tuple[str, ...]:
        return tuple(chance.sample(names, min(chance.randint(least, most), len(names))))

    def route() -> tuple[str | Parts, ...]:
        if chance.random() < 0.4:
            return (*some(1), Parts(chance.choice(names), chance.randint(1, 3)))
        return some(2)

    nodes = {
        name: Node(
            name,
            edges=tuple(other for other in some(2) if other > name),  # only routers may lead back, for they end
            routes=tuple(route() for _ in range(chance.choice([0, 0, 1, 3]))),
            questions=chance.choice([0, 0, 0, 1, 2]),
            failures=chance.choice([0, 0, 0, 1, 2]),
            deferred=chance.random() < 0.15,
        )
        for name in names
    }
    joins = {Join(tuple(sorted(some(3, 2))), chance.choice(names)) for _ in range(chance.choice([0, 1, 1, 2]))}
    return Shape(some(3, 1), nodes, tuple(sorted(joins)))
