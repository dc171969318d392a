"""Simulated power loss: whatever of the unsynced writes the disk kept, dropped or tore, nothing acknowledged is gone.

Runs of the library as it is are recorded under strace: every byte they write to their database, every sync, every
change of a length or a name, every line of a ledger that says what was acknowledged. Some are of one client, others of
many at once, whose units share commits and who delete, prune and begin anew. From a recording, disks are made that a
loss of power at some moment could have left, and each is opened, examined and gone on from. A VFS for APSW would see
less: APSW brings an SQLite of its own, while what runs here is the one that Python's driver brings.
"""

from __future__ import annotations

import random
import tempfile
from collections import Counter
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
from tests.crash.zygote import Zygote
from tests.torture.catalog import Report, UnavailableError, part
from tests.torture.failing import case as trial
from tests.torture.power.crowded import CrowdRecording, record_crowd
from tests.torture.power.crowds import CLIENTS, Crowd, run_crowd
from tests.torture.power.recording import Recording, record

FEW_PAGES: Final = 4
"""So that the log is folded into the file, and begun anew, in the middle of a run."""
LOSSES_A_RECORDING: Final = 50
"""At least, as a recording takes as long as so many."""
FEW_VIOLATIONS: Final = 20
SOME_PAGES: Final = 20
"""So that it is folded while several clients' rows are in it."""

Kind = Crowd | tuple[Case, bool]
"""Many clients at once; or one run, and whether it begins without a database."""


@part("power", "What was acknowledged survives a loss of power, and the run goes on from it.", full=5_000, short=20)
def power_loss(cases: int, seed: int) -> Report:
    """Record as many kinds of runs as are worth it, and lose the power at random moments of each."""
    if reason := why_not():
        raise UnavailableError(reason)
    kinds = _kinds(random.Random(seed))[: max(2, cases // LOSSES_A_RECORDING)]
    return anyio.run(_try_out, kinds, cases, seed)


def _kinds(chance: random.Random) -> list[Kind]:
    """Return all kinds of runs in a random order, but one of each sort first, so that few also show both."""
    crowds, alone = _crowds(chance), _alone(chance)
    rest = [*crowds[1:], *alone[1:]]
    chance.shuffle(rest)
    return [crowds[0], alone[0], *rest]


def _crowds(chance: random.Random) -> list[Kind]:
    """Return the kinds of runs of many clients at once."""
    choices: Any = product(("asyncio", "trio"), (opening.WAL_PAGES, SOME_PAGES, FEW_PAGES), (False, True))
    crowds: list[Kind] = [Crowd(loop, pages, chance.randrange(2**31), nothing) for loop, pages, nothing in choices]
    chance.shuffle(crowds)
    return crowds


def _alone(chance: random.Random) -> list[Kind]:
    """Return the kinds of runs of one client, and whether each begins without a database."""
    kinds: list[Kind] = []
    pages = opening.WAL_PAGES, FEW_PAGES
    choices: Any = product(PROGRAMS.values(), ("sync", "async", "exit"), pages, (False, True))
    for number, (program, durability, folded_at, from_nothing) in enumerate(choices):
        if program.answer is None or not from_nothing:
            backend: Any = ("asyncio", "trio")[number // 2 % 2]
            kinds.append((Case("", "", program.name, durability, backend, pages=folded_at), from_nothing))
    chance.shuffle(kinds)
    return kinds


async def _try_out(kinds: list[Kind], cases: int, seed: int) -> Report:
    violations: list[str] = []
    seen = Counter[str]()
    with (
        short_logs(),
        tempfile.TemporaryDirectory(dir=in_memory()) as name,
        Launcher(Path(name, "errors")) as launcher,
        Zygote(Path(name, "errors of crowds"), [run_crowd.__module__]) as zygote,
    ):
        for number, kind in enumerate(kinds):
            first, end = cases * number // len(kinds), cases * (number + 1) // len(kinds)
            recording: Recording | CrowdRecording | None = None
            with trial(f"recording {kind}", violations):
                recording = await _recorded(kind, launcher, zygote, Path(name, f"{number}"))
            if recording is not None:
                tried = await _lose(recording, f"{kind}", range(seed + first, seed + end), violations)
                seen.update(tried=tried, moments=len(recording.disk.moments))
                if isinstance(recording, CrowdRecording):
                    seen.update(shared=tried, units=recording.units, commits=recording.commits)
    shared = (
        f"{seen['shared']:,} losses were of {CLIENTS} clients at once: {seen['units']:,} units in {seen['commits']:,}"
    )
    note = f"({len(kinds)} kinds of runs, {seen['moments']:,} moments; {shared} commits)"
    return Report(seen["tried"], violations, note)


async def _recorded(kind: Kind, launcher: Launcher, zygote: Zygote, folder: Path) -> Recording | CrowdRecording:
    if isinstance(kind, Crowd):
        return await record_crowd(zygote, folder, kind)
    case, from_nothing = kind
    return await record(launcher, folder, case, from_nothing=from_nothing)


async def _lose(recording: Recording | CrowdRecording, kind: str, seeds: range, violations: list[str]) -> int:
    """Lose the power as often as there are seeds, or until enough is known; return how often it was."""
    tried = 0
    for seed in seeds:
        if len(violations) >= FEW_VIOLATIONS:
            break
        tried += 1
        if fault := await lost(recording, seed):
            violations.append(f"{kind}, loss {seed}: {fault}")
    return tried


async def lost(recording: Recording | CrowdRecording, seed: int) -> str:
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
