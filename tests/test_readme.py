"""README.md tells the truth: its examples run, its imports exist, its commands are the ones that matter."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Final

import pytest

README: Final = (Path(__file__).parents[1] / "README.md").read_text("utf-8")


def blocks(language: str) -> list[str]:
    """Return the fenced blocks of one language, with their line numbers kept for tracebacks."""
    found = re.finditer(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
    return ["\n" * README.count("\n", 0, match.start(1)) + match[1] for match in found]


def named(statement: str) -> list[object]:
    """Return what an import statement names. Raises ImportError or AttributeError if something is not there."""
    module, _, names = statement.removeprefix("from ").partition(" import ")
    return [getattr(importlib.import_module(module), name) for name in names.split(", ")]


PORTING: Final = re.findall(r"^\| `(from .+?)` \| `(from .+?)` \|$", README, re.MULTILINE)


@pytest.mark.parametrize("code", blocks("python"))
def test_examples_run(code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each example stands alone and asserts what it shows, also when its files are there already."""
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        module = ModuleType("example")
        monkeypatch.setitem(sys.modules, "example", module)  # type hints are looked up by module
        exec(compile(code, "README.md", "exec", dont_inherit=True), module.__dict__)  # noqa: S102 - our own text
    assert "assert" in code


def test_the_first_example_can_be_taken_in_at_a_glance() -> None:
    """A graph, and what it returns."""
    lines = [line for line in blocks("python")[0].splitlines() if line]
    assert len(lines) <= 10
    assert ".invoke(" in lines[-1]


def test_there_are_examples_and_imports_to_try() -> None:
    """A changed format would make the other tests here pass."""
    assert len(blocks("python")) > 1
    assert len(PORTING) > 10


@pytest.mark.parametrize(("there", "here"), PORTING)
def test_a_program_moves_over_by_changing_its_imports(there: str, here: str) -> None:
    """Both sides of the table exist, and offer the same names."""
    assert len(named(there)) == len(named(here))


def test_the_first_commands_are_the_main_job_and_the_tests() -> None:
    """Newcomers and CI run these two, in a fresh clone, as they stand."""
    job, tests = blocks("sh")[:2]
    assert job.strip().endswith("actorgraph demo")
    assert "-m pytest" in tests.strip().splitlines()[-1]
    assert all("venv" in block and "pip install" in block for block in (job, tests))
