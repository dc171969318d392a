"""The HTML report: one file, every picture, legible on a telephone and on a desk."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from typing import TYPE_CHECKING

import pytest

from benchmarks.commands import main
from benchmarks.page.document import page
from benchmarks.page.figures import figures
from benchmarks.page.scales import linear, logarithmic, micros, percentiles
from benchmarks.results import Report
from tests.benchmarks import browser
from tests.benchmarks.reports import report

if TYPE_CHECKING:
    from pathlib import Path

SECTIONS = ["Latency and throughput", "Cost against loss", "Group commit", "Storage", "Growth", "Peers"]
SMALLEST_LETTERS = 8.0

needs_browser = pytest.mark.skipif(
    browser.FOUND is None, reason="no browser here: install chromium, or name one in ACTORGRAPH_TEST_BROWSER"
)


class Structure(HTMLParser):
    """What a page is made of; complains of tags that are not closed in their order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []
        self.references: list[str] = []
        self.headings: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        self.references += [value or "" for name, value in attrs if name in {"src", "href", "srcset", "xlink:href"}]
        if tag not in {"meta", "link", "br"}:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "h2":
            self.headings.append(data)


def test_the_page_is_one_file_with_a_section_for_each_kind_of_picture() -> None:
    """It refers to nothing outside, runs no script, and closes every tag."""
    parsed = Structure()
    parsed.feed(page(report()))
    assert parsed.open == []
    assert parsed.headings == [*SECTIONS, "All figures"]
    assert parsed.references == ["data:,"]
    assert "script" not in parsed.seen
    assert parsed.seen.count("svg") == len(figures(report())) == parsed.seen.count("figcaption")


def test_names_of_others_are_text_and_not_markup() -> None:
    """A processor, a contender or a failure may be called anything."""
    text = page(report())
    for name in ("<a processor>", "<other>", "<bad>"):
        assert name not in text
        assert name.replace("<", "&lt;").replace(">", "&gt;") in text


def test_a_report_of_nothing_is_a_page_too() -> None:
    parsed = Structure()
    parsed.feed(page(Report({}, {}, [])))
    assert parsed.headings == ["All figures"]


def test_pictures_are_well_formed_stay_in_their_frame_and_have_names_of_their_own() -> None:
    """Every coordinate lies inside the paper."""
    drawn = figures(report())
    assert len({figure.name for figure in drawn}) == len(drawn)
    for figure in drawn:
        root = ET.fromstring(figure.svg)  # noqa: S314 - our own text
        _, _, width, height = map(float, root.attrib["viewBox"].split())
        for node in root.iter():
            for name in ("x", "cx", "x1", "x2"):
                assert 0 <= float(node.get(name, 0)) <= width
            for name in ("y", "cy", "y1", "y2"):
                assert 0 <= float(node.get(name, 0)) <= height


def test_a_picture_says_each_contender_and_the_exponent() -> None:
    texts = {figure.name: figure.svg for figure in figures(report())}
    assert all(f">{mode}<" in texts["sqlite-distribution"] for mode in ("exit", "async", "sync", "raw commit"))
    assert "LangGraph: sync" in texts["sqlite-loss"]
    assert "actorgraph, n^0.06" in texts["growth-nodes"]


def test_scales_put_values_where_they_belong() -> None:
    """Powers of ten at equal distances; nines likewise; what is outside at the end."""
    scale = logarithmic([20.0, 5_000.0], micros)
    assert (scale.low, scale.high) == (10.0, 10_000.0)
    assert [round(scale.part(value), 3) for value in (1, 10, 100, 1_000, 10_000, 1e9)] == [0, 0, 0.333, 0.667, 1, 1]
    assert linear([7.0], micros).high >= 7
    assert linear([], micros).part(0.0) == 0.0
    assert [round(percentiles().part(q), 2) for q in (0, 0.9, 0.99, 0.999, 1)] == [0, 0.25, 0.5, 0.75, 1]


@pytest.mark.parametrize(("value", "words"), [(0.5, "0.5 µs"), (999, "999 µs"), (1_500, "1.5 ms"), (2e6, "2 s")])
def test_times_are_written_with_their_unit(value: float, words: str) -> None:
    assert micros(value) == words


@pytest.mark.slow
def test_the_command_writes_the_page_and_pngs(tmp_path: Path) -> None:
    """One PNG a picture."""
    report().save(tmp_path / "found.json")
    words = ["report", str(tmp_path / "found.json"), "--html", str(tmp_path / "r.html"), "--png", str(tmp_path / "png")]
    assert main(words) == 0
    assert (tmp_path / "r.html").read_text("utf-8") == page(report())
    pictures = list((tmp_path / "png").glob("*.png"))
    assert len(pictures) == len(figures(report()))
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in pictures)


@needs_browser
@pytest.mark.slow
@pytest.mark.timeout(60)
def test_a_browser_shows_it_without_complaint_on_a_desk_and_on_a_telephone(tmp_path: Path) -> None:
    """Several pictures side by side, or one below the other; nothing to move sideways; letters that can be read."""
    (desk, telephone), complaints = browser.look(page(report()), (1280, 400), tmp_path)
    assert complaints == []
    for view, width in ((desk, 1280), (telephone, 400)):
        assert view.width == view.needed == width
        assert view.pictures == len(figures(report()))
        assert view.smallest >= SMALLEST_LETTERS
        assert view.outside == []
    assert desk.columns == 3
    assert telephone.columns == 1


@needs_browser
@pytest.mark.slow
@pytest.mark.timeout(60)
def test_a_browser_that_complains_is_heard(tmp_path: Path) -> None:
    """Otherwise the test above would say nothing."""
    broken = page(report()).replace("</body>", "<script>nothing.there()</script></body>")
    _, complaints = browser.look(broken, (400,), tmp_path)
    assert any("nothing is not defined" in line for line in complaints)
