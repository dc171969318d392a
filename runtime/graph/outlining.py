"""Outlining: the nodes and edges of a compiled graph, as a picture shows them.

Read from the plan, without running anything: plain edges and joins lead on always, routers and Commands sometimes. A
router that does not say where it may go may go anywhere.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from runtime.drawing import Edge, Graph, Node
from runtime.drawing.graph import mime_bundle
from runtime.drawing.nesting import Content, inlined
from runtime.types.constants import END, START

if TYPE_CHECKING:
    from runtime.engine.plan import NodePlan, Plan
    from runtime.run.program import Program


class Drawable:
    """The methods of a compiled graph that show it."""

    program: Program

    def get_graph(self, config: Mapping[str, Any] | None = None, *, xray: bool | int = False) -> Graph:  # noqa: ARG002
        """Return the graph's nodes and edges, which can draw themselves: ``get_graph().draw_mermaid()``.

        Args:
            config: changes nothing; there because LangGraph's programs pass it.
            xray: draw subgraphs out, down to as many levels; True is all.

        """
        return outline(self.program, xray)

    async def aget_graph(self, config: Mapping[str, Any] | None = None, *, xray: bool | int = False) -> Graph:
        """Return what ``get_graph`` does."""
        return self.get_graph(config, xray=xray)

    def _repr_mimebundle_(self, **_wanted: Any) -> dict[str, str]:
        return mime_bundle(self.get_graph(), repr(self))


def outline(program: Program, xray: bool | int = False) -> Graph:  # noqa: FBT001, FBT002 - LangGraph's parameter
    """Return a graph to look at."""
    plan = program.plan
    edges = _edges(plan)
    nodes = {START: Node(START, START)} | {name: _node(plan.nodes[name], program) for name in _names(plan)}
    if any(edge.target == END for edge in edges):
        nodes[END] = Node(END, END)
    shown = Content(nodes, edges)
    if xray:
        deeper = xray if isinstance(xray, bool) else xray - 1
        for name, node in plan.nodes.items():
            for inner in node.subgraphs[:1]:
                found = outline(inner, deeper)
                shown = inlined(shown, name, Content(found.nodes, found.edges))
    return Graph(dict(shown.nodes), list(shown.edges))


def _node(node: NodePlan, program: Program) -> Node:
    metadata = dict(node.metadata)
    if node.defer:
        metadata["defer"] = True
    pauses = {"before": program.interrupt_before, "after": program.interrupt_after}
    if paused := [when for when, names in pauses.items() if names is None or node.name in names]:
        metadata["__interrupt"] = ",".join(paused)
    return Node(node.name, node.name, node.call.function, metadata or None)


def _edges(plan: Plan) -> list[Edge]:
    """Return the edges by the names of what they join, each pair joined once; those from the last nodes come last."""
    drawn = {START, *_names(plan), END}
    found: dict[tuple[str, str], list[Edge]] = {}
    for edge in _all_edges(plan):
        if edge.target in drawn:  # a Command may also go to a node of the graph around this one
            found.setdefault((edge.source, edge.target), []).append(edge)
    edges = {ends: _merged(found[ends]) for ends in sorted(found)}
    left = Counter(source for source, _ in edges)
    last = {(target, END) for _, target in edges if target != END and not left[target]}
    last |= {ends for ends, edge in edges.items() if ends[1] == END and left[ends[0]] == 1 and not edge.conditional}
    return [
        *(edge for ends, edge in edges.items() if ends not in last),
        *(edges.get(ends) or Edge(*ends) for ends in sorted(last)),
    ]


def _names(plan: Plan) -> list[str]:
    """Return the names of the nodes that do something, in the order in which they were added."""
    return [name for name in plan.nodes if name != START]


def _all_edges(plan: Plan) -> Iterator[Edge]:
    if START not in plan.nodes:
        yield from (Edge(START, name) for name in plan.subscribers.get(START, ()))
    for name, node in plan.nodes.items():
        for channel in (*node.targets, *node.joins):
            yield from (Edge(name, target) for target in plan.subscribers[channel])
        if node.ends:
            yield Edge(name, END)
        for branch in node.branches:
            anywhere = {target: target for target in [*_names(plan), END]}
            yield from _conditional(name, anywhere if branch.ends is None else branch.ends)
        for target, label in node.destinations.items():
            yield Edge(name, target, label, conditional=True)


def _conditional(source: str, ends: Mapping[Any, str]) -> Iterator[Edge]:
    for answer, target in ends.items():
        yield Edge(source, target, None if answer == target else str(answer), conditional=True)


def _merged(edges: list[Edge]) -> Edge:
    """Return one edge for all that join the same two nodes: what always happens, else all its labels."""
    for edge in edges:
        if not edge.conditional:
            return edge
    labels = _distinct(edge.data for edge in edges if edge.data)
    return edges[0]._replace(data=", ".join(labels) or None)


def _distinct(labels: Iterable[str | None]) -> list[str]:
    return [label for label in dict.fromkeys(labels) if label]
