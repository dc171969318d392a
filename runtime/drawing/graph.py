"""A graph to look at: its nodes and edges, and the ways to draw them."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from runtime.drawing.ascii import draw_ascii
from runtime.drawing.mermaid import draw_mermaid
from runtime.drawing.nesting import Content, first_node, last_node
from runtime.drawing.parts import Edge, Node
from runtime.drawing.png import draw_png
from runtime.drawing.svg import draw_svg


@dataclass
class Graph:
    """Nodes by id, and the edges between them. What ``get_graph()`` returns; a notebook shows it as a picture."""

    nodes: dict[str, Node] = field(default_factory=dict)
    edges: list[Edge] = field(default_factory=list)

    def first_node(self) -> Node | None:
        """Return the only node that no edge leads to; None if there are several or none."""
        return first_node(Content(self.nodes, self.edges))

    def last_node(self) -> Node | None:
        """Return the only node that no edge leads from; None if there are several or none."""
        return last_node(Content(self.nodes, self.edges))

    def to_json(self) -> dict[str, list[dict[str, Any]]]:
        """Return nodes and edges as plain data; metadata is what was given to ``add_node``."""
        return {
            "nodes": [_plain_node(node) for node in self.nodes.values()],
            "edges": [_plain_edge(edge) for edge in self.edges],
        }

    def draw_mermaid(
        self,
        *,
        with_styles: bool = True,
        curve_style: Any = "linear",
        node_colors: Any = None,
        wrap_label_n_words: int = 9,
        frontmatter_config: Mapping[str, Any] | None = None,
    ) -> str:
        """Return the graph as a Mermaid flowchart; needs no package.

        Args:
            with_styles: with colours and settings.
            curve_style: Mermaid's name of a curve, such as ``basis``.
            node_colors: a NodeStyles.
            wrap_label_n_words: words on a line of an edge's label.
            frontmatter_config: settings of Mermaid's own.

        """
        return draw_mermaid(
            self.nodes,
            self.edges,
            with_styles=with_styles,
            curve_style=curve_style,
            node_colors=node_colors,
            wrap_label_n_words=wrap_label_n_words,
            frontmatter_config=frontmatter_config,
        )

    def draw_ascii(self) -> str:
        """Return the graph as a picture of characters.

        Raises:
            ImportError: the extra ``drawing`` is not installed.
            ValueError: the graph is too large for a picture.

        """
        return draw_ascii(self.nodes, self.edges)

    def print_ascii(self) -> None:
        """Write the picture of characters to standard output."""
        sys.stdout.write(f"{self.draw_ascii()}\n")

    def draw_svg(self) -> str:
        """Return the graph as an SVG picture. Raises what ``draw_ascii`` does."""
        return draw_svg(self.nodes, self.edges)

    def draw_png(
        self,
        output_file_path: str | os.PathLike[str] | None = None,
        *,
        background_color: str = "white",
        scale: float = 2.0,
    ) -> bytes:
        """Return the graph as a PNG picture, made on this machine, and write it to a file if one is named.

        Args:
            output_file_path: where to write it as well.
            background_color: a CSS colour, or ``transparent``.
            scale: pixels for each unit of the SVG.

        Raises:
            ImportError: the extra ``png`` is not installed.
            RuntimeError: this machine has no font.
            ValueError: the graph is too large for a picture.

        """
        picture = draw_png(self.draw_svg(), background=background_color, scale=scale)
        if output_file_path is not None:
            Path(output_file_path).write_bytes(picture)
        return picture

    def draw_mermaid_png(
        self,
        *,
        output_file_path: str | os.PathLike[str] | None = None,
        background_color: str | None = "white",
        **_elsewhere: Any,
    ) -> bytes:
        """Return the same picture as ``draw_png``: LangGraph's name for it.

        There Mermaid draws it, through a service on the network or a browser; what else can be set is about these, and
        changes nothing here.

        Args:
            output_file_path: where to write it as well.
            background_color: a CSS colour; None is transparent.
            **_elsewhere: ignored.

        """
        return self.draw_png(output_file_path, background_color=background_color or "transparent")

    def _repr_mimebundle_(self, **_wanted: Any) -> dict[str, str]:
        return mime_bundle(self, repr(self))

    def __repr__(self) -> str:
        return f"<Graph of {len(self.nodes)} nodes and {len(self.edges)} edges>"


def mime_bundle(graph: Graph, text: str) -> dict[str, str]:
    """Return what a notebook shows: the picture, else Mermaid text, which some notebooks draw. Raises nothing."""
    try:
        return {"image/svg+xml": graph.draw_svg(), "text/plain": text}
    except Exception:  # noqa: BLE001 - an error here would hide the cell's value
        mermaid = graph.draw_mermaid()
        return {"text/vnd.mermaid": mermaid, "text/plain": mermaid}


def _plain_node(node: Node) -> dict[str, Any]:
    plain: dict[str, Any] = {"id": node.id}
    if node.data is not None:
        plain |= {"type": "runnable", "data": {"id": _address(node.data), "name": node.name}}
    return plain if node.metadata is None else plain | {"metadata": dict(node.metadata)}


def _address(data: Any) -> list[str]:
    """Return where code is defined: packages, module, name."""
    while isinstance(data, functools.partial):
        data = data.func
    named = data if hasattr(data, "__qualname__") else type(data)
    return [*str(named.__module__).split("."), named.__qualname__]


def _plain_edge(edge: Edge) -> dict[str, Any]:
    plain: dict[str, Any] = {"source": edge.source, "target": edge.target}
    if edge.data is not None:
        plain["data"] = edge.data
    return plain | {"conditional": True} if edge.conditional else plain
