"""In a notebook, a graph shows itself."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from tests.runtime.drawing.kinds import OURS, Library, chain, new


def too_large(library: Library) -> Any:
    graph = new(library, *(f"n{number}" for number in range(30)))
    for start in range(30):
        for end in range(30):
            graph.add_edge(f"n{start}", f"n{end}")
    return graph.compile()


def test_the_picture_and_the_repr() -> None:
    graph = chain(OURS)
    assert graph._repr_mimebundle_() == {"image/svg+xml": graph.get_graph().draw_svg(), "text/plain": repr(graph)}
    outlined = graph.get_graph()
    assert outlined._repr_mimebundle_()["text/plain"] == "<Graph of 4 nodes and 3 edges>"
    assert graph._repr_mimebundle_(include=["text/plain"], exclude=None)


def test_mermaid_where_there_is_no_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "graphlay", None)
    graph = chain(OURS)
    mermaid = graph.get_graph().draw_mermaid()
    assert graph._repr_mimebundle_() == {"text/vnd.mermaid": mermaid, "text/plain": mermaid}


def test_mermaid_where_the_picture_would_be_too_large() -> None:
    assert set(too_large(OURS)._repr_mimebundle_()) == {"text/vnd.mermaid", "text/plain"}
