"""Pictures of graphs: Mermaid, ASCII, SVG, PNG. Made here, from nothing but nodes and edges.

It lies below ``graph``: it knows no graph that runs, only what ``get_graph()`` describes. Mermaid needs no package, the
others the extras ``drawing`` and ``png``.
"""

from runtime.drawing.graph import Graph
from runtime.drawing.mermaid import NodeStyles
from runtime.drawing.parts import Edge, Node

__all__ = ["Edge", "Graph", "Node", "NodeStyles"]
