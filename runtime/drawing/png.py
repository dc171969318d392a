"""PNG: the SVG picture as pixels, made here, with the fonts of this machine."""

from __future__ import annotations

from functools import cache
from typing import Any

from runtime.drawing.svg import FONT


def draw_png(svg: str, *, background: str = "white", scale: float = 2.0) -> bytes:
    """Return the picture as a PNG file.

    Args:
        svg: what to render.
        background: a CSS colour, or ``transparent``.
        scale: pixels for each unit of the SVG.

    Raises:
        ImportError: resvg_py is not installed.
        RuntimeError: this machine has no font to write with.

    """
    engine = _engine()
    if not _has_fonts():
        msg = (
            "This machine has no font, so the picture would have no text: install one (fonts-dejavu-core on Debian), "
            "or use draw_svg()."
        )
        raise RuntimeError(msg)
    picture: bytes = engine.svg_to_bytes(
        svg_string=svg, background=None if background == "transparent" else background, zoom=scale
    )
    return picture


def _engine() -> Any:
    try:
        import resvg_py  # noqa: PLC0415 - may be missing
    except ImportError as error:
        msg = "PNG pictures need the resvg_py package: pip install 'actorgraph[png]'. draw_svg() does without it."
        raise ImportError(msg) from error
    return resvg_py


@cache
def _has_fonts() -> bool:
    """Tell whether text leaves a mark: the engine leaves out what it has no font for, without a word."""
    frame = '<svg xmlns="http://www.w3.org/2000/svg" width="40" height="40">{}</svg>'
    text = f'<text x="5" y="30" font-size="30" font-family="{FONT}">M</text>'
    render = _engine().svg_to_bytes
    return bool(render(svg_string=frame.format(text)) != render(svg_string=frame.format("")))
