"""SVG: a picture for pages and notebooks, self-contained, for light and dark backgrounds alike.

Text stands on a ground of its own, and lines are of a middle grey. Arrowheads are shapes, not markers: a page may hold
many pictures, and the ids of markers would be shared among them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import Final

from rich.cells import cell_len

from runtime.drawing.layout import Arrangement, Box, Measure, Point, Route, arrange
from runtime.drawing.parts import LEVEL, Edge, Node, is_terminal, line, notes

FONT: Final = "ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace"
"""All characters of one width, so that it is known how much room text takes."""
_LETTER: Final = 0.605
"""Width of a character, by the font's size."""
_NAME, _NOTE, _LABEL, _TITLE = 14.0, 11.0, 11.5, 12.0
"""Font sizes."""
_BETWEEN_LINES: Final = 16.0
_MARGIN: Final = 12.0
_ROUNDING: Final = 7.0
_ARROW: Final = 8.0

_INK: Final = "#1b2333"
_LINE: Final = "#7d879c"
_BORDER: Final = "#5b6b8c"
_NODE: Final = "#eef1f8"
_TERMINAL: Final = "#d5dcee"
_PAPER: Final = "#f6f7fb"


def draw_svg(nodes: Mapping[str, Node], edges: Sequence[Edge]) -> str:
    """Return the picture as one SVG element. Raises what ``arrange`` does."""
    plan = arrange(nodes, edges, _MEASURE)
    width, height = math.ceil(plan.width + 2 * _MARGIN), math.ceil(plan.height + 2 * _MARGIN)
    return _tag(
        "svg",
        _tag("g", *_parts(nodes, plan), transform=f"translate({_MARGIN:g} {_MARGIN:g})"),
        xmlns="http://www.w3.org/2000/svg",
        width=width,
        height=height,
        viewBox=f"0 0 {width} {height}",
        role="img",
        font_family=FONT,
    )


def _parts(nodes: Mapping[str, Node], plan: Arrangement) -> list[str]:
    """Return everything in the order in which it is painted: what comes later lies on top."""
    return [
        *map(_frame, plan.frames.values()),
        *(_line(route) for route in plan.routes),
        *(_titled(each, box) for each, box in plan.frames.items()),
        *(_box(nodes[each], box) for each, box in plan.boxes.items()),
        *(_label(route.edge.data, route.label) for route in plan.routes if route.edge.data and route.label),
    ]


# ---- how much room things take -------------------------------------------------------------------------------------


def _width(text: str, size: float) -> float:
    return cell_len(text) * size * _LETTER


def _node_size(node: Node, lines: int) -> tuple[float, float]:
    below = notes(node)
    widths = [_width(line(node.name), _NAME), *(_width(note, _NOTE) for note in below)]
    return max(max(widths) + 26, _beside(lines)), 34 + 15 * len(below)


def _label_size(text: str, lines: int = 1) -> tuple[float, float]:
    return max(_width(line(text), _LABEL) + 10, _beside(lines)), 17


def _beside(lines: int) -> float:
    """Return the width that lines take which lie side by side."""
    return (lines + 1) * _BETWEEN_LINES if lines > 1 else 0


_MEASURE: Final = Measure(
    node=_node_size,
    label=_label_size,
    title=lambda frame: _width(_title(frame), _TITLE) + 24,
    header=20,
    between_layers=34,
    between_nodes=34,
    between_lines=_BETWEEN_LINES,
    padding=18,
)


# ---- shapes --------------------------------------------------------------------------------------------------------


def _box(node: Node, box: Box) -> str:
    below = notes(node)
    terminal = is_terminal(node)
    middle, base = box.x + box.width / 2, box.y + 22
    lines = [_text(line(node.name), middle, base, _NAME)]
    lines += [_text(note, middle, base + 16 + 15 * row, _NOTE) for row, note in enumerate(below)]
    return _tag(
        "g",
        _rect(box, rounding=box.height / 2 if terminal else 6, fill=_TERMINAL if terminal else _NODE, stroke=_BORDER),
        *lines,
    )


