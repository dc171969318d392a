"""Where everything goes: nodes in layers from top to bottom, edges around them at right angles.

The work is done by graphlay, a layout engine without dependencies of its own; nothing else in this room knows it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, NamedTuple

from runtime.drawing.parts import LEVEL, Edge, Node, frame_of, frames

Point = tuple[float, float]

CAREFUL: Final = 100
"""Edges up to which the engine takes all its care: about a quarter of a second."""
MOST_EDGES: Final = 600
MOST_BENDS: Final = 4000
"""Places where edges pass by layers. Beyond either number a picture takes many seconds and shows nothing."""

_HASTY: Final[Mapping[str, Any]] = {
    "effort": {
        "custom": {
            "order_seeds": 1,
            "order_sweeps": 4,
            "exhaustive_layer_max": 3,
            "sifting_rounds": 0,
            "pullin_rounds": 0,
            "kick_patience": 0,
        }
    },
    "coords": {"placement": "brandes_koepf"},
}
_DIFFERENT_ERRORS: Final = (KeyboardInterrupt, SystemExit, MemoryError)


class Box(NamedTuple):
    """Where a node or a frame is: its left upper corner and its size."""

    x: float
    y: float
    width: float
    height: float


class Route(NamedTuple):
    """The way an edge takes: one line, or one to its label and one from there."""

    edge: Edge
    lines: Sequence[Sequence[Point]]
    label: Box | None


class Arrangement(NamedTuple):
    """A picture's places, from (0, 0) to its size."""

    width: float
    height: float
    boxes: Mapping[str, Box]
    frames: Mapping[str, Box]
    routes: Sequence[Route]


@dataclass(frozen=True, slots=True)
class Measure:
    """How much room things take, in a unit of the one who draws."""

    node: Callable[[Node], tuple[float, float]]
    label: Callable[[str], tuple[float, float]]
    title: Callable[[str], float]
    """Width of a frame's title."""
    header: float
    """Height of a frame's title."""
    between_layers: float
    between_nodes: float
    between_lines: float
    padding: float
    """Between a frame and what is in it."""


def arrange(nodes: Mapping[str, Node], edges: Sequence[Edge], measure: Measure) -> Arrangement:
    """Return where nodes and edges go; the same for the same graph.

    Raises:
        ImportError: graphlay is not installed.
        ValueError: the graph is too large for a picture.

    """
    inner = frames(nodes)
    index = {each: place for place, each in enumerate([*inner, *nodes])}
    described = [_box_of(measure.title(each), measure.header, frame_of(each), index) for each in inner]
    described += [_node(node, edges, index, measure) for node in nodes.values()]
    lines: list[dict[str, Any]] = []
    for edge in edges:
        # A label is a box that the line passes through: so nothing else can lie where it stands.
        ends = [index[edge.source], index[edge.target]]
        if edge.data:
            ends.insert(1, len(described))
            described.append(_box_of(*measure.label(edge.data), _frame_around(edge), index))
        lines += [{"source": start, "target": end, "weight": 1.0} for start, end in pairwise(ends)]
    laid = _laid_out({"nodes": described, "edges": lines}, _options(len(lines), measure))
    placed = [_placed(found) for found in laid["nodes"]]
    routes = _routes(edges, iter(placed[len(index) :]), iter(laid["edges"]))
    return _moved_to_origin(
        {each: placed[index[each]] for each in nodes}, {each: placed[index[each]] for each in inner}, routes
    )


