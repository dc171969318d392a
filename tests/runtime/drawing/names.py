"""Names and labels that a picture must survive."""

from __future__ import annotations

from hypothesis import strategies as st

from runtime.drawing import Edge, Graph, Node

HOSTILE = [
    "end",
    "subgraph",
    "graph TD",
    "direction TB",
    "a-->b",
    "-",
    "a--b",
    "] & \" ' < > }",
    "</text><script>alert(1)</script>",
    "]]>",
    "#quot;",
    "&amp;",
    "%% c",
    "__x__",
    "`code`",
    "日本語",
    "e\u0301",
    "👩\u200d🚀",
    "line\nbreak\ttab",
    "\x00\x1b[31m",
    "\u202egnp",
    "\ud800",
    " ",
    "x" * 300,
]

names = st.one_of(st.sampled_from(HOSTILE), st.text(st.characters(exclude_characters=":"), min_size=1, max_size=20))


@st.composite
def graphs(draw: st.DrawFn, most: int = 8) -> Graph:
    """Draw a graph with any names, any labels, loops and nodes that nothing leads to."""
    chosen = draw(st.lists(names, min_size=1, max_size=most, unique=True))
    joined = st.tuples(st.sampled_from(chosen), st.sampled_from(chosen))
    ends = draw(st.lists(joined, max_size=2 * len(chosen), unique=True))
    label = st.one_of(st.none(), names)
    edges = [Edge(source, target, draw(label), draw(st.booleans())) for source, target in ends]
    return Graph({name: Node(name, name, len, draw(metadata)) for name in chosen}, edges)


metadata = st.one_of(st.none(), st.dictionaries(names, names, min_size=1, max_size=2))
