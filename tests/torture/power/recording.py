"""Recording a run under strace, and examining what losses leave of it."""

from __future__ import annotations

import random
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from persistence.sqlite import SqliteSaver
from tests.crash.cases import Case
from tests.crash.examining import Reference, examine
from tests.crash.launching import Launcher
from tests.crash.programs import PROGRAMS
from tests.crash.stored import Rows
from tests.torture.power import calls
from tests.torture.power.disk import Disk

DATABASE, LEDGER = "run.sqlite", "run.ledger"
LONGEST = 2**24
"""Bytes of a write that strace prints; a longer one would be cut, which the reader notices."""


@dataclass(frozen=True)
class Recording:
    """What a run did to its files, and what its files held before."""

    case: Case
    disk: Disk
    before: Rows
    reference: Reference
    ledger: Path

    async def examine(self, seed: int, folder: Path) -> None:
        """Lose the power at some moment of the run and hold what is left to what had been promised by then."""
        chance = random.Random(seed)
        moment = chance.choice(self.disk.moments)
        self.disk.lose(moment, chance, folder)
        path, ledger = folder / DATABASE, folder / LEDGER
        ledger.write_bytes(self.disk.ledger(self.ledger, moment))
        # The index of the log is no part of what is promised: SQLite makes it anew, whatever the disk says.
        shm = folder / f"{DATABASE}-shm"
        if chance.random() < 0.5:
            shm.unlink(missing_ok=True)
        else:
            shm.write_bytes(chance.randbytes(2**15))
        async with SqliteSaver(path, synchronous="NORMAL"):
            pass  # whatever is there can be opened, be it half of an empty database
        await examine(path, ledger, self.reference, self.case.durability, self.before, killed=True)


async def record(launcher: Launcher, folder: Path, case: Case, *, from_nothing: bool) -> Recording:
    """Run a case under strace, on a database that is there or on none."""
    program = PROGRAMS[case.program]
    folder.mkdir()
    path, ledger, log = folder / DATABASE, folder / LEDGER, folder.with_suffix(".strace")
    case = _placed(case, path, ledger, gate=str(folder.with_suffix(".gate")))
    if not from_nothing:
        part: Any = "opening" if program.answer is None else "run to the pause"
        assert not launcher.run(_placed(case, path, folder.with_suffix(".start"), part=part, gate=""))
    before = Rows.of(path) if path.exists() else Rows({}, set(), set(), 0)
    start = folder.with_suffix(".before")
    shutil.copytree(folder, start)
    options = ["-o", str(log), "-xx", "-s", str(LONGEST), "-e", f"trace={calls.TRACED}", "-e", "signal=none"]
    assert not launcher.run_traced(case, options), "nobody kills a run that is recorded"
    with log.open() as lines:
        found = calls.read(line.rstrip("\n") for line in lines)
    shutil.rmtree(folder)
    start.rename(folder)
    return Recording(case, Disk(folder, found), before, await Reference.of(program), ledger)


def _placed(case: Case, path: Path, ledger: Path, **options: Any) -> Case:
    return Case(**{**vars(case), "database": str(path), "ledger": str(ledger), **options})
