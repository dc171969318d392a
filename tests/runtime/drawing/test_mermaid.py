"""Mermaid text: small enough to be read, and such that no name can be taken for something else."""

from __future__ import annotations

import re
from enum import Enum

import pytest
from hypothesis import given, settings

from runtime.drawing import Edge, Graph, Node, NodeStyles
from runtime.graph import END, START, StateGraph
from tests.runtime.drawing.kinds import OURS, State, node, subgraphs_of_two_levels
from tests.runtime.drawing.names import HOSTILE, graphs, names

ID = r"(?:[A-Za-z0-9_\\]|-(?=[A-Za-z0-9_]))++"
TEXT = r"(?:[A-Za-z0-9_ =\u0080-\U0010ffff]|#[0-9]+;|</?(?:p|small|em)>|<[hb]r/?>|&nbsp;)*+"
PLAIN = "[A-Za-z0-9_ ]+"
LABEL = rf'(?:"{TEXT}"|{PLAIN}|<p>_{PLAIN}_</p>)'
SAID = rf"&nbsp;{PLAIN}(?:&nbsp;<br>&nbsp;{PLAIN})*&nbsp;"
LINE = re.compile(
    "|".join(
        [
            rf"\t{ID}\({LABEL}\)",
            rf"\t{ID}\(\[{LABEL}\]\):::(?:first|last)",
            rf"\t{ID} (?:-->|-\.->) {ID};",
            rf'\t{ID} (?:--|-\.) (?:"{TEXT}"|{SAID}) (?:-->|\.->) {ID};',
            rf"\tsubgraph {ID}(?:\[{LABEL}\])?",
            r"\tend",
            r"\tclassDef (?:default|first|last) [a-z0-9:#;.,-]+",
        ]
    )
)
KEYWORDS = ("call", "class", "click", "default", "direction", "end", "flowchart", "graph", "href", "linkstyle", "style")


def test_a_small_graph() -> None:
    graph = StateGraph(State).add_node("agent", node).add_node("tools", node, metadata={"team": "ops"}, defer=True)
    graph.add_edge(START, "agent").add_edge("tools", "agent")
    graph.add_conditional_edges("agent", node, {"call": "tools", "done": END})
    assert graph.compile(interrupt_before=["tools"]).get_graph().draw_mermaid() == (
        "---\n"
        "config:\n"
        "  flowchart:\n"
        "    curve: linear\n"
        "---\n"
        "graph TD;\n"
        "\t__start__([<p>__start__</p>]):::first\n"
        "\tagent(agent)\n"
        '\ttools("tools<hr/><small><em>team = ops<br/>defer = True<br/>__interrupt = before</em></small>")\n'
        "\t__end__([<p>__end__</p>]):::last\n"
        "\t__start__ --> agent;\n"
        "\tagent -. &nbsp;done&nbsp; .-> __end__;\n"
        "\tagent -. &nbsp;call&nbsp; .-> tools;\n"
        "\ttools --> agent;\n"
        "\tclassDef default fill:#f2f0ff,stroke:#8a82c8,color:#1c1b29,line-height:1.2\n"
        "\tclassDef first fill-opacity:0\n"
        "\tclassDef last fill:#bfb6fc,color:#1c1b29\n"
    )


def test_without_styles() -> None:
    graph = Graph({name: Node(name, name, len) for name in "ab"}, [Edge("a", "b")])
    assert graph.draw_mermaid(with_styles=False) == "graph TD;\n\ta --> b;\n"


def test_subgraphs_are_nested_and_may_share_names() -> None:
    text = subgraphs_of_two_levels(OURS).get_graph(xray=True).draw_mermaid()
    assert (
        "\tsubgraph sub\n"
        "\tsub\\3aafter(after)\n"
        "\tsub\\3ainner\\3a__end__ --> sub\\3aafter;\n"
        "\tsubgraph inner\n"
        "\tsub\\3ainner\\3a__start__([<p>__start__</p>]):::first\n"
        "\tsub\\3ainner\\3ap(p)\n"
        "\tsub\\3ainner\\3aq(q)\n"
        "\tsub\\3ainner\\3a__end__([<p>__end__</p>]):::last\n"
    ) in text
    assert text.index("\tend\n\tend\n") > text.index("--> sub\\3ainner\\3a__end__;")


