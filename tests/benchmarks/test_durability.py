"""The durability question: what it varies, how it measures, and one tiny run of it from the command line."""

from __future__ import annotations

import sqlite3
import sys
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from benchmarks import peers, results
from benchmarks.commands import main
from benchmarks.durability import limits
from benchmarks.durability.grid import FEWEST_STEPS, FULL, MEGABYTE, MOST_STEPS, Cell, Grid, parse_size, size
from benchmarks.durability.places import Place, Places
from benchmarks.durability.stepping import measure, stored_bytes
from benchmarks.results import BARE, QUANTILES, Distribution, Sample, Series

if TYPE_CHECKING:
    from pathlib import Path


def test_a_cell_that_would_write_too_much_at_once_is_left_out_and_named() -> None:
    """A thousand runs of a megabyte each measure the machine's memory."""
    grid = Grid(("sqlite",), ("sync",), (100, MEGABYTE), (0.0,), (1, 1_000))
    assert [cell.name for cell in grid.cells()] == [
        "sqlite, 100 B, 1 run, 0 ms",
        "sqlite, 100 B, 1,000 runs, 0 ms",
        "sqlite, 1 MB, 1 run, 0 ms",
    ]
    assert [cell.load for cell in grid.left_out()] == ["1 MB, 1,000 runs"]


def test_a_sample_stays_small() -> None:
    """Many runs and large states have fewer supersteps, but never so few that there is nothing between the ends."""
    assert all(FEWEST_STEPS <= cell.steps <= MOST_STEPS for cell in FULL.cells())
    assert Cell("memory", 100, 0, 1).steps == MOST_STEPS
    assert Cell("memory", MEGABYTE, 0, 32).steps == FEWEST_STEPS


def test_the_full_sweep_varies_states_and_nodes_one_at_a_time() -> None:
    """All combinations would take an hour; whoever gives values gets all of theirs."""
    cells = {(cell.state_bytes, cell.node_ms, cell.runs) for cell in FULL.cells()}
    assert {(100, 20.0, 32), (10_000, 0.0, 1_000), (MEGABYTE, 0.0, 32)} < cells
    assert not {(10_000, 1.0, 1), (100, 1.0, 1_000), (MEGABYTE, 0.0, 1_000)} & cells
    assert len(list(Grid(("memory",), ("sync",), (1, 2), (0.0, 1.0), (1, 2)).cells())) == 8


@pytest.mark.parametrize(("text", "count"), [("100", 100), ("10KB", 10_000), ("1 mb", MEGABYTE), ("0", 0)])
def test_sizes_are_read_as_they_are_said(text: str, count: int) -> None:
    assert parse_size(text) == count
    assert parse_size(size(count)) == count