def _laid_out(graph: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
    try:
        import graphlay  # noqa: PLC0415 - may be missing
    except ImportError as error:
        msg = (
            "Pictures need the graphlay package: pip install 'actorgraph[drawing]'. draw_mermaid() needs nothing: "
            "Mermaid text is drawn by whoever shows it."
        )
        raise ImportError(msg) from error
    try:
        laid: dict[str, Any] = graphlay.layout(graph, options=options).raw
    except _DIFFERENT_ERRORS:
        raise
    except BaseException as error:  # a panic of the engine is no Exception
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        msg = (
            f"The graph cannot be laid out as a picture ({len(graph['nodes'])} nodes, {len(graph['edges'])} edges; at "
            f"most {MOST_EDGES}): {error} draw_mermaid() takes graphs of any size."
        )
        raise ValueError(msg) from error
    return laid


def _options(edges: int, measure: Measure) -> dict[str, Any]:
    gap = measure.between_lines
    return {
        "direction": "topbottom",
        "cycles": {"strategy": "follow_flow"},
        "spacing": {
            "layer_gap": measure.between_layers,
            "node_gap": measure.between_nodes,
            "isolated_gap": measure.between_nodes,
            "dummy_gap": 1.5 * gap,
            "port_gap": gap,
            "port_stroke_clear": gap,
            "bundle_lane_gap": gap,
            "self_loop_gap": gap,
            "stub": gap,
            "compound_padding": measure.padding,
            "compound_header": measure.header,
        },
        "routing": {"lane_gap": gap, "port_sides": "facing_only"},
        "self_loops": {"side": "auto", "size": 2 * gap, "gap": gap, "label_gap": gap / 2},
        "limits": {"max_nodes": None, "max_edges": MOST_EDGES, "max_dummies": MOST_BENDS},
        **(_HASTY if edges > CAREFUL else {}),
    }


def _node(node: Node, edges: Sequence[Edge], index: Mapping[str, int], measure: Measure) -> dict[str, Any]:
    """Return the description of a node, wide enough for its edges to lie side by side."""
    width, height = measure.node(node)
    leaving = sum(edge.source == node.id for edge in edges)
    coming = sum(edge.target == node.id for edge in edges)
    needed = max(leaving, coming) * measure.between_lines
    return _box_of(max(width, needed), height, frame_of(node.id), index)


def _box_of(width: float, height: float, frame: str, index: Mapping[str, int]) -> dict[str, Any]:
    """Return the description of a box; what is inside of a frame sets its size, unless it is too small."""
    parent = {"parent": index[frame]} if frame else {}
    return {"size": {"width": width, "height": height}, "shape": "box", **parent}


def _frame_around(edge: Edge) -> str:
    """Return the innermost frame that both ends of an edge lie in."""
    frame = frame_of(edge.source)
    while frame and not edge.target.startswith(f"{frame}{LEVEL}"):
        frame = frame_of(frame)
    return frame


def _placed(found: Mapping[str, Any]) -> Box:
    width, height = found["size"]["width"], found["size"]["height"]
    return Box(found["center"]["x"] - width / 2, found["center"]["y"] - height / 2, width, height)


def _routes(edges: Sequence[Edge], labels: Iterator[Box], lines: Iterator[Mapping[str, Any]]) -> list[Route]:
    routes = []
    for edge in edges:
        label = next(labels) if edge.data else None
        found = [next(lines)["points"] for _ in range(2 if edge.data else 1)]
        routes.append(Route(edge, [[(point["x"], point["y"]) for point in points] for points in found], label))
    return routes


def _moved_to_origin(boxes: Mapping[str, Box], inner: Mapping[str, Box], routes: Sequence[Route]) -> Arrangement:
    """Return the places with the leftmost and topmost of all at 0."""
    every = [*boxes.values(), *inner.values(), *(route.label for route in routes if route.label)]
    corners = [(box.x, box.y) for box in every] + [(box.x + box.width, box.y + box.height) for box in every]
    corners += [point for route in routes for line in route.lines for point in line]
    left, top = (min((corner[axis] for corner in corners), default=0.0) for axis in (0, 1))
    right, bottom = (max((corner[axis] for corner in corners), default=0.0) for axis in (0, 1))

    def moved(box: Box) -> Box:
        return box._replace(x=box.x - left, y=box.y - top)

    return Arrangement(
        right - left,
        bottom - top,
        {each: moved(box) for each, box in boxes.items()},
        {each: moved(box) for each, box in inner.items()},
        [
            Route(edge, [[(x - left, y - top) for x, y in line] for line in lines], label and moved(label))
            for edge, lines, label in routes
        ],
    )
