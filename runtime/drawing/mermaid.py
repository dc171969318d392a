"""Mermaid: a picture as text, which documentation sites and notebooks draw. It needs no package."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final

from runtime.drawing.parts import LEVEL, Edge, Node, frame_of, frames, is_terminal, line, notes, within
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
"""Text that needs no quotes."""
_WORD: Final = re.compile(r"[A-Za-z]+")
_NOT_TEXT: Final = {"true", "false", "yes", "no", "on", "off", "null", "y", "n"}
"""Words that YAML takes for something else."""


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
    lines += _Contents(nodes, edges, wrap_label_n_words, bare=not with_styles).of("")
    if with_styles:
        styles = node_colors or NodeStyles()
        lines += [f"{_INDENT}classDef {part.name} {getattr(styles, part.name)}" for part in fields(NodeStyles)]
    return "\n".join(lines) + "\n"


def _front_matter(given: Mapping[str, Any], curve: str) -> list[str]:
    config = dict(given.get("config") or {})
    config["flowchart"] = {**(config.get("flowchart") or {}), "curve": curve}
    return ["---", *_yaml({**given, "config": config}), "---"]


def _yaml(settings: Mapping[str, Any], indent: str = "") -> Iterator[str]:
    """Return a mapping as lines of YAML; JSON, which is a part of it, stands for what is not a plain word."""
    for key, value in settings.items():
        if isinstance(value, Mapping) and value:
            yield f"{indent}{key}:"
            yield from _yaml(value, f"{indent}  ")
        else:
            plain = isinstance(value, str) and _WORD.fullmatch(value) and value.lower() not in _NOT_TEXT
            yield f"{indent}{key}: {value if plain else json.dumps(value)}"


class _Contents:
    """What stands between the head of a picture and its styles: a graph, and its subgraphs as blocks within it."""

    def __init__(self, nodes: Mapping[str, Node], edges: Sequence[Edge], words_a_line: int, *, bare: bool) -> None:
        self._nodes = nodes
        self._words_a_line = words_a_line
        self._bare = bare
        self._edges: dict[str, list[Edge]] = {}
        for edge in edges:
            self._edges.setdefault(_common_frame(edge), []).append(edge)
        self._frames = list(dict.fromkeys([*filter(None, self._edges), *frames(nodes)]))
        names = [node.id for node in nodes.values()] + [_name_of(frame) for frame in self._frames]
        self._once = {name for name, times in Counter(names).items() if times == 1}

    def of(self, frame: str) -> list[str]:
        """Return the nodes and edges that lie directly in a subgraph, then its own subgraphs."""
        edges = sorted(self._edges.get(frame, []), key=lambda edge: edge.source == edge.target)
        shown = within(frame, self._nodes)
        if self._bare:
            joined = {end for edge in edges for end in (edge.source, edge.target)}
            shown = [each for each in shown if frame and each not in joined]
        lines = [_node(self._nodes[each], bare=self._bare) for each in shown]
        lines += [_arrow(edge, self._words_a_line) for edge in edges]
        for each in within(frame, self._frames):
            lines += [f"{_INDENT}subgraph {self._title(each)}", *self.of(each), f"{_INDENT}end"]
        return lines

    def _title(self, frame: str) -> str:
        name, safe = _name_of(frame), _safe_id(frame)
        if safe == name or (name in self._once and _safe_id(name) == name):
            return name
        return f'{safe}["{_escaped(line(name))}"]'


def _name_of(frame: str) -> str:
    return frame.removeprefix(f"{frame_of(frame)}{LEVEL}")


def _common_frame(edge: Edge) -> str:
    """Return the innermost subgraph that both ends of an edge lie in."""
    common = []
    for one, other in zip(edge.source.split(LEVEL)[:-1], edge.target.split(LEVEL)[:-1], strict=False):
        if one != other:
            break
        common.append(one)
    return LEVEL.join(common)


def _node(node: Node, *, bare: bool) -> str:
    safe = _safe_id(node.id)
    if bare:
        return f"{_INDENT}{safe};"
    label = _escaped(line(node.name))
    below = notes(node)
    quote = "" if _PLAIN.fullmatch(label) and not below else '"'
    if label.startswith("_") and label.endswith("_"):
        label = f"<p>{label}</p>"  # else Mermaid reads the underscores as emphasis
    if below:
        label += f"<hr/><small><em>{'<br/>'.join(map(_escaped, below))}</em></small>"
    label = f"{quote}{label}{quote}"
    if is_terminal(node):
        return f"{_INDENT}{safe}([{label}]):::{'last' if node.name == END else 'first'}"
    return f"{_INDENT}{safe}({label})"


def _arrow(edge: Edge, words_a_line: int) -> str:
    plain, opened, closed = ("-.->", "-.", ".->") if edge.conditional else ("-->", "--", "-->")
    arrow = plain
    if edge.data:
        words = line(edge.data).split(" ")
        rows = [_escaped(" ".join(words[at : at + words_a_line])) for at in range(0, len(words), words_a_line)]
        quote = "" if all(map(_PLAIN.fullmatch, rows)) else '"'
        label = "&nbsp;<br>&nbsp;".join(rows)
        arrow = f"{opened} {quote}&nbsp;{label}&nbsp;{quote} {closed}"
    return f"{_INDENT}{_safe_id(edge.source)} {arrow} {_safe_id(edge.target)};"


def _safe_id(name: str) -> str:
    """Return an id that Mermaid reads as one; different names get different ids."""
    safe = _ID_ESCAPED.sub(lambda found: f"\\{ord(found[0]):x}", name)
    return f"\\{ord(safe[0]):x}{safe[1:]}" if _KEYWORD.match(safe) else safe


def _escaped(text: str) -> str:
    """Return text that stands for itself within quotes: everything that may mean something is a numeric entity."""
    return _TEXT_ESCAPED.sub(lambda found: f"#{ord(found[0])};", text)
