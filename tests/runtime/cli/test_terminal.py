"""On a terminal there is somebody to ask, and colour to tell things apart by."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.runtime.cli.commands import environment

if TYPE_CHECKING:
    from pathlib import Path

    from tests.runtime.cli.commands import Command

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo terminals"),
]


def on_a_terminal(folder: Path, *words: str, typed: str = "") -> tuple[int, str]:
    """Give a command on a pseudo terminal; return its exit code and what was to be seen there."""
    keyboard, screen = os.openpty()
    command = [sys.executable, "-m", "runtime.cli", *words]
    streams = {"stdin": screen, "stdout": screen, "stderr": screen}
    given = {**environment(), "TERM": "xterm", "COLUMNS": "80"}
    with subprocess.Popen(command, cwd=folder, env=given, **streams) as running:  # type: ignore[call-overload]
        try:
            os.close(screen)
            os.write(keyboard, typed.encode())
            seen = b"".join(iter(lambda: _read(keyboard), b""))
        except BaseException:
            running.kill()  # or the wait for it would hang where the test has given up
            raise
    os.close(keyboard)
    return running.returncode, seen.decode()


def _read(keyboard: int) -> bytes:
    """Return what comes next, nothing once the other side has closed."""
    try:
        return os.read(keyboard, 4096)
    except OSError:
        return b""  # how Linux says so


@pytest.mark.parametrize(("typed", "left"), [("n\n", 3), ("\n", 3), ("y\n", 2)])
def test_delete_asks_first(tmp_path: Path, command: Command, db: str, typed: str, left: int) -> None:
    code, seen = on_a_terminal(tmp_path, "delete", "done", "--db", db, typed=typed)
    assert code == 0
    assert "Delete 1 thread with 4 checkpoints? [y/N]" in seen
    assert ("Nothing was deleted." in seen) == (left == 3)
    assert command("threads", "--db", db, "--json").document["total"] == left


def test_colour_is_for_terminals(tmp_path: Path, db: str) -> None:
    code, seen = on_a_terminal(tmp_path, "history", "failed", "--db", db)
    assert code == 0
    assert "\x1b[36m" in seen
    assert on_a_terminal(tmp_path, "history", "failed", "--db", db, "--json")[1].lstrip().startswith("{")
