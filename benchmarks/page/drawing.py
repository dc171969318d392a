"""Pictures as SVG: a frame with axes, and lines, points, ranges and labels in it.

A picture is as wide as a small telephone and is never scaled down below that, so its letters stay legible; wider
screens show several side by side. It refers to nothing outside, so it is the same in a page and in a file.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.page.scales import Scale

WIDTH = 400
HEIGHT = 280
LEFT, RIGHT, BELOW = 64, 14, 40
FONT = "DejaVu Sans, Verdana, Helvetica, Arial, sans-serif"
LETTER = 6.3
"""About how wide a letter is."""
LINE = 16
ROW = 17
LABEL = 13
"""Least distance of two lines of letters."""
INK, FAINT, PAPER = "#222222", "#dddddd", "#ffffff"

COLOURS = {
    "no checkpointer": "#7f7f7f",
    "exit": "#e69f00",
    "async": "#0072b2",
    "sync": "#d55e00",
    "actorgraph": "#0072b2",
    "actorgraph on trio": "#56b4e9",
    "LangGraph": "#a0522d",
}
"""Hues that those who see fewer colours can tell apart too."""
OTHERS = ("#009e73", "#cc79a7", "#56b4e9", "#b8a000", "#5d4a8a", "#333333")


@dataclass
class Picture:
    """A frame between two axes that is drawn into."""

    title: str
    across: Scale
    up: Scale | None
    """None where rows with names take the place of the second axis."""
    across_name: str = ""
    up_name: str = ""
    height: int = HEIGHT
    left: int = LEFT
    legend: Sequence[tuple[str, str]] = ()
    """Names and colours."""
    _parts: list[str] = field(default_factory=list)
    _labels: list[tuple[float, float, float]] = field(default_factory=list)
    """Where labels of dots begin and end, and how high they stand."""

    @property
    def top(self) -> float:
        """Where the frame begins, below title and legend."""
        return 30.0 + LINE * len(self._legend_rows())

    @property
    def _bottom(self) -> float:
        return self.height - BELOW

    def x(self, value: float) -> float:
        """Return where a value of the first axis lies."""
        return self.left + self.across.part(value) * (WIDTH - RIGHT - self.left)

    def y(self, value: float) -> float:
        """Return where a value of the second axis lies."""
        assert self.up is not None  # noqa: S101 - rows have no values
        return self._bottom - self.up.part(value) * (self._bottom - self.top)

    def line(self, points: Sequence[tuple[float, float]], colour: str, *, dashed: bool = False) -> None:
        """Connect points of the paper."""
        text = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        dashes = ' stroke-dasharray="5 3"' if dashed else ""
        self._parts.append(f'<polyline points="{text}" fill="none" stroke="{colour}" stroke-width="2"{dashes}/>')

    def dot(self, x: float, y: float, colour: str, *, hollow: bool = False) -> None:
        """Put a dot."""
        fill = PAPER if hollow else colour
        self._parts.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{fill}" stroke="{colour}" stroke-width="1.5"/>'
        )

    def bar(self, start: tuple[float, float], end: tuple[float, float], colour: str, width: float) -> None:
        """Draw a straight stroke."""
        (x1, y1), (x2, y2) = start, end
        self._parts.append(
            f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}" stroke-width="{width}"/>'
        )

    def text(self, x: float, y: float, words: str, *, anchor: str = "start", colour: str = INK, size: int = 11) -> None:
        """Write."""
        self._parts.append(
            f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" fill="{colour}">'
            f"{escape(words)}</text>"
        )

    def label(self, x: float, y: float, words: str, colour: str) -> None:
        """Write beside a dot, on the side that has more room, above what is written there already."""
        width = LETTER * len(words)
        left = x - 7 - width if x > (self.left + WIDTH) / 2 else x + 7
        while any(abs(y - at) < LABEL and left < end and begin < left + width for begin, end, at in self._labels):
            y -= LABEL
        self._labels.append((left, left + width, y))
        self.text(left, y, words, colour=colour)

    def svg(self) -> str:
        """Return the picture."""
        drawn, self._parts = self._parts, []
        self._frame()
        body = "\n".join([*self._parts, *drawn])
        self._parts = drawn
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {self.height}" role="img" '
            f'aria-label="{escape(self.title)}" font-family="{FONT}">\n'
            f'<rect width="{WIDTH}" height="{self.height}" fill="{PAPER}"/>\n{body}\n</svg>'
        )

    def _frame(self) -> None:
        self.text(8, 18, self.title, size=13)
        for row, entries in enumerate(self._legend_rows()):
            x = 10.0
            y = 34.0 + LINE * row
            for name, colour in entries:
                self.bar((x, y - 4), (x + 12, y - 4), colour, 3)
                self.text(x + 16, y, name)
                x += _entry_width(name)
        for tick in self.across.ticks:
            self.bar((self.x(tick), self.top), (self.x(tick), self._bottom), FAINT, 1)
            words = self.across.label(tick)
            x = min(self.x(tick), WIDTH - 2 - LETTER * len(words) / 2)  # the last one would stick out
            self.text(x, self._bottom + 14, words, anchor="middle", size=10)
        self.text((self.left + WIDTH - RIGHT) / 2, self.height - 8, self.across_name, anchor="middle")
        if self.up is not None:
            for tick in self.up.ticks:
                self.bar((self.left, self.y(tick)), (WIDTH - RIGHT, self.y(tick)), FAINT, 1)
                self.text(self.left - 5, self.y(tick) + 4, self.up.label(tick), anchor="end", size=10)
            middle = (self.top + self._bottom) / 2
            self._parts.append(
                f'<text transform="translate(13 {middle:.1f}) rotate(-90)" font-size="11" text-anchor="middle" '
                f'fill="{INK}">{escape(self.up_name)}</text>'
            )
        self.bar((self.left, self._bottom), (WIDTH - RIGHT, self._bottom), INK, 1)
        self.bar((self.left, self.top), (self.left, self._bottom), INK, 1)

    def _legend_rows(self) -> list[list[tuple[str, str]]]:
        rows: list[list[tuple[str, str]]] = []
        room = 0.0
        for entry in self.legend:
            width = _entry_width(entry[0])
            if not rows or width > room:
                rows.append([])
                room = WIDTH - 16.0
            rows[-1].append(entry)
            room -= width
        return rows


def _entry_width(name: str) -> float:
    return 28 + LETTER * len(name)


@dataclass(frozen=True)
class Figure:
    """A picture, where it belongs, and what it shows."""

    section: str
    name: str
    picture: Picture
    caption: str

    @property
    def svg(self) -> str:
        """The picture as SVG."""
        return self.picture.svg()


def colours(labels: Sequence[str]) -> dict[str, str]:
    """Give each label a colour, known ones their own; those of other engines that of their mode."""
    spare = iter(OTHERS * len(labels))
    found: dict[str, str] = {}
    for label in labels:
        mode = label.rpartition(": ")[2]
        found[label] = COLOURS.get(label) or COLOURS.get(mode) or next(spare)
    return found


def theirs(label: str) -> bool:
    """Tell whether a label is another engine's mode."""
    return ": " in label
