"""Lines over sizes, one for each contender, on logarithmic axes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.page.drawing import Picture, colours, theirs
from benchmarks.page.scales import Scale, logarithmic

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from benchmarks.results import Series


def without_raw(series: dict[str, Series]) -> dict[str, Series]:
    """Return the engines' series alone."""
    return {label: each for label, each in series.items() if not label.startswith("raw")}


def lines(
    title: str,
    found: Sequence[tuple[float, dict[str, Series]]],
    value: Callable[[Series], float],
    *,
    across: tuple[str, Callable[[float], str]],
    up: tuple[str, Callable[[float], str]],
    told: dict[str, str] | None = None,
) -> Picture:
    """Draw a line for each label over the sizes that it was measured at, on logarithmic axes."""
    labels = list(dict.fromkeys(label for _, series in found for label in series))
    hues = colours(labels)
    curves = {
        label: [(size, value(series[label])) for size, series in sorted(found, key=_size) if label in series]
        for label in labels
    }
    sizes = [size for size, _ in found]
    picture = Picture(
        title,
        _between(sizes, across[1]),
        logarithmic([height for curve in curves.values() for _, height in curve], up[1]),
        across[0],
        up[0],
        height=300,
        legend=[((told or {}).get(label, label), hues[label]) for label in labels],
    )
    for label, curve in curves.items():
        points = [(picture.x(size), picture.y(height)) for size, height in curve]
        picture.line(points, hues[label], dashed=theirs(label) or label.startswith("raw"))
        for x, y in points:
            picture.dot(x, y, hues[label], hollow=theirs(label))
    return picture


def _size(pair: tuple[float, dict[str, Series]]) -> float:
    return pair[0]


def _between(sizes: Sequence[float], label: Callable[[float], str]) -> Scale:
    """Return a logarithmic axis that begins and ends with the sizes, and writes them."""
    scale = logarithmic(sizes, label)
    shown = sorted({size for size in sizes if size > 0}) or [1.0]
    return Scale(shown[0], shown[-1], scale.place, shown, label)
