"""What the command's tests share: an app to run, a database to look into, and two ways to give a command.

A command is a process with an event loop of its own, so nothing here runs on asyncio and on trio in turn: there is no
loop to hand it. What it calls is tested on both, below it. Most tests call ``main`` in this process, which is quick;
what only a process can show is tested in one.
"""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from persistence.sqlite.listing import look_into
from runtime.cli import main
from tests.runtime.cli.commands import APP, Command, Result, environment

NUMBERS = itertools.count()


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Name a module in the current directory; a new name for each test, as modules are imported once a process."""
    name = f"app_{next(NUMBERS)}"
    (tmp_path / f"{name}.py").write_text(APP)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    return name


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Command:
    """Give a command in this process; neither stream is a terminal."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")

    def give(*words: str) -> Result:
        capfd.readouterr()
        try:
            code = main(words)
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
        told = capfd.readouterr()
        return Result(code, told.out, told.err)

    return give


@pytest.fixture
def process(tmp_path: Path) -> Command:
    """Give a command in a process of its own."""

    def give(*words: str, text: str = "") -> Result:
        done = subprocess.run(
            [sys.executable, "-m", "runtime.cli", *words],
            cwd=tmp_path,
            env=environment(),
            input=text,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        return Result(done.returncode, done.stdout, done.stderr)

    return give


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with the threads ``done``, ``failed`` and ``forked``; copied for each test."""
    folder = tmp_path_factory.mktemp("prepared")
    (folder / "prepared_app.py").write_text(APP)
    here = Path.cwd()
    os.chdir(folder)
    try:
        sys.path.insert(0, str(folder))
        run = ["run", "prepared_app:graph", "--db", "all.db", "--json"]
        assert main([*run, "--thread", "done", "--input", '{"count": 1}']) == 0
        (folder / "broken").touch()
        assert main([*run, "--thread", "failed", "--input", '{"count": 1}']) == 1
        (folder / "broken").unlink()
        assert main([*run, "--thread", "forked", "--input", '{"count": 5}']) == 0
        assert main([*run, "--thread", "forked", "--resume", "--checkpoint", _second_last(folder / "all.db")]) == 0
    finally:
        sys.path.remove(str(folder))
        os.chdir(here)
    return folder / "all.db"


def _second_last(db: Path) -> str:
    with look_into(db) as listing:
        return listing.checkpoints("forked")[1].checkpoint_id


@pytest.fixture
def db(prepared: Path, tmp_path: Path) -> str:
    """Return a copy of the prepared database."""
    return str(shutil.copy(prepared, tmp_path / "all.db"))
