"""Programs written for LangGraph, as its tutorials write them, run here with other imports and print the same."""

from __future__ import annotations

import re
import sys
import warnings
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from types import ModuleType
from typing import Final

import pytest

from tests.porting.places import PLACES, RENAMED

PROGRAMS: Final = Path(__file__).parent / "programs"
_IMPORT: Final = re.compile(r"^from (langgraph\S*) import (.+)$", re.MULTILINE)
_ID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}|0x[0-9a-f]+|\b[0-9a-f]{32}\b")


def ported(program: str) -> str:
    """Return a program with its imports changed, as README's table says, and nothing else."""
    return _IMPORT.sub(lambda found: "\n".join(_imports(found[1], found[2].split(", "))), program)


def _imports(module: str, names: list[str]) -> list[str]:
    return [f"from {PLACES[module][0]} import {RENAMED.get(name, name)} as {name}" for name in names]


def printed(text: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Run a program; return what it prints, without ids."""
    module = ModuleType("program")
    monkeypatch.setitem(sys.modules, "program", module)  # type hints are looked up by module
    shown = StringIO()
    with redirect_stdout(shown), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(compile(text, "program.py", "exec", dont_inherit=True), module.__dict__)  # noqa: S102 - our own text
    return _ID.sub("ID", shown.getvalue()).splitlines()


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(path.stem for path in PROGRAMS.glob("*.py")))
def test_a_program_prints_what_it_prints_on_langgraph(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only its imports are changed."""
    program = (PROGRAMS / f"{name}.py").read_text("utf-8")
    changed = ported(program)
    assert "import langgraph" not in changed
    assert "from langgraph" not in changed
    expected = printed(program, monkeypatch)
    assert len(expected) > 4
    assert printed(changed, monkeypatch) == expected
