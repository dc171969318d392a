"""Recording a run under strace, and examining what losses leave of it."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from persistence.sqlite import SqliteSaver
from tests.crash.cases import Case, run_case
from tests.crash.examining import Reference, examine
from tests.crash.launching import Launcher
from tests.crash.programs import PROGRAMS
from tests.crash.stored import Rows
from tests.crash.tracing import traced
from tests.crash.zygote import Forked
from tests.torture.power import calls
from tests.torture.power.disk import Disk

DATABASE, LEDGER = "run.sqlite", "run.ledger"
LONGEST = 2**24
"""Bytes of a write that strace prints; a longer one would be cut, which the disk refuses."""


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
        path, ledger = await leave(self.disk, moment, chance, folder), folder / LEDGER
        ledger.write_bytes(self.disk.ledger(self.ledger, moment))
        await examine(path, ledger, self.reference, self.case.durability, self.before, killed=True)


async def leave(disk: Disk, moment: int, chance: random.Random, folder: Path) -> Path:
    """Make what a loss leaves of a database, and open it once; return where it is."""
    disk.lose(moment, chance, folder)
    path, shm = folder / DATABASE, folder / f"{DATABASE}-shm"
    # The index of the log is no part of what is promised: SQLite makes it anew, whatever the disk says.
    if chance.random() < 0.5:
        shm.unlink(missing_ok=True)
    else:
        shm.write_bytes(chance.randbytes(2**15))
    async with SqliteSaver(path, synchronous="NORMAL"):
        pass  # whatever is there can be opened, be it half of an empty database
    return path


def traced_disk(folder: Path, gate: Path, start: Callable[[], Forked]) -> Disk:
    """Run a child under strace; return what it did to the files of a folder."""
    log, before = folder.with_suffix(".strace"), folder.with_suffix(".before")
    shutil.copytree(folder, before)
    options = ["-o", str(log), "-xx", "-s", str(LONGEST), "-e", f"trace={calls.TRACED}", "-e", "signal=none"]
    traced(start, gate, options).succeed()
    with log.open() as lines:
        found = calls.read(line.rstrip("\n") for line in lines)
    log.unlink()
    shutil.rmtree(folder)
    before.rename(folder)
    return Disk(folder, found)


async def record(launcher: Launcher, folder: Path, case: Case, *, from_nothing: bool) -> Recording:
    """Run a case under strace, on a database that is there or on none."""
    program = PROGRAMS[case.program]
    folder.mkdir()
    path, ledger, gate = folder / DATABASE, folder / LEDGER, folder.with_suffix(".gate")
    case = _placed(case, path, ledger, gate=str(gate))
    if not from_nothing:
        part: Any = "opening" if program.answer is None else "run to the pause"
        assert not launcher.run(_placed(case, path, folder.with_suffix(".start"), part=part, gate=""))
    before = Rows.of(path) if path.exists() else Rows({}, set(), set(), 0)
    disk = traced_disk(folder, gate, lambda: launcher._zygote.start(run_case, **asdict(case)))
    return Recording(case, disk, before, await Reference.of(program), ledger)


def _placed(case: Case, path: Path, ledger: Path, **options: Any) -> Case:
    return Case(**{**vars(case), "database": str(path), "ledger": str(ledger), **options})
