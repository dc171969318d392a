"""Owners of leases, named so that others on the same machine can tell whether their process is still there.

A dead process's threads are then free at once. Elsewhere, and in another container, only silence tells.
"""

from __future__ import annotations

import os
from pathlib import Path
from uuid import uuid4

UNKNOWN = "-"
"""Stands for what the operating system does not tell."""

ENDED = "ended"
"""Stands for the start of a process that has ended and whose parent has not asked yet how."""


def new_owner() -> str:
    """Return a name that no other saver ever has: machine, process namespace, process, its start, random."""
    pid = os.getpid()
    return "/".join((*_machine(), str(pid), _started(str(pid)) or UNKNOWN, uuid4().hex))


def is_gone(owner: str) -> bool:
    """Tell whether an owner's process has surely ended; False where that cannot be known from here."""
    boot, space, pid, started, _ = owner.split("/") if owner.count("/") == 4 else (UNKNOWN,) * 5  # noqa: PLR2004
    if UNKNOWN in (boot, space, started) or (boot, space) != _machine() or not pid.isdecimal():
        return False
    found = _started(pid)
    return not _is_there(int(pid)) if found is None else found != started


def _machine() -> tuple[str, str]:
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
        return boot, str(os.stat("/proc/self/ns/pid").st_ino)  # noqa: PTH116 - follows the link to the namespace
    except OSError:
        return UNKNOWN, UNKNOWN


def _started(pid: str) -> str | None:
    """Return when a process was started, in ticks since the machine was; None if it is not to be seen."""
    try:
        facts = Path(f"/proc/{pid}/stat").read_text("ascii", errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    state, started = facts[0], facts[19]
    return ENDED if state in "ZXx" else started


def _is_there(pid: int) -> bool:
    """Tell whether there is a process that we may not look at: some systems show each user only his own."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True
    return True
