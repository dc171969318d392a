"""Owners of leases, named so that others on the same machine can tell whether their process is still there.

A dead process's threads are then free at once. Elsewhere, and in another container, only silence tells. People find the
process by what the name says of it.
"""

from __future__ import annotations

import os
import socket
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import quote, unquote
from uuid import uuid4

UNKNOWN = "-"
"""Stands for what the operating system does not tell."""

ENDED = "ended"
"""Stands for the start of a process that has ended and whose parent has not asked yet how."""


_OLDER: Final = 5
"""Parts of the names that older versions gave: without host and moment."""


class _Owner(NamedTuple):
    """The parts of an owner's name."""

    boot: str = UNKNOWN
    space: str = UNKNOWN
    pid: str = UNKNOWN
    started: str = UNKNOWN
    token: str = UNKNOWN
    host: str = ""
    opened: str = ""

    @property
    def process(self) -> tuple[str, ...]:
        return self[:4]


def new_owner() -> str:
    """Return a name that no other saver ever has: machine, process namespace, process, its start, random, host, now."""
    pid = os.getpid()
    opened = datetime.now(UTC).isoformat(timespec="seconds")
    host = quote(socket.gethostname(), safe="")
    return "/".join((*_machine(), str(pid), _started(str(pid)) or UNKNOWN, uuid4().hex, host, opened))


def is_gone(owner: str) -> bool:
    """Tell whether an owner's process has surely ended; False where that cannot be known from here."""
    boot, space, pid, started, *_ = _parts(owner)
    if UNKNOWN in (boot, space, started) or (boot, space) != _machine() or not pid.isdecimal():
        return False
    found = _started(pid)
    return not _is_there(int(pid)) if found is None else found != started


def in_words(owner: str, reader: str | None = None) -> str:
    """Say which process an owner is in, where, and since when its saver is open; as far as its name tells.

    ``reader``: the owner that asks, to whom its own process is "this process".
    """
    parts = _parts(owner)
    if not parts.pid.isdecimal():
        return f"owner {owner!r}"
    since = f", whose saver was opened at {_moment(parts.opened)}" if parts.opened else ""
    if reader is not None and UNKNOWN not in parts.process and _parts(reader).process == parts.process:
        return f"another saver of this process{since.replace('whose saver', 'which')}"
    where = f" on host {unquote(parts.host)!r}" if parts.host else ""
    return f"process {parts.pid}{where}{since}"


def _parts(owner: str) -> _Owner:
    parts = owner.split("/")
    return _Owner(*parts) if len(parts) in (_OLDER, len(_Owner._fields)) else _Owner()


def _moment(opened: str) -> str:
    try:
        return f"{datetime.fromisoformat(opened).astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
    except ValueError:
        return repr(opened)


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
