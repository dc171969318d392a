"""Simulated power loss: whatever of the unsynced writes the disk kept, dropped or tore, nothing acknowledged is gone.

Runs of the library as it is are recorded under strace: every byte they write to their database, every sync, every
change of a length or a name, every line of a ledger that says what was acknowledged. From a recording, disks are made
that a loss of power at some moment could have left, and each is opened, examined and gone on from. A VFS for APSW
would see less: APSW brings an SQLite of its own, while what runs here is the one that Python's driver brings.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any, Final

import anyio

from persistence.sqlite import opening
from tests.crash.cases import Case
from tests.crash.launching import Launcher
from tests.crash.programs import PROGRAMS
from tests.crash.tracing import why_not
from tests.torture.catalog import Report, UnavailableError, part
from tests.torture.power.recording import Recording, record

FEW_PAGES: Final = 4
"""So that the log is folded into the file, and begun anew, in the middle of a run."""
LOSSES_A_RECORDING: Final = 50
"""At least, as a recording takes as long as so many."""
FEW_VIOLATIONS: Final = 20


@part("power", "What was acknowledged survives a loss of power, and the run goes on from it.", full=5_000, short=150)
def power_loss(cases: int, seed: int) -> Report:
    """Record as many kinds of runs as are worth it, and lose the power at random moments of each."""
    if reason := why_not():
        raise UnavailableError(reason)
    kinds = _kinds(random.Random(seed))[: max(1, cases // LOSSES_A_RECORDING)]
    return anyio.run(_try_out, kinds, cases, seed)


def _kinds(chance: random.Random) -> list[tuple[Case, bool]]:
    """Return all kinds of runs in a random order, and whether each begins without a database."""
    kinds = []
    pages = opening.WAL_PAGES, FEW_PAGES
    choices: Any = product(PROGRAMS.values(), ("sync", "async", "exit"), pages, (False, True))
    for number, (program, durability, folded_at, from_nothing) in enumerate(choices):
        if program.answer is None or not from_nothing:
            backend: Any = ("asyncio", "trio")[number // 2 % 2]
            kinds.append((Case("", "", program.name, durability, backend, pages=folded_at), from_nothing))
    chance.shuffle(kinds)
    return kinds


async def _try_out(kinds: list[tuple[Case, bool]], cases: int, seed: int) -> Report:
    violations: list[str] = []
    tried = moments = 0
    with short_logs(), tempfile.TemporaryDirectory(dir=in_memory()) as name, Launcher(Path(name, "errors")) as launcher:
        for number, (case, from_nothing) in enumerate(kinds):
            recording = await record(launcher, Path(name, f"{number}"), case, from_nothing=from_nothing)
            moments += len(recording.disk.moments)
            for loss in range(cases * number // len(kinds), cases * (number + 1) // len(kinds)):
                tried += 1
                if len(violations) < FEW_VIOLATIONS and (fault := await lost(recording, seed + loss)):
                    violations.append(f"{case} from nothing: {from_nothing}, loss {seed + loss}: {fault}")
    return Report(tried, violations, f"({len(kinds)} kinds of runs, {moments:,} moments)")


async def lost(recording: Recording, seed: int) -> str:
    """Lose the power; return what was broken, or nothing."""
    with tempfile.TemporaryDirectory(dir=in_memory()) as folder:
        try:
            await recording.examine(seed, Path(folder))
        except Exception as error:  # noqa: BLE001 - whatever it is, the disk should have been usable
            return f"{type(error).__name__}: {error}"
    return ""


def in_memory() -> str | None:
    """Return a folder that is no disk: what a loss leaves is made up anyway."""
    memory = Path("/dev/shm")  # noqa: S108 - fresh folders are made in it
    return str(memory) if memory.is_dir() else None


@contextmanager
def short_logs() -> Iterator[None]:
    """Do not give every database that is examined a log of working size."""
    usual = opening.GROWN_LOG
    opening.GROWN_LOG = 0  # type: ignore[misc]
    try:
        yield
    finally:
        opening.GROWN_LOG = usual  # type: ignore[misc]
