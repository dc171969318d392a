"""ASCII and SVG: what is in the picture, whatever the names are, and that nothing lies on anything else."""

from __future__ import annotations

import re
import sys
from itertools import combinations, pairwise
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given, settings

from runtime.drawing import Edge, Graph, Node, layout
from runtime.drawing.ascii import draw_ascii
from runtime.drawing.layout import Box, Measure, arrange
from runtime.drawing.parts import frames, line
from tests.runtime.drawing.kinds import KINDS, OURS, Kind, chain, fan_out_and_join, subgraph
from tests.runtime.drawing.names import graphs

SVG = "{http://www.w3.org/2000/svg}"

MEASURE = Measure(
    node=lambda node, lines: (60, 30),
    label=lambda text, lines: (40, 16),
    title=lambda frame: 50,
    header=16,
    between_layers=30,
    between_nodes=30,
    between_lines=16,
    padding=16,
)


def apart(one: Box, other: Box) -> bool:
    return (
        one.x + one.width <= other.x
        or other.x + other.width <= one.x
        or one.y + one.height <= other.y
        or other.y + other.height <= one.y
    )


def on_border(point: tuple[float, float], box: Box) -> bool:
    x, y = point
    slack = 1e-6
    within = box.x - slack <= x <= box.x + box.width + slack and box.y - slack <= y <= box.y + box.height + slack
    edges = (abs(x - box.x), abs(x - box.x - box.width), abs(y - box.y), abs(y - box.y - box.height))
    return within and min(edges) <= slack


# ---- layout --------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@given(graphs())
@settings(max_examples=40)
def test_boxes_and_labels_lie_apart(graph: Graph) -> None:
    plan = arrange(graph.nodes, graph.edges, MEASURE)
    boxes = [*plan.boxes.values(), *(route.label for route in plan.routes if route.label)]
    assert all(apart(one, other) for one, other in combinations(boxes, 2))
    assert all(box.x >= 0 and box.y >= 0 for box in boxes)
    assert all(box.x + box.width <= plan.width and box.y + box.height <= plan.height for box in boxes)


@pytest.mark.slow
@given(graphs())
@settings(max_examples=40)
def test_lines_lead_from_node_to_node(graph: Graph) -> None:
    plan = arrange(graph.nodes, graph.edges, MEASURE)
    assert [route.edge for route in plan.routes] == graph.edges
    for route in plan.routes:
        assert on_border(route.lines[0][0], plan.boxes[route.edge.source])
        assert on_border(route.lines[-1][-1], plan.boxes[route.edge.target])
        assert len(route.lines) == (2 if route.label else 1)
        for points in route.lines:
            assert all(x1 == x2 or y1 == y2 for (x1, y1), (x2, y2) in pairwise(points))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_subgraphs_hold_their_nodes(kind: Kind) -> None:
    graph = kind(OURS).get_graph(xray=True)
    plan = arrange(graph.nodes, graph.edges, MEASURE)
    assert list(plan.frames) == frames(graph.nodes)
    for name, frame in plan.frames.items():
        for each, box in plan.boxes.items():
            assert apart(frame, box) != each.startswith(f"{name}:")


def test_a_label_lies_in_the_frame_around_both_ends() -> None:
    nodes = {each: Node(each, each[-1], len) for each in ("outer:inner:a", "outer:b", "c")}
    edges = [Edge("outer:inner:a", "outer:b", "inside"), Edge("outer:b", "c", "outside")]
    plan = arrange(nodes, edges, MEASURE)
    inside, outside = (route.label for route in plan.routes)
    assert inside is not None
    assert outside is not None
    assert not apart(inside, plan.frames["outer"])
    assert apart(inside, plan.frames["outer:inner"])
    assert apart(outside, plan.frames["outer"])


def test_the_same_graph_gives_the_same_picture() -> None:
    assert len({fan_out_and_join(OURS).get_graph().draw_svg() for _ in range(3)}) == 1


def test_the_start_is_at_the_top() -> None:
    for kind in KINDS:
        graph = kind(OURS).get_graph()
        plan = arrange(graph.nodes, graph.edges, MEASURE)
        assert plan.boxes["__start__"].y == 0, kind.__name__


def complete(size: int) -> Graph:
    names = [f"n{number}" for number in range(size)]
    return Graph({name: Node(name, name, len) for name in names}, [Edge(a, b) for a in names for b in names])


def test_too_large_a_graph_is_told() -> None:
    with pytest.raises(ValueError, match=r"25 nodes, 625 edges.*draw_mermaid\(\) takes graphs of any size"):
        complete(25).draw_ascii()
    assert complete(25).draw_mermaid().count("-->") == 625


