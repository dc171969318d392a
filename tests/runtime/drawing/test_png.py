"""PNG: made on this machine, and what it needs is told."""

from __future__ import annotations

import struct
import sys
from pathlib import Path

import pytest

from runtime.drawing import Graph, Node, png
from tests.runtime.drawing.kinds import OURS, chain

SIGNATURE = b"\x89PNG\r\n\x1a\n"


def size(picture: bytes) -> tuple[int, int]:
    assert picture.startswith(SIGNATURE)
    width, height = struct.unpack(">II", picture[16:24])
    return width, height


def test_a_picture(tmp_path: Path) -> None:
    graph = chain(OURS).get_graph()
    picture = graph.draw_png(tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes() == picture
    width, height = size(picture)
    assert (width, height) == tuple(2 * side for side in size(graph.draw_png(scale=1)))
    assert height > width > 100


def test_text_is_in_it() -> None:
    one, other = (Graph({"a": Node("a", name, len)}).draw_png() for name in ("mmm", "iii"))
    assert size(one) == size(other)
    assert one != other


def test_langgraphs_name_makes_it_here_too(tmp_path: Path) -> None:
    graph = chain(OURS).get_graph()
    assert graph.draw_mermaid_png() == graph.draw_png()
    assert graph.draw_mermaid_png(background_color=None) == graph.draw_png(background_color="transparent")
    graph.draw_mermaid_png(output_file_path=str(tmp_path / "a.png"), max_retries=5, base_url="ignored")
    assert size((tmp_path / "a.png").read_bytes())


def test_without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "resvg_py", None)
    with pytest.raises(ImportError, match=r"actorgraph\[png\].*draw_svg\(\)"):
        chain(OURS).get_graph().draw_png()


def test_without_fonts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine leaves text out in silence."""
    monkeypatch.setattr(png, "_has_fonts", lambda: False)
    with pytest.raises(RuntimeError, match="no font"):
        chain(OURS).get_graph().draw_png()
