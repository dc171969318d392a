"""Killing one run after the other, each from the same start, and examining what is left."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

from tests.crash.cases import Case
from tests.crash.examining import Finding, Reference, examine
from tests.crash.launching import Launcher
from tests.crash.programs import Program
from tests.crash.stored import Rows


class Killing:
    """Kills runs of a program, one after the other, each from the same start."""

    def __init__(self, launcher: Launcher, folder: Path, program: Program, durability: Any, backend: Any) -> None:
        self.launcher = launcher
        self.folder = folder
        self.program = program
        self.durability: Any = durability
        self.backend: Any = backend
        self.start = folder / "start.sqlite"
        part: Any = "opening" if program.answer is None else "run to the pause"
        assert not launcher.run(self.case(self.start, folder / "start.ledger", part=part))
        self.before = Rows.of(self.start)

    def case(self, path: Path, ledger: Path, **options: Any) -> Case:
        """Describe a run."""
        return Case(str(path), str(ledger), self.program.name, self.durability, self.backend, **options)

    async def at(self, fatal: int, reference: Reference) -> Finding | None:
        """Kill at one place and examine what is left; None if the run was over before it came there."""
        return await self._killed(
            lambda path, ledger: self.launcher.run(self.case(path, ledger, fatal=fatal)), reference
        )

    async def at_write(self, number: int, reference: Reference) -> Finding | None:
        """Have the kernel kill the process when it is about to write to a database file for the ``number``-th time.

        Only the connection's thread calls pwrite, and strace counts for each thread.
        """
        options = ["-e", "trace=pwrite64", "-e", f"inject=pwrite64:signal=SIGKILL:when={number}"]

        def run(path: Path, ledger: Path) -> bool:
            return self.launcher.run_traced(self.case(path, ledger, gate=str(ledger.with_suffix(".gate"))), options)

        return await self._killed(run, reference)

    async def _killed(self, run: Callable[[Path, Path], bool], reference: Reference) -> Finding | None:
        path, ledger = self.folder / "killed.sqlite", self.folder / "killed.ledger"
        shutil.copy(self.start, path)
        killed = run(path, ledger)
        finding = await examine(path, ledger, reference, self.durability, self.before, killed=killed)
        self.clear()
        return finding if killed else None

    def clear(self) -> None:
        """Forget what the last kill left."""
        for file in self.folder.glob("killed.*"):
            file.unlink()

    async def sweep(self, turn: int) -> list[Finding]:
        """Kill at every second place until a run gets through; the event loops take turns, so all places are met."""
        reference = await Reference.of(self.program)
        findings: list[Finding] = []
        for fatal in count(1 + (turn + (self.backend == "trio")) % 2, 2):
            finding = await self.at(fatal, reference)
            if finding is None:
                return findings
            findings.append(finding)
        raise AssertionError
