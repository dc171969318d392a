"""ASCII: a picture for terminals, of nothing but printable characters.

Solid lines are ``|`` and ``-``, those taken only sometimes ``:`` and ``.``; ``+`` is a corner, and where a line passes
another one, the upright one is seen.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Final

from rich.cells import cell_len

from runtime.drawing.layout import Box, Measure, Point, Route, arrange
from runtime.drawing.parts import LEVEL, Edge, Node, is_terminal, line, notes

_COLUMN: Final = 8.0
_ROW: Final = 16.0
"""Size of a character for the layout: two columns, or one row, are the least distance between lines."""
_AROUND: Final = 1
"""Rows above and below a node that are its own: an arrowhead needs a place where no line turns."""
_NEAR: Final = 1e-6
_ACROSS: Final = {True: ".", False: "-"}
_UPRIGHT: Final = {True: ":", False: "|"}

Cell = tuple[int, int]
"""Column and row."""


def draw_ascii(nodes: Mapping[str, Node], edges: Sequence[Edge]) -> str:
    """Return the picture as lines of text. Raises what ``arrange`` does."""
    plan = arrange(nodes, edges, _MEASURE)
    canvas = _Canvas()
    for each, box in plan.frames.items():
        canvas.frame(_title(each), box)
    for route in plan.routes:
        canvas.across(route)
    for route in plan.routes:
        canvas.upright(route)
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


_MEASURE: Final = Measure(
    node=lambda node: (
        (max(map(cell_len, _lines(node))) + 4) * _COLUMN,
        (len(_lines(node)) + 2 + 2 * _AROUND) * _ROW,
    ),
    label=lambda text: (cell_len(line(text)) * _COLUMN, _ROW),
    title=lambda frame: (cell_len(_title(frame)) + 6) * _COLUMN,
    header=_ROW,
    between_layers=_ROW,
    between_nodes=4 * _COLUMN,
    between_lines=_ROW,
    padding=2 * _ROW,
)


def _cell(point: Point) -> Cell:
    return math.floor(point[0] / _COLUMN + _NEAR), math.floor(point[1] / _ROW + _NEAR)


class _Canvas:
    """Characters by place. One that is two columns wide leaves the place after it empty."""

    def __init__(self) -> None:
        self._cells: dict[Cell, str] = {}

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
        x, y = _cell((box.x, box.y + _AROUND * _ROW))
        width = _cell((box.width, 0))[0] - 2
        terminal = is_terminal(node)
        corner, left, right = (".", "(", ")") if terminal else ("+", "|", "|")
        self.write(f"{corner}{'-' * width}{corner}", x, y)
        for row, text in enumerate(lines, 1):
            self.write(f"{left}{' ' * width}{right}", x, y + row)
            self.write(text, x + 1 + (width - cell_len(text)) // 2, y + row)
        corner = "'" if terminal else "+"
        self.write(f"{corner}{'-' * width}{corner}", x, y + len(lines) + 1)

    def frame(self, title: str, box: Box) -> None:
        """Draw a subgraph's frame, its title in the upper edge."""
        left, top = _cell((box.x, box.y))
        right, bottom = _cell((box.x + box.width - _COLUMN, box.y + box.height - _ROW))
        for y in range(top + 1, bottom):
            self._cells[left, y] = self._cells[right, y] = "|"
        for y in (top, bottom):
            self.write("+" + "-" * (right - left - 1) + "+", left, y)
        self.write(f" {title} ", left + 2, top)

    def label(self, text: str, box: Box) -> None:
        """Write an edge's label, which its line passes through."""
        self.write(text, *_cell((box.x, box.y)))

    def across(self, route: Route) -> None:
        """Draw the parts of a line that lie flat."""
        for points in route.lines:
            for (x1, y1), (x2, y2) in pairwise(map(_cell, points)):
                if y1 == y2:
                    for x in range(min(x1, x2), max(x1, x2) + 1):
                        self._cells[x, y1] = _ACROSS[route.edge.conditional]

    def upright(self, route: Route) -> None:
        """Draw the parts of a line that stand, its corners and its arrowhead."""
        upright = _UPRIGHT[route.edge.conditional]
        for points in route.lines:
            cells = [*map(_cell, points)]
            for (x1, y1), (_, y2) in pairwise(cells):
                if y1 != y2:
                    for y in range(min(y1, y2), max(y1, y2) + 1):
                        self._cells[x1, y] = upright
            for corner in cells[1:-1]:
                self._cells[corner] = "+"
        first, last = ([*map(_cell, route.lines[end])] for end in (0, -1))
        self._foot(first[0], first[1], upright)
        self._head(last[-2], last[-1])

    def _foot(self, start: Cell, after: Cell, upright: str) -> None:
        """Draw the part of a line in the space above or below a node that is its own."""
        (x, y), (x2, y2) = start, after
        if x == x2:
            self._cells[x, y - 1 if y2 > y else y] = upright

    def _head(self, before: Cell, end: Cell) -> None:
        """Draw the arrowhead, in that same space."""
        (x1, y1), (x, y) = before, end
        if x1 == x:
            head, at = ("v", (x, y)) if y > y1 else ("^", (x, y - 1))
        else:
            head, at = (">", (x - 1, y)) if x > x1 else ("<", (x, y))
        self._cells[at] = head