@pytest.mark.parametrize("text", ["", "ten", "-1", "1.5", "nan"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"whole number|could not convert|cannot convert"):
        parse_size(text)


def test_quantiles_are_values_that_were_seen() -> None:
    """The 99th percentile of a hundred values is the last but one."""
    found = Distribution.of([float(number) for number in range(100, 0, -1)])
    assert found.count == 100
    assert (found.at(0.0), found.at(0.5), found.at(0.99), found.at(1.0)) == (1.0, 50.0, 99.0, 100.0)


def test_a_series_pools_the_latencies_and_keeps_each_samples_middle_and_tail() -> None:
    series = Series.of([Sample(1.0).having([1.0, 2.0, 3.0]), Sample(1.0).having([5.0, 6.0, 7.0])])
    assert series.latency is not None
    assert series.latency.count == 6
    assert series.medians == [2.0, 6.0]
    assert series.tails == [3.0, 7.0]


@pytest.mark.parametrize("runs", [1, 3])
def test_every_superstep_of_every_run_is_watched(runs: int) -> None:
    """What was timed once for warmth is not among them."""
    side = peers.actorgraph()
    cell = Cell("memory", 10, 0.0, runs)
    sample = side.run(measure, side, cell, side.memory(), "sync")
    assert len(sample.latencies) % cell.steps == 0
    assert len(sample.latencies) == runs * cell.steps or runs == 1
    assert all(latency > 0 for latency in sample.latencies)


def test_a_superstep_stores_its_state_as_what_was_written_and_as_what_is_now_there() -> None:
    """Twice, and little beside: ten thousand bytes more of state are twenty thousand more of rows."""
    small, large = (stored_bytes(Cell("memory", count, 0.0, 1)) for count in (10_000, 20_000))
    assert large - small == pytest.approx(20_000, rel=0.1)
    assert small < 25_000


def test_raw_commits_are_transactions_of_their_own(tmp_path: Path) -> None:
    """As many rows are there as were timed, and one that was not."""
    sample = limits.sqlite_commit(tmp_path, b"payload")
    (path,) = tmp_path.glob("*.db")
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT count(*) FROM raw").fetchone() == (len(sample.latencies) + 1,)
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_a_side_without_a_saver_for_a_database_is_told_so() -> None:
    side = peers.langgraph()
    assert side is not None
    place = Place("valkey", "redis://nowhere")
    assert not place.opens(side)
    with pytest.raises(LookupError, match="LangGraph has no saver for valkey"):
        place.saver(side)


def test_places_are_gone_when_they_are_left(tmp_path: Path) -> None:
    with Places(tmp_path).fresh("sqlite") as place:
        sqlite3.connect(place.address).close()
        (tmp_path / f"{place.address}-wal").touch()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_the_command_measures_what_it_is_asked_to(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A cell of one database and two modes: with the limits, a table and the figures in a file."""
    kept = tmp_path / "found.json"
    words = "durability --backend sqlite --modes sync,exit --state-size 10 --node-ms 0 --concurrency 1 --repeats 1"
    assert main([*words.split(), "--json", str(kept), "--directory", str(tmp_path)]) == 0
    (answer,) = results.load(kept).answers
    (case,) = answer.cases
    assert list(case.series) == [BARE, "sync", "exit", limits.FSYNC, limits.COMMIT]
    assert case.at == {"backend": "sqlite", "state": 10, "node": 0, "runs": 1}
    for series in case.series.values():
        assert series.latency is not None
        assert len(series.latency.values) == len(QUANTILES)
    assert "sqlite, 10 B, 1 run, 0 ms" in capsys.readouterr().out


OWN = """
import operator
from typing import Annotated, TypedDict
from runtime.graph import END, START, StateGraph

class State(TypedDict):
    n: Annotated[int, operator.add]

graph = StateGraph(State)
for name in ("a", "b", "c"):
    graph.add_node(name, lambda state: {"n": 1})
graph.add_edge(START, "a")
graph.add_edge(START, "b")
graph.add_edge(["a", "b"], "c")
graph.add_edge("c", END)
"""


@pytest.mark.slow
def test_a_graph_of_ones_own_is_measured_and_compared_with_its_past(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its supersteps are counted, not its nodes."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    (tmp_path / "ownmod.py").write_text(OWN)
    words = "durability --graph ownmod:graph --backend sqlite --modes sync --concurrency 1 --repeats 1 --json now.json"
    assert main([*words.split(), "--input", '{"n": 0}']) == 0
    (answer,) = results.load(tmp_path / "now.json").answers
    (case,) = answer.cases
    assert case.name == "sqlite, ownmod:graph, 1 run"
    assert answer.notes[0].startswith("ownmod:graph: 2 supersteps a run")
    watched = case.series["sync"].latency
    assert watched is not None
    assert watched.count % 2 == 0
    capsys.readouterr()
    assert main(["durability", *words.split()[1:], "--compare", "now.json", "--input", '{"n": 0}']) == 0
    assert "figures that both have" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ("durability --backend oracle", "there is no 'oracle': choose from memory"),
        ("durability --modes never", "there is no 'never'"),
        ("durability --concurrency 0", "at least 1"),
        ("durability --node-ms -1", "milliseconds"),
        ("durability --backend sqlite --url redis://here", "--url names one server"),
        ("--only nothing", "invalid choice"),
        ("durability --graph app:graph --state-size 10", "--graph brings its own states"),
        ("durability --graph app:graph --input {", "not JSON"),
        ("durability --graph app:graph", "--graph needs --input JSON"),
        ("durability --graph nowhere_at_all:graph --input {}", "There is no module 'nowhere_at_all'"),
        ("report nowhere.json", "No such file"),
    ],
)
def test_what_cannot_be_asked_is_told(words: str, complaint: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(words.split())
    assert complaint in " ".join(capsys.readouterr().err.split())
