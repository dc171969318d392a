"""Where everything goes: nodes in layers from top to bottom, edges around them at right angles.

The work is done by graphlay, a layout engine without dependencies of its own; nothing else in this room knows it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
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

    node: Callable[[Node, int], tuple[float, float]]
    """Width and height of a node that so many lines lie side by side at."""
    label: Callable[[str, int], tuple[float, float]]
    """Likewise, of an edge's label."""
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
    backward = _backward(nodes, edges)
    ports = _ports(edges, backward)
    described += [_box_of(*measure.node(node, ports[node.id]), frame_of(node.id), index) for node in nodes.values()]
    lines: list[dict[str, Any]] = []
    for edge in edges:
        # A label is a box that the line passes through: so nothing else can lie where it stands.
        ends = [index[edge.source], index[edge.target]]
        if edge.data:
            ends.insert(1, len(described))
            both_above = edge.source == edge.target
            described.append(_box_of(*measure.label(edge.data, 2 if both_above else 1), _frame_around(edge), index))
        up = (edge.source, edge.target) in backward
        lines += [{"source": start, "target": end, "reverse_for_ranking": up} for start, end in pairwise(ends)]
        if edge.source == edge.target and edge.data:
            lines[-1]["reverse_for_ranking"] = True
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


def _backward(nodes: Mapping[str, Node], edges: Sequence[Edge]) -> set[tuple[str, str]]:
    """Return the edges that lead back to where they came from: a walk from the first node meets them so."""
    following: dict[str, list[str]] = {each: [] for each in nodes}
    for edge in edges:
        following[edge.source].append(edge.target)
    backward: set[tuple[str, str]] = set()
    done: set[str] = set()
    for first in nodes:
        path: dict[str, Iterator[str]] = {} if first in done else {first: iter(following[first])}
        while path:
            here = next(reversed(path))
            target = next(path[here], None)
            if target is None:
                done.add(here)
                del path[here]
            elif target in path:
                backward.add((here, target))
            elif target not in done:
                path[target] = iter(following[target])
    return {(source, target) for source, target in backward if source != target}


def _ports(edges: Sequence[Edge], backward: AbstractSet[tuple[str, str]]) -> Counter[str]:
    """Return how many lines meet a node from above or from below, whichever is more."""
    above, below = Counter[str](), Counter[str]()
    for edge in edges:
        if edge.source == edge.target:
            below[edge.source] += 2 if edge.data else 0
            continue
        upper, lower = (
            (edge.target, edge.source) if (edge.source, edge.target) in backward else (edge.source, edge.target)
        )
        below[upper] += 1
        above[lower] += 1
    return above | below


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
        routes.append(Route(edge, [_at_right_angles(points) for points in found], label))
    return routes


def _at_right_angles(points: Sequence[Mapping[str, float]]) -> list[Point]:
    """Return a line whose every part lies flat or stands: the engine shifts some by a tenth of a unit."""
    straight = [(points[0]["x"], points[0]["y"])]
    for point in points[1:]:
        (x, y), (before_x, before_y) = (point["x"], point["y"]), straight[-1]
        straight.append((before_x, y) if abs(x - before_x) < abs(y - before_y) else (x, before_y))
    return straight


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
