"""``draw``: a graph as a picture, and ``history --graph``: a thread's branches as a tree."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.cli.lanes import lanes

if TYPE_CHECKING:
    from tests.runtime.cli.commands import Command

# ---- draw ----------------------------------------------------------------------------------------------------------


def test_mermaid_needs_no_extra(app: str, command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "graphlay", None)
    shown = command("draw", f"{app}:graph")
    assert (shown.code, shown.err) == (0, "")
    assert shown.out.startswith("---\nconfig:")
    assert "\tfirst --> second;\n" in shown.out


def test_ascii(app: str, command: Command) -> None:
    shown = command("draw", f"{app}:build", "--format", "ascii").out
    assert shown.startswith(".-----------.\n( __start__ )\n")
    assert shown.endswith("'\n")


@pytest.mark.parametrize(
    ("file", "begins"),
    [
        ("a.svg", b"<svg "),
        ("a.PNG", b"\x89PNG"),
        ("a.mmd", b"---\n"),
        ("a.txt", b"      .---"),
    ],
)
def test_the_suffix_tells_the_format(app: str, command: Command, file: str, begins: bytes) -> None:
    shown = command("draw", f"{app}:paused", "--output", file)
    assert (shown.code, shown.out) == (0, f"Drew 4 nodes and 3 edges to {file}.\n")
    assert Path(file).read_bytes().startswith(begins)


def test_a_named_format_wins(app: str, command: Command) -> None:
    assert command("draw", f"{app}:graph", "--format", "svg", "--output", "a.txt").code == 0
    assert Path("a.txt").read_text("utf-8").startswith("<svg ")


def test_an_unknown_suffix(app: str, command: Command) -> None:
    told = command("draw", f"{app}:graph", "--output", "a.jpeg", "--json")
    assert (told.code, told.error["type"]) == (2, "UsageError")
    assert "mermaid, ascii, svg, png" in told.error["message"]
    assert not Path("a.jpeg").exists()


@pytest.mark.slow
def test_a_pipe_gets_nothing_but_the_picture(app: str, process: Command, tmp_path: Path) -> None:
    (tmp_path / f"{app}.py").write_text('print("imported")\n' + (tmp_path / f"{app}.py").read_text())
    shown = process("draw", f"{app}:graph", "--format", "svg")
    assert shown.out.startswith("<svg ")
    assert shown.err == "imported\n"


def test_as_json(app: str, command: Command) -> None:
    found = command("draw", f"{app}:paused", "--json").document
    assert [node["id"] for node in found["nodes"]] == ["__start__", "first", "second", "__end__"]
    assert found["nodes"][2]["metadata"] == {"__interrupt": "before"}
    assert found["edges"][0] == {"source": "__start__", "target": "first"}
    assert found["format"] == "mermaid"
    assert "graph TD;" in found["picture"]
    assert list(command("draw", f"{app}:graph", "--format", "png", "--json").document["picture"]) == ["base64"]
    assert command("draw", f"{app}:graph", "--output", "a.svg", "--json").document["output"] == "a.svg"


def test_subgraphs_are_drawn_out(app: str, command: Command) -> None:
    module = Path(f"{app}.py")
    module.write_text(
        module.read_text() + "\nouter = StateGraph(State).add_node('sub', compiled).add_edge(START, 'sub')\n"
    )
    assert "subgraph" not in command("draw", f"{app}:outer").out
    assert "subgraph sub\n" in command("draw", f"{app}:outer", "--xray").out


def test_what_fails_is_told(app: str, command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    assert command("draw", f"{app}:absent", "--json").error["type"] == "AttributeError"
    assert command("draw", f"{app}:graph", "--output", "absent/a.svg", "--json").error["type"] == "FileNotFoundError"
    monkeypatch.setitem(sys.modules, "graphlay", None)
    told = command("draw", f"{app}:graph", "--format", "svg", "--json")
    assert (told.code, told.out, told.error["type"]) == (1, "", "ImportError")
    assert "actorgraph[drawing]" in told.error["message"]


def test_a_terminal_gets_no_png(app: str, command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    told = command("draw", f"{app}:graph", "--format", "png")
    assert (told.code, told.out) == (2, "")
    assert "--output FILE" in told.err


# ---- history --graph -----------------------------------------------------------------------------------------------


def test_branches_of_a_thread(command: Command, db: str) -> None:
    shown = command("history", "forked", "--db", db, "--graph")
    assert shown.code == 0
    lines = shown.out.splitlines()
    drawn = [line[:3].rstrip() for line in lines[:-1]]
    assert drawn == ["*", "*", "| *", "|/", "*", "*", "*"]
    rows = command("history", "forked", "--db", db, "--json").document["checkpoints"]
    assert [row["checkpoint_id"] in line for row, line in zip(rows, lines[:3] + lines[4:], strict=False)] == [True] * 6
    assert lines[4].endswith("second")
    assert lines[-1] == "6 checkpoints. Times are in UTC."
    assert max(map(len, lines)) <= 80


def test_json_tells_branches_anyway(command: Command, db: str) -> None:
    words = ["history", "forked", "--db", db, "--json"]
    assert command(*words, "--graph").document == command(*words).document


def test_what_a_limit_leaves_out(command: Command, db: str) -> None:
    shown = command("history", "done", "--db", db, "--graph", "--limit", "2").out
    oldest = json.loads(command("history", "done", "--db", db, "--json").out)["checkpoints"][2]["checkpoint_id"]
    assert f"(grew from {oldest}, not listed)" in shown
    assert "The 2 newest of 4 checkpoints" in shown


def drawn(history: list[tuple[str, str | None]]) -> list[str]:
    return [line for lane in lanes(history) for line in (*lane.joining, lane.mark)]


def test_lanes_come_together_across_others() -> None:
    history = [("g", "a"), ("f", "c"), ("e", "a"), ("d", "c"), ("c", "a"), ("b", "a"), ("a", None)]
    assert drawn(history) == [
        "*",
        "| *",
        "| | *",
        "| | | *",
        "| |_|/",
        "| * |",
        "| | | *",
        "|/  | |",
        "|__/  |",
        "|____/",
        "*",
    ]


@given(st.lists(st.integers(0, 100), max_size=25))
def test_every_checkpoint_has_one_star_and_every_branch_one_joint(choices: list[int]) -> None:
    """Whatever grew from whatever: each but the first grew from an older one."""
    parents = [None, *(str(choice % (place + 1)) for place, choice in enumerate(choices))]
    history = [(str(place), parent) for place, parent in enumerate(parents)][::-1]
    found = list(lanes(history))
    assert [lane.mark.count("*") for lane in found] == [1] * len(history)
    for (checkpoint, _), lane in zip(history, found, strict=True):
        assert len(lane.joining) == max(0, parents.count(checkpoint) - 1)
    assert found[-1].mark == "*"