def test_blocks_of_one_name_are_told_apart() -> None:
    inner = [Node(f"{outer}:inner:n", "n", len) for outer in "ab"]
    text = Graph({node.id: node for node in inner}, []).draw_mermaid(with_styles=False)
    assert text == (
        "graph TD;\n"
        "\tsubgraph a\n"
        '\tsubgraph a\\3ainner["inner"]\n'
        "\ta\\3ainner\\3an;\n"
        "\tend\n"
        "\tend\n"
        "\tsubgraph b\n"
        '\tsubgraph b\\3ainner["inner"]\n'
        "\tb\\3ainner\\3an;\n"
        "\tend\n"
        "\tend\n"
    )


def test_settings() -> None:
    class Curve(Enum):
        STEP = "step"

    graph = Graph({"a": Node("a", "a", len)}, [Edge("a", "a", "one two three", conditional=True)])
    text = graph.draw_mermaid(
        curve_style=Curve.STEP,
        node_colors=NodeStyles(default="fill:red"),
        wrap_label_n_words=2,
        frontmatter_config={"title": "a: b", "config": {"theme": "dark", "look": "No", "flowchart": {"wide": True}}},
    )
    assert text.startswith(
        "---\n"
        'title: "a: b"\n'
        "config:\n"
        "  theme: dark\n"
        '  look: "No"\n'
        "  flowchart:\n"
        "    wide: true\n"
        "    curve: step\n"
        "---\n"
        "graph TD;\n"
    )
    assert "classDef default fill:red\n" in text
    assert "-. &nbsp;one two&nbsp;<br>&nbsp;three&nbsp; .->" in text


@pytest.mark.slow
@given(graphs())
@settings(max_examples=50)
def test_every_line_has_one_of_few_forms(graph: Graph) -> None:
    text = graph.draw_mermaid()
    lines = text.removesuffix("\n").split("\n")
    head = lines.index("graph TD;") + 1
    for line in lines[head:]:
        assert LINE.fullmatch(line), line
    assert len(lines) == head + len(graph.nodes) + len(graph.edges) + 3


@given(names, names)
def test_different_names_are_different_nodes(one: str, other: str) -> None:
    def arrow(name: str) -> str:
        return Graph({}, [Edge(name, name)]).draw_mermaid(with_styles=False)

    assert (arrow(one) == arrow(other)) == (one == other)


@pytest.mark.parametrize("name", [*HOSTILE, *KEYWORDS, "GRAPH", "class-x", "end.", "style of it"])
def test_no_id_begins_with_a_keyword(name: str) -> None:
    arrow = Graph({}, [Edge(name, name)]).draw_mermaid(with_styles=False).splitlines()[-1]
    assert not re.match(rf"(?:{'|'.join(KEYWORDS)}|subgraph)\b", arrow.strip(), re.IGNORECASE)


@pytest.mark.parametrize("name", ["classify", "endless", "styles", "graph_rag", "default_route", "caller"])
def test_a_name_that_only_begins_like_a_keyword_stays_readable(name: str) -> None:
    arrow = Graph({}, [Edge(name, name)]).draw_mermaid(with_styles=False).splitlines()[-1]
    assert arrow == f"\t{name} --> {name};"


def test_text_is_shown_as_it_is() -> None:
    text = Graph({"a": Node("a", 'x "<b>" #1; `y`', len)}).draw_mermaid()
    assert '\ta("x #34;#60;b#62;#34; #35;1#59; #96;y#96;")\n' in text
