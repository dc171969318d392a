"""Children under strace: the kernel's answers are changed for one process, or it is killed at one of its calls."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.crash.zygote import Forked

STRACE = shutil.which("strace")
"""Where strace is; None if it is not installed."""


def why_not() -> str:
    """Return why a process may not be traced here; nothing if it may."""
    if STRACE is None:
        return "strace is not installed"
    probe = subprocess.run([STRACE, "-f", "-qq", "-e", "trace=none", "true"], capture_output=True, check=False)
    return f"strace may not trace here ({probe.stderr.decode().strip()})" if probe.returncode else ""


def traced(start: Callable[[], Forked], gate: Path, options: Sequence[str]) -> Forked:
    """Start a child that waits at a gate, trace it until its end, and return it."""
    with tracing(start, gate, options) as child:
        pass
    return child


@contextmanager
def tracing(start: Callable[[], Forked], gate: Path, options: Sequence[str]) -> Iterator[Forked]:
    """Start a child that waits at a gate, and yield it once it is traced; it is traced until its end."""
    assert STRACE is not None
    os.mkfifo(gate)
    child = start()
    command = [STRACE, "-f", "-o", os.devnull, "-p", str(child.pid), *options]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as tracer:
        assert tracer.stderr is not None
        attached = tracer.stderr.readline()
        gate.write_bytes(b"")
        assert "attached" in attached, attached
        yield child
        tracer.communicate()
    gate.unlink()


def pass_gate(gate: str) -> None:
    """Wait at a gate until somebody has attached a tracer; an empty name is no gate."""
    if gate:
        Path(gate).read_bytes()
