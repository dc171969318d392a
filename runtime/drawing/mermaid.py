"""Mermaid: a picture as text, which documentation sites and notebooks draw. It needs no package."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final

from runtime.drawing.parts import Edge, Node, frame_of, frames, is_terminal, line, notes, within
from runtime.types.constants import END

_INDENT: Final = "\t"
_ID_ESCAPED: Final = re.compile(r"[^A-Za-z0-9_-]|-(?![A-Za-z0-9_])")
"""Not allowed in an id; a hyphen only where it could be read as part of an arrow."""
_KEYWORD: Final = re.compile(
    r"(?:call|class|classdef|click|default|direction|end|flowchart|graph|href|interpolate|linkstyle|style|subgraph)\b",
    re.IGNORECASE,
)
"""Words that mean something in Mermaid; not where they begin a longer one, which its lexer takes for a name."""
_TEXT_ESCAPED: Final = re.compile(r"[^A-Za-z0-9_ =\u0080-\U0010ffff]|(?<=direction) ")
"""Everything that may mean something; ``direction TB`` does so even within quotes."""
_PLAIN: Final = re.compile(r"[A-Za-z0-9_ ]+")


@dataclass(frozen=True, slots=True)
class NodeStyles:
    """How nodes look: CSS for all of them, the first one and the last one."""

    default: str = "fill:#f2f0ff,stroke:#8a82c8,color:#1c1b29,line-height:1.2"
    first: str = "fill-opacity:0"
    last: str = "fill:#bfb6fc,color:#1c1b29"


def draw_mermaid(
    nodes: Mapping[str, Node],
    edges: Sequence[Edge],
    *,
    with_styles: bool = True,
    curve_style: Any = "linear",
    node_colors: Any = None,
    wrap_label_n_words: int = 9,
    frontmatter_config: Mapping[str, Any] | None = None,
) -> str:
    """Return a Mermaid flowchart.

    Args:
        nodes: what to draw, by id.
        edges: between them.
        with_styles: with colours and settings; without, only the arrows and the nodes they join.
        curve_style: Mermaid's name of a curve, or an enum member whose value it is.
        node_colors: a NodeStyles, or what has the same fields.
        wrap_label_n_words: words on a line of an edge's label.
        frontmatter_config: settings of Mermaid's own.

    """
    lines = ["graph TD;"]
    if with_styles:
        lines = [*_front_matter(frontmatter_config or {}, getattr(curve_style, "value", curve_style)), *lines]
    lines += _contents("", nodes, frames(nodes), bare=not with_styles)
    lines += [_arrow(edge, wrap_label_n_words) for edge in edges]
    if with_styles:
        styles = node_colors or NodeStyles()
        lines += [f"{_INDENT}classDef {part.name} {getattr(styles, part.name)}" for part in fields(NodeStyles)]
    return "\n".join(lines) + "\n"


def _front_matter(given: Mapping[str, Any], curve: str) -> list[str]:
    """Return the settings as YAML, of which JSON is a part."""
    config = dict(given.get("config") or {})
    config["flowchart"] = {**(config.get("flowchart") or {}), "curve": curve}
    return ["---", *(f"{key}: {json.dumps(value)}" for key, value in {**given, "config": config}.items()), "---"]


def _contents(frame: str, nodes: Mapping[str, Node], inner: Sequence[str], *, bare: bool) -> list[str]:
    """Return the nodes that lie directly in a subgraph, then its own subgraphs."""
    lines = [] if bare and not frame else [_node(nodes[each], bare=bare) for each in within(frame, nodes)]
    for each in within(frame, inner):
        name = each.removeprefix(f"{frame_of(each)}:")
        safe = _safe_id(each)
        title = safe if safe == name else f'{safe}["{_escaped(line(name))}"]'
        lines += [f"{_INDENT}subgraph {title}", *_contents(each, nodes, inner, bare=bare), f"{_INDENT}end"]
    return lines


def _node(node: Node, *, bare: bool) -> str:
    safe = _safe_id(node.id)
    if bare:
        return f"{_INDENT}{safe};"
    label = _escaped(line(node.name))
    if label.startswith("_") and label.endswith("_"):
        label = f"<p>{label}</p>"  # else Mermaid reads the underscores as emphasis
    if below := notes(node):
        label += f"<hr/><small><em>{'<br/>'.join(map(_escaped, below))}</em></small>"
    if not _PLAIN.fullmatch(label):
        label = f'"{label}"'
    if is_terminal(node):
        return f"{_INDENT}{safe}([{label}]):::{'last' if node.name == END else 'first'}"
    return f"{_INDENT}{safe}({label})"


def _arrow(edge: Edge, words_a_line: int) -> str:
    plain, opened, closed = ("-.->", "-.", ".->") if edge.conditional else ("-->", "--", "-->")
    arrow = plain
    if edge.data:
        words = line(edge.data).split(" ")
        rows = [" ".join(words[at : at + words_a_line]) for at in range(0, len(words), words_a_line)]
        label = "&nbsp;<br>&nbsp;".join(map(_escaped, rows))
        arrow = f'{opened} "&nbsp;{label}&nbsp;" {closed}'
    return f"{_INDENT}{_safe_id(edge.source)} {arrow} {_safe_id(edge.target)};"


def _safe_id(name: str) -> str:
    """Return an id that Mermaid reads as one; different names get different ids."""
    safe = _ID_ESCAPED.sub(lambda found: f"\\{ord(found[0]):x}", name)
    return f"\\{ord(safe[0]):x}{safe[1:]}" if _KEYWORD.match(safe) else safe


def _escaped(text: str) -> str:
    """Return text that stands for itself within quotes: everything that may mean something is a numeric entity."""
    return _TEXT_ESCAPED.sub(lambda found: f"#{ord(found[0])};", text)
