"""Subgraphs drawn out: the node that holds one is replaced by what is in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from runtime.drawing.parts import LEVEL, Edge, Node


class Content(NamedTuple):
    """Nodes and edges of a graph or of a subgraph."""

    nodes: Mapping[str, Node]
    edges: Sequence[Edge]


def first_node(content: Content, *, without: str | None = None) -> Node | None:
    """Return the only node that no edge leads to, if there is just one."""
    reached = {edge.target for edge in content.edges if edge.source != without}
    return _only([node for node in content.nodes.values() if node.id != without and node.id not in reached])


def last_node(content: Content, *, without: str | None = None) -> Node | None:
    """Return the only node that no edge leads from, if there is just one."""
    left = {edge.source for edge in content.edges if edge.target != without}
    return _only([node for node in content.nodes.values() if node.id != without and node.id not in left])


def _only(found: list[Node]) -> Node | None:
    return found[0] if len(found) == 1 else None


def inlined(outer: Content, name: str, inner: Content) -> Content:
    """Return the outer graph with the inner one in place of the node ``name``.

    The inner graph's virtual first and last node are left out where the edges tell as much without them. One that does
    not begin and end in one place stays a node: there would be nothing to tie the outer edges to.
    """
    if len(inner.nodes) < 2 or first_node(inner) is None or last_node(inner) is None:  # noqa: PLR2004 - a way through
        return outer
    inner = _trimmed(inner)
    first, last = first_node(inner), last_node(inner)
    if first is None or last is None:
        return outer
    nodes = {each: node for each, node in outer.nodes.items() if each != name}
    nodes |= {_below(name, each): node._replace(id=_below(name, each)) for each, node in inner.nodes.items()}
    begins, ends = _below(name, first.id), _below(name, last.id)
    edges = [
        edge._replace(
            source=ends if edge.source == name else edge.source, target=begins if edge.target == name else edge.target
        )
        for edge in outer.edges
    ]
    edges += [edge._replace(source=_below(name, edge.source), target=_below(name, edge.target)) for edge in inner.edges]
    return Content(nodes, edges)


def _below(name: str, inner: str) -> str:
    return f"{name}{LEVEL}{inner}"


def _trimmed(content: Content) -> Content:
    first = first_node(content)
    if first and first_node(content, without=first.id) and _count(content, "source", first) == 1:
        content = _removed(content, first)
    last = last_node(content)
    if last and last_node(content, without=last.id) and _count(content, "target", last) == 1:
        content = _removed(content, last)
    return content


def _count(content: Content, end: str, node: Node) -> int:
    return sum(getattr(edge, end) == node.id for edge in content.edges)


def _removed(content: Content, gone: Node) -> Content:
    return Content(
        {each: node for each, node in content.nodes.items() if each != gone.id},
        [edge for edge in content.edges if gone.id not in (edge.source, edge.target)],
    )