def _frame(box: Box) -> str:
    # Smaller than its place, so that it touches no line that passes by.
    box = Box(box.x + 5, box.y + 5, box.width - 10, box.height - 10)
    return _rect(box, rounding=8, fill=_LINE, fill_opacity=0.09, stroke=_LINE, stroke_dasharray="2 3")


def _titled(frame: str, box: Box) -> str:
    """Return a frame's title. It lies on the lines: one that leads into a narrow frame passes there."""
    title = _title(frame)
    return _tag(
        "g",
        _rect(Box(box.x + 13, box.y + 11, _width(title, _TITLE) + 10, 18), rounding=4, fill=_PAPER),
        _text(title, box.x + 18, box.y + 24, _TITLE, anchor="start"),
    )


def _title(frame: str) -> str:
    return line(frame.rpartition(LEVEL)[2])


def _label(text: str, box: Box) -> str:
    middle, base = box.x + box.width / 2, box.y + box.height / 2 + 4
    return _tag("g", _rect(box, rounding=4, fill=_PAPER), _text(line(text), middle, base, _LABEL))


def _line(route: Route) -> str:
    *before, last = route.lines
    *bends, end = last
    look = {"fill": "none", "stroke": _LINE, "stroke_width": 1.6}
    look |= {"stroke_dasharray": "5 4"} if route.edge.conditional else {}
    path = " ".join(map(_path, [*before, [*bends, _short_of(bends[-1], end, _ARROW - 1)]]))
    return _tag("g", _tag("path", d=path, **look), _tag("path", d=_arrowhead(bends[-1], end), fill=_LINE))


def _short_of(start: Point, end: Point, by: float) -> Point:
    """Return the point so far before the end of a straight line."""
    length = math.dist(start, end) or 1.0
    return end[0] - (end[0] - start[0]) / length * by, end[1] - (end[1] - start[1]) / length * by


def _path(points: Sequence[Point]) -> str:
    """Return a line with rounded corners."""
    drawn = [f"M{_xy(points[0])}"]
    for before, corner, after in zip(points, points[1:], points[2:], strict=False):
        rounding = min(_ROUNDING, math.dist(before, corner) / 2, math.dist(corner, after) / 2)
        drawn += [f"L{_xy(_short_of(before, corner, rounding))}"]
        drawn += [f"Q{_xy(corner)} {_xy(_short_of(after, corner, rounding))}"]
    return " ".join([*drawn, f"L{_xy(points[-1])}"])


def _arrowhead(start: Point, tip: Point) -> str:
    back = _short_of(start, tip, _ARROW)
    across = ((tip[1] - back[1]) * 0.5, (back[0] - tip[0]) * 0.5)
    left, right = (back[0] + across[0], back[1] + across[1]), (back[0] - across[0], back[1] - across[1])
    return f"M{_xy(tip)} L{_xy(left)} L{_xy(right)} Z"


# ---- elements ------------------------------------------------------------------------------------------------------


def _rect(box: Box, *, rounding: float, **look: object) -> str:
    return _tag("rect", x=box.x, y=box.y, width=box.width, height=box.height, rx=rounding, **look)


def _text(text: str, x: float, y: float, size: float, anchor: str = "middle") -> str:
    look = {"font_size": size, "text_anchor": anchor, "fill": _INK}
    return f"<text{_attributes({'x': x, 'y': y, **look})}>{escape(text)}</text>"


def _tag(name: str, *content: str, **attributes: object) -> str:
    opened = f"<{name}{_attributes(attributes)}"
    return f"{opened}>{''.join(content)}</{name}>" if content else f"{opened}/>"


def _attributes(given: Mapping[str, object]) -> str:
    return "".join(f' {name.replace("_", "-")}="{escape(_value(value))}"' for name, value in given.items())


def _value(value: object) -> str:
    return _number(value) if isinstance(value, float) else str(value)


def _xy(point: Point) -> str:
    return f"{_number(point[0])} {_number(point[1])}"


def _number(value: float) -> str:
    """Return a number with two decimals at most."""
    return f"{value:.2f}".rstrip("0").rstrip(".")
