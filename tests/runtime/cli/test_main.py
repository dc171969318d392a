"""The command line as a whole: help, wrong usage, exit codes, pipes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from runtime.cli.plain import plain
from tests.runtime.cli.commands import environment

if TYPE_CHECKING:
    from tests.runtime.cli.commands import Command

COMMANDS = ("run", "draw", "threads", "history", "show", "prune", "delete", "demo")


@pytest.mark.slow
def test_help_names_every_command(process: Command) -> None:
    told = process("--help")
    assert told.code == 0
    assert told.out.startswith("usage: actorgraph")
    assert all(f"    {name}  " in told.out for name in COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_and_speaks_json(command: Command, name: str) -> None:
    told = command(name, "--help")
    assert told.code == 0
    assert f"usage: actorgraph {name}" in told.out
    assert "--json" in told.out
    assert ("--db FILE" in told.out) == (name != "draw")
    assert max(map(len, told.out.splitlines())) <= 80


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["absent"],
        ["threads"],
        ["threads", "--db", "x.db", "--limit", "-1"],
        ["threads", "--db", "x.db", "--limit", "many"],
        ["history", "--db", "x.db"],
        ["delete", "--db", "x.db"],
        ["demo", "--mode", "absent"],
        ["run", "x:y", "--input", "1", "--durability", "absent"],
        ["run", "x:y", "--input", "1", "--stream", "absent"],
        ["draw", "x:y", "--format", "absent"],
    ],
)
def test_wrong_usage(command: Command, words: list[str]) -> None:
    told = command(*words)
    assert (told.code, told.out) == (2, "")
    assert told.err.startswith("usage: actorgraph")
    as_json = command(*words, "--json")
    assert (as_json.code, as_json.out, as_json.error["type"]) == (2, "", "UsageError")


def test_the_console_script_is_declared() -> None:
    declared = (Path(__file__).parents[3] / "pyproject.toml").read_text("utf-8")
    assert 'actorgraph = "runtime.cli:main"' in declared


@pytest.mark.skipif(sys.platform == "win32", reason="there is no such pipe")
@pytest.mark.slow
def test_a_reader_that_leaves_early_is_no_error_worth_words(db: str, tmp_path: Path) -> None:
    words = [sys.executable, "-m", "runtime.cli", "threads", "--db", db]
    with subprocess.Popen(
        words, cwd=tmp_path, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as listing:
        assert listing.stdout is not None
        assert listing.stderr is not None
        listing.stdout.close()
        told = listing.stderr.read()
    assert told == ""
    assert listing.returncode == 1


@pytest.mark.slow
def test_text_survives_a_terminal_without_unicode(db: str, tmp_path: Path) -> None:
    words = [sys.executable, "-m", "runtime.cli", "threads", "--db", db]
    shown = subprocess.run(
        words,
        cwd=tmp_path,
        env={**environment(), "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "3 threads." in shown.stdout
    assert plain(shown.stdout).isascii()
