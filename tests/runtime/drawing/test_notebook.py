"""In a notebook, a graph shows itself."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from tests.runtime.drawing.kinds import OURS, Library, chain, new

ROOT = Path(__file__).parents[3]


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


CELL = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
from typing import TypedDict
from runtime.graph import END, START, StateGraph

class State(TypedDict):
    n: int

graph = StateGraph(State).add_node("double", lambda state: {{"n": state["n"] * 2}}).add_edge(START, "double").compile()
assert graph.invoke({{"n": 2}}) == {{"n": 4}}
display(graph)
graph
"""


@pytest.mark.slow
@pytest.mark.timeout(60)
@pytest.mark.filterwarnings("default")
def test_a_real_notebook() -> None:
    """Its libraries warn of things that are not ours."""
    made: Any = nbformat.v4
    notebook = made.new_notebook(cells=[made.new_code_cell(CELL)])
    NotebookClient(notebook, timeout=50, kernel_name="python3").execute()
    displayed, result = notebook.cells[0].outputs
    assert displayed.data["image/svg+xml"].startswith("<svg")
    assert result.data["image/svg+xml"] == displayed.data["image/svg+xml"]
    assert "CompiledStateGraph" in result.data["text/plain"]
