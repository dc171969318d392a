"""Clients in a process of their own, which may be killed, frozen, or share its threads with another."""

from __future__ import annotations

import fcntl
import os
import select
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import anyio
import anyio._backends._asyncio  # anyio imports them at the first run, which every child's is
import anyio._backends._trio

from persistence.errors import BackendOpenError
from persistence.sqlite import opening
from persistence.writer.limits import Limits
from tests.crash.failpoints import Failpoints, watch_statements, watch_units
from tests.crash.tracing import pass_gate
from tests.crash.zygote import Forked, Zygote
from tests.torture.appending.clients import Clients, Work
from tests.torture.appending.jumping import let_clock_jump
from tests.torture.appending.kits import OURS
from tests.torture.appending.operations import Log
from tests.torture.appending.places import Place

SMALL_LOG = 2**17
"""Bytes that opening gives the write-ahead log before it is used: enough for these runs."""


PATIENCE = 200
"""Calls that may fail one after the other before a fault should be over."""


COMING = 60
"""Seconds within which processes come to their starting line, or will not come any more."""


class StartingLine:
    """Where processes wait for each other, so that they begin at once."""

    def __init__(self, folder: Path) -> None:
        self.path = folder
        self._ready = folder / "ready"

    @contextmanager
    def kept(self, runners: int) -> Iterator[None]:
        """Let nobody over the line before so many have come to it."""
        self.path.mkdir()
        os.mkfifo(self._ready)
        ready = os.open(self._ready, os.O_RDWR)
        line = os.open(self.path / "line", os.O_CREAT | os.O_RDWR)
        try:
            fcntl.flock(line, fcntl.LOCK_EX)
            yield
            come = 0
            while come < runners:
                if not select.select([ready], [], [], COMING)[0]:
                    message = f"only {come} of {runners} processes came to the line within {COMING} s"
                    raise AssertionError(message)
                come += len(os.read(ready, runners))
        finally:
            os.close(line)
            os.close(ready)

    def wait(self) -> None:
        """Come to the line, and wait for the others."""
        with self._ready.open("wb", buffering=0) as ready:
            ready.write(b".")
        with (self.path / "line").open("rb") as line:
            fcntl.flock(line, fcntl.LOCK_SH)


def start(
    zygote: Zygote,
    place: Place,
    work: Work,
    log: Path,
    *,
    loop: str = "asyncio",
    fatal: int = 0,
    by: signal.Signals = signal.SIGKILL,
    line: StartingLine | None = None,
    limits: Limits | None = None,
    gate: str = "",
    finishes: bool = False,
    clock: int = 0,
) -> Forked:
    """Start a process of clients.

    ``fatal`` is the place of the commit path at which it is signalled, 0 for none. With ``finishes`` it appends to each
    thread once more at the end, which must work. ``clock`` is the seed of a clock that jumps, 0 for the machine's.
    """
    told = {
        "place": asdict(place),
        "work": asdict(work),
        "log": str(log),
        "loop": loop,
        "fatal": fatal,
        "by": int(by),
        "line": "" if line is None else str(line.path),
        "limits": {} if limits is None else asdict(limits),
        "gate": gate,
        "finishes": finishes,
        "clock": clock,
    }
    return zygote.start(append, told=told)


def append(told: dict[str, Any]) -> None:
    """Be the child."""
    pass_gate(told["gate"])
    if told["clock"]:
        let_clock_jump(told["clock"])
    opening.GROWN_LOG = opening._SPILLED_BLOB = SMALL_LOG  # type: ignore[misc]
    points = Failpoints(told["fatal"], signal.Signals(told["by"]))
    watch_statements(points)
    watch_units(points, lambda _rows: None)
    log = Log(Path(told["log"]))

    async def main() -> None:
        place, work = Place(**told["place"]), Work(**told["work"])
        async with place.opened(Limits(**told["limits"])) as saver:
            clients = Clients(work, OURS, saver, log)
            clients.reached = lambda _node: points.at("in a node")
            if told["line"]:
                StartingLine(Path(told["line"])).wait()
            points.armed = True
            await clients.run()
            if told["finishes"]:
                await clients.finish(tries=PATIENCE)
        log.told(unexpected=clients.unexpected, passed=points.passed)

    try:
        anyio.run(main, backend=told["loop"])
    except BackendOpenError as error:
        log.told(unexpected=[], unopened=str(error))
