"""The page and its pictures as files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.page.document import page
from benchmarks.page.figures import figures
from runtime.drawing.png import draw_png

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.results import Report


def write_page(report: Report, path: Path) -> None:
    """Write the page."""
    path.write_text(page(report), "utf-8")


def write_pictures(report: Report, folder: Path) -> list[Path]:
    """Write each picture as PNG; return their paths. Raises ImportError or RuntimeError where PNG cannot be made."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for figure in figures(report):
        path = folder / f"{figure.name}.png"
        path.write_bytes(draw_png(figure.svg))
        written.append(path)
    return written