def test_beyond_some_edges_less_care_is_taken() -> None:
    """It would take many seconds otherwise."""
    graph = complete(11)
    assert len(graph.edges) > layout.CAREFUL
    assert len(re.findall(r"\| +n[0-9]+ +\|", graph.draw_ascii())) == 11


@pytest.mark.parametrize("way", ["draw_ascii", "draw_svg", "print_ascii", "draw_png"])
def test_without_the_extra(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "graphlay", None)
    with pytest.raises(ImportError, match=r"actorgraph\[drawing\].*draw_mermaid\(\) needs nothing"):
        getattr(chain(OURS).get_graph(), way)()


def test_nothing_to_draw() -> None:
    assert Graph().draw_ascii() == ""
    assert ET.fromstring(Graph().draw_svg()).tag == f"{SVG}svg"  # noqa: S314 - made here


# ---- ASCII ---------------------------------------------------------------------------------------------------------


def test_a_fan_in_ascii(capsys: pytest.CaptureFixture[str]) -> None:
    graph = fan_out_and_join(OURS).get_graph()
    drawn = graph.draw_ascii()
    assert drawn.splitlines()[:6] == [
        ".-----------.",
        "( __start__ )",
        "'-----------'",
        "      |",
        "      |",
        "      v",
    ]
    assert "+---+    +---+" in drawn
    assert all(text == text.rstrip() for text in drawn.splitlines())
    graph.print_ascii()
    assert capsys.readouterr().out == f"{drawn}\n"


def test_what_is_conditional_is_dotted() -> None:
    nodes = {name: Node(name, name, len) for name in "ab"}
    assert ":" not in draw_ascii(nodes, [Edge("a", "b")])
    dotted = draw_ascii(nodes, [Edge("a", "b", "yes", conditional=True)])
    assert "yes" in dotted
    assert ":" in dotted
    assert "|\n  |" not in dotted


def test_subgraphs_in_ascii() -> None:
    drawn = subgraph(OURS).get_graph(xray=True).draw_ascii()
    assert "+- sub --" in drawn


HEADS = re.compile(r"[v^<>]")


@pytest.mark.slow
@given(graphs())
@settings(max_examples=40)
def test_every_edge_ends_in_an_arrowhead(graph: Graph) -> None:
    renamed = {name: f"N{number}" for number, name in enumerate(graph.nodes)}
    nodes = {new: Node(new, new, len) for new in renamed.values()}
    edges = [Edge(renamed[a], renamed[b], label and "LABEL", often) for a, b, label, often in graph.edges]
    drawn = draw_ascii(nodes, edges)
    assert len(HEADS.findall(drawn)) == len(edges)
    rows = [text.ljust(max(map(len, drawn.splitlines()))) for text in drawn.splitlines()]
    for place, row in enumerate(rows):
        assert all(rows[place + 1][head.start()] in "+-" for head in re.finditer("v", row))
        assert all(rows[place - 1][head.start()] in "+-" for head in re.finditer(r"\^", row))
    assert drawn.count("LABEL") == sum(edge.data is not None for edge in edges)
    assert all(re.search(rf"\| *{name} *\|", drawn) for name in nodes)


@pytest.mark.slow
@given(graphs())
@settings(max_examples=40)
def test_ascii_is_printable(graph: Graph) -> None:
    drawn = graph.draw_ascii()
    assert all(text.isprintable() for text in drawn.splitlines())
    drawn.encode()


# ---- SVG -----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@given(graphs())
@settings(max_examples=40)
def test_svg_is_well_formed_and_shows_every_name(graph: Graph) -> None:
    drawn = graph.draw_svg()
    root = ET.fromstring(drawn)  # noqa: S314 - made here
    texts = [element.text for element in root.iter(f"{SVG}text")]
    for node in graph.nodes.values():
        assert line(node.name) in texts
    for edge in graph.edges:
        assert not edge.data or line(edge.data) in texts
    tags = {element.tag.removeprefix(SVG) for element in root.iter()}
    assert tags <= {"svg", "g", "rect", "text", "path"}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_svg_refers_to_nothing_outside(kind: Kind) -> None:
    drawn = kind(OURS).get_graph(xray=True).draw_svg()
    assert drawn.count("http") == 1
    assert drawn.startswith('<svg xmlns="http://www.w3.org/2000/svg"')
    assert not re.search(r"href|url\(|<style|<script| id=", drawn)


def test_conditional_edges_are_dashed() -> None:
    nodes = {name: Node(name, name, len) for name in "ab"}
    assert "dash" not in Graph(nodes, [Edge("a", "b")]).draw_svg()
    assert Graph(nodes, [Edge("a", "b", conditional=True)]).draw_svg().count("stroke-dasharray") == 1
