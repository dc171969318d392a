"""ASCII: a picture for terminals, of nothing but printable characters.

Solid lines are ``|`` and ``-``, those taken only sometimes ``:`` and ``.``; ``+`` is a corner, and where a line passes
another one, the upright one is seen.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from rich.cells import cell_len

from runtime.drawing.layout import Arrangement, Box, Measure, Point, Route, arrange
from runtime.drawing.parts import LEVEL, Edge, Node, is_terminal, line, notes

_COLUMN: Final = 8.0
_ROW: Final = 16.0
"""Size of a character for the layout: two columns, or one row, are the least distance between lines."""
_AROUND: Final = 1
"""Rows above and below a node that are its own: an arrowhead needs a place where no line turns."""
_NEAR: Final = 1e-6
_LITTLE: Final = 1e-3
_ACROSS: Final = {True: ".", False: "-"}
_UPRIGHT: Final = {True: ":", False: "|"}

Cell = tuple[int, int]
"""Column and row."""


def draw_ascii(nodes: Mapping[str, Node], edges: Sequence[Edge]) -> str:
    """Return the picture as lines of text. Raises what ``arrange`` does."""
    plan = arrange(nodes, edges, _MEASURE)
    canvas = _Canvas(Grid(plan))
    for box in plan.frames.values():
        canvas.frame(box)
    for route in plan.routes:
        canvas.across(route)
    for route in plan.routes:
        canvas.upright(route, plan.boxes[route.edge.target])
    for each, box in plan.frames.items():
        canvas.title(_title(each), box)
    for each, box in plan.boxes.items():
        canvas.box(nodes[each], box)
    for route in plan.routes:
        if route.edge.data and route.label:
            canvas.label(line(route.edge.data), route.label)
    return canvas.text()


def _lines(node: Node) -> list[str]:
    return [line(node.name), *notes(node)]


def _title(frame: str) -> str:
    return line(frame.rpartition(LEVEL)[2])


def _columns(least: int, lines: int) -> float:
    """Return the width of what holds so much text and has so many lines at one side.

    An odd number of columns: so what is centred upon each other begins with a whole one.
    """
    return max(least, 2 * (lines + 1) if lines > 1 else 0) // 2 * 2 * _COLUMN + _COLUMN


_MEASURE: Final = Measure(
    node=lambda node, lines: (
        _columns(max(map(cell_len, _lines(node))) + 4, lines),
        (len(_lines(node)) + 2 + 2 * _AROUND) * _ROW,
    ),
    label=lambda text, lines: (_columns(cell_len(line(text)), lines), _ROW),
    title=lambda frame: (cell_len(_title(frame)) + 6) * _COLUMN,
    header=_ROW,
    between_layers=_ROW,
    between_nodes=4 * _COLUMN,
    between_lines=_ROW,
    padding=2 * _ROW,
)


class Grid:
    """Which character a place of the layout falls on. Where two lines would share one, a row or column is put in."""

    def __init__(self, plan: Arrangement) -> None:
        parts = [pair for route in plan.routes for points in route.lines for pair in pairwise(points)]
        upright = [_Line(x, min(y, end[1]), max(y, end[1])) for (x, y), end in parts if x == end[0]]
        across = [_Line(y, min(x, end[0]), max(x, end[0])) for (x, y), end in parts if y == end[1]]
        for box in map(_inside, plan.frames.values()):
            right, bottom = box.x + box.width, box.y + box.height
            upright += [_Line(x, box.y, bottom) for x in (box.x, right)]
            across += [_Line(y, box.x, right) for y in (box.y, bottom)]
        self._columns, self._rows = _Ruler(_COLUMN, upright), _Ruler(_ROW, across)

    def cell(self, point: Point) -> Cell:
        """Return column and row of a point."""
        return self._columns.place(point[0]), self._rows.place(point[1])

    def corners(self, box: Box) -> tuple[Cell, Cell]:
        """Return the first column and row that are inside of a box, and the last."""
        box = _inside(box)
        return self.cell((box.x, box.y)), self.cell((box.x + box.width, box.y + box.height))


def _inside(box: Box) -> Box:
    """Return a box that is a little smaller: what touches its edge is outside."""
    return Box(box.x + _LITTLE, box.y + _LITTLE, box.width - 2 * _LITTLE, box.height - 2 * _LITTLE)


class _Line(NamedTuple):
    """A line across an axis: where it is, from where to where."""

    at: float
    start: float
    end: float


class _Ruler:
    """One axis of a grid."""

    def __init__(self, unit: float, lines: list[_Line]) -> None:
        self._unit = unit
        self._put_in: list[float] = []
        """Where a place was put in, ascending."""
        here: list[_Line] = []
        for one in sorted(lines):
            if here and self.place(here[0].at) != self.place(one.at):
                here = []
            if any(other.at != one.at and other.start <= one.end and one.start <= other.end for other in here):
                self._put_in.append(one.at)
                here = []
            here.append(one)

    def place(self, at: float) -> int:
        return math.floor(at / self._unit + _NEAR) + bisect_right(self._put_in, at)


class _Canvas:
    """Characters by place. One that is two columns wide leaves the place after it empty."""

    def __init__(self, grid: Grid) -> None:
        self._cells: dict[Cell, str] = {}
        self._grid = grid

    def text(self) -> str:
        """Return what was drawn, without blanks at the ends of lines."""
        if not self._cells:
            return ""
        (left, right), (top, bottom) = ((min(found), max(found) + 1) for found in zip(*self._cells, strict=True))
        rows = ("".join(self._cells.get((x, y), " ") for x in range(left, right)).rstrip() for y in range(top, bottom))
        return "\n".join(rows)

    def write(self, text: str, x: int, y: int) -> None:
        """Write text over whatever is there."""
        for char in text:
            width = cell_len(char)
            if width == 0:
                continue  # it would join the one before it, which has its place already
            self._cells[x, y] = char
            if width > 1:
                self._cells[x + 1, y] = ""
            x += width

    def box(self, node: Node, box: Box) -> None:
        """Draw a node; the virtual first and last one with round ends."""
        lines = _lines(node)
        (left, top), (right, bottom) = self._grid.corners(box)
        top, bottom, width = top + _AROUND, bottom - _AROUND, right - left - 1
        upper, lower, sides = (".", "'", "()") if is_terminal(node) else ("+", "+", "||")
        self.write(f"{upper}{'-' * width}{upper}", left, top)
        for y in range(top + 1, bottom):
            self.write(f"{sides[0]}{' ' * width}{sides[1]}", left, y)
        self.write(f"{lower}{'-' * width}{lower}", left, bottom)
        for y, text in enumerate(lines, (top + bottom - len(lines) + 1) // 2):
            self.write(text, left + 1 + (width - cell_len(text)) // 2, y)

    def frame(self, box: Box) -> None:
        """Draw a subgraph's frame."""
        (left, top), (right, bottom) = self._grid.corners(box)
        for y in range(top + 1, bottom):
            self._cells[left, y] = self._cells[right, y] = "|"
        for y in (top, bottom):
            self.write("+" + "-" * (right - left - 1) + "+", left, y)

    def title(self, text: str, box: Box) -> None:
        """Write a frame's title into its upper edge, over the line that may lead into it there."""
        (left, top), _ = self._grid.corners(box)
        self.write(f" {text} ", left + 2, top)

    def label(self, text: str, box: Box) -> None:
        """Write an edge's label, which its line passes through."""
        (left, y), (right, _) = self._grid.corners(box)
        self.write(text.center(len(text) + right + 1 - left - cell_len(text)), left, y)

    def across(self, route: Route) -> None:
        """Draw the parts of a line that lie flat."""
        for points in route.lines:
            for (x1, y1), (x2, y2) in pairwise(map(self._grid.cell, points)):
                if y1 == y2:
                    for x in range(min(x1, x2), max(x1, x2) + 1):
                        self._cells[x, y1] = _ACROSS[route.edge.conditional]

    def upright(self, route: Route, target: Box) -> None:
        """Draw the parts of a line that stand, its corners and its arrowhead."""
        upright = _UPRIGHT[route.edge.conditional]
        for points in route.lines:
            cells = [*map(self._grid.cell, points)]
            for (x1, y1), (_, y2) in pairwise(cells):
                if y1 != y2:
                    for y in range(min(y1, y2), max(y1, y2) + 1):
                        self._cells[x1, y] = upright
            for corner in cells[1:-1]:
                self._cells[corner] = "+"
        self._foot(route.lines[0][0], route.lines[0][1], upright)
        self._head(route.lines[-1][-2], route.lines[-1][-1], target)

    def _foot(self, start: Point, after: Point, upright: str) -> None:
        """Draw the part of a line in the space above or below a node that is its own."""
        (x, y), down = self._grid.cell(start), after[1] - start[1]
        if down:
            self._cells[x, y - 1 if down > 0 else y] = upright

    def _head(self, before: Point, end: Point, target: Box) -> None:
        """Draw the arrowhead: above or below a node in that same space, else beside it."""
        (x, y), right, down = self._grid.cell(end), end[0] - before[0], end[1] - before[1]
        (first, _), (last, _) = self._grid.corners(target)
        if down:
            head, at = ("v", (x, y)) if down > 0 else ("^", (x, y - 1))
        else:
            head, at = (">", (first - 1, y)) if right > 0 else ("<", (last + 1, y))
        self._cells[at] = head
