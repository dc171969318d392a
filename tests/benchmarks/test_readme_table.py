"""The table in README.md and the figures it comes from agree."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from benchmarks import readme, results
from benchmarks.commands import main
from benchmarks.results import Answer, Case, Report, Series
from tests.benchmarks.reports import report

if TYPE_CHECKING:
    from pathlib import Path


def test_the_table_is_made_of_the_figures_that_are_kept() -> None:
    """After a new run: python -m benchmarks readme --write."""
    text = readme.README.read_text("utf-8")
    assert readme.inserted(text, results.load(readme.MEASURED)) == text


def test_the_kept_figures_name_a_machine_in_general_words() -> None:
    """Processor, cores, disk and Python, and how thoroughly it was measured."""
    facts = results.load(readme.MEASURED).machine
    assert all(facts[name] for name in ("cpu", "memory", "disk", "system", "python", "sqlite", "load", "date"))
    assert facts["sweep"] in {"full", "short"}


def rows(found: Report) -> dict[tuple[str, str], dict[str, str]]:
    """Return a table's cells by database and mode, then by column."""
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in readme.table(found)]
    heads, _, *body = lines
    return {(cells[0], cells[1].strip("`")): dict(zip(heads, cells, strict=True)) for cells in body}


def test_each_row_says_what_a_mode_costs_and_what_it_loses() -> None:
    """Of small states only; the repeats are 0.9, 1 and 1.2 times as long."""
    found = rows(report())[("SQLite", "sync")]
    assert found["added to a superstep"] == "869 µs"
    assert found["1 at once"] == found["32 at once"] == "1,100/s"
    assert found["lost in a crash"] == "0.5 (1)"


def test_ratios_come_from_the_questions_that_have_langgraph() -> None:
    """The baseline must be LangGraph; where it took no part, the column is left out."""
    series = {"LangGraph": Series([500.0, 520.0], []), "actorgraph": Series([50.0, 40.0], [])}
    found = report()
    assert not any("LangGraph" in head for head in rows(found)[("SQLite", "sync")])
    found.answers.append(Answer("sqlite-many", "", cases=[Case("200 runs, sync", "µs/step", "LangGraph", series)]))
    assert rows(found)[("SQLite", "sync")]["LangGraph, 200 runs"] == "11.5x (10.0 to 13.0)"


@pytest.mark.parametrize(("load", "busy"), [("0.10 0 0", False), ("3.20 0 0", True)])
def test_a_busy_machine_is_admitted(load: str, busy: bool) -> None:
    found = report()
    found.machine["load"] = load
    assert ("busy with other work" in readme.section(found)) is busy


def test_the_section_takes_the_place_of_the_old_one_and_of_nothing_else() -> None:
    text = f"before\n{readme.BEGIN}\nold\n{readme.END}\nafter\n"
    new = readme.inserted(text, report())
    assert new.startswith(f"before\n{readme.BEGIN}\n")
    assert new.endswith(f"{readme.END}\nafter\n")
    assert "\nold\n" not in new
    with pytest.raises(ValueError, match="no place for the table"):
        readme.inserted("nothing here", report())


def test_the_command_prints_it_or_writes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Into README.md, and only if asked."""
    report().save(tmp_path / "found.json")
    page = tmp_path / "README.md"
    page.write_text(f"{readme.BEGIN}\n{readme.END}\n", "utf-8")
    monkeypatch.setattr(readme, "README", page)
    assert main(["readme", str(tmp_path / "found.json")]) == 0
    assert capsys.readouterr().out == f"{readme.section(report())}\n"
    assert main(["readme", str(tmp_path / "found.json"), "--write"]) == 0
    assert page.read_text("utf-8") == f"{readme.section(report())}\n"
